/** Output as aligned text for people or JSON for programs. */
import type { Sink } from './io.ts'
import { printable } from './printable.ts'

export type Output = ReturnType<typeof createOutput>
/** Members of pages; long lists have a cursor, null on their last page. */
type Page = { total: number; total_exact: boolean; offset: number; next_cursor: string | null }
/** A member under its name, or a title with a member or a function of the row. */
export type Column<T> = (keyof T & string) | readonly [title: string, value: (keyof T & string) | ((row: T) => unknown)]

const paints = { red: 31, green: 32, yellow: 33, bold: 1 } as const
type Paint = keyof typeof paints
/** Words that are painted where they are a whole cell. */
const painting = {
  green: ['active', 'success', 'verified_success'],
  red: ['failed', 'missed', 'outcome_timeout', 'dead', 'high', 'critical'],
  yellow: ['paused', 'retrying', 'stale', 'warning']
} as const
const paintOf = new Map(Object.entries(painting).flatMap(([paint, words]) => words.map(word => [word as string, paint as Paint])))

export const createOutput = (stdout: Sink, { json, colours }: { json: boolean; colours: boolean }) => {
  const paint = (text: string, name: Paint) => (colours ? `\x1b[${paints[name]}m${text}\x1b[0m` : text)
  const write = (text: string) => stdout.write(`${text}\n`)
  const line = (text: string, colour?: Paint) => write(colour ? paint(printable(text), colour) : printable(text))
  const writeJson = (value: unknown, indent?: number) => write(printable(JSON.stringify(value, null, indent), '\n'))
  const painted = (cell: string) => (paintOf.has(cell) ? paint(cell, paintOf.get(cell)!) : cell)

  /** Prints rows as aligned columns below their titles. */
  const table = <T>(rows: T[], columns: readonly Column<T>[]) => {
    const pairs = columns.map(column =>
      typeof column === 'string' ? ([column.replace(/_at$/, '').replaceAll('_', ' '), column] as const) : column
    )
    const cells = rows.map(row => pairs.map(([, value]) => textOf(typeof value === 'function' ? value(row) : row[value])))
    const titles = pairs.map(([title]) => title.toUpperCase())
    const widths = titles.map((title, i) => Math.max(widthOf(title), ...cells.map(row => widthOf(row[i]!))))
    const aligned = (row: string[], show: (cell: string) => string) =>
      row.map((cell, i) => show(cell) + (i < row.length - 1 ? ' '.repeat(widths[i]! - widthOf(cell)) : '')).join('  ')
    write(aligned(titles, title => paint(title, 'bold')))
    for (const row of cells) write(aligned(row, painted))
  }
  /** Prints names and values, without null and empty ones. */
  const fields = (values: Record<string, unknown>) => {
    const texts = Object.entries(values).map(([name, value]) => [name.replaceAll('_', ' '), value == null ? '' : textOf(value)] as const)
    const shown = texts.filter(([, text]) => text !== '')
    const width = Math.max(...shown.map(([name]) => name.length))
    for (const [name, text] of shown) write(`${paint(name.padEnd(width), 'bold')}  ${painted(text)}`)
  }
  return {
    json,
    /** Prints one line, whatever the text. */
    line,
    /** Prints a value as JSON on one line. */
    jsonLine: (value: unknown) => writeJson(value),
    table,
    /** Prints a table below an empty line and its title, unless there are no rows. */
    section: <T>(title: string, rows: T[], columns: readonly Column<T>[]) => {
      if (rows.length === 0) return
      line('')
      if (title) line(title, 'bold')
      table(rows, columns)
    },
    fields,
    /** Prints the whole value as JSON, or calls `text`. */
    show: (value: unknown, text: () => void) => (json ? writeJson(value, 2) : text()),
    /** Prints one page of a list as a table, or the text for an empty one. */
    list: <T>(page: object, rows: T[], columns: readonly Column<T>[], empty: string) => {
      if (rows.length === 0) return line(empty)
      table(rows, columns)
      const { total, total_exact = true, offset = 0, next_cursor } = page as Partial<Page>
      const end = offset + rows.length
      // With --count-to 0, nothing was counted.
      const of = total_exact ? `of ${total}` : total ? `of ${total} and more` : 'shown'
      if (next_cursor) write(`\n${rows.length} ${of}; next page: --cursor ${printable(next_cursor)}`)
      else if (total !== undefined && next_cursor === undefined && end < total)
        write(`\n${offset + 1}–${end} ${of}; next page: --offset ${end}`)
    }
  }
}

/** Timestamps without milliseconds, lists of texts with commas, other JSON on one line. */
const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return printable(value.join(', '))
  if (typeof value === 'object') return printable(JSON.stringify(value))
  return printable(String(value).replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/, '$1Z'))
}

/** Width in terminal columns: wide characters and emoji take two. */
const widthOf = (text: string): number => {
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(text)) width += wide.test(segment) ? 2 : 1
  return width
}
const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
