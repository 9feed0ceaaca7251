/** Lengths of real time such as `45m`, and instants that far from now. No imports: the command line loads this too. */
const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export const isLength = (text: string): boolean => /^\d{1,8}[smhd]$/.test(text)

/** The milliseconds of a length. */
export const lengthOf = (text: string): number => Number(text.slice(0, -1)) * units[text.at(-1) as keyof typeof units]

const shortest = '1s'
const longest = '366d'
export const offsetRule = `must be a whole number and a unit, such as 90s, 10m or 2h, from ${shortest} to ${longest}`

/** The instant that is `10m` after now; undefined if the text breaks the rule. */
export const instantAfter = (now: Date, offset: string): Date | undefined => {
  const length = isLength(offset) ? lengthOf(offset) : 0
  return length >= lengthOf(shortest) && length <= lengthOf(longest) ? new Date(+now + length) : undefined
}
