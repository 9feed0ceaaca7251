/** `pgcue replay`, `cancel`, `dismiss`, `backfill` and `pgcue operations …`: work on many executions. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Client, DryRun, NewOperation, Operation } from '../client/index.ts'
import { type Context, command, integer, none, only } from './command.ts'
import { idempotency, type Overlap, overlap } from './cue-definition.ts'
import { exitCodes, UsageError } from './exit-codes.ts'
import { executionFilterNames, executionFilterOf, executionFilters, timeOf } from './filters.ts'
import type { Io } from './io.ts'
import { page, pageOf } from './page.ts'

const control = {
  'dry-run': { type: 'boolean', help: 'only show how many there are, and the first 10' },
  yes: { type: 'boolean', help: 'do not ask for confirmation' },
  detach: { type: 'boolean', help: 'do not wait until the operation has ended' },
  rate: { type: 'string', value: 'N', help: 'at most so many per minute' },
  name: { type: 'string', value: 'NAME', help: 'a name for the operation' },
  ...idempotency
} as const
const controlNames = { rate_per_minute: '--rate', name: '--name', overlap: '--overlap' }

type Control = Context<typeof control>

/** Shows what an operation would act on, asks, starts it, and waits for its end. */
const operate = async (context: Pick<Control, 'connect' | 'out' | 'io'> & { options: Control['options'] }, given: NewOperation) => {
  const { options, out, io } = context
  const client = await context.connect()
  const rate_per_minute = integer(options.rate, 'rate', 1, 100_000)
  const body = { ...given, ...(rate_per_minute && { rate_per_minute }), ...(options.name !== undefined && { name: options.name }) }
  if (options['dry-run'] || !options.yes) {
    const found = await client.operations.dryRun(body)
    if (options['dry-run']) return void out.show(found, () => showSample(context, found))
    if (found.total === 0) return void out.show(found, () => out.line('Nothing matches.'))
    if (!(await confirms(io, `${given.type} ${found.total} ${given.type === 'backfill' ? 'slots' : 'executions'}?`)))
      return exitCodes.refused
  }
  const created = await client.operations.create(body, { idempotencyKey: options['idempotency-key'] })
  if (options.detach || created.status !== 'running') return void show(context, created)
  if (!out.json) io.stderr.write(`Operation ${created.id}. To stop it: pgcue operations abort ${created.id}\n`)
  const ended = await followed(client, created, io)
  show(context, ended)
  return ended.failed > 0 || ended.status === 'aborted' ? exitCodes.refused : exitCodes.ok
}

const confirms = async (io: Io, question: string): Promise<boolean> => {
  if (!io.stdin.isTTY) throw new UsageError('to confirm without a terminal, give --yes')
  io.stderr.write(`${question} [y/N] `)
  for await (const line of io.stdin) return /^y(es)?\s*$/i.test(String(line))
  return false
}

const pollMs = 500

/** Polls until the operation has ended, with a progress bar on a terminal. */
const followed = async (client: Client, created: Operation, io: Io): Promise<Operation> => {
  let operation = created
  while (operation.status === 'running') {
    await delay(pollMs)
    operation = await client.operations.get(created.id)
    if (io.stderr.isTTY) io.stderr.write(`\r${barOf(operation)}`)
  }
  if (io.stderr.isTTY) io.stderr.write('\n')
  return operation
}

const width = 30
const barOf = ({ done, total, failed }: Operation) => {
  const full = Math.floor((done / Math.max(total, 1)) * width)
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}] ${done}/${total}${failed > 0 ? `, ${failed} failed` : ''}`
}

const showSample = ({ out }: Pick<Context, 'out'>, { total, sample }: DryRun) => {
  out.line(`${total} in total${total > sample.length ? '; the first 10:' : ''}`)
  if (sample.length === 0) return
  out.table(sample, [
    ...(sample[0]!.id === undefined
      ? []
      : [['id', (one: DryRun['sample'][0]) => one.id] as [string, (one: DryRun['sample'][0]) => unknown]]),
    ['cue', one => one.cue_name],
    ['status', one => one.status],
    ['scheduled for', one => one.scheduled_for],
    ['error', one => one.error_message]
  ])
}

type Shown = Operation & { errors?: { target: string; code: string; message: string }[] }

const show = ({ out }: Pick<Context, 'out'>, operation: Shown): void => {
  out.show(operation, () => {
    const { created_by, created_at: created, ended_at: ended, errors = [], done, total, ...fields } = operation
    out.fields({ ...fields, done: `${done} of ${total}`, 'created by': created_by, created, ended })
    if (errors.length === 0) return
    out.line('')
    out.table(errors, [
      ['target', one => one.target],
      ['code', one => one.code],
      ['message', one => one.message]
    ])
  })
}

const onExecutions = (type: 'replay' | 'cancel' | 'dismiss', summary: string, example: string) =>
  command({
    args: '[ID…] [options]',
    summary,
    options: { ...executionFilters, ...(type === 'replay' && overlap), ...control },
    names: { ...prefixed(executionFilterNames), ...controlNames, ids: 'ID' },
    notes: `Takes executions by their ids, or those that all the filters match, of the last 7 days unless --since is given.\n\nExample\n  ${example}`,
    run: async context => {
      const { options, args } = context
      const filter = Object.fromEntries(Object.entries(executionFilterOf(options)).filter(([, value]) => value !== undefined))
      if (args.length > 0 === Object.keys(filter).length > 0)
        throw new UsageError('give either ids or at least one filter, such as --cue or --status')
      const { overlap: rule } = options as { overlap?: Overlap }
      return operate(context, { type, ...(args.length > 0 ? { ids: args } : { filter }), ...(rule && { overlap: rule }) } as NewOperation)
    }
  })

const prefixed = (names: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(names).map(([member, name]) => [`filter.${member}`, name]))

export const replay = onExecutions(
  'replay',
  'Replay many executions',
  'pgcue replay --cue cue_0123456789ab --status failed --since 12h --rate 60'
)
export const cancel = onExecutions('cancel', 'Cancel many executions that have not ended', 'pgcue cancel --tag nightly')
export const dismiss = onExecutions(
  'dismiss',
  'Remove many executions from the dead letters',
  'pgcue dismiss --error ECONNREFUSED --since 3d'
)

export const backfill = command({
  args: 'CUE --from TIME --to TIME [options]',
  summary: 'Run the slots of a cue that did not run',
  options: {
    from: { type: 'string', value: 'TIME', help: 'slots from this time on: ISO 8601 with Z or an offset, or so long ago: 2h, 3d' },
    to: { type: 'string', value: 'TIME', help: 'slots before this time (default: now)' },
    ...overlap,
    ...control
  },
  names: { ...controlNames, cue_id: 'CUE', from: '--from', to: '--to' },
  notes: 'At most 1,000 slots, oldest first, with their nominal time. Slots that have an execution are left out.',
  run: async context => {
    const { options } = context
    const cue_id = only(context, 'CUE')
    if (options.from === undefined) throw new UsageError('missing option --from')
    const to = timeOf(options.to) ?? new Date().toISOString()
    return operate(context, {
      type: 'backfill',
      cue_id,
      from: timeOf(options.from)!,
      to,
      ...(options.overlap !== undefined && { overlap: options.overlap as Overlap })
    })
  }
})

export const operationsList = command({
  summary: 'List operations, newest first',
  options: {
    type: { type: 'string', value: 'TYPE', help: 'replay, cancel, dismiss, pause, resume, delete, fire or backfill' },
    status: { type: 'string', value: 'STATUS', help: 'running, completed or aborted' },
    ...page
  },
  names: { type: '--type', status: '--status' },
  run: async context => {
    none(context)
    const { options, out } = context
    const { type, status } = options
    const filter = { type, status, ...pageOf(options) }
    const answer = await (await context.connect()).operations.list(filter as never)
    out.list(
      answer,
      answer.operations,
      [
        ['id', one => one.id],
        ['type', one => one.type],
        ['name', one => one.name],
        ['status', one => one.status],
        ['done', one => `${one.done}/${one.total}`],
        ['failed', one => one.failed],
        ['created', one => one.created_at]
      ],
      'No operations.'
    )
  }
})

export const operationsGet = command({
  args: 'ID',
  summary: 'Show an operation and its errors',
  run: async context => show(context, await (await context.connect()).operations.get(only(context, 'ID')))
})

export const operationsAbort = command({
  args: 'ID',
  summary: 'Abort a running operation; what it has done stays done',
  run: async context => show(context, await (await context.connect()).operations.abort(only(context, 'ID')))
})
