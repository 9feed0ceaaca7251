/** Runs a file of SQL, as psql would: `node test/support/run-sql.ts FILE`, on DATABASE_URL. Ids are those of the newest rows. */
import { readFileSync } from 'node:fs'
import pg from 'pg'

const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
const newest = async (table: string, where = 'true') => {
  const { rows } = await client.query(`select id from cue.${table} where ${where} order by created_at desc limit 1`)
  return rows[0]?.id ?? ''
}
const text = readFileSync(process.argv[2]!, 'utf8')
  .replaceAll('<account id>', await newest('accounts'))
  .replaceAll('cue_…', await newest('cues'))
  .replaceAll('<execution id>', await newest('executions', 'ended_at is not null'))
for (const { command, rows } of [await client.query(text)].flat()) console.log(command, rows)
await client.end()
