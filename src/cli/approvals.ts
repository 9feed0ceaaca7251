/** `pgcue approvals`, `approve` and `reject` */
import type { Approve, Decision, Execution, ExecutionFilter, Reject } from '../client/index.ts'
import { acting, command, filtersOf, fromApi } from './command.ts'
import { executionFilters, poll } from './executions.ts'
import type { Column, Output } from './output.ts'

/** The members of an execution that it prints, as lists and events have them. */
type Waiting = Pick<Execution, 'id' | 'cue_name' | 'scheduled_for' | 'triggered_by' | 'approval'>

const columns: readonly Column<Waiting>[] = [
  'id',
  ['cue', 'cue_name'],
  'scheduled_for',
  ['requested by', ({ approval, triggered_by }) => approval?.requested_by ?? triggered_by],
  ['expires', ({ approval }) => approval?.expires_at ?? 'never'],
  ['message', ({ approval }) => approval?.message]
]

const { cue, tag } = executionFilters()
const pages = filtersOf('listExecutions')

export const list = command({
  options: {
    ...fromApi('listExecutions', { cue, tag }),
    ...{ limit: pages.limit!, cursor: pages.cursor!, 'count-to': pages['count-to']! },
    watch: { type: 'boolean', short: 'w', help: 'print those that wait, then each that is requested, until interrupted' }
  },
  notes: 'With --watch and --json, each line is an execution as JSON.',
  longRunning: true,
  run: async ({ options, out, io, ready }) => {
    const { client, body } = await ready<ExecutionFilter>()
    const filter = { ...body, held: 'approval' } as const
    if (!options.watch) {
      const page = await client.executions.list(filter)
      return out.show(page, () => out.list(page, page.executions, columns, 'No approvals wait.'))
    }
    const { cue_id, tag } = body
    // The feed begins before the list is read, so that nothing falls between them.
    let { cursor: after } = await client.events({ wait: 0 })
    const printed = new Set<string>()
    for await (const execution of client.executions.list({ ...filter, limit: 100 })) {
      print(out, execution)
      printed.add(execution.id)
    }
    await poll(
      { out, io, intervalMs: 0 },
      signal => client.events({ cue_id, tag, types: 'approval.requested', after, wait: 30 }, { signal }),
      page => {
        const requested = page.events.map(({ data }) => data as unknown as Waiting)
        for (const execution of requested) if (!printed.has(execution.id)) print(out, execution)
        after = page.cursor
        return false
      }
    )
  }
})

const print = (out: Output, execution: Waiting) => {
  if (out.json) return out.jsonLine(execution)
  const { id, cue_name, scheduled_for, approval } = execution
  const { requested_by, expires_at, message } = approval!
  const by = requested_by && `requested by ${requested_by}`
  const parts = [`scheduled for ${scheduled_for.slice(0, 19)}Z`, by, expires_at && `expires ${expires_at.slice(0, 19)}Z`, message]
  out.line(`${id}  ${cue_name}  ${parts.filter(Boolean).join(', ')}`)
}

const decided = ({ execution_id, decision }: Decision) => `Execution ${execution_id} is ${decision}`
const reason = { reason: { member: 'reason', value: 'TEXT', help: 'why, kept with the execution' } } as const

export const approve = acting(({ executions }, id, body: Approve) => executions.approve(id, body), decided, {
  options: fromApi('approveExecution', reason)
})

export const reject = acting(({ executions }, id, body: Reject) => executions.reject(id, body), decided, {
  options: fromApi('rejectExecution', reason)
})
