/** Webhook cues that fire every second, and whether each slot was delivered exactly once. */
import { setTimeout as delay } from 'node:timers/promises'
import { insist } from '../stage/client.ts'
import type { Send } from '../stage/receiver.ts'
import { query } from '../stage/stage.ts'

type Options = { address: string; api_keys: string[]; count: number; hook: string }

const patienceMs = 60_000

/** A path of the receiver for each cue, in turn, decides how it responds. */
export const startTicks = async ({ address, api_keys, count, hook }: Options, paths = ['/200/20']) => {
  const cues: string[] = []
  for (let n = 0; n < count; n++) {
    const callback_url = hook + paths[n % paths.length]
    const cue = { name: `tick ${n}`, cron: '* * * * * *', callback_url }
    cues.push((await insist(201, address, 'POST', '/v1/cues', api_keys[n % api_keys.length], cue)).id)
  }
  const from = Math.ceil(Date.now() / 1000 + 2) * 1000

  const compare = async (to: number, databaseUrl: string, sends: Send[]) => {
    const keyOf = ({ cue_id, scheduled_for }: { cue_id: string; scheduled_for: number }) => `${cue_id} ${scheduled_for}`
    const rows = await query(
      databaseUrl,
      `select cue_id, floor(extract(epoch from scheduled_for) * 1000)::float8 as scheduled_for, status from cue.executions where triggered_by = 'schedule'`
    )
    const executions = Map.groupBy(rows as (Parameters<typeof keyOf>[0] & { status: string })[], keyOf)
    const requests = Map.groupBy(sends, keyOf)
    const [figures, faults] = [{ slots: 0, lost: 0, doubled: 0 }, [] as string[]]
    for (const cue_id of cues) {
      for (let scheduled_for = from; scheduled_for <= to; scheduled_for += 1000) {
        const key = keyOf({ cue_id, scheduled_for })
        const [records, sent] = [executions.get(key) ?? [], requests.get(key) ?? []]
        const refused = sent.filter(({ status }) => status === 500).length
        const delivered = sent.filter(({ status }) => status === 200).length
        const statuses = records.map(({ status }) => status).join()
        figures.slots++
        if (delivered === 0) figures.lost++
        if (sent.length > 1 + refused) figures.doubled++
        if (statuses !== 'success' || delivered !== 1 || sent.length !== 1 + refused)
          faults.push(
            `slot ${new Date(scheduled_for).toISOString()} of ${cue_id}: executions ${statuses}; sent ${sent.length} times, delivered ${delivered}`
          )
      }
    }
    const unknown = [...requests.keys()].filter(key => !executions.has(key)).length
    if (unknown > 0) faults.push(`${unknown} slots were sent that the database does not know`)
    return { figures, faults }
  }

  return {
    cues,
    /** Compares the slots until now with the database and the received requests, as soon as the last ones are delivered. */
    stop: async (databaseUrl: string, sends: () => Promise<Send[]>) => {
      const to = Math.floor(Date.now() / 1000) * 1000
      for (const end = Date.now() + patienceMs; ; await delay(500)) {
        const requests = (await sends()).filter(({ scheduled_for }) => scheduled_for <= to)
        const result = await compare(to, databaseUrl, requests)
        if (result.faults.length === 0 || Date.now() > end) return result
      }
    }
  }
}
