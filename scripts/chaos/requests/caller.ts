/** An account, a replica that can be killed and replaced, and calls to it. */
import { randomUUID } from 'node:crypto'
import type { Replica, Stage } from '../stage.ts'

type Answer = { status: number; body: object; isRepeated: boolean }

export const createCaller = async (stage: Stage, scenario: string) => {
  const { name, url, pool, drop } = await stage.createDatabase(scenario)
  let started = 0
  let replica: Replica
  const start = async () => {
    replica = await stage.startReplica(`${name}-${++started}`, url)
  }
  await start()

  /** Undefined if there was no response. */
  const call = async (method: string, path: string, body?: object, key?: string, bearer = api_key): Promise<Answer | undefined> => {
    const headers = {
      'content-type': 'application/json',
      ...(bearer && { authorization: `Bearer ${bearer}` }),
      ...(key && { 'idempotency-key': key })
    }
    try {
      const response = await fetch(`${replica.address}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      return {
        status: response.status,
        body: (await response.json()) as object,
        isRepeated: response.headers.get('idempotency-replayed') === 'true'
      }
    } catch {
      return undefined
    }
  }
  let api_key = ''
  const email = `chaos-${randomUUID()}@example.com`
  const registered = await call('POST', '/v1/auth/register', { email })
  api_key = (registered!.body as { api_key: string }).api_key
  const [{ id: account_id }] = (await pool.query('select id from cue.accounts where email = $1', [email])).rows

  return {
    pool,
    account_id: account_id as string,
    call,
    /** Kills the replica. */
    kill: async () => {
      replica.signal('SIGKILL')
      await replica.exited
    },
    start,
    end: async () => {
      await replica.stop()
      const errors = replica.errors()
      await drop()
      return errors
    }
  }
}
