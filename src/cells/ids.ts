/**
 * The cell of an id, key or token, without a lookup. Cells are numbered from 1. In SQL, `cue.uuid_v7` and `cue.cell_of` follow the same rules.
 */
import { createHash } from 'node:crypto'

/** Base-62 digits, as in keys. */
export const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export const maxCells = 61

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7([0-9a-f]{3})-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The cell of a UUID, such as an account's, an execution's or a deletion's; 1 for any other text. */
export const cellOfId = (id: string): number => {
  const random = UUID.exec(id)?.[1]
  return random === undefined ? 1 : Number.parseInt(random, 16) >> 6
}

/** The first character of texts that belong to a cell. */
export const cellDigit = (cell: number): string => digits[cell]!

/** The cell that a text names by its first character; undefined unless that is a digit. */
export const cellOfDigit = (text: string): number | undefined => {
  const cell = text === '' ? -1 : digits.indexOf(text[0]!)
  return cell < 0 ? undefined : cell
}

/**
 * The cell of a value chosen by a client: the one with the greatest hash of both. A new cell takes its share from all others, and nothing moves
 * between those.
 */
export const cellOfValue = (value: string, cells: number): number => {
  let best = 1
  let greatest = -1
  for (let cell = 1; cells > 1 && cell <= cells; cell++) {
    const score = createHash('sha256').update(`${cell} ${value}`).digest().readUIntBE(0, 6)
    if (score > greatest) [best, greatest] = [cell, score]
  }
  return best
}
