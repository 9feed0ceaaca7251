/** Tables, which become lists on phones: there, the column's name is shown before each value. */
import { type Children, Panel } from './basics.tsx'
import type { Selection } from './select.tsx'

/** A column without a name has the actions of its row. Kinds are classes: `cell-main` for what people look for, `number`, `bare` without its name. */
export type Column<T> = readonly [name: string, cell: (row: T) => Children, kind?: string]

type Props<T> = {
  caption: string
  columns: readonly (Column<T> | false)[]
  rows: readonly T[]
  kind?: string
  id?: (row: T) => string
  rowClass?: (row: T) => string | false | null | undefined
  select?: { selection: Selection; label: (row: T) => string }
}

const Box = ({ label, checked, onChange }: { label: string; checked: boolean; onChange: () => void }) => (
  <label>
    <span class="unseen">{label}</span>
    <input type="checkbox" checked={checked} onChange={onChange} />
  </label>
)

export const Table = <T,>({ caption, columns: all, rows, kind = '', id, rowClass, select }: Props<T>) => {
  const columns = all.filter(column => column !== false)
  const selected = select?.selection.ids
  return (
    <table class={`table ${kind}`}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {select && (
            <th class="cell-select" scope="col">
              <Box
                label="Select all on this page"
                checked={rows.every(row => selected!.has(id!(row)))}
                onChange={select.selection.togglePage}
              />
            </th>
          )}
          {columns.map(([name, , kind]) => (
            <th key={name} scope="col" class={kind}>
              {name || <span class="unseen">Actions</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, n) => {
          const key = id?.(row) ?? String(n)
          const isSelected = selected?.has(key)
          return (
            <tr key={key} data-row class={[isSelected && 'selected', rowClass?.(row)].filter(Boolean).join(' ') || undefined}>
              {select && (
                <td class="cell-select">
                  <Box label={`Select ${select.label(row)}`} checked={isSelected!} onChange={() => select.selection.toggle(key)} />
                </td>
              )}
              {columns.map(([name, cell, kind = '']) => (
                <td key={name} class={kind || undefined} data-label={/cell-main|bare|actions/.test(kind) ? undefined : name}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

/** A table in a panel. */
type ListProps<T> = Omit<Props<T>, 'caption'> & { title?: string; none?: string; actions?: Children }
export const List = <T,>({ none, actions, title = '', ...table }: ListProps<T>) => (
  <Panel title={title} actions={actions} flush>
    {table.rows.length === 0 && none ? <p class="soft item">{none}</p> : <Table caption={title} {...table} />}
  </Panel>
)
