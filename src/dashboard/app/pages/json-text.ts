/** JSON in fields. */
import { Failure, parseExactly } from '../api.ts'

/** Why a text is not JSON; undefined if it is, or empty. */
export const jsonProblem = (text: string): string | undefined => {
  try {
    if (text.trim()) parseExactly(text)
  } catch (error) {
    return `not valid JSON: ${(error as Error).message}`
  }
}

/** The value of a text, which keeps numbers of any length. @throws {Failure} at the field that is not JSON */
export const jsonOf = (text: string, path = 'payload'): unknown => {
  const problem = jsonProblem(text)
  if (problem) throw new Failure(422, 'validation_error', `${path}: ${problem}`, { [path]: problem })
  return parseExactly(text.trim() || '{}')
}
