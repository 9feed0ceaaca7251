/** The warning in the response to a new cue. */
import t from 'tap'
import { build } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const hourly = { name: 'hourly', schedule: { cron: '0 * * * *' }, callback: { url: 'http://127.0.0.1:5555/hook' } }
const unattended =
  'No worker of this account has sent a heartbeat in the last 3 minutes. Start one: executions that no worker claims in time end as missed.'

t.test('a cue with only known fields has no warning', async t => {
  const { post } = await build(t, start)
  const all = {
    ...hourly,
    payload: { any: { thing: 1 } },
    retry: { retry_max_attempts: 2 },
    callback: { ...hourly.callback, headers: { 'X-Any': 'value' } }
  }
  t.equal((await post('/v1/cues', all)).warning, null)
})

t.test('ignores unknown fields on creation and names them in the warning, nested ones by path', async t => {
  const { call, get } = await build(t, start)
  const given = { ...hourly, colour: 'red', retry: { max_attemps: 9 }, schedule: { ...hourly.schedule, zone: 'UTC' }, alerts: { after: 2 } }
  const { status, body } = await call('POST', '/v1/cues', given)
  t.equal(status, 201)
  t.equal(body.warning, 'Unknown fields were ignored: colour, schedule.zone, retry.max_attemps, alerts.after. Check their spelling.')
  t.equal(body.retry.max_attempts, 3)
  t.equal((await get(`/v1/cues/${body.id}`)).warning, null, 'only the create response has it')
})

t.test('combines the warnings about unknown fields and about missing workers', async t => {
  const { post } = await build(t, start)
  const { warning } = await post('/v1/cues', { name: 'w', cron: '@daily', worker: true, taks: 'x' })
  t.equal(warning, `Unknown fields were ignored: taks. Check their spelling. ${unattended}`)
})

t.test('names at most ten unknown fields, each shortened', async t => {
  const { post } = await build(t, start)
  const names = Array.from({ length: 2000 }, (_, i) => `field_${1000 + i}`)
  const many = await post('/v1/cues', { ...hourly, ...Object.fromEntries(names.map(name => [name, 1])) })
  t.equal(many.warning, `Unknown fields were ignored: ${names.slice(0, 10).join(', ')} and 1990 more. Check their spelling.`)
  const long = await post('/v1/cues', { ...hourly, [`${'x'.repeat(63)}😀${'y'.repeat(10_000)}`]: 1 })
  t.equal(long.warning, `Unknown fields were ignored: ${'x'.repeat(63)}\ufffd…. Check their spelling.`)
})
