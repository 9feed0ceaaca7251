import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createOutageLog } from '../../src/database/outage-log.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { receiver } from '../support/receiver.ts'
import { startReplica } from '../support/replica.ts'

const gone = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })

const setUp = () => {
  let time = 0
  const lines: string[] = []
  const outageLog = createOutageLog(
    { warn: ({ task, ms }: { task?: string; ms?: number }, text) => lines.push(`${text} ${task ?? ms}`) },
    () => time
  )
  return { ...outageLog, lines, pass: (ms: number) => (time += ms) }
}

t.test('logs a lost database once, and its return', async t => {
  const { lost, back, lines, pass } = setUp()
  back()
  t.equal(lost(gone, 'firing'), true)
  pass(500)
  lost(gone, 'listening')
  pass(500)
  back()
  back()
  t.same(lines, ['database unavailable firing', 'database available again 1000'])
})

t.test('logs an outage at most once a minute, even if it comes and goes', async t => {
  const { lost, back, lines, pass } = setUp()
  for (let i = 0; i < 90; i++) {
    lost(gone, 'firing')
    pass(1000)
  }
  t.same(lines, ['database unavailable firing', 'database unavailable firing'])
  for (let i = 0; i < 20; i++) {
    back()
    lost(gone, 'firing')
  }
  t.equal(lines.length, 3, 'that it was back')
})

t.test('a server that refuses only some statements is available again when the task that failed succeeds', async t => {
  const { lost, back, lines, pass } = setUp()
  lost(Object.assign(new Error('No space left on device'), { code: '53100' }), 'firing')
  pass(500)
  lost(gone, 'listening')
  back('heartbeat')
  t.same(lines, ['database unavailable firing'])
  back('firing')
  lost(Object.assign(new Error('Query read timeout')), 'firing')
  back('firing')
  t.same(lines, ['database unavailable firing', 'database available again firing'], 'once a minute')
  pass(60_000)
  lost(Object.assign(new Error('No space left on device'), { code: '53100' }), 'a job that nobody repeats', false)
  back('heartbeat')
  t.equal(lines.at(-1), 'database available again heartbeat')
})

t.test('does not count other errors as an outage', async t => {
  const { lost, lines } = setUp()
  t.equal(lost(new TypeError('x is undefined'), 'firing'), false)
  t.same(lines, [])
})

/** The way to a database, which can be cut. */
const startWire = async (t: Test, url: string) => {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer(client => {
    if (isCut) return client.destroy()
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => [client, upstream].forEach(one => void one.destroy()))
    }
    client.pipe(upstream).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(cut)
  const { port: own } = server.address() as AddressInfo
  return { url: Object.assign(new URL(url), { hostname: '127.0.0.1', port: own }).href, cut, mend: () => (isCut = false) }
}

t.test('an outage takes two log lines without a stack on an idle replica', async t => {
  const wire = await startWire(t, (await createDatabase(t)).url)
  const replica = startReplica(t, { DATABASE_URL: wire.url, LOG_LEVEL: 'warn' })
  await eventually(() => replica.stderr().includes('serves at'))
  wire.cut()
  await new Promise(resolve => setTimeout(resolve, 3000)) // long enough for all that asks to have failed
  wire.mend()
  await eventually(() => replica.lines().some(line => line.msg === 'database available again'))
  t.same(
    replica.lines().map(line => line.msg),
    ['database unavailable', 'database available again']
  )
  t.equal(replica.lines()[0].err.stack, '')
})

t.test('a full disk is logged once, by requests as well, until it has room again', async t => {
  const { url, pool } = await createDatabase(t)
  // A row fills the disk: creating a trigger later could deadlock with the service.
  await pool.query(`create table public.full_disk ();
    create function public.full_disk() returns trigger language plpgsql as $$ begin
      if exists (select from public.full_disk) then
        raise disk_full using message = 'could not extend file: No space left on device';
      end if;
      return new;
    end $$;
    create trigger full_disk before insert on cue.executions for each row execute function public.full_disk()`)
  const target = await receiver(t)
  const settings = { CALLBACK_ALLOW_HTTP: 'on', CALLBACK_ALLOW_CIDRS: '127.0.0.0/8', POLL_INTERVAL_MS: '500' }
  const replica = startReplica(t, { DATABASE_URL: url, ...settings })
  await eventually(() => replica.stderr().includes('serves at'))
  const [, base = ''] = /serves at (\S+)/.exec(replica.stderr())!
  const post = async (path: string, body: object, key = ''): Promise<{ status: number; body: Record<string, string> }> => {
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
    const answer = await fetch(`${base}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: (await answer.json()) as Record<string, string> }
  }
  const key = (await post('/v1/auth/register', { email: 'a@example.com' })).body.api_key
  const cue = await post('/v1/cues', { name: 'ticks', cron: '* * * * * *', callback_url: target.url }, key)
  await target.received(1)
  await pool.query('insert into public.full_disk default values')
  const linesOf = (msg: string) => replica.lines().filter(line => line.msg === msg)
  await eventually(() => linesOf('database unavailable').length > 0)
  for (let n = 0; n < 3; n++) t.equal((await post(`/v1/cues/${cue.body.id}/fire`, {}, key)).status, 503)
  // Two heartbeats succeed meanwhile.
  await new Promise(resolve => setTimeout(resolve, 11_000))
  t.equal(linesOf('database unavailable').length, 1)
  t.same(linesOf('database available again'), [])
  t.same(
    linesOf('request failed').map(({ level, code, err }) => ({ level, code, stack: err.stack })),
    Array.from({ length: 3 }, () => ({ level: 40, code: 'unavailable', stack: '' }))
  )
  await pool.query('delete from public.full_disk')
  await eventually(() => linesOf('database available again').length === 1)
  await target.received(target.requests.length + 1)
})
