/** How many rows stand for many in tests of costs: SCALE=5 makes 200,000 a million, and the tests minutes long. */
const factor = Number(process.env.SCALE ?? 1)

export const scaled = (count: number): number => count * factor

/** For the names of tests. */
export const spelled = (count: number): string => scaled(count).toLocaleString('en')
