import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createOutageLog } from '../../src/database/outage-log.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
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
