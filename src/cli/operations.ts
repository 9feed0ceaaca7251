/** `pgcue replay`, `cancel`, `dismiss`, `backfill` and `pgcue operations …`: work on many executions. */
import { setTimeout as delay } from 'node:timers/promises'
import type { CallOptions, Client, DryRun, NewOperation, Operation, OperationDetail } from '../client/index.ts'
import { acting, type Context, command, filtersOf, fromApi, idempotency, listing, pastOf } from './command.ts'
import { executionFilters, since, until } from './executions.ts'
import { exitCodes, UsageError } from './exit-codes.ts'
import { confirms, type Io } from './io.ts'
import type { Column, Output } from './output.ts'
import { cueOf } from './reference.ts'

const control = {
  'dry-run': { type: 'boolean', help: 'only show how many there are, and the first 10' },
  yes: { type: 'boolean', help: 'do not ask for confirmation' },
  detach: { type: 'boolean', help: 'do not wait until the operation has ended' },
  ...fromApi('createOperation', {
    rate: { member: 'rate_per_minute', help: 'at most so many per minute (1 to 100000)' },
    name: { member: 'name', value: 'NAME', help: 'a name for the operation' }
  }),
  ...idempotency
} as const
const overlap = fromApi('createOperation', { overlap: { member: 'overlap', value: 'RULE' } })

type Running = Pick<Context<typeof control>, 'out' | 'io' | 'options'>
type Request = { client: Client; body: NewOperation; call: CallOptions }

/** Shows what an operation would act on, asks, starts it, and waits for its end. */
const operate = async ({ options, out, io }: Running, { client, body, call }: Request) => {
  if (options['dry-run'] || !options.yes) {
    const targets = await client.operations.dryRun(body)
    if (options['dry-run']) return void out.show(targets, () => showSample(targets, out))
    if (targets.total === 0) return void out.show(targets, () => out.line('Nothing matches.'))
    if (!(await confirms(io, `${body.type} ${targets.total} ${body.type === 'backfill' ? 'slots' : 'executions'}?`)))
      return exitCodes.refused
  }
  const created = await client.operations.create(body, call)
  if (options.detach || created.status !== 'running') return void out.show(created, () => show(created, out))
  if (!out.json) io.stderr.write(`Operation ${created.id}. To stop it: pgcue operations abort ${created.id}\n`)
  const ended = await followed(client, created, io)
  out.show(ended, () => show(ended, out))
  return ended.failed > 0 || ended.status === 'aborted' ? exitCodes.refused : exitCodes.ok
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
  const bar = '#'.repeat((done / Math.max(total, 1)) * width).padEnd(width, '.')
  return `[${bar}] ${done}/${total}${failed > 0 ? `, ${failed} failed` : ''}`
}

const showSample = ({ total, sample }: DryRun, out: Output) => {
  out.line(`${total} in total${total > sample.length ? '; the first 10:' : ''}`)
  if (sample.length === 0) return
  const id: Column<DryRun['sample'][0]>[] = sample[0]!.id === undefined ? [] : ['id']
  out.table(sample, [...id, ['cue', 'cue_name'], 'status', 'scheduled_for', ['error', 'error_message']])
}

const show = (
  { created_at, ended_at, errors = [], done, total, created_by, ...operation }: Operation & Partial<OperationDetail>,
  out: Output
) => {
  out.fields({ ...operation, done: `${done} of ${total}`, created_by, created: created_at, ended: ended_at })
  out.section('Errors', errors, ['target', 'code', 'message'])
}

const filters = fromApi('createOperation', {
  status: 'filter.status',
  ...executionFilters('filter.'),
  error: 'filter.error',
  since: { member: 'filter.from', ...since },
  until: { member: 'filter.to', ...until }
})

const onExecutions = (type: 'replay' | 'cancel' | 'dismiss', example: string) =>
  command({
    options: { ...filters, ...(type === 'replay' && overlap), ...control },
    names: { ids: 'ID' },
    notes: `Takes executions by their ids, or those that all the filters match, of the last 7 days unless --since is given.\n\nExample\n  ${example}`,
    run: async context => {
      const hasFilter = Object.keys(filters).some(name => (context.options as Record<string, unknown>)[name] !== undefined)
      if (context.args.length > 0 === hasFilter) throw new UsageError('give either ids or at least one filter, such as --cue or --status')
      const request = await context.ready<NewOperation>()
      return operate(context, { ...request, body: { ...request.body, type, ...(!hasFilter && { ids: context.args }) } })
    }
  })

export const replay = onExecutions('replay', 'pgcue replay --cue billing/report --status failed --since 12h --rate 60')
export const cancel = onExecutions('cancel', 'pgcue cancel --tag nightly')
export const dismiss = onExecutions('dismiss', 'pgcue dismiss --error ECONNREFUSED --since 3d')

export const backfill = command({
  options: {
    ...fromApi('createOperation', {
      from: { member: 'from', read: pastOf, help: 'slots from this time on: ISO 8601 with Z or an offset, or so long ago: 2h, 3d' },
      to: { member: 'to', read: pastOf, help: 'slots before this time (default: now)' }
    }),
    ...overlap,
    ...control
  },
  names: { cue_id: 'CUE' },
  notes: 'At most 1,000 slots, oldest first, with their nominal time. Slots that have an execution are left out.',
  run: async context => {
    if (context.options.from === undefined) throw new UsageError('missing option --from')
    const { id, ...request } = await cueOf<NewOperation>(context)
    return operate(context, { ...request, body: { to: new Date().toISOString(), ...request.body, type: 'backfill', cue_id: id } })
  }
})

export const list = listing(
  ({ operations }, query) => operations.list(query),
  answer => answer.operations,
  ['id', 'type', 'name', 'status', ['done', ({ done, total }) => `${done}/${total}`], 'failed', 'created_at'],
  { empty: 'No operations.', options: filtersOf('listOperations') }
)

export const get = acting(({ operations }, id) => operations.get(id), show)
export const abort = acting(({ operations }, id) => operations.abort(id), show)
