/** The baseline for claims: Fastify with one route and one UPDATE … FOR UPDATE SKIP LOCKED on a plain table of jobs, in its own process. */
import Fastify from 'fastify'
import pg from 'pg'
import { answers } from './probe.ts'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10, application_name: 'bench' })
const app = Fastify()

app.post<{ Params: { account: string }; Body: { worker_id: string } }>('/claims/:account', async ({ params, body }) => {
  const text = `
    update public.bench_jobs set status = 'claimed', worker = $2, claimed_at = now(), claimable_at = null
     where id = (select id from public.bench_jobs where account_id = $1 and claimable_at <= now()
                  order by claimable_at limit 1 for update skip locked)
    returning id, payload, claimed_at`
  return (await pool.query({ name: 'claim', text, values: [params.account, body.worker_id] })).rows[0]
})

/** Creates the table with `count` jobs per account. */
answers.fill = async ({ accounts, count, payload }: { accounts: string[]; count: number; payload: string }) => {
  await pool.query(`
    create table if not exists public.bench_jobs (
      id uuid primary key default gen_random_uuid(), account_id uuid not null, status text not null default 'pending', payload text not null,
      worker text, claimed_at timestamptz, claimable_at timestamptz) with (fillfactor = 50);
    create index if not exists bench_jobs_claimable on public.bench_jobs (account_id, claimable_at) where claimable_at is not null`)
  await pool.query(
    `insert into public.bench_jobs (account_id, payload, claimable_at)
     select a, $3, now() - g * interval '1 millisecond' from unnest($1::uuid[]) a, generate_series(1, $2) g`,
    [accounts, count, payload]
  )
}

/** Listens and returns the port. */
answers.listen = async () => Number(new URL(await app.listen({ port: 0, host: '127.0.0.1', backlog: 2048 })).port)
