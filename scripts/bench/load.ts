/** Sends requests as fast as possible, in its own process. */
import { createRequire } from 'node:module'
import { answers } from '../stage/probe.ts'

type Request = { method: string; path: string; headers?: Record<string, string>; body?: string }
/** Each connection sends the requests in turn. */
export type Load = { url: string; requests: Request[]; connections: number; seconds: number }
export type LoadResult = { count: number; per_s: number; p99_ms: number }

/** autocannon has no types. */
type Cannon = (options: object) => Promise<{
  requests: { total: number; average: number }
  latency: { p99: number }
  errors: number
  non2xx: number
}>
const autocannon: Cannon = createRequire(import.meta.url)('autocannon')

answers.run = async ({ url, requests, connections, seconds }: Load): Promise<LoadResult> => {
  // All its connections would start with the first request; give each a list that starts elsewhere.
  const setupClient = (client: { setRequests: (requests: Request[]) => void }) => {
    const first = Math.floor(Math.random() * requests.length)
    client.setRequests([...requests.slice(first), ...requests.slice(0, first)])
  }
  const result = await autocannon({ url, requests, connections, duration: seconds, setupClient })
  const failures = result.errors + result.non2xx
  if (failures > 0) throw new Error(`${failures} requests to ${requests[0]!.path} failed`)
  return { count: result.requests.total, per_s: result.requests.average, p99_ms: result.latency.p99 }
}
