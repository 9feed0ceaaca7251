// The queue of a cue: whatever ends an execution starts the next one, once.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { type OverlapStage, overlapStage } from '../support/overlap-stage.ts'
import { awaiting, refused } from '../support/stage.ts'

const worker = { transport: 'worker', callback_url: null, retry_max_attempts: 1 }
const ids = (s: OverlapStage, execution_id: string) => ({ account_id: s.account_id, execution_id })

/** The name of an end, the cue's settings, what brings the execution there, and the status that it ends with. */
const ends: [string, object, (s: OverlapStage, id: string) => Promise<unknown>, string][] = [
  ['finish_attempts', {}, async s => s.finish(await s.begin()), 'success'],
  ['settle_attempts with a success', {}, async s => s.settle(await s.begin()), 'success'],
  ['settle_attempts with the last failure', { retry_max_attempts: 1 }, async s => s.settle(await s.begin(), refused), 'failed'],
  ['settle_attempts with a reported outcome', awaiting, async s => s.settle(await s.begin(), { report: { success: false } }), 'success'],
  [
    'report_outcome while the outcome is awaited',
    awaiting,
    async (s, id) => {
      await s.settle(await s.begin())
      await s.fn.reportOutcome({ ...ids(s, id), success: true })
    },
    'success'
  ],
  [
    'expire_outcomes',
    awaiting,
    async s => {
      await s.settle(await s.begin())
      s.clock.advance('301 seconds')
      await s.fn.expireOutcomes({})
    },
    'outcome_timeout'
  ],
  [
    'the fifth lost attempt',
    {},
    async s => {
      for (let n = 0; n < 5; n++) {
        await s.begin()
        s.clock.advance('5 seconds')
        await s.fn.recoverFlights({})
      }
    },
    'missed'
  ],
  [
    'recover_stuck',
    { retry_max_attempts: 1 },
    async s => {
      await s.begin()
      s.clock.advance('6 minutes')
      await s.fn.recoverStuck({})
    },
    'missed'
  ],
  ['cancel_execution', {}, (s, id) => s.fn.cancelExecution(ids(s, id)), 'failed'],
  ['cancel_execution of a worker', worker, (s, id) => s.fn.cancelExecution(ids(s, id)), 'failed'],
  [
    'report_outcome by a worker',
    worker,
    async (s, id) => {
      await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })
      await s.fn.reportOutcome({ ...ids(s, id), success: true })
    },
    'success'
  ],
  [
    'report_outcome of a failure by a worker',
    worker,
    async (s, id) => {
      await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })
      await s.fn.reportOutcome({ ...ids(s, id), success: false })
    },
    'failed'
  ],
  [
    'miss_unclaimed',
    worker,
    async s => {
      s.clock.advance('16 minutes')
      await s.fn.missUnclaimed({})
    },
    'missed'
  ],
  [
    'the last lost claim',
    worker,
    async s => {
      await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })
      s.clock.advance('20 minutes')
      await s.fn.recoverLeases({})
    },
    'missed'
  ]
]

for (const [what, columns, end, status] of ends) {
  t.test(`${what} is counted once, and starts the next execution, and only that`, async t => {
    const s = await overlapStage(t)
    const id = await s.running({ overlap: 'queue_all', ...columns })
    await s.slot(id)
    await s.slot(id)
    const [first, second, third] = await s.open(id)
    const before = await s.ended()
    await end(s, first!.id)
    exactly(t, await s.execution(first!.id), { status })
    t.same(await s.ended(), { ...before, [status]: before[status]! + 1 })
    exactly(t, await s.open(id), [
      { id: second!.id, is_queued: false },
      { id: third!.id, is_queued: true }
    ])
    const due = 'transport' in columns ? 'claimable_at' : 'attempt_due_at'
    exactly(t, await s.execution(second!.id), { status: 'pending', [due]: s.clock.now() })
    exactly(t, await s.execution(third!.id), { status: 'pending', [due]: Number.POSITIVE_INFINITY })
    t.same(
      (await s.jobs()).map(job => job.id),
      'transport' in columns ? [] : [second!.id]
    )
    t.equal((await s.rows('select * from cue.attempt_view where execution_id <> $1', [first!.id])).length, 0)
  })
}

t.test('a queued execution can be cancelled, and the one behind it takes its place', async t => {
  const s = await overlapStage(t)
  const id = await s.running({ overlap: 'queue_all' })
  await s.slot(id)
  await s.slot(id)
  const [first, second, third] = await s.open(id)
  await s.fn.cancelExecution(ids(s, second!.id))
  exactly(t, await s.open(id), [
    { id: first!.id, is_queued: false },
    { id: third!.id, is_queued: true }
  ])
  await s.finish(await s.begin())
  exactly(t, await s.open(id), [{ id: third!.id, is_queued: false }])
})

t.test('waits while a fire that ignored overlap runs, and starts when both have ended', async t => {
  const s = await overlapStage(t)
  const id = await s.running({ overlap: 'queue_one' })
  const { id: fired } = await s.fn.fireCue({ account_id: s.account_id, cue_id: id })
  await s.slot(id)
  const attempts = await s.begin()
  t.equal(attempts.length, 2)
  await s.finish(attempts.filter(attempt => attempt.execution_id !== fired))
  t.same(await s.begin(), [])
  await s.finish(attempts.filter(attempt => attempt.execution_id === fired))
  t.equal((await s.begin()).length, 1)
})

t.test('deleting the cue empties its queue; a disowned account has none', async t => {
  const s = await overlapStage(t)
  const id = await s.running({ overlap: 'queue_all' })
  await s.slot(id)
  await s.fn.deleteCue({ account_id: s.account_id, cue_id: id })
  t.same(await s.open(id), [])
  t.same(await s.begin(), [])

  const other = await s.running({ overlap: 'queue_all' })
  await s.slot(other)
  await s.begin()
  await s.rows('update cue.accounts set created_at = $1', [s.clock.now()])
  const { failed } = await s.ended()
  await s.fn.disownAccount({ account_id: s.account_id, ip: null })
  exactly(t, await s.ended(), { failed: failed! + 4 }) // also those of the deleted cue
  t.same(await s.states(other), ['failed', 'failed'])
  t.same(await s.open(other), [])
})

t.test('repair_queues starts what an end has left, in batches, and nothing else', async t => {
  const s = await overlapStage(t)
  const cues = []
  for (let n = 0; n < 3; n++) cues.push(await s.running({ overlap: 'queue_one' }))
  s.clock.advance('1 minute')
  await s.fireTracked(cues)
  const [busy, ...idle] = cues.toSorted()
  // As if each had ended in a release that knows no queues.
  await s.rows(
    "update cue.executions set status = 'failed', attempt_due_at = null, ended_at = $2 where cue_id = any ($1) and attempt_due_at < 'infinity'",
    [idle, s.clock.now()]
  )
  let after: string | null = ''
  for (let calls = 0; calls < 3; calls++) after = await s.fn.repairQueues({ after: after!, limit: 1 })
  t.equal(after, idle.at(-1))
  t.equal(await s.fn.repairQueues({ after: after!, limit: 1 }), null)
  for (const id of idle) t.same(await s.states(id), ['failed', 'pending'])
  t.same(await s.states(busy!), ['pending', 'queued'])
})

t.test('a queued execution whose row is locked holds nobody up, and starts with the next repair', async t => {
  const s = await overlapStage(t)
  const id = await s.running({ overlap: 'queue_one' })
  await s.slot(id)
  const [, queued] = await s.open(id)
  const { client } = await s.connect()
  await client.query('begin')
  await client.query('select from cue.executions where id = $1 for update', [queued!.id])
  t.equal(await s.finish(await s.begin()), 1)
  t.same(await s.states(id), ['success', 'queued'])
  await client.query('rollback')
  t.equal(await s.fn.repairQueues({}), id)
  t.same(await s.states(id), ['success', 'pending'])
})

t.test('engines and requests see no queued execution as due', async t => {
  const s = await overlapStage(t)
  const ours = await s.running({ overlap: 'queue_one', ...worker })
  const id = await s.running({ overlap: 'queue_one' })
  s.clock.advance('1 minute')
  await s.fireTracked([ours, id])
  await s.settle(await s.begin(), refused)
  await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })
  const waiting = await s.fn.lookWaiting({ after: 0, after_id: '00000000-0000-0000-0000-000000000000' })
  t.same(
    waiting.map(row => row.is_due),
    [false],
    'only the retry'
  )
  const { waiting_at, deadline_at } = await s.fn.nextWakes({})
  t.ok(waiting_at! < new Date('2031-01-01') && deadline_at! < new Date('2031-01-01'))
  t.equal(await s.fn.nextClaimable({ account_id: s.account_id }), null)
  t.same(await s.fn.claimablePage({ account_id: s.account_id }), [])
  t.same(await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' }), [])
  exactly(t, await s.rows("select queue, waiting::int from cue.queue_depth where queue in ('queued', 'deferred') order by queue"), [
    { queue: 'deferred', waiting: 0 },
    { queue: 'queued', waiting: 2 }
  ])
})

for (const [table, moved] of [
  ['cue.accounts where id', 1],
  ['cue.cues where account_id', 1],
  ['cue.cue_runs where account_id', 1],
  ['cue.executions where account_id', 1],
  ['cue.open_executions where account_id', 2]
] as const) {
  t.test(`the slots of other accounts fire while ${table.split(' ')[0]} is locked`, async t => {
    const s = await overlapStage(t)
    const other = await s.account()
    const cues = [await s.cue({ overlap: 'cancel_previous' }), await s.cue({ overlap: 'cancel_previous' }, { account_id: other })]
    await s.fireTracked(cues)
    s.clock.advance('1 minute')
    const { client } = await s.connect()
    await client.query('begin')
    t.ok((await client.query(`select from ${table} = $1 for update`, [s.account_id])).rowCount)
    t.equal(await s.fireTracked(cues), moved)
    t.same(await s.states(cues[1]!), ['failed', 'pending'])
    await client.query('rollback')
    t.equal(await s.fireTracked(cues), 2 - moved)
    t.same(await s.states(cues[0]!), ['failed', 'pending'])
  })
}
