// Chains under random ends, replays, engines that act at once and transactions that are rolled back: each lineage signals a follower once, and the runs are those
// that the signals, in their order, make.
import t from 'tap'
import type { Functions } from '../../src/database/functions.ts'
import { chainStage } from '../support/chain-stage.ts'
import { below, cases, chance, pick, shuffled } from '../support/seed.ts'
import { type Row, refused } from '../support/stage.ts'

const steps = cases(150)

/** The runs of a follower, as lists of executions, by its signals in their order. */
const runsOf = (signals: Row[], parents: string[], mode: string): string[] => {
  const unspent = new Map<string, Row>()
  const runs: string[] = []
  for (const signal of signals) {
    if (mode === 'any') {
      runs.push(signal.execution_id)
      continue
    }
    unspent.set(signal.parent_id, signal)
    const taken = parents.map(parent => unspent.get(parent))
    if (!taken.every(one => one && one.expires_at > signal.signalled_at)) continue
    runs.push(
      taken
        .map(one => one!.execution_id)
        .sort()
        .join()
    )
    unspent.clear()
  }
  return runs.sort()
}

t.test(`no signal is lost or counts twice (${steps} steps)`, async t => {
  const s = await chainStage(t)
  const { rows, fn, account_id, clock } = s
  await rows('update cue.plans set executions_per_month = 100000000')
  const connections = [await s.connect(), await s.connect()]
  const engines: Functions[] = [fn, ...connections.map(connection => connection.fn)]
  const roots = [await s.parent(), await s.parent()]
  const followers: { id: string; parents: string[]; mode: string; when: string }[] = []
  for (let n = 0; n < 8; n++) {
    const parents = shuffled([...roots, ...followers.map(({ id }) => id)]).slice(0, 1 + below(3))
    const about = { parents, mode: pick(['all', 'all', 'any']), when: pick(['success', 'success', 'end', 'failure']) }
    const after = { cues: parents, mode: about.mode, when: about.when, within: '1h' }
    followers.push({ ...about, id: await s.follower(after, { retry_max_attempts: 1, overlap: pick(['allow', 'queue_all']) }) })
  }

  /** Does something, after a first try that a crash undid. */
  const twice = async (act: (by: Functions) => Promise<unknown>) => {
    const { client, fn: by } = pick(connections)
    if (chance(0.3)) {
      await client.query('begin')
      await act(by)
      await client.query('rollback')
    }
    await act(by)
  }
  const settleAll = async () => {
    for (const attempt of await s.begin()) await twice(by => s.settle([attempt], chance(0.7) ? {} : refused, by))
  }
  const startAll = () => (chance(0.5) ? twice(s.start) : Promise.all(engines.map(s.start)))
  const actions = [
    async () => {
      const attempts = [await s.begun(roots[0]!), await s.begun(roots[1]!)]
      await Promise.all(shuffled(attempts).map((attempt, n) => s.settle([attempt], chance(0.8) ? {} : refused, engines[n])))
    },
    async () => {
      const attempts = [await s.begun(pick(roots))]
      await twice(by => s.finish(attempts, by))
    },
    settleAll,
    settleAll,
    async () => {
      const ended = await rows('select id from cue.executions where ended_at is not null order by random() limit 1')
      if (ended[0]) await fn.replayExecution({ account_id, execution_id: ended[0].id })
    },
    startAll,
    startAll,
    async () => {
      clock.advance(`${below(40)} minutes`)
      await Promise.all(engines.map(engine => engine.expireSignals({})))
    }
  ]
  for (let step = 0; step < steps; step++) {
    clock.advance('1 second')
    await pick(actions)()
  }
  const isBusy = async () =>
    (await rows('select from cue.signals where is_new union all select from cue.executions where ended_at is null')).length > 0
  for (let rest = 0; rest < 500 && (await isBusy()); rest++) {
    await s.start()
    await settleAll()
    clock.advance('1 second')
  }
  t.same(await rows('select from cue.signals where is_new'), [])
  t.same(await rows('select from cue.executions where ended_at is null'), [])

  for (const { id, parents, mode, when } of followers) {
    const signals = await rows('select * from cue.signals where follower_id = $1 order by id', [id])
    const counting = await rows(
      `select distinct coalesce(lineage_id, id) as id from cue.executions
        where cue_id = any ($1) and case $2 when 'success' then status = 'success' when 'failure' then status = 'failed' else true end order by 1`,
      [parents, when]
    )
    t.same(
      signals.map(row => row.lineage_id).sort(),
      counting.map(row => row.id),
      `signals of ${when}`
    )
    const runs = await rows("select parents from cue.executions where cue_id = $1 and triggered_by = 'chain'", [id])
    const actual = runs
      .map(row =>
        row.parents
          .map((parent: Row) => parent.execution_id)
          .sort()
          .join()
      )
      .sort()
    t.same(actual, runsOf(signals, parents, mode), `runs after ${mode} of ${parents.length}`)
  }
  const { count } = await s.row("select count(*)::int from cue.executions where triggered_by = 'chain'")
  t.comment(`${count} runs`)
  t.ok(count > steps / 20)
})
