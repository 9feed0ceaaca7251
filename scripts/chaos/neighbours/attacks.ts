/** The attacks. All stay within their accounts' limits, because rejected requests cost little and prove nothing. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Account } from '../../stage/seed.ts'
import type { AttackRequest, Damage, Flood } from './attacker.ts'

export type World = {
  url: string
  pool: pg.Pool
  hook: string
  /** With plans in turn: scale, free, pro. */
  attackers: Account[]
  seconds: number
  send: (weapon: 'flood' | 'connect', options: object) => Promise<Damage>
}

export type Attack = {
  title: string
  prepare?: (world: World) => Promise<unknown>
  /** Runs the attack; the result is added to the JSON line. */
  strike: (world: World) => Promise<object>
}

const mebibyte = 2 ** 20
const fill = (unit: string, bytes: number) => unit.repeat(Math.floor(bytes / unit.length))
/** Numbers whose canonical form differs from what is sent. */
const numbers = `[${fill('1e5,', mebibyte - 200_000).slice(0, -1)}]`
const nested = fill('[', 60) + fill(']', 60)

const asking = (account: Account, method: AttackRequest['method'], path: string, body?: string): AttackRequest => ({
  method,
  path,
  headers: { authorization: `Bearer ${account.api_key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
  ...(body !== undefined && { body })
})

const flood = (world: World, options: Omit<Flood, 'url' | 'seconds'>) => world.send('flood', options)
const ofPlan = ({ attackers }: World, nth: 0 | 1 | 2) => attackers.filter((_, n) => n % 3 === nth)
const bodyOf = (world: World, members: object) => JSON.stringify({ name: 'attack', callback_url: `${world.hook}/hang`, ...members })

const send = async (world: World, { path, ...request }: AttackRequest) => {
  const response = await fetch(world.url + path, request)
  if (!response.ok) throw new Error(`an attacker's request is refused: ${(await response.text()).slice(0, 500)}`)
  await response.body?.cancel()
}

const create = async (world: World, account: Account, body: string, times = 1) => {
  for (let n = 0; n < times; n++) await send(world, asking(account, 'POST', '/v1/cues', body))
}

/** Creates ten worker cues of each account, half of them with the second schedule. */
const createTen = (world: World, accounts: Account[], schedules: [object, object], members: object = {}) =>
  Promise.all(
    accounts.map(async account => {
      for (const schedule of schedules)
        await create(world, account, JSON.stringify({ name: 'costly', worker: true, schedule, ...members }), 5)
    })
  )

/** Ten exclusions each: of a schedule with a slot every second, all are rare; the other has a slot per hour left, after exclusions of a minute. */
const exclusions = (cron: (n: number) => string) => Array.from({ length: 10 }, (_, n) => ({ cron: cron(n), minutes: 1 }))
const rare = { cron: '* * * * * *', exclude: exclusions(n => `*/2 ${n} 29 2 */7`) }
const hourly = { cron: '* * * * *', exclude: exclusions(n => (n % 2 === 0 ? `${n >> 1}-58 * * * *` : `${n} 3 29 2 */7`)) }

/** 200 dates and 100 ranges, a tenth of what the calendars of a cue may have in total. */
const calendar = (year: number) =>
  JSON.stringify({
    dates: Array.from({ length: 200 }, (_, n) => new Date(Date.UTC(year, 0, 2 * n)).toISOString().slice(0, 10)),
    ranges: Array.from({ length: 100 }, (_, n) => ({
      from: `${year + (n % 20)}-02-01T00:${10 + (n % 50)}`,
      to: `${year + (n % 20)}-02-01T09:00`
    }))
  })

/** Serialises a cue with its payload given as text, because JSON.stringify would change large numbers. */
const withPayload = (members: object, payload: string) => `${JSON.stringify(members).slice(0, -1)},"payload":${payload}}`

/** Holds the locks of a statement during the attack, while accounts keep sending requests. */
const whileLocked = async (world: World, statement: string, values: unknown[], strike: () => Promise<Damage>) => {
  const client = await world.pool.connect()
  try {
    await client.query('begin')
    await client.query(statement, values)
    return await strike()
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const posting = (world: World, accounts: Account[]) =>
  flood(world, {
    parallel: 20,
    perSecond: 10,
    requests: accounts.map(account =>
      asking(account, 'POST', '/v1/cues', JSON.stringify({ name: 'posted', cron: '0 9 1 1 *', worker: true }))
    )
  })

/** Locks an account's row in a table while the account keeps posting and its cues come due. */
const locking = (table: string, column = 'account_id'): Attack => ({
  title: `a row of \`${table}\` locked while its account keeps posting`,
  prepare: async world => {
    const account = ofPlan(world, 0)[0]!
    const body = JSON.stringify({ name: 'every second', cron: '* * * * * *', callback_url: `${world.hook}/uncounted`, payload: {} })
    await create(world, account, body, 10)
    await delay(1500)
  },
  strike: world =>
    whileLocked(world, `select from cue.${table} where ${column} = $1 for update`, [ofPlan(world, 0)[0]!.id], () =>
      posting(world, ofPlan(world, 0).slice(0, 1))
    )
})

const idle = async ({ seconds }: World) => {
  await delay(seconds * 1000)
  return {}
}

/** 100,000 events a minute, of the accounts in turn, with 1 KB each. */
const floodOfEvents = async ({ pool, seconds }: World, ...accounts: Account[]) => {
  const end = Date.now() + seconds * 1000
  for (let n = 0; Date.now() < end; n++) {
    const next = delay(60)
    await pool.query(
      "select cue.add_event($1, 'limit.reached', jsonb_build_object('n', n, 'text', repeat('x', 1000))) from generate_series(1, 100) as n",
      [accounts[n % accounts.length]!.id]
    )
    await next
  }
}

/** What the attack has caused in its accounts. */
const recorded = async ({ pool }: World, accounts: Account[]): Promise<object> => {
  const { rows } = await pool.query(
    `select (select count(*)::int from cue.executions where account_id = any ($1)) as executions,
            (select coalesce(sum(count), 0)::int from cue.missed_slots where account_id = any ($1)) as missed_slots`,
    [accounts.map(({ id }) => id)]
  )
  return rows[0]
}

export const attacks: Record<string, Attack> = {
  none: { title: 'none', strike: idle },
  lists: {
    title: 'lists of cues with 800 KB of `1e5,1e5,…` each',
    prepare: async world => {
      const body = withPayload({ name: 'numbers', cron: '0 9 1 1 *', worker: true }, numbers)
      for (const account of ofPlan(world, 0).slice(0, 3)) await create(world, account, body, 10)
    },
    strike: world =>
      flood(world, {
        parallel: 12,
        requests: ofPlan(world, 0)
          .slice(0, 3)
          .map(account => asking(account, 'GET', '/v1/cues?limit=100'))
      })
  },
  claimable: {
    title: 'lists of 100 claimable executions of 1 MB each, some never read',
    prepare: async world => {
      const account = ofPlan(world, 0)[0]!
      const payload = JSON.stringify('x'.repeat(1_000_000))
      await create(world, account, withPayload({ name: 'large', cron: '0 9 1 1 *', worker: true }, payload), 10)
      const { rows } = await world.pool.query('select id from cue.cues where account_id = $1', [account.id])
      for (const { id } of rows) {
        for (let n = 0; n < 10; n++) await world.pool.query('select cue.fire_cue($1, $2)', [account.id, id])
      }
    },
    strike: async world => {
      const requests = [asking(ofPlan(world, 0)[0]!, 'GET', '/v1/executions/claimable?limit=100')]
      const unread = flood(world, { parallel: 40, perSecond: 0.01, unread: true, requests })
      const [read] = await Promise.all([flood(world, { parallel: 8, requests }), unread])
      return read
    }
  },
  hanging: {
    title: '50 accounts with a cue every second, `timeout_seconds` 3600, and receivers that never answer',
    prepare: async world => {
      const body = bodyOf(world, { cron: '* * * * * *', delivery: { timeout_seconds: 3600 } })
      for (const account of world.attackers) await create(world, account, body, 10)
    },
    strike: idle
  },
  register: {
    title: 'without a key: registrations with 2 MB of nested arrays, from 50 addresses',
    strike: world => {
      const body = `{"email": "a@example.com", "x": [${fill(`${nested},`, 1_900_000).slice(0, -1)}]}`
      const request: AttackRequest = { method: 'POST', path: '/v1/auth/register', headers: { 'content-type': 'application/json' }, body }
      return flood(world, { parallel: 50, addresses: 50, requests: [request] })
    }
  },
  mcp: {
    title: '`/mcp` with 2 MB of nested arrays, with and without `Accept`',
    strike: world => {
      const body = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {"a": [${fill(`${nested},`, 1_900_000).slice(0, -1)}]}}}`
      const requests = world.attackers.slice(0, 10).flatMap(account => {
        const request = asking(account, 'POST', '/mcp', body)
        return [request, { ...request, headers: { ...request.headers, accept: 'application/json, text/event-stream' } }]
      })
      return flood(world, { parallel: 8, requests })
    }
  },
  pipeline: {
    title: '20 connections with 20,000 pipelined requests each that are never read',
    strike: ({ send }) => send('connect', { text: 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n', times: 20_000, connections: 20 })
  },
  drip: {
    title: '2,000 connections that send their body a byte at a time',
    strike: ({ send, attackers }) => {
      const headers = `Authorization: Bearer ${attackers[0]!.api_key}\r\nContent-Type: application/json\r\nContent-Length: 1000000`
      return send('connect', { text: `POST /v1/cues HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`, drips: true, connections: 2000 })
    }
  },
  waiting: {
    title: '2,000 long polls of one account',
    strike: world => flood(world, { parallel: 2000, requests: [asking(ofPlan(world, 0)[0]!, 'GET', '/v1/executions/claimable?wait=30')] })
  },
  creating: {
    title: 'creates of 1 MB payloads: numbers, keys to sort, escapes',
    strike: world => {
      const keys = `{${Array.from({ length: 70_000 }, (_, n) => `"k${(n * 7919) % 70_000}": 1`).join(',')}}`
      const escapes = `"${fill('é', 160_000)}"`
      const bodies = [numbers, keys, escapes].map(payload => withPayload({ name: 'large', cron: '0 9 1 1 *', worker: true }, payload))
      return flood(world, {
        parallel: 8,
        requests: world.attackers.slice(0, 20).flatMap(account => bodies.map(body => asking(account, 'POST', '/v1/cues', body)))
      })
    }
  },
  limit: {
    title: 'accounts at their cue limit that keep creating',
    prepare: async world => {
      const body = JSON.stringify({ name: 'posted', cron: '0 9 1 1 *', worker: true })
      for (const account of ofPlan(world, 1)) await create(world, account, body, 10)
    },
    strike: world => posting(world, ofPlan(world, 1))
  },
  accounts: locking('accounts', 'id'),
  usage: locking('usage_counters'),
  rooms: locking('cue_rooms'),
  table: {
    title: '`lock table cue.fires in share mode`, while an account fires',
    strike: world =>
      whileLocked(world, 'lock table cue.fires in share mode', [], () =>
        flood(world, { parallel: 4, perSecond: 2, requests: [asking(ofPlan(world, 0)[0]!, 'GET', '/v1/executions')] })
      )
  },
  disk: {
    title: 'ten cues every second with payloads of 1 MB',
    prepare: async world => {
      const account = ofPlan(world, 0)[0]!
      for (let n = 0; n < 10; n++) {
        const payload = Array.from({ length: 60_000 }, () => Math.random().toString(36).slice(2, 14)).join('')
        await create(world, account, JSON.stringify({ name: 'large', cron: '* * * * * *', worker: true, payload }))
      }
    },
    strike: async ({ pool, seconds }) => {
      const size = async () => Number((await pool.query('select pg_database_size(current_database()) as size')).rows[0].size)
      const before = await size()
      await delay(seconds * 1000)
      return { grown_mb: Math.round((await size()) - before) / mebibyte }
    }
  },
  streams: {
    title: '500 streams of events of one account, half of them never read, while it gets 25,000 events in 15 s',
    strike: async world => {
      const account = ofPlan(world, 0)[0]!
      const stream = asking(account, 'GET', '/v1/events?after=start')
      const headers = { ...stream.headers, accept: 'text/event-stream' }
      const head = `GET ${stream.path} HTTP/1.1\r\nHost: x\r\n${Object.entries(headers)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}\r\n`
      const unread = world.send('connect', { text: head, connections: 250 })
      const read = flood(world, { parallel: 250, requests: [{ ...stream, headers }] })
      await floodOfEvents(world, account)
      await unread
      return read
    }
  },
  endpoints: {
    title: '20 event endpoints of each of 17 accounts that never answer, while these get 25,000 events in 15 s',
    prepare: async world => {
      const body = JSON.stringify({ url: `${world.hook}/hang`, types: ['limit.reached', 'cue.*'] })
      for (const account of ofPlan(world, 0))
        for (let n = 0; n < 20; n++) await send(world, asking(account, 'POST', '/v1/event-endpoints', body))
    },
    strike: async world => {
      await floodOfEvents(world, ...ofPlan(world, 0))
      return {}
    }
  },
  previews: {
    title: 'previews of schedules that hardly ever occur',
    strike: world => {
      const schedules = ['0 0 29 2 1', '59 59 23 29 2 7', '0 0 31 12 7'].map(cron =>
        JSON.stringify({ schedule: { cron, timezone: 'America/New_York' }, count: 50 })
      )
      return flood(world, {
        parallel: 8,
        requests: ofPlan(world, 0).flatMap(account => schedules.map(body => asking(account, 'POST', '/v1/schedules/preview', body)))
      })
    }
  },
  exclusions: {
    title: 'ten cues of each of 17 free accounts, and previews, with ten costly exclusions each',
    strike: async world => {
      const preview = JSON.stringify({ schedule: hourly, count: 50 })
      const requests = ofPlan(world, 0).map(account => asking(account, 'POST', '/v1/schedules/preview', preview))
      const previews = flood(world, { parallel: 8, requests })
      await createTen(world, ofPlan(world, 1), [rare, hourly])
      return previews
    }
  },
  calendars: {
    title: 'calendars that change: ten full ones of each of ten accounts, used by 50 cues in 50 time zones',
    prepare: async world => {
      const zones = Intl.supportedValuesOf('timeZone').slice(0, 50)
      const names = Array.from({ length: 10 }, (_, n) => `c${n}`)
      for (const account of ofPlan(world, 0).slice(0, 10)) {
        for (const name of names) await send(world, asking(account, 'PUT', `/v1/calendars/${name}`, calendar(2020)))
        for (const timezone of zones) {
          const schedule = { cron: '0 9 * * *', timezone, exclude_calendars: names }
          await create(world, account, JSON.stringify({ name: 'everywhere', worker: true, schedule }))
        }
      }
    },
    strike: world =>
      flood(world, {
        parallel: 10,
        perSecond: 1,
        requests: [2021, 2022].flatMap(year =>
          ofPlan(world, 0)
            .slice(0, 10)
            .map(account => asking(account, 'PUT', '/v1/calendars/c0', calendar(year)))
        )
      })
  },
  rare: {
    title: 'rare crons at the limit: the same cues, of accounts that have used twice their monthly executions',
    prepare: async world => {
      const ids = ofPlan(world, 1).map(({ id }) => id)
      await world.pool.query('update cue.accounts set limit_reached_at = now() where id = any ($1)', [ids])
      await world.pool.query(
        'insert into cue.usage_counters (account_id, month, slot, executions) select id, cue.usage_month(now()), 0, 1000000 from unnest($1::uuid[]) as id',
        [ids]
      )
    },
    strike: async world => {
      await createTen(world, ofPlan(world, 1), [rare, hourly])
      await idle(world)
      return recorded(world, ofPlan(world, 1))
    }
  },
  catchup: {
    title: 'a catch-up of 10,000 slots each by ten cues of each of 17 accounts',
    strike: async world => {
      const ids = ofPlan(world, 2).map(({ id }) => id)
      await createTen(world, ofPlan(world, 2), [rare, rare], { catch_up: 'replay_all' })
      await world.pool.query("insert into cue.outages values (now() - interval '3 hours', now() - interval '2 seconds')")
      await world.pool.query(
        `update cue.cue_runs set next_run = date_trunc('second', now()) - interval '10002 seconds', last_slot = null, version = version + 1
          where account_id = any ($1)`,
        [ids]
      )
      await world.pool.query("select pg_notify('cue_due', '0')")
      await idle(world)
      return recorded(world, ofPlan(world, 2))
    }
  }
}
