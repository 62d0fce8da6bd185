/** Counters, gauges and histograms in Prometheus' text format 0.0.4, with no more than recording needs on the hot path. */

type Labels = Readonly<Record<string, string>>

export interface Metric {
  /** Lines of the exposition, HELP and TYPE first; "" when there is nothing to show. */
  text(): string
}

interface Description {
  readonly name: string
  /** One line. */
  readonly help: string
}

/** Counts by label values, which come in the order of `labels`. */
export class Counter implements Metric {
  readonly #description: Description
  readonly #labels: readonly string[]
  readonly #series = new Map<string, { readonly values: readonly string[]; count: number }>()
  readonly #type: 'counter' | 'gauge'

  constructor(
    description: Description & { readonly labels: readonly string[] },
    type: 'counter' | 'gauge' = 'counter',
  ) {
    this.#description = description
    this.#labels = description.labels
    this.#type = type
  }

  add(amount: number, ...values: readonly string[]): void {
    const key = values.join(separator)
    const series = this.#series.get(key)
    if (series === undefined) this.#series.set(key, { values, count: amount })
    else series.count += amount
  }

  text(): string {
    const { name } = this.#description
    let lines = ''
    for (const { values, count } of this.#series.values()) {
      lines += `${name}${labelText(labelsOf(this.#labels, values))} ${count}\n`
    }
    return lines === '' ? '' : head(this.#description, this.#type) + lines
  }
}

/** How many observations are at or under each bound, their sum and number, by label values. */
export class Histogram implements Metric {
  readonly #description: Description & { readonly labels: readonly string[]; readonly bounds: readonly number[] }
  readonly #series = new Map<string, { readonly values: readonly string[]; readonly counts: number[]; sum: number }>()

  /** @param description - `bounds` ascending, without infinity. */
  constructor(description: Description & { readonly labels: readonly string[]; readonly bounds: readonly number[] }) {
    this.#description = description
  }

  observe(value: number, ...values: readonly string[]): void {
    const key = values.join(separator)
    const { bounds } = this.#description
    let series = this.#series.get(key)
    if (series === undefined) {
      series = { values, counts: [...bounds, 0].map(() => 0), sum: 0 }
      this.#series.set(key, series)
    }
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
    series.sum += value
  }

  text(): string {
    const { name, labels, bounds } = this.#description
    let lines = ''
    for (const { values, counts, sum } of this.#series.values()) {
      const own = labelsOf(labels, values)
      let count = 0
      for (const [i, inBucket] of counts.entries()) {
        count += inBucket
        const le = bounds[i] === undefined ? '+Inf' : String(bounds[i])
        lines += `${name}_bucket${labelText({ ...own, le })} ${count}\n`
      }
      lines += `${name}_sum${labelText(own)} ${sum}\n${name}_count${labelText(own)} ${count}\n`
    }
    return lines === '' ? '' : head(this.#description, 'histogram') + lines
  }
}

/** Values that are looked up when they are asked for. */
export function gauge(
  description: Description & { readonly type?: 'counter' | 'gauge' },
  read: () => readonly { readonly labels?: Labels; readonly value: number }[],
): Metric {
  return {
    text() {
      const lines = read().map(({ labels, value }) => `${description.name}${labelText(labels ?? {})} ${value}\n`)
      return lines.length === 0 ? '' : head(description, description.type ?? 'gauge') + lines.join('')
    },
  }
}

/** Stands in no label value that we make: they come from the registry, from verbs and from numbers. */
const separator = '\n'

const head = ({ name, help }: Description, type: string): string => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

function labelsOf(names: readonly string[], values: readonly string[]): Labels {
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']))
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

const escaped = (value: string): string =>
  value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`)
