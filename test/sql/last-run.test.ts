/** last_run: the latest start of a cue's executions. */
import t from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { serviceAt } from '../support/service.ts'
import { refused, resultsOf } from '../support/stage.ts'

const service = serviceAt('2030-01-15T08:59:00Z')
const callback = { callback: { url: 'http://127.0.0.1/hook' } }

const serve = async () => {
  const built = await service()
  const { fn, get, post, pool, run, clock } = built
  await fn.beatEngine({ engine_id: crypto.randomUUID(), version: 'test', lateness_ms: null, open_deliveries: 0, missed_after: '100 years' })
  return {
    ...built,
    /** The API's last_run, in the detail and in the list. */
    lastRun: async (cue_id: string): Promise<string | null> => {
      const { last_run } = await get(`/v1/cues/${cue_id}`)
      const { cues } = await get('/v1/cues')
      t.equal(cues.find(({ id }: { id: string }) => id === cue_id).last_run, last_run)
      return last_run
    },
    /** Fires the slot of a cue at nine. */
    take: async (cue_id: string) => {
      clock.set('2030-01-15T09:00:00Z')
      const { version, next_run } = await run(cue_id)
      const next = new Date('2030-01-15T10:00:00Z')
      return fn.takeDueCues({ cue_ids: [cue_id], versions: [version], expected: [next_run], next: [next], missed_after: '100 years' })
    },
    begin: () => beginWaiting(fn, { limit: 10 }),
    report: (id: string) => post(`/v1/executions/${id}/outcome`, { success: true }),
    /** Runs `work` while another session holds the lock of the cue's cue_runs. */
    whileHeld: async (cue_id: string, work: () => Promise<unknown>) => {
      const client = await pool.connect()
      await client.query('begin')
      await client.query('select from cue.cue_runs where cue_id = $1 for update', [cue_id])
      await work().finally(() => client.query('rollback'))
      client.release()
    }
  }
}

t.test('a scheduled webhook starts when it fires, a scheduled worker execution when it is claimed', async t => {
  const { cue, take, lastRun, clock, claim, rows } = await serve()
  const sent = await cue(callback)
  const claimed = await cue()
  await take(sent)
  await take(claimed)
  t.equal(await lastRun(sent), '2030-01-15T09:00:00.000Z')
  t.equal(await lastRun(claimed), null)
  clock.set('2030-01-15T09:00:05Z')
  const [{ id }] = await rows('select id from cue.executions where cue_id = $1', [claimed])
  await claim(id)
  t.equal(await lastRun(claimed), '2030-01-15T09:00:05.000Z')
})

t.test('a fire, a deferred fire and a replay of a webhook start when their first attempt begins', async t => {
  const { cue, fire, post, begin, lastRun, clock, fn } = await serve()
  const cue_id = await cue(callback)
  const id = await fire(cue_id)
  await fire(cue_id, { send_at: '2030-01-15T09:30:00Z' })
  t.equal(await lastRun(cue_id), null)
  clock.set('2030-01-15T09:00:05Z')
  await fn.finishAttempts(resultsOf(await begin(), {}, clock.now()))
  t.equal(await lastRun(cue_id), '2030-01-15T09:00:05.000Z')
  await post(`/v1/executions/${id}/replay`)
  clock.set('2030-01-15T09:10:00Z')
  await begin()
  t.equal(await lastRun(cue_id), '2030-01-15T09:10:00.000Z')
  clock.set('2030-01-15T09:30:01Z')
  await begin()
  t.equal(await lastRun(cue_id), '2030-01-15T09:30:01.000Z')
})

t.test('another attempt or claim of an execution is not another start', async t => {
  const { cue, fire, begin, claim, lastRun, clock, fn, account } = await serve()
  const sent = await cue(callback)
  await fire(sent)
  await fn.settleAttempts(resultsOf(await begin(), refused, clock.now()))
  const claimed = await cue()
  const id = await fire(claimed)
  const { claim_token } = await claim(id)
  clock.advance('10 minutes')
  await fn.releaseExecution({ account_id: account.id, execution_id: id, claim_token })
  await claim(id)
  t.equal((await begin()).length, 1)
  for (const cue_id of [sent, claimed]) t.equal(await lastRun(cue_id), '2030-01-15T08:59:00.000Z')
})

t.test('a start while the row is locked is recorded when the execution ends, unless a later one started', async t => {
  const { cue, fire, begin, claim, report, lastRun, clock, fn, whileHeld } = await serve()
  const claimed = await cue()
  const [first, second] = [await fire(claimed), await fire(claimed)] as const
  const sent = await cue(callback)
  await fire(sent)
  clock.set('2030-01-15T09:00:00Z')
  await whileHeld(claimed, () => claim(first))
  t.equal(await lastRun(claimed), null)
  await report(first)
  t.equal(await lastRun(claimed), '2030-01-15T09:00:00.000Z')

  let begun: Awaited<ReturnType<typeof begin>> = []
  await whileHeld(sent, async () => {
    begun = await begin()
  })
  t.strictSame(
    begun.map(({ plain }) => plain),
    [false],
    'its end takes the path that writes to the cue'
  )
  clock.advance('1 second')
  await fn.settleAttempts(resultsOf(begun, {}, clock.now()))
  t.equal(await lastRun(sent), '2030-01-15T09:00:00.000Z')

  await whileHeld(claimed, () => claim(second))
  const third = await fire(claimed)
  clock.advance('1 second')
  await claim(third)
  await report(second)
  t.equal(await lastRun(claimed), '2030-01-15T09:00:02.000Z', 'the start of the third')
})
