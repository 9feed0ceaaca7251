import type { Steps } from '../../src/firing/computing.ts'

/** The result of a computation. */
export const finish = <T>(steps: Steps<T>): T => {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
