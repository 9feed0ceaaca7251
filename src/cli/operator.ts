/** `pgcue operator …` */
import { questions } from '../operator/on-call.ts'
import { command } from './command.ts'
import { UsageError } from './exit-codes.ts'

const account = { account: { type: 'string', value: 'ID', help: 'only this account' } } as const
const width = Math.max(...Object.keys(questions).map(name => name.length))

export const operator = command({
  notes: [
    'Questions:',
    ...Object.entries(questions).map(([name, { text, needsCue }]) => `  ${name.padEnd(width)}  ${text}${needsCue ? ' (CUE_ID)' : ''}`),
    '',
    "The key is the service's OPERATOR_TOKEN: set PGCUE_API_KEY to it."
  ].join('\n'),
  run: async context => {
    const { args, out } = context
    const [name = '', cue_id] = args
    const question = Object.hasOwn(questions, name) ? questions[name] : undefined
    if (!question)
      throw new UsageError(`${name ? `unknown question ${name}` : 'missing argument QUESTION'}: ${Object.keys(questions).join(', ')}`)
    if (Boolean(question.needsCue) !== (cue_id !== undefined))
      throw new UsageError(cue_id === undefined ? 'missing argument CUE_ID' : `unexpected argument ${cue_id}`)
    const path = `/v1/operator/on-call/${name}`
    const answer = await (await context.connect()).call<{ question: string; rows: Record<string, unknown>[] }>('GET', path, {
      query: { cue_id }
    })
    const { rows } = answer
    out.show(answer, () => {
      out.line(answer.question, 'bold')
      // Of these columns, only those that apply are of interest.
      if (name === 'late')
        for (const row of rows) out.fields(Object.fromEntries(Object.entries(row).filter(([, value]) => value !== false)))
      else if (rows.length > 0) {
        const titles = [...new Set(rows.flatMap(Object.keys))]
        out.table(
          rows,
          titles.map(title => [title, row => row[title]])
        )
      } else out.line(name === 'holds' ? 'Nothing is held. To stop everything: pgcue operator hold REASON' : 'Nothing.')
    })
  }
})

export const hold = command({
  options: account,
  run: async context => {
    const { out, options } = context
    const body = { reason: context.args[0]!, ...(options.account && { account_id: options.account }) }
    const held = await (await context.connect()).call<Record<string, unknown>>('POST', '/v1/operator/hold', { body, repeatable: true })
    out.show(held, () => out.fields(held))
  }
})

export const release = command({
  options: account,
  run: async context => {
    const { out, options } = context
    const body = options.account ? { account_id: options.account } : {}
    const answer = await (await context.connect()).call<{ released: boolean }>('POST', '/v1/operator/release', { body, repeatable: true })
    out.show(answer, () => out.line(answer.released ? 'Released.' : 'It was not held.'))
  }
})
