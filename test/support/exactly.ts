/**
 * Compares exactly what a test names: strings and numbers are equal, lists have the same length, objects have the named members (and may have
 * others). tap's own `match` allows extra items and substrings. A RegExp, or a type such as String, matches values that the test cannot know.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'

/** Passes if `actual` matches `expected`. */
export const exactly = (
  t: Pick<Test, 'pass' | 'fail'>,
  actual: unknown,
  expected: unknown,
  message = 'is exactly as expected'
): boolean => {
  const differences = differencesOf(actual, expected, '')
  if (differences.length === 0) return t.pass(message)
  return t.fail(message, { differences: differences.slice(0, 10), where: callSite() })
}

const types = new Map<unknown, (value: unknown) => boolean>([
  [String, value => typeof value === 'string'],
  [Number, value => typeof value === 'number'],
  [Boolean, value => typeof value === 'boolean']
])

const differencesOf = (actual: unknown, expected: unknown, path: string): string[] => {
  const differs = (wanted: string) => [`${path || 'value'}: ${show(actual)} instead of ${wanted}`]
  if (expected instanceof RegExp) return typeof actual === 'string' && expected.test(actual) ? [] : differs(String(expected))
  if (typeof expected === 'function') {
    const isOfType = types.get(expected) ?? (value => value instanceof (expected as typeof Object))
    return isOfType(actual) ? [] : differs(`a ${expected.name}`)
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return differs(`a list of ${expected.length}`)
    const items = expected.flatMap((item, n) => differencesOf(actual[n], item, `${path}[${n}]`))
    return actual.length === expected.length
      ? items
      : [`${path || 'value'}: ${actual.length} items instead of ${expected.length}: ${show(actual)}`, ...items]
  }
  if (isPlain(expected)) {
    if (typeof actual !== 'object' || actual === null || Array.isArray(actual)) return differs(show(expected))
    return Object.entries(expected).flatMap(([name, member]) =>
      differencesOf((actual as Record<string, unknown>)[name], member, path ? `${path}.${name}` : name)
    )
  }
  return isDeepStrictEqual(actual, expected) ? [] : differs(show(expected))
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value))

const show = (value: unknown): string => {
  const text = value instanceof Error ? String(value) : typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? String(value))
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

/** The line of the test; tap would show a line of this file. */
const callSite = () =>
  new Error().stack
    ?.split('\n')
    .find(line => line.includes('.test.ts'))
    ?.trim()

/** The values of a member of each item, or lists of those of several. */
// biome-ignore lint/suspicious/noExplicitAny: items and values of any shape
export const pluck = (items: readonly any[], ...names: string[]): any[] =>
  items.map(item => (names.length === 1 ? item[names[0]!] : names.map(name => item[name])))
