import { warningLengthMax, warningsMax } from '../http-limits.ts'

/** Collects the Warning headers of one answer: each text once, in order, printable and bounded. */
export class Warnings {
  readonly #values: string[] = []

  /** The header's values when `text` is new; undefined when it changes nothing. */
  add(text: string): readonly string[] | undefined {
    const clean = text
      .replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ')
      .slice(0, warningLengthMax)
      // a cut surrogate pair
      .replace(/[\ud800-\udbff]$/, '')
    const quoted = clean.replaceAll(/["\\]/g, String.raw`\$&`)
    // header bytes are UTF-8; Node takes one character a byte
    const value = `299 - "${Buffer.from(quoted).toString('latin1')}"`
    if (this.#values.length >= warningsMax || this.#values.includes(value)) return undefined
    this.#values.push(value)
    return this.#values
  }
}
