/** Number of rows in tests of costs: SCALE=5 turns 200,000 into a million, and the tests take minutes. */
const factor = Number(process.env.SCALE ?? 1)

export const scaled = (count: number): number => count * factor

/** For the names of tests. */
export const spelled = (count: number): string => scaled(count).toLocaleString('en')
