/** The baseline: Fastify with one route and one statement, in its own process. */
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

/** Listens and returns the port. */
answers.listen = async () => Number(new URL(await app.listen({ port: 0, host: '127.0.0.1', backlog: 2048 })).port)
