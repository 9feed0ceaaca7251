/** `pgcue operator …` */
import { questions } from '../operator/on-call.ts'
import { command, none, only } from './command.ts'
import { UsageError } from './exit-codes.ts'

const account = { account: { type: 'string', value: 'ID', help: 'only this account' } } as const
const width = Math.max(...Object.keys(questions).map(name => name.length))

export const operator = command({
  args: 'QUESTION [CUE_ID]',
  summary: 'Answer a question about the whole service, for its operator',
  notes: [
    'Questions:',
    ...Object.entries(questions).map(([name, { text, needsCue }]) => `  ${name.padEnd(width)}  ${text}${needsCue ? ' (CUE_ID)' : ''}`),
    '',
    "The key is the service's OPERATOR_TOKEN: set PGCUE_API_KEY to it."
  ].join('\n'),
  run: async context => {
    const { args, out } = context
    const [name = '', ...ids] = args
    const question = Object.hasOwn(questions, name) ? questions[name] : undefined
    if (!question)
      throw new UsageError(`${name ? `unknown question ${name}` : 'missing argument QUESTION'}: ${Object.keys(questions).join(', ')}`)
    const query = question.needsCue ? { cue_id: only({ args: ids }, 'CUE_ID') } : none({ args: ids })
    const path = `/v1/operator/on-call/${name}`
    const answer = await (await context.connect()).call<{ question: string; rows: Record<string, unknown>[] }>('GET', path, {
      query: query ?? {}
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

export const operatorHold = command({
  args: 'REASON [--account ID]',
  summary: 'Stop everything, or one account: nothing is taken, sent or claimed',
  options: account,
  run: async context => {
    const { out, options } = context
    const body = { reason: only(context, 'REASON'), ...(options.account && { account_id: options.account }) }
    const held = await (await context.connect()).call<Record<string, unknown>>('POST', '/v1/operator/hold', { body, repeatable: true })
    out.show(held, () => out.fields(held))
  }
})

export const operatorRelease = command({
  args: '[--account ID]',
  summary: 'End the hold of the service, or that of one account',
  options: account,
  run: async context => {
    none(context)
    const { out, options } = context
    const body = options.account ? { account_id: options.account } : {}
    const answer = await (await context.connect()).call<{ released: boolean }>('POST', '/v1/operator/release', { body, repeatable: true })
    out.show(answer, () => out.line(answer.released ? 'Released.' : 'It was not held.'))
  }
})
