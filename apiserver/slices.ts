import type { Env } from '../storage/index.ts'
import { sliceMs } from './limits.ts'

/** Long work in steps: after sliceMs of them everybody else has a turn. One step should stay below that. */
export async function inSlices<Result>(
  { clock, scheduler }: Pick<Env, 'clock' | 'scheduler'>,
  steps: Generator<undefined, Result>,
): Promise<Result> {
  let sliceEnd = clock.monotonicMs() + sliceMs
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (clock.monotonicMs() < sliceEnd) continue
    await new Promise<void>((resolve) => scheduler.soon(resolve))
    sliceEnd = clock.monotonicMs() + sliceMs
  }
}
