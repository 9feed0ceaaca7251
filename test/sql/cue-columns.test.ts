/** Columns of cues: defaults, bounds, and columns unknown to a caller or to the loaded functions. */
import t from 'tap'
import { cueColumns } from '../../scripts/cue-columns.ts'
import { stage } from '../support/stage.ts'

const required = { name: 'n', transport: 'worker', schedule_type: 'recurring', cron: '@daily' }

t.test('a missing or null member of a new cue takes the default of its column', async t => {
  const { account_id, rows, row, fn } = await stage(t)
  const expected = {
    description: null,
    status: 'active',
    timezone: 'UTC',
    callback_url: null,
    callback_method: 'POST',
    callback_headers: {},
    payload: '{}',
    retry_max_attempts: 3,
    retry_backoff_minutes: [1, 2, 4],
    on_failure_email: true,
    on_failure_webhook: null,
    on_failure_pause: false,
    timeout_seconds: null,
    await_outcome: null,
    alert_consecutive_failures: null,
    catch_up: 'run_once_if_missed',
    verification_mode: null,
    deleted_at: null,
    memory_check: false
  }
  const nulls = Object.fromEntries(Object.keys(expected).map(name => [name, null]))
  for (const cue of [required, { ...required, ...nulls }, { ...required, id: 'cue_x', account_id: 'x', created_at: 'never', unknown: 1 }]) {
    const id = await fn.createCue({ account_id, cue, next_run: new Date(Date.now() + 60_000) })
    const names = Object.keys(expected).join(', ')
    t.strictSame(await row(`select ${names} from cue.cues where id = $1 and account_id = $2`, [id, account_id]), expected)
  }
  t.equal((await rows('select from cue.cue_runs')).length, 3)
})

t.test('a change writes only the columns it names', async t => {
  const { account_id, row, fn } = await stage(t)
  const cue_id = await fn.createCue({
    account_id,
    cue: { ...required, description: 'd', alert_consecutive_failures: 5, alert_missed_window_multiplier: 6 },
    next_run: new Date(Date.now() + 60_000)
  })
  const before = await row('select * from cue.cues where id = $1', [cue_id])
  const changes = {
    name: 'm',
    retry_max_attempts: 9,
    id: 'cue_x',
    account_id: null,
    transport: 'webhook',
    memory_check: true,
    deleted_at: '2030-01-01'
  }
  await fn.updateCue({ account_id, cue_id, version: 1, changes })
  const after = await row('select * from cue.cues where id = $1', [cue_id])
  t.strictSame(after, { ...before, name: 'm', retry_max_attempts: 9 })
})

t.test('a column just added by a migration keeps its default until functions are reloaded', async t => {
  const { account_id, row, fn, pool, cue, take } = await stage(t)
  const create = () => fn.createCue({ account_id, cue: required, next_run: new Date(Date.now() + 60_000) })
  await create() // caches query plans
  const fired = await cue({})
  await take([fired])
  await pool.query('alter table cue.cues add column priority int not null default 4 check (priority between 0 and 9)')
  const cue_id = await create()
  await fn.updateCue({ account_id, cue_id, version: 1, changes: { name: 'm' } })
  t.strictSame(await row('select name, priority from cue.cues where id = $1', [cue_id]), { name: 'm', priority: 4 })
  t.equal((await take([await cue({})])).length, 1)
})

t.test('default and bounds come from the column', async t => {
  const { pool } = await stage(t)
  await pool.query('alter table cue.cues add column weight int not null default 4')
  await pool.query('alter table cue.cues add constraint in_bounds check (weight between 0 and 9) not valid')
  const text = await cueColumns(pool)
  t.ok(text.includes('"weight": 4'))
  t.ok(text.includes('"weight": {\n    "minimum": 0,\n    "maximum": 9\n  }'))
})
