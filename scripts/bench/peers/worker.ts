/** A peer's worker, in its own process: posts each job with one signature. */
import { createHmac, createSecretKey } from 'node:crypto'
import { Pool } from 'undici'
import { answers } from '../../stage/probe.ts'
import { type Job, peers } from './peers.ts'

const key = createSecretKey(Buffer.from('whsec_0123456789abcdef0123456789abcdef'))

answers.work = async ({ name, url, origin }: { name: string; url: string; origin: string }) => {
  const pool = new Pool(origin, { connections: 100, pipelining: 1 })
  await peers[name]!.work(url, async (job: Job) => {
    const body = JSON.stringify(job)
    const timestamp = String(Date.now())
    const signature = createHmac('sha256', key).update(`${job.job}.${timestamp}.${body}`).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'x-bench-job': job.job,
      'x-bench-due': job.due,
      'x-timestamp': timestamp,
      'x-signature': `v1=${signature}`
    }
    const answer = await pool.request({ method: 'POST', path: '/hook', headers, body })
    await answer.body.dump()
    if (answer.statusCode >= 300) throw new Error(`answered ${answer.statusCode}`)
  })
}
