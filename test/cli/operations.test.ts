/** Operations from the command line and by agents. */
import { stripVTControlCharacters } from 'node:util'
import t, { type Test } from 'tap'
import { listening } from '../support/cli-stage.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, receiver } from '../support/setup.ts'

const setUp = async (t: Test) => {
  const service = await build(t)
  const stage = await listening(t, service)
  const { pool, post, account } = stage
  const { id: cue_id } = await post('/v1/cues', { name: 'nightly', cron: '@yearly', callback_url: (await receiver(t)).url })
  /** Executions that failed in the last minutes. */
  const failures = async (count: number): Promise<string[]> =>
    (
      await pool.query(
        `with e as (
           insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, error_message, ended_at, created_at, updated_at)
           select cue.uuid_v7(now() - n * interval '1 minute'), $1, $2, 'webhook', 'failed', 'schedule', now(), '{}', 'ECONNREFUSED', now(),
                  now() - n * interval '1 minute', now() from generate_series(1, $3::int) n
           returning id, account_id, cue_id, cue.error_group(executions))
         insert into cue.dead_letters select * from e returning execution_id as id`,
        [account.id, cue_id, count]
      )
    ).rows.map(({ id }) => id)
  return { ...stage, settings: service.config, cue_id, failures }
}

t.test('replays failures after a dry run and a question, with a progress bar', async t => {
  const { cli, json, settings, cue_id, failures, get } = await setUp(t)
  const ids = await failures(3)
  const args = ['replay', '--cue', cue_id, '--status', 'failed', '--since', '2h']
  const dry = await cli([...args, '--dry-run'])
  exactly(t, dry, { code: 0, out: /^3 in total\nID +CUE +STATUS +SCHEDULED FOR +ERROR\n/ })
  t.match(dry.out, /^\w{8}\S* +nightly +failed +\S+Z +ECONNREFUSED/m)
  t.equal((await json([...args, '--dry-run'])).total, 3)
  exactly(t, await cli([...args, '--since', '2m', '--dry-run']), { out: /^1 in total/ })
  exactly(t, await cli(args), { code: 2, err: 'pgcue: to confirm without a terminal, give --yes\nSee: pgcue help replay\n' })
  exactly(t, await cli(args, { tty: true, stdin: 'n\n' }), { code: 1, err: 'replay 3 executions? [y/N] ', out: '' })
  exactly(t, await get('/v1/operations'), { total: 0 })
  await startEngine(t, settings)
  const ran = await cli([...args, '--name', 'last night'], { tty: true, stdin: 'y\n' })
  exactly(t, ran, { code: 0, err: /^replay 3 executions\? \[y\/N\] Operation op_\w{12}\. To stop it: pgcue operations abort op_\w{12}\n/ })
  t.match(ran.err, /\r\[#{30}\] 3\/3\n$/)
  t.ok(
    stripVTControlCharacters(ran.out)
      .split(/ *\n/)
      .some(line => line.replace(/ +/, ' ') === 'status completed')
  )
  exactly(t, await cli(['operations', 'list']), { code: 0, out: /op_\w{12} +replay +last night +completed +3\/3 +0/ })
  exactly(t, await cli(args.concat('--dead'), { tty: true }), { code: 0, out: 'Nothing matches.\n' })
  exactly(t, await get('/v1/executions?triggered_by=replay'), { total: 3, executions: [...ids].map(() => ({ cue_id })) })
})

t.test('cancels and dismisses by ids or filters, backfills, lists and aborts', async t => {
  const { cli, json, cue_id, failures, get, post } = await setUp(t)
  const ids = await failures(2)
  const waiting = await post(`/v1/cues/${cue_id}/fire`, { send_at: new Date(Date.now() + 3_600_000).toISOString() })
  exactly(t, await json(['cancel', '--cue', cue_id, '--dry-run']), { total: 1, sample: [{ id: waiting.id }] })
  exactly(t, await json(['dismiss', ...ids, '--yes', '--detach', '--rate', '1']), { type: 'dismiss', status: 'running', total: 2 })
  const running = await cli(['dismiss', '--dead', '--yes'])
  exactly(t, running, { code: 1, err: /is still running/ })
  const { operations } = await json(['operations', 'list', '--status', 'running', '--type', 'dismiss'])
  exactly(t, await cli(['operations', 'get', operations[0].id]), { code: 0, out: /status +running\n(.*\n)*done +0 of 2/ })
  exactly(t, await json(['operations', 'abort', operations[0].id]), { status: 'aborted' })
  exactly(t, await cli(['operations', 'get', 'op_000000000000']), { code: 3 })
  const hourly = await post('/v1/cues', { name: 'hourly', cron: '0 * * * *', worker: true })
  await post(`/v1/cues/${hourly.id}/pause`)
  const slots = ['backfill', hourly.id, '--from', '2026-01-01T00:00:00Z', '--to', '2026-01-01T03:00:00Z', '--overlap', 'queue_all']
  exactly(t, await cli([...slots, '--dry-run']), { code: 0, out: /^3 in total\nCUE +STATUS +SCHEDULED FOR/ })
  exactly(t, await json([...slots, '--yes', '--detach']), { type: 'backfill', total: 3 })
  exactly(t, await get('/v1/operations?type=backfill'), { total: 1 })
  for (const [args, message] of [
    [['replay'], 'give either ids or at least one filter'],
    [['replay', ids[0]!, '--dead'], 'give either ids or at least one filter'],
    [['replay', '--dead', '--rate', '0'], '--rate must be a whole number'],
    [['backfill', hourly.id], 'missing option --from'],
    [['backfill'], "missing required argument 'CUE'"]
  ] as const)
    exactly(t, await cli([...args]), { code: 2, err: RegExp(message) })
  const refused = await cli(['replay', '--status', 'sleeping', '--yes'])
  t.equal(refused.code, 1)
  t.ok(refused.err.startsWith('pgcue: --status: '), refused.err)
  exactly(t, await cli(['backfill', hourly.id, '--from', '9d', '--to', '10d', '--yes']), {
    code: 1,
    err: /^pgcue: --to: .*must be after from/
  })
})

t.test('groups failures by error, and lists destinations', async t => {
  const { cli, json, failures, pool, account } = await setUp(t)
  exactly(t, await cli(['errors']), { code: 0, out: /^No errors since \d{4}-\S+Z\.\n$/ })
  exactly(t, await cli(['destinations']), { code: 0, out: /^No webhooks were sent since \d{4}-\S+Z\.\n$/ })
  const ids = await failures(3)
  await pool.query('update cue.executions set attempts = 1 where id = $1', [ids[0]])
  await pool.query(
    `insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, error)
     values ($1, 1, $2, 'failed', now(), now(), 7, 'connection refused')`,
    [ids[0], account.id]
  )
  const { error_group } = (await json(['errors'])).errors[0]
  exactly(t, await cli(['errors', '--since', '1h']), {
    out: new RegExp(`^COUNT +CUES .* MESSAGE\n3 +1 +failed +- .* ${error_group} +ECONNREFUSED\n\n3 executions since `)
  })
  exactly(t, await cli(['errors', '--until', 'soon']), { code: 1, err: /^pgcue: --until: / })
  exactly(t, await cli(['replay', '--error-group', error_group, '--dry-run']), { code: 0, out: /^3 in total/ })
  exactly(t, await cli(['replay', '--error-group', '1', '--dry-run']), { code: 1, err: /^pgcue: --error-group: / })
  exactly(t, await cli(['destinations']), { out: /^HOST .*\n127\.0\.0\.1:\d+ +1 +1 +0 +1 +- +- .* connection refused\n\nsince / })
})
