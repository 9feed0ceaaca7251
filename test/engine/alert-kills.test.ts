/** The messages of an alert's life to channels, sent by replicas of which each is killed in the middle of all of them. */
import t from 'tap'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { startReplica } from '../support/replica.ts'
import { serviceAt } from '../support/service.ts'
import { receiver } from '../support/setup.ts'

/** By channel: where the kill comes in the sending of each message, and how often it arrives. */
const arrivals = {
  /** The job was fetched, and nothing was sent. */
  taken: 1,
  /** The receiver has the request, and has not responded. */
  open: 2,
  /** The receiver has responded, and that was not recorded. */
  answered: 2,
  /** It was recorded. */
  sent: 1
}
const names = Object.keys(arrivals)

/** The lease of a try, and the time after which its job counts as lost. A living engine looks every 10 seconds: within a minute in all. */
const resumedAfter = '46 seconds'

/** While somebody holds the advisory lock 1, no message to `taken` begins, and no response of `answered` is recorded. */
const holdable = `
create function public.hold_notice() returns trigger language plpgsql as $$
begin
  if (new.tries > old.tries, new.state = 'sent', (select h.name from cue.channels h where h.id = new.channel_id)) in
     ((true, false, 'taken'), (false, true, 'answered')) then
    perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared(1);
  end if;
  return new;
end $$;
create trigger hold_notice before update on cue.notices for each row execute function public.hold_notice()`

const heldUp = `from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`

t.test('an alert raised, resolved, snoozed, acknowledged and raised again, with a kill in each message, sends each once', async t => {
  const { pool, url, rows, cue, fire, claim, call, get, post, fn } = await serviceAt()()
  const hook = await receiver(t, ({ path, headers }) => {
    const isFirst = hook.requests.filter(other => other.headers['webhook-id'] === headers['webhook-id']).length === 1
    return path === '/open' && isFirst ? new Promise(() => {}) : {}
  })
  // The first message that is signed makes the secret, and others wait for it.
  await get('/v1/auth/alert-webhook-secret')
  await rows(holdable)
  const cues: string[] = []
  for (const name of names) {
    const channel = { type: 'webhook', target: hook.url + name, types: ['alert.*'], tags: [name] }
    t.equal((await call('PUT', `/v1/channels/${name}`, channel)).status, 201)
    cues.push(await cue({ name, tags: [name], alerts: { consecutive_failures: 1 } }))
  }
  const end = async (success: boolean) => {
    for (const cue_id of cues) {
      const id = await fire(cue_id)
      const headers = { 'x-claim-token': (await claim(id)).claim_token }
      exactly(t, await post(`/v1/executions/${id}/outcome`, { success }, headers), { outcome_recorded: true })
    }
  }
  const ofAlerts = async (action: string, body?: object) => {
    for (const { id } of (await get('/v1/alerts')).alerts) exactly(t, await post(`/v1/alerts/${id}/${action}`, body), { id })
  }

  const start = () =>
    startReplica(t, { DATABASE_URL: url, ROLES: 'engine', MIGRATE: 'off', CALLBACK_ALLOW_HTTP: 'on', CALLBACK_ALLOW_CIDRS: '127.0.0.0/8' })
  const kill = async () => {
    replica.signal('SIGKILL')
    await replica.ended
  }
  const waiting = async () =>
    pluck(
      await rows("select h.name from cue.notices n join cue.channels h on h.id = n.channel_id where n.state = 'waiting' order by 1"),
      'name'
    )
  const isAllSent = () => eventually(async () => (await waiting()).length === 0, 15_000)
  /** Once each message is where its channel says, kills the replica and what it left in the database, and starts another one later. */
  const interrupted = async (messages: number, cause: () => unknown) => {
    const holder = await pool.connect()
    try {
      await holder.query('select pg_advisory_lock(1)')
      await cause()
      await eventually(async () => {
        const [{ count }] = await rows(`select count(*)::int ${heldUp}`)
        return count === 2 && new Set(hook.requests.map(({ headers }) => headers['webhook-id'])).size === messages * names.length - 1
      }, 15_000)
      await eventually(async () => (await waiting()).join() === 'answered,open,taken', 15_000)
      await kill()
      await rows(`select pg_terminate_backend(pid, 5000) ${heldUp}`)
      await holder.query('select pg_advisory_unlock(1)')
    } finally {
      holder.release()
    }
    await rows(`update cue.notices set due_at = due_at - interval '${resumedAfter}' where state = 'waiting'`)
    replica = start()
    await isAllSent()
  }

  let replica = start()
  await interrupted(1, () => end(false))
  await interrupted(2, () => end(true))
  await ofAlerts('snooze', { until: new Date(Date.now() + 3600_000).toISOString() })
  await end(false)
  await end(true)
  t.same(await waiting(), [], 'nothing while it is snoozed')
  await kill()
  await rows('update cue.alerts set snoozed_until = now()')
  await interrupted(3, () => {
    replica = start()
  })
  await interrupted(4, () => ofAlerts('acknowledge'))
  await interrupted(5, () => end(false))

  const types = ['alert.raised', 'alert.resolved', 'alert.summary', 'alert.acknowledged', 'alert.raised']
  for (const [name, count] of Object.entries(arrivals)) {
    const requests = hook.requests.filter(({ path }) => path === `/${name}`)
    const messages = Map.groupBy(requests, ({ headers }) => headers['webhook-id'])
    const bodies = [...messages.values()].map(same => JSON.parse(same[0]!.body))
    t.same(pluck(bodies, 'type'), types, name)
    t.same(
      [...messages.values()].map(same => same.length),
      types.map(() => count),
      `${name}: how often each arrives`
    )
    const ids = bodies.map(({ data }) => data.id)
    t.same(ids, [ids[0], ids[0], ids[0], ids[0], ids[4]])
    t.not(ids[4], ids[0])
    exactly(t, bodies[2].data.happened, { failures: 1, resolved: true, acknowledged: false })
  }
  t.same(await rows('select state, count(*)::int from cue.notices group by 1'), [{ state: 'sent', count: types.length * names.length }])
  t.equal(await fn.requeueNotices({}), 0)
})
