/** The attacks. All stay within their accounts' limits, because rejected requests cost little and prove nothing. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Account } from '../../stage/seed.ts'
import type { AttackRequest, Damage, Drip, Flood, Pipeline } from './attacker.ts'

export type World = {
  url: string
  pool: pg.Pool
  hook: string
  /** With plans in turn: scale, free, pro. */
  attackers: Account[]
  seconds: number
  send: <T extends object>(weapon: 'flood' | 'pipeline' | 'drip', options: T) => Promise<Damage>
}

export type Attack = {
  title: string
  prepare?: (world: World) => Promise<unknown>
  /** Runs the attack; the result is added to the JSON line. */
  strike: (world: World, prepared: never) => Promise<object>
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

const create = async (world: World, account: Account, body: string, times = 1) => {
  for (let n = 0; n < times; n++) {
    const { method, path, headers } = asking(account, 'POST', '/v1/cues', body)
    const response = await fetch(world.url + path, { method, headers, body })
    if (response.status !== 201) throw new Error(`an attacker's cue is refused: ${(await response.text()).slice(0, 500)}`)
    await response.body?.cancel()
  }
}

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
    strike: world =>
      world.send<Omit<Pipeline, 'url' | 'seconds'>>('pipeline', {
        request: 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n',
        times: 20_000,
        connections: 20
      })
  },
  drip: {
    title: '2,000 connections that send their body a byte at a time',
    strike: world =>
      world.send<Omit<Drip, 'url' | 'seconds'>>('drip', {
        head: `POST /v1/cues HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.attackers[0]!.api_key}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`,
        connections: 2000
      })
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
  }
}
