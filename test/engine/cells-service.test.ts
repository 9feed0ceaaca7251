/** A replica on two cells: each request is answered by the cell that it names. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createKey, hashKey } from '../../src/accounts/keys.ts'
import { createToken } from '../../src/accounts/sessions.ts'
import { cellOfValue } from '../../src/cells/ids.ts'
import { addAccount, links, patienceMs, stage } from '../support/cells-stage.ts'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { receiver } from '../support/receiver.ts'

t.test('with two cells', async t => {
  const { pools, start } = await stage(t)
  const one = await addAccount(pools[0], 1)
  const two = await addAccount(pools[1], 2)
  await addAccount(pools[0], 1) // so that cell 2 has the fewest accounts, and gets new addresses
  const OPERATOR_TOKEN = 'operator-token-0123456789'
  const { call, tick, url } = await start({ OPERATOR_TOKEN })
  const hook = await receiver(t)

  await t.test('a key leads to its cell, whose engine fires its cues', async t => {
    for (const account of [one, two]) {
      t.equal((await call('GET', '/v1/auth/me', { key: account.api_key })).body.email, account.email)
      const { status, body } = await tick(account.api_key, `${hook.url}${account.id}`)
      t.equal(status, 201)
      await eventually(() => hook.requests.filter(({ path }) => path === `/${account.id}`).length >= 2, patienceMs)
      const other = account === one ? two : one
      t.equal((await call('GET', `/v1/cues/${body.id}`, { key: other.api_key })).status, 404)
      const { body: list } = await call('GET', '/v1/executions', { key: account.api_key })
      t.equal((await call('GET', `/v1/executions/${list.executions[0].id}`, { key: account.api_key })).status, 200)
      t.equal((await call('GET', `/v1/executions/${list.executions[0].id}`, { key: other.api_key })).status, 404)
    }
    const counts = await Promise.all(
      pools.map(async pool => (await pool.query('select count(*)::int as count from cue.cues')).rows[0].count)
    )
    t.same(counts, [1, 1])
  })

  await t.test('unknown keys of any cell are refused', async t => {
    for (const cell of [1, 2, 3, 61]) {
      const { status, body } = await call('GET', '/v1/auth/me', { key: createKey(cell) })
      t.same([status, body.error.code], [401, 'invalid_api_key'])
    }
  })

  await t.test('new keys name the cell of their account', async t => {
    for (const [digit, { api_key }] of [
      ['1', one],
      ['2', two]
    ] as const) {
      const { status, body } = await call('POST', '/v1/auth/keys', { key: api_key, body: { label: 'further' } })
      t.equal(status, 201)
      t.equal(body.api_key[7], digit)
      t.equal((await call('GET', '/v1/cues', { key: body.api_key })).status, 200)
    }
  })

  await t.test('a one-time token, the session that it opens, and an execution token lead to their cell', async t => {
    const token = createToken(2)
    await pools[1].query('select cue.insert_session_token($1, $2, now())', [two.id, hashKey(token)])
    const { status, body } = await call('POST', '/v1/auth/session', { body: { token } })
    t.equal(status, 200)
    t.equal((await call('GET', '/v1/auth/me', { key: body.session_token })).body.email, two.email)
    t.equal((await call('POST', '/v1/auth/session', { body: { token } })).status, 401, 'once')

    const request = hook.requests.find(({ path }) => path === `/${two.id}`)!
    const [, execution_token = ''] = /^Bearer (.*)$/.exec(String(request.headers.authorization))!
    const id = String(request.headers['webhook-id'])
    t.equal((await call('GET', `/v1/executions/${id}`, { key: execution_token })).body.id, id)
  })

  await t.test('an address is looked up for any spelling of the path, but not for another host or for two', async t => {
    const { status, body } = await call('POST', '/v1/auth/%72egister', { key: one.api_key, body: { email: two.email } })
    t.same([status, body.error.code], [409, 'duplicate_email'])
    const ask = async (...hosts: string[]) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      const head = ['POST /v1/auth/register HTTP/1.1', ...hosts.map(host => `Host: ${host}`), 'Connection: close', 'Content-Length: 29']
      socket.write(`${head.join('\r\n')}\r\n\r\n{"email": "other@example.com"}`)
      return Number((await text(socket)).split(' ')[1])
    }
    t.equal(await ask('evil.example'), 421)
    t.equal(await ask('localhost', 'evil.example'), 400)
    const counts = await Promise.all(
      pools.map(async pool => (await pool.query("select from cue.accounts where email like 'other@%'")).rowCount)
    )
    t.same(counts, [0, 0])
  })

  await t.test('links in mails lead to the cell of their account', async t => {
    await pools[1].query('select cue.request_deletion($1)', [two.id])
    const { rows } = await pools[1].query('select id from cue.deletions')
    const url = links.url('cancel-deletion', rows[0].id)
    exactly(t, await call('GET', url), { status: 200, body: /cancel/i })
    const token = new URLSearchParams(url.split('?')[1]).get('token')
    exactly(t, await call('POST', '/v1/auth/me/cancel-deletion', { body: { token } }), { status: 200, body: { cancelled: true } })
    t.equal((await pools[1].query('select cancelled_at from cue.deletions')).rows[0].cancelled_at !== null, true)
    t.equal((await call('POST', '/v1/auth/me/cancel-deletion', { body: { token: 'x' } })).status, 404)
    t.equal((await call('POST', '/v1/auth/session', { body: { token: 'x'.repeat(3_000_000) } })).status, 413)
  })

  await t.test('every account can read every echo', async t => {
    for (let i = 0; i < 8; i++) {
      t.equal((await call('POST', `/v1/echo/a-token-of-a-test-${i}`, { body: { i } })).status, 200)
      for (const { api_key } of [one, two]) {
        const { body } = await call('GET', `/v1/echo/a-token-of-a-test-${i}`, { key: api_key })
        t.same([body.status, body.payload], ['delivered', { i }])
      }
    }
  })

  await t.test('health and metrics show each cell', async t => {
    const { body } = await call('GET', '/health')
    t.equal(body.status, 'healthy')
    t.same(pluck(body.cells, 'id', 'status', 'replicas'), [
      [1, 'healthy', 1],
      [2, 'healthy', 1]
    ])
    const text = (await call('GET', '/metrics')).body
    for (const cell of [1, 2]) {
      t.match(text, new RegExp(`^pgcue_attempts_total\\{result="success",cell="${cell}"\\} [1-9]`, 'm'))
      t.match(text, new RegExp(`^pgcue_database_up\\{cell="${cell}"\\} 1$`, 'm'))
    }
    t.equal([...text.matchAll(/^process_resident_memory_bytes /gm)].length, 1)
  })

  await t.test("the operator's questions are answered by each cell, and one about a cue by its cell", async t => {
    const ask = async (question: string) => (await call('GET', `/v1/operator/on-call/${question}`, { key: OPERATOR_TOKEN })).body.rows
    exactly(t, await ask('replicas'), [
      { cell: 1, is_alive: true },
      { cell: 2, is_alive: true }
    ])
    const { rows } = await pools[1].query('select id from cue.cues')
    exactly(t, await ask(`late?cue_id=${rows[0].id}`), [{ cell: 2, cue_id: rows[0].id, account_id: two.id }])
    t.equal((await call('GET', '/v1/operator/on-call/late?cue_id=cue_2nobody00000', { key: OPERATOR_TOKEN })).status, 404)
  })
})

t.test('a stopping replica finishes the requests of every cell', async t => {
  const { pools, start } = await stage(t)
  const two = await addAccount(pools[1], 2)
  const { call, signal, ended, url } = await start()
  const holder = await pools[1].connect()
  await holder.query('begin; lock table cue.accounts in exclusive mode')
  const changed = call('PATCH', '/v1/auth/me', { key: two.api_key, body: { memory_block_enabled: false } })
  const polled = call('POST', '/v1/executions/claim', { key: two.api_key, body: { worker_id: 'w', wait: 30 } })
  /** A request whose body arrives after the signal. */
  const begin = (path: string, headers = {}) => {
    const begun = request(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } })
    begun.flushHeaders()
    return async (body: object) => {
      begun.end(JSON.stringify(body))
      const [answer] = await once(begun, 'response')
      answer.resume()
      return answer.statusCode
    }
  }
  const sendLarge = begin('/v1/cues', { authorization: `Bearer ${two.api_key}` })
  const sendCode = begin('/v1/auth/device-code')
  // In this database: others share the server.
  const waiting = `select from pg_locks where not granted and relation = 'cue.accounts'::regclass
    and database = (select oid from pg_database where datname = current_database())`
  await eventually(async () => (await pools[1].query(waiting)).rowCount === 1, patienceMs)
  signal('SIGTERM')
  t.equal((await polled).body.error.code, 'nothing_claimable')
  await holder.query('rollback')
  holder.release()
  t.equal((await changed).status, 200)
  t.equal(await sendLarge({ name: 'late', cron: '@yearly', worker: true, payload: { text: 'x'.repeat(100_000) } }), 201)
  const device_code = Array.from({ length: 50 }, (_, n) => `late-device-code-${n}`).find(code => cellOfValue(code, 2) === 2)!
  t.equal(await sendCode({ device_code }), 503, 'a cell that only the body names is not asked any more')
  t.equal((await ended).code, 0)
  const engines = await Promise.all(
    pools.map(async pool => (await pool.query('select from cue.engines where stopped_at is null')).rowCount)
  )
  t.same(engines, [0, 0], 'every engine has ended')
})
