/** Text of webhook responses: what is stored of it, and the outcome that it may report. */

const STORED_CHARACTERS = 2000

/** The first 2,000 characters, none of them cut in half, without NUL, which PostgreSQL cannot store. */
export const storable = (text: string): string => {
  const clean = text.includes('\0') ? text.replaceAll('\0', '') : text
  const short =
    clean.length > STORED_CHARACTERS
      ? Array.from(clean.slice(0, 2 * STORED_CHARACTERS))
          .slice(0, STORED_CHARACTERS)
          .join('')
      : clean
  return short.toWellFormed()
}

export type Report = { success: boolean; result: string | null; error: string | null }

/** The outcome that a handler reports in its response: a JSON object with a boolean `success`. Null if there is none. */
export const reportIn = ({ answer }: { answer: string | null }): Report | null => {
  if (!answer?.includes('"success"')) return null
  try {
    const { success, result, error } = JSON.parse(answer) ?? {}
    return typeof success === 'boolean' ? { success, result: textOf(result), error: textOf(error) } : null
  } catch {
    return null
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? storable(value) : null)
