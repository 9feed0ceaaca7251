/** Tables, which become lists on phones. */
import { h } from '../h.ts'
import { type Children, Panel } from './basics.ts'

type Props = { caption: string; columns: string[]; children: Children; kind?: string; numbers?: string[] }

/** A column without a name has the actions of its row. */
export const Table = ({ caption, columns, children, kind = '', numbers = [] }: Props) =>
  h(
    'table',
    { class: `table ${kind}` },
    h('caption', { class: 'unseen' }, caption),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        columns.map(name =>
          h(
            'th',
            { key: name, scope: 'col', class: numbers.includes(name) ? 'number' : undefined },
            name || h('span', { class: 'unseen' }, 'Actions')
          )
        )
      )
    ),
    h('tbody', {}, children)
  )

type ListProps = { title: string; columns: string[]; numbers?: string[]; rows: Children[][]; none: string }

/** A table. On phones, where it has no head, the column's name is shown before each value. */
export const List = ({ title, columns, numbers = [], rows, none }: ListProps) =>
  h(
    Panel,
    { title, flush: true },
    rows.length === 0
      ? h('p', { class: 'soft item' }, none)
      : h(
          Table,
          { caption: title, columns, numbers },
          rows.map((values, n) =>
            h(
              'tr',
              { key: n },
              values.map((value, at) =>
                h(
                  'td',
                  { key: at, class: at === 0 ? 'cell-main' : numbers.includes(columns[at]!) ? 'number' : undefined },
                  at > 0 && h('span', { class: 'phone-only soft' }, `${columns[at]} `),
                  value
                )
              )
            )
          )
        )
  )
