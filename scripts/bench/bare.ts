/** The baselines: Fastify with one route and one statement on a plain table, for reading a cue and for claiming a job, in its own process. */
import Fastify from 'fastify'
import pg from 'pg'
import { answers } from '../stage/probe.ts'

// Uses the index even while the table is small, like the service's sessions.
const options = '-c enable_seqscan=off'
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10, application_name: 'bare', options })
const app = Fastify()

app.get<{ Params: { id: string } }>('/cues/:id', async ({ params }) => {
  const text = 'select id, name, status, cron, callback_url, payload, created_at from cue.cues where id = $1'
  return (await pool.query({ name: 'cue', text, values: [params.id] })).rows[0]
})

app.post<{ Params: { account: string }; Body: { worker_id: string } }>('/claims/:account', async ({ params, body }) => {
  const text = `
    update public.bench_jobs set status = 'claimed', worker = $2, claimed_at = now(), claimable_at = null
     where id = (select id from public.bench_jobs where account_id = $1 and claimable_at <= now()
                  order by claimable_at limit 1 for update skip locked)
    returning id, payload, claimed_at`
  return (await pool.query({ name: 'claim', text, values: [params.account, body.worker_id] })).rows[0]
})

/** Listens and returns the port. */
answers.listen = async () => Number(new URL(await app.listen({ port: 0, host: '127.0.0.1', backlog: 2048 })).port)
