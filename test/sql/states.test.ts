// Constraints of the tables: each state requires its times, so no statement can create a state that no sweep finds.
import t from 'tap'
import { cueDefaults, type Row, refused, stage } from '../support/stage.ts'

const now = '2030-01-15T09:00:00Z'

// The columns that define what an execution waits for, each with a possible value.
const values: Record<string, string> = {
  attempt_due_at: `'${now}'`,
  claimable_at: `'${now}'`,
  flight_id: '1',
  lease_expires_at: `'${now}'`,
  outcome_deadline_at: `'${now}'`,
  ended_at: `'${now}'`,
  started_at: `'${now}'`
}
const claim = `claim_token = '00000000-0000-0000-0000-000000000000', claimed_by_worker = 'w', claimed_at = '${now}'`

type State = { status: string; transport: 'webhook' | 'worker'; set: string[]; free?: string[] }
const ended = (status: string, free: string[] = []): Omit<State, 'transport'> => ({ status, set: ['ended_at', 'started_at'], free })
const both = (state: Omit<State, 'transport'>): State[] => [
  { ...state, transport: 'webhook' },
  { ...state, transport: 'worker' }
]
/** Every state, with the columns that must and may be set. All others must be null. */
const states: State[] = [
  { status: 'pending', transport: 'webhook', set: ['attempt_due_at'], free: ['started_at'] },
  { status: 'pending', transport: 'worker', set: ['claimable_at'], free: ['started_at'] },
  { status: 'delivering', transport: 'webhook', set: ['flight_id', 'started_at'] },
  { status: 'delivering', transport: 'worker', set: ['lease_expires_at', 'started_at'] },
  { status: 'retrying', transport: 'webhook', set: ['attempt_due_at', 'started_at'] },
  { status: 'retrying', transport: 'worker', set: ['claimable_at', 'started_at'] },
  { status: 'retry_ready', transport: 'webhook', set: ['attempt_due_at', 'started_at'] },
  { status: 'retry_ready', transport: 'worker', set: ['claimable_at', 'started_at'] },
  ...both({ status: 'pending_outcome', set: ['outcome_deadline_at', 'started_at'] }),
  ...both(ended('success')),
  ...both(ended('failed', ['started_at'])),
  ...both(ended('missed', ['started_at'])),
  ...both(ended('outcome_timeout'))
]

const assignments = ({ status, transport, set }: State) =>
  [
    `status = '${status}', transport = '${transport}', ${claim}, claim_deadline_at = null`,
    ...Object.keys(values).map(column => `${column} = ${set.includes(column) ? values[column] : 'null'}`)
  ].join(', ')

const refusal = { code: '23514' }

t.test('each state requires its columns and forbids others', async t => {
  const { begun, rows, execution } = await stage(t)
  const { execution_id: id } = await begun()
  const update = (columns: string) => rows(`update cue.executions set ${columns} where id = $1`, [id])
  for (const state of states) {
    const name = `${state.status} of a ${state.transport}`
    await update(assignments(state))
    const before: Row = await execution(id)
    for (const [column, value] of Object.entries(values)) {
      const isSet = state.set.includes(column)
      const change = `${column} = ${isSet ? 'null' : value}`
      if (state.free?.includes(column)) {
        await t.resolves(update(change), `${name} may have ${change}`)
        await update(assignments(state))
      } else await t.rejects(update(change), refusal, `${name} with ${change}`)
    }
    t.same(await execution(id), before)
  }
})

t.test('no state changes to another by its status alone, unless both wait for the same', async t => {
  const { begun, rows } = await stage(t)
  const { execution_id: id } = await begun()
  for (const from of states) {
    await rows(`update cue.executions set ${assignments(from)} where id = $1`, [id])
    for (const to of states.filter(state => state.transport === from.transport && state.status !== from.status)) {
      const move = rows('update cue.executions set status = $2 where id = $1', [id, to.status])
      const fits = Object.keys(values).every(column => to.free?.includes(column) || from.set.includes(column) === to.set.includes(column))
      if (fits) {
        await t.resolves(move, `${from.status} → ${to.status}`)
        await rows('update cue.executions set status = $2 where id = $1', [id, from.status])
      } else await t.rejects(move, refusal, `${from.status} → ${to.status} of a ${from.transport}`)
    }
  }
})

t.test('a claim has a token, a worker and a time', async t => {
  const { begun, rows } = await stage(t)
  const { execution_id: id } = await begun()
  await rows(`update cue.executions set ${assignments(states[3]!)} where id = $1`, [id])
  for (const column of ['claim_token', 'claimed_by_worker', 'claimed_at']) {
    await t.rejects(rows(`update cue.executions set ${column} = null where id = $1`, [id]), refusal, column)
  }
})

t.test('rejects an outcome that contradicts itself', async t => {
  const { begun, rows } = await stage(t)
  const { execution_id: id } = await begun()
  for (const [what, columns] of [
    ['reported without success', 'outcome_recorded_at = now(), outcome_success = null'],
    ['reported without a time', 'outcome_recorded_at = null, outcome_success = true'],
    ['verified although a failure', `outcome_recorded_at = now(), outcome_success = false, outcome_state = 'verified_success'`],
    ['verified without an outcome', `outcome_state = 'verified_success'`],
    ['a reported failure of a success', `outcome_recorded_at = now(), outcome_success = true, outcome_state = 'reported_failure'`],
    ['a reported failure without an outcome', `outcome_state = 'reported_failure'`]
  ] as const)
    await t.rejects(rows(`update cue.executions set ${columns} where id = $1`, [id]), refusal, what)
})

t.test('no more attempts can be lost than were begun', async t => {
  const { begun, rows } = await stage(t)
  const { execution_id: id } = await begun()
  await rows('update cue.executions set lost_attempts = 1 where id = $1', [id])
  await t.rejects(rows('update cue.executions set lost_attempts = 2 where id = $1', [id]), refusal)
  await t.rejects(rows('update cue.executions set lost_attempts = -1 where id = $1', [id]), refusal)
})

t.test('logs an attempt once', async t => {
  const { begun, settle, rows } = await stage(t)
  const attempt = await begun()
  await settle([attempt], refused)
  await t.rejects(rows('insert into cue.attempts select * from cue.attempts'), { code: '23505' })
})

t.test('an outage does not end before it starts', async t => {
  const { rows } = await stage(t)
  await t.rejects(rows('insert into cue.outages values ($1, $1)', [now]), refusal)
})

t.test('rejects a cue that is incomplete or out of bounds', async t => {
  const { rows, cue } = await stage(t)
  const id = await cue()
  for (const [what, columns] of [
    ['with a malformed id', { id: 'cue_short' }],
    ['recurring without cron', { cron: null }],
    ['recurring with an instant', { at: now }],
    ['one-time with cron', { schedule_type: 'once', at: now }],
    ['one-time without an instant', { schedule_type: 'once', cron: null }],
    ['a webhook without a URL', { callback_url: null }],
    ['without a name', { name: '' }],
    ['with a name that is too long', { name: 'x'.repeat(256) }],
    ['with no attempts', { retry_max_attempts: 0 }],
    ['with eleven attempts', { retry_max_attempts: 11 }],
    ['without a backoff', { retry_backoff_minutes: [] }],
    ['with an incomplete delivery', { timeout_seconds: 30 }],
    ['awaiting an outcome without a deadline', { await_outcome: true }],
    ['with a timeout that is too long', { timeout_seconds: 3601, outcome_deadline_seconds: 300, claim_timeout_seconds: 900 }],
    ['with incomplete alerts', { alert_consecutive_failures: 3 }]
  ] as const) {
    const names = Object.keys({ ...cueDefaults, ...columns }).filter(name => name in columns)
    const set = names.map(name => `${name} = (jsonb_populate_record(null::cue.cues, $2)).${name}`).join(', ')
    await t.rejects(rows(`update cue.cues set ${set} where id = $1`, [id, JSON.stringify(columns)]), refusal, what)
  }
})

t.test('the next run is after the slot fired last', async t => {
  const { cue, take, rows } = await stage(t)
  await take([await cue()])
  await t.rejects(rows('update cue.cue_runs set next_run = last_slot'), refusal)
  await t.rejects(rows("update cue.cue_runs set next_run = last_slot - interval '1 ms'"), refusal)
})
