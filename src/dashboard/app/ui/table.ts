/** Tables, which become lists on phones. */
import { h } from '../h.ts'
import type { Children } from './basics.ts'

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
