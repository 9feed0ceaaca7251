/**
 * Randomness in tests, including fast-check's. Each run prints its seed: TEST_SEED=<seed> repeats it, except for the order of concurrent calls.
 * TEST_CASES=20 makes twenty times as many cases.
 */
import fc from 'fast-check'
import t from 'tap'

const factor = Number(process.env.TEST_CASES ?? 1)
const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** Number of cases: `count`, multiplied by TEST_CASES. */
export const cases = (count: number): number => Math.ceil(count * factor)

t.comment(`TEST_SEED=${seed}`)
let state = seed

/** Begins again with the seed: a file draws the same alone and after others. */
export const restart = (): void => {
  state = seed
}

/** A number from 0 to below 1. (mulberry32) */
export const random = (): number => {
  state = (state + 0x6d2b79f5) | 0
  let x = Math.imul(state ^ (state >>> 15), 1 | state)
  x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
  return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
}

export const below = (n: number): number => Math.floor(random() * n)
export const chance = (probability: number): boolean => random() < probability
export const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
export const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map(item => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

/** @throws {Error} the counterexample, if one is found */
export function always<T>(property: fc.IAsyncProperty<T>, count?: number): Promise<void>
export function always<T>(property: fc.IProperty<T>, count?: number): void
export function always(property: fc.IRawProperty<unknown>, count = 100): unknown {
  return fc.assert(property as fc.IAsyncProperty<unknown>, { seed: below(2 ** 31), numRuns: cases(count) })
}
