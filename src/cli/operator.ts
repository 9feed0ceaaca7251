/** `pgcue operator …` */
import { questions } from '../operator/on-call.ts'
import { acting, command } from './command.ts'
import { UsageError } from './exit-codes.ts'

const width = Math.max(...Object.keys(questions).map(name => name.length))

export const operator = command({
  notes: [
    'Questions:',
    ...Object.entries(questions).map(([name, { text, needsCue }]) => `  ${name.padEnd(width)}  ${text}${needsCue ? ' (CUE_ID)' : ''}`),
    '',
    "The key is the service's OPERATOR_TOKEN: set PGCUE_API_KEY to it."
  ].join('\n'),
  run: async ({ args: [name = '', cue_id], connect }) => {
    const question = Object.hasOwn(questions, name) ? questions[name] : undefined
    if (!question)
      throw new UsageError(`${name ? `unknown question ${name}` : 'missing argument QUESTION'}: ${Object.keys(questions).join(', ')}`)
    if (Boolean(question.needsCue) !== (cue_id !== undefined))
      throw new UsageError(cue_id === undefined ? 'missing argument CUE_ID' : `unexpected argument ${cue_id}`)
    const path = `/v1/operator/on-call/${name}`
    return connect().call<{ question: string; rows: Record<string, unknown>[] }>('GET', path, { query: { cue_id } })
  },
  text: ({ question, rows }, out, [name]) => {
    out.line(question, 'bold')
    // Of these columns, only those that apply are of interest.
    if (name === 'late') for (const row of rows) out.fields(Object.fromEntries(Object.entries(row).filter(([, value]) => value !== false)))
    else if (rows.length > 0) {
      const titles = [...new Set(rows.flatMap(Object.keys))]
      const columns = titles.map(title => [title, (row: Record<string, unknown>) => row[title]] as const)
      out.table(rows, columns)
    } else return name === 'holds' ? 'Nothing is held. To stop everything: pgcue operator hold REASON' : 'Nothing.'
  }
})

const options = {
  account: { type: 'string', value: 'ID', help: 'only this account', part: (account_id: string) => ({ account_id }) }
} as const

export const hold = acting(
  (client, reason, body) =>
    client.call<Record<string, unknown>>('POST', '/v1/operator/hold', { body: { reason, ...body }, repeatable: true }),
  (held, out) => out.fields(held),
  { options }
)

export const release = acting(
  (client, _, body) => client.call<{ released: boolean }>('POST', '/v1/operator/release', { body, repeatable: true }),
  ({ released }) => (released ? 'Released.' : 'It was not held.'),
  { options }
)
