/** Cues that fire every second and callers of the API, and whether all that they were promised is there afterwards. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Send } from '../receiver.ts'
import type { Replica } from '../stage.ts'
import { query } from './servers.ts'

const cueCount = 20
/** Requests of a caller are so far apart. */
const restMs = 100
const lastSlotsMs = 60_000

type Answer = { name?: string; status: number; text: string; ms: number }

export const startLoad = async (replicas: readonly Replica[], hook: string) => {
  const answers: Answer[] = []
  const [{ address }] = replicas as [Replica]
  const registration = await call(address, 'POST', '/v1/auth/register', { email: `${randomUUID()}@example.com` })
  const { api_key } = JSON.parse(registration.text)
  const cues: string[] = []
  for (let n = 0; n < cueCount; n++) {
    const { text } = await call(address, 'POST', '/v1/cues', { name: 'tick', cron: '* * * * * *', callback_url: `${hook}/200/20` }, api_key)
    cues.push(JSON.parse(text).id)
  }
  const from = Math.ceil(Date.now() / 1000 + 2) * 1000

  let isStopping = false
  const repeat = async (send: () => Promise<Answer>) => {
    for (; !isStopping; await delay(restMs)) answers.push(await send())
  }
  const callersOf = ({ address }: Replica) => {
    const create = async () => {
      const name = randomUUID()
      return { name, ...(await call(address, 'POST', '/v1/cues', { name, cron: '@yearly', worker: true }, api_key)) }
    }
    const register = () => call(address, 'POST', '/v1/auth/register', { email: `${randomUUID()}@example.com` })
    return [
      ...Array.from({ length: 3 }, () => repeat(create)),
      ...Array.from({ length: 3 }, () => repeat(() => call(address, 'GET', '/v1/cues?limit=1', undefined, api_key))),
      repeat(register),
      repeat(() => call(address, 'GET', '/health'))
    ]
  }
  let callers = replicas.flatMap(callersOf)
  const end = async () => {
    isStopping = true
    await Promise.all(callers)
    isStopping = false
  }

  return {
    /** Ends the calls under way, and calls another replica from now on. */
    leadTo: async (replica: Replica) => {
      await end()
      callers = callersOf(replica)
    },

    /** Ends it, and compares with the database at `url`. */
    stop: async (url: string, sends: () => Promise<Send[]>) => {
      await end()
      const to = Math.floor(Date.now() / 1000) * 1000
      const slots = cues.flatMap(cue => Array.from({ length: (to - from) / 1000 + 1 }, (_, n) => `${cue} ${from + n * 1000}`))
      const count = async () => Map.groupBy(await sends(), ({ cue_id, scheduled_for }) => `${cue_id} ${scheduled_for}`)
      let sent = await count()
      for (const end = Date.now() + lastSlotsMs; Date.now() < end && !slots.every(slot => sent.has(slot)); sent = await count())
        await delay(100)
      const rows = await query(url, "select name, count(*)::int as count from cue.cues where name <> 'tick' group by 1")
      const created = new Map(rows.map(({ name, count }) => [name, count as number]))
      const writes = answers.filter(({ name }) => name !== undefined)
      const refused = writes.filter(({ status }) => status === 503)
      const wrong = writes.flatMap(({ name, status, text }) => {
        const count = created.get(name!) ?? 0
        if (status === 201 && count !== 1) return `a confirmed cue exists ${count} times`
        if (text.includes('Nothing was changed') && count !== 0) return `a cue exists whose response was: ${text}`
        return count > 1 ? `a cue exists ${count} times` : []
      })
      const unexpected = answers.filter(({ status }) => ![200, 201, 429, 503].includes(status))
      return {
        figures: {
          slots: slots.length,
          lost: slots.filter(slot => !sent.has(slot)).length,
          doubled: slots.filter(slot => sent.get(slot) && sent.get(slot)!.length > 1).length,
          requests: answers.length,
          unavailable: answers.filter(({ status }) => status === 503).length,
          writes_unknown: refused.filter(({ text }) => text.includes('It is unknown whether')).length,
          slowest_request_ms: Math.round(Math.max(...answers.map(({ ms }) => ms)))
        },
        faults: [...wrong, ...unexpected.map(({ status, text }) => `${status} ${text}`)]
      }
    }
  }
}

const call = async (address: string, method: string, path: string, body?: object, key?: string): Promise<Answer> => {
  const startedAt = performance.now()
  const headers = { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) }
  try {
    const answer = await fetch(`${address}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, text: await answer.text(), ms: performance.now() - startedAt }
  } catch (error) {
    return { status: 0, text: String(error), ms: performance.now() - startedAt }
  }
}
