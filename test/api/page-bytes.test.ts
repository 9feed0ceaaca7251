/** Lists of large items: they end early, skip nothing, and do not read what they omit from the database. */
import t, { type Test } from 'tap'
import { pageQuery } from '../../src/executions/queries.ts'
import { pluck } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const start = '2030-01-15T09:00:00.000Z'
const MiB = 1024 * 1024
const page = 4 * MiB
const hourly = { name: 'large', cron: '@hourly', worker: true }
const payloadOf = (bytes: number, task = 'go') => ({ task, text: 'x'.repeat(bytes - JSON.stringify({ task, text: '' }).length - 3) })

/** The service, and the rows its statements returned. */
const serve = async (t: Test) => {
  const service = await build(t, start, { env: { PLANS: '{"free": {"cues": 1000}}' } })
  const { pool, post, clock } = service
  const fetched = { bytes: 0 }
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<{ rows: object[] }>
  pool.query = (async (...args: unknown[]) => {
    const result = await query(...args)
    for (const value of result.rows.flatMap(row => Object.values(row))) if (typeof value === 'string') fetched.bytes += value.length
    return result
  }) as typeof pool.query
  // A second apart, because lists are ordered by time.
  const create = async (bytes: number, body: object = {}): Promise<string> => {
    clock.advance('1 second')
    return (await post('/v1/cues', { ...hourly, payload: payloadOf(bytes), ...body })).id
  }
  return { ...service, create, fetched }
}

/** Pages through a list by the number of items received, and returns the pages. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of any shape
const follow = async (get: (path: string) => Promise<any>, path: string, member: string) => {
  const pages: { ids: string[]; bytes: number; has_more: boolean }[] = []
  for (let offset = 0; ; ) {
    const body = await get(`${path}${path.includes('?') ? '&' : '?'}limit=100&offset=${offset}`)
    const ids = body[member].map((item: { id: string }) => item.id)
    pages.push({ ids, bytes: Buffer.byteLength(JSON.stringify(body)), has_more: body.has_more })
    offset += ids.length
    if (!body.has_more) return { pages, total: body.total as number }
  }
}

t.test('lists of cues and claimable executions, and claims, end at 4 MiB, skip nothing and leave the others', async t => {
  const { get, post, create, fetched, fn, account } = await serve(t)
  const made: string[] = []
  for (let n = 0; n < 10; n++) made.unshift(await create(MiB))
  fetched.bytes = 0
  const { pages, total } = await follow(get, '/v1/cues', 'cues')
  t.same(
    pages.map(({ ids, has_more }) => [ids.length, has_more]),
    [
      [3, true],
      [3, true],
      [3, true],
      [1, false]
    ]
  )
  t.ok(pages.every(({ bytes }) => bytes <= page))
  t.strictSame(
    pages.flatMap(({ ids }) => ids),
    made
  )
  t.equal(total, 10)
  t.ok(fetched.bytes < 11 * MiB, 'each payload is read once')

  for (const id of made) await post(`/v1/cues/${id}/fire`)
  const other = await create(1000, { payload: payloadOf(1000, 'other') })
  const { id: last } = await post(`/v1/cues/${other}/fire`)
  const { executions, has_more } = await get('/v1/executions/claimable?limit=100')
  t.same([executions.length, has_more], [4, true])
  t.ok(Buffer.byteLength(JSON.stringify(executions)) <= page)
  t.equal(executions.at(-1).id, last, 'each task is represented')

  const claim = async (limit: number): Promise<string[]> =>
    pluck((await post('/v1/executions/claim', { limit })).executions, 'execution_id')
  const taken = await claim(10)
  t.equal(taken.length, 3)
  const claims = [
    { account_id: account.id, worker_id: 'a', limit: 4 },
    { account_id: account.id, worker_id: 'b', limit: 1 }
  ]
  const claimed = await fn.claimNext({ claims: JSON.stringify(claims) })
  t.same(pluck(claimed, 'claim'), [1, 1, 1, 2], 'each worker has its own 4 MiB')
  taken.push(...pluck(claimed, 'execution_id'), ...(await claim(10)))
  t.equal(new Set(taken).size, 11)
})

t.test('a list has at least one item, however large', async t => {
  const { get, post, create, clock } = await serve(t)
  const small = [await create(1000)]
  // Six bytes per character in canonical form.
  const large = await create(1000, { payload: '\x7f'.repeat(MiB - 2) })
  small.push(await create(1000))
  const { pages } = await follow(get, '/v1/cues', 'cues')
  t.same(pluck(pages, 'ids', 'has_more'), [
    [[small[1]], true],
    [[large], true],
    [[small[0]], false]
  ])
  const { id } = await post(`/v1/cues/${large}/fire`)
  clock.advance('1 second')
  await post(`/v1/cues/${small[0]}/fire`)
  const { executions, has_more } = await get('/v1/executions/claimable')
  t.same([executions.map((execution: { id: string }) => execution.id), has_more], [[id], true])
  const claims = await post('/v1/executions/claim', { limit: 2 })
  t.same(pluck(claims.executions, 'execution_id'), [id])
})

t.test('has_more shows whether a limit cut the claimable list', async t => {
  const { get, post, create } = await serve(t)
  const id = await create(1000)
  for (let n = 0; n < 3; n++) await post(`/v1/cues/${id}/fire`)
  for (const [limit, has_more] of [
    [2, true],
    [3, false],
    [4, false]
  ] as const) {
    const list = await get(`/v1/executions/claimable?limit=${limit}`)
    t.same([list.executions.length, list.has_more], [Math.min(limit, 3), has_more])
  }
})

t.test('a list of executions ends early, and its pages contain each once', async t => {
  const { get, post, create, pool, db, account } = await serve(t)
  const cue = await create(1000)
  for (let n = 0; n < 10; n++) await post(`/v1/cues/${cue}/fire`)
  await pool.query(
    `update cue.executions set outcome_success = true, outcome_recorded_at = created_at, outcome_state = 'reported_success',
            metadata = jsonb_build_object('text', repeat('x', 700000))`
  )
  const { pages, total } = await follow(get, '/v1/executions', 'executions')
  t.same(
    pages.map(({ ids, has_more }) => [ids.length, has_more]),
    [
      [5, true],
      [5, false]
    ]
  )
  t.ok(pages.every(({ bytes }) => bytes <= page))
  t.equal(new Set(pages.flatMap(({ ids }) => ids)).size, 10)
  t.equal(total, 10)
  const rows = await pageQuery(db, account.id, { limit: 100, offset: 0 } as never, new Date(start), 1).execute()
  t.same([rows.length, rows[0]!.found], [1, 10], 'one at least, and the others stay in the database')
})

t.test('a list of workers ends early, and its pages contain each once', async t => {
  const { get, pool, account } = await serve(t)
  await pool.query(
    `insert into cue.workers (account_id, worker_id, handlers, last_heartbeat, registered_since)
     select $1, 'w' || n, array_fill(repeat('x', 255), array[1000]), now(), now() from generate_series(1, 40) n`,
    [account.id]
  )
  const counts: number[] = []
  const seen = new Set<string>()
  for (let offset = 0; offset < 40; ) {
    const { workers, total } = await get(`/v1/workers?limit=100&offset=${offset}`)
    t.equal(total, 40)
    counts.push(workers.length)
    for (const { worker_id } of workers) seen.add(worker_id)
    offset += workers.length
  }
  t.same(counts, [16, 16, 8])
  t.equal(seen.size, 40)
})

t.test('stored JSON is returned without parsing and serialising it', async t => {
  const { app, account, post } = await serve(t)
  const payload = Array(200_000).fill(1)
  const { id: cue } = await post('/v1/cues', { ...hourly, payload })
  const { id } = await post(`/v1/cues/${cue}/fire`)
  const { parse, stringify } = JSON
  let longest = 0
  t.teardown(() => Object.assign(JSON, { parse, stringify }))
  JSON.parse = (text, reviver) => {
    const value = parse(text, reviver)
    if (Array.isArray(value)) longest = Math.max(longest, value.length)
    return value
  }
  JSON.stringify = ((value: unknown, ...rest: []) => {
    const text = stringify(value, ...rest)
    longest = Math.max(longest, text?.length ?? 0)
    return text
  }) as typeof JSON.stringify
  const headers = { authorization: `Bearer ${account.api_key}` }
  for (const url of ['/v1/cues', `/v1/cues/${cue}`, '/v1/executions/claimable', `/v1/executions/${id}`]) {
    const { statusCode, body } = await app.inject({ url, headers })
    t.same([statusCode, body.includes(`"payload":[${payload.join(', ')}]`)], [200, true], url)
  }
  t.ok(longest < 10_000, `${longest} at most`)
})
