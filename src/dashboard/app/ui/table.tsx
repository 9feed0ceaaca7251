/** Tables, which become lists on phones. */

import { type Children, Panel } from './basics.tsx'

type Props = { caption: string; columns: string[]; children: Children; kind?: string; numbers?: string[] }

/** A column without a name has the actions of its row. */
export const Table = ({ caption, columns, children, kind = '', numbers = [] }: Props) => (
  <table class={`table ${kind}`}>
    <caption class="unseen">{caption}</caption>
    <thead>
      <tr>
        {columns.map(name => (
          <th key={name} scope="col" class={numbers.includes(name) ? 'number' : undefined}>
            {name || <span class="unseen">Actions</span>}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>{children}</tbody>
  </table>
)

type ListProps = { title: string; columns: string[]; numbers?: string[]; rows: Children[][]; none: string }

/** A table. On phones, where it has no head, the column's name is shown before each value. */
export const List = ({ title, columns, numbers = [], rows, none }: ListProps) => (
  <Panel title={title} flush>
    {rows.length === 0 ? (
      <p class="soft item">{none}</p>
    ) : (
      <Table caption={title} columns={columns} numbers={numbers}>
        {rows.map((values, n) => (
          <tr key={n}>
            {values.map((value, at) => (
              <td key={at} class={at === 0 ? 'cell-main' : numbers.includes(columns[at]!) ? 'number' : undefined}>
                {at > 0 && <span class="phone-only soft">{`${columns[at]} `}</span>}
                {value}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    )}
  </Panel>
)
