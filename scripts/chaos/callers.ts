/** Callers of the API, and whether what they were promised is there afterwards. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, call, insist } from '../stage/client.ts'
import { query } from '../stage/stage.ts'

/** Requests of a caller are so far apart. */
const restMs = 100
const everyCaller = ['create', 'create', 'create', 'list', 'list', 'list', 'register', 'health'] as const
export type Caller = (typeof everyCaller)[number]

/** Registers an account. `enter` starts callers of a replica, `leave` ends them. */
export const createCallers = async (address: string, callers: readonly Caller[] = everyCaller) => {
  const { api_key } = await insist(201, address, 'POST', '/v1/auth/register', '', { email: `${randomUUID()}@example.com` })
  const answers: (Answer & { name?: string })[] = []
  const send = async (caller: Caller, address: string): Promise<Answer & { name?: string }> => {
    const name = randomUUID()
    if (caller === 'create') return { name, ...(await call(address, 'POST', '/v1/cues', api_key, { name, cron: '@yearly', worker: true })) }
    if (caller === 'list') return call(address, 'GET', '/v1/cues?limit=1', api_key)
    if (caller === 'register') return call(address, 'POST', '/v1/auth/register', '', { email: `${name}@example.com` })
    return call(address, 'GET', '/health')
  }
  const groups = new Map<string, { isLeaving: boolean; done: Promise<unknown> }>()
  const leave = async (address: string) => {
    const group = groups.get(address)
    if (group) group.isLeaving = true
    await group?.done
  }
  return {
    api_key: api_key as string,
    answers,
    enter: (address: string) => {
      const group = { isLeaving: false, done: Promise.resolve<unknown>(undefined) }
      const repeat = async (caller: Caller) => {
        for (; !group.isLeaving; await delay(restMs)) answers.push(await send(caller, address))
      }
      group.done = Promise.all(callers.map(repeat))
      groups.set(address, group)
    },
    leave,

    /** Ends all, and compares their answers with the database. */
    stop: async (databaseUrl: string) => {
      await Promise.all([...groups.keys()].map(leave))
      const rows = await query(databaseUrl, 'select name, count(*)::int as count from cue.cues group by 1')
      const created = new Map(rows.map(({ name, count }) => [name, count as number]))
      const writes = answers.filter(({ name }) => name !== undefined)
      const faults = writes.flatMap(({ name, status, text }) => {
        const count = created.get(name!) ?? 0
        if (status === 201 && count !== 1) return `a confirmed cue exists ${count} times`
        if (text.includes('Nothing was changed') && count !== 0) return `a cue exists whose response was: ${text}`
        return count > 1 ? `a cue exists ${count} times` : []
      })
      const unexpected = answers.filter(({ status }) => ![200, 201, 429, 503].includes(status))
      return {
        figures: {
          requests: answers.length,
          unavailable: answers.filter(({ status }) => status === 503).length,
          writes_unknown: writes.filter(({ text }) => text.includes('It is unknown whether')).length,
          slowest_request_ms: Math.round(Math.max(...answers.map(({ ms }) => ms)))
        },
        faults: [...faults, ...unexpected.map(({ status, text }) => `${status} ${text}`)]
      }
    }
  }
}
