/** Backups as in README: a dump of a database in use, restored into an empty one, continues from where the dump began. */
import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import t from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { refused, stage } from '../support/stage.ts'

const program = (name: string) => (process.env.TEST_POSTGRES_BIN ? join(process.env.TEST_POSTGRES_BIN, name) : name)
const run = promisify(execFile)

/** The packaged PostgreSQL has no pg_dump, and an older one refuses a newer server. */
const dumpVersion = (() => {
  try {
    return Number(/ (\d+)/.exec(execFileSync(program('pg_dump'), ['--version'], { encoding: 'utf8' }))?.[1])
  } catch {
    return 0
  }
})()

t.test('a dump of a busy database is consistent, and restoring it sends waiting and unfinished attempts again', async t => {
  const { url, pool, rows, cue, take, settle, begun, clock, account_id } = await stage(t)
  const server = Number((await rows("select current_setting('server_version_num')::int / 10000 as major"))[0].major)
  if (dumpVersion < server) {
    t.plan(0, `pg_dump ${dumpVersion} cannot dump PostgreSQL ${server}`)
    return
  }

  const inFlight = await begun()
  const retrying = await begun({ retry_backoff_minutes: [1] })
  await settle([retrying], refused)

  let dumping = true
  const working = (async () => {
    while (dumping) await settle(await take([await cue(), await cue()]))
  })()
  const file = join(t.testdir({}), 'pgcue.dump')
  await run(program('pg_dump'), ['--format=custom', `--file=${file}`, url])
  dumping = false
  await working

  const name = `test_${Math.floor(Date.now() / 1000)}_restored_${randomBytes(4).toString('hex')}`
  await pool.query(`create database ${name}`)
  t.teardown(() => pool.query(`drop database ${name} with (force)`))
  const restoredUrl = Object.assign(new URL(url), { pathname: name }).href
  await run(program('pg_restore'), ['--exit-on-error', `--dbname=${restoredUrl}`, file])
  const lines: string[] = []
  await migrate({ connectionString: restoredUrl, log: line => lines.push(line) })
  t.same(lines, [], 'migrating again with the same release changes nothing')

  const restored = new pg.Client({ connectionString: restoredUrl })
  await restored.connect()
  t.teardown(() => restored.end())
  const { rows: found } = await restored.query(
    `select (select count(*)::int from cue.executions where account_id = $1) = cue.executions_used($1, $2)::int as counted,
            (select count(*)::int from cue.executions e where attempt_due_at is not null
                and not exists (select from pgboss.job j where j.name = 'attempts' and j.id = e.id)) as without_job,
            (select count(*)::int from cue.executions e where flight_id is not null
                and not exists (select from cue.flights f where f.id = e.flight_id and e.id = any (f.execution_ids))) as without_flight,
            (select count(*)::int from cue.cues c where not exists (select from cue.cue_runs r where r.cue_id = c.id)) as without_run`,
    [account_id, clock.now()]
  )
  t.same(found, [{ counted: true, without_job: 0, without_flight: 0, without_run: 0 }])

  clock.advance('5 minutes')
  const fn = createFunctions(restored, clock.now)
  await fn.recoverFlights({})
  const again = (await beginWaiting(fn, { limit: 100 })).map(({ execution_id, attempt }) => ({ execution_id, attempt }))
  for (const { execution_id } of [inFlight, retrying]) {
    t.same(
      again.filter(attempt => attempt.execution_id === execution_id),
      [{ execution_id, attempt: 2 }]
    )
  }
})
