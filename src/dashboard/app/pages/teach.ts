/** The calls that empty lists show, with the name of the user's own key. */
import type { Me } from '../../../client/types.ts'
import { serviceUrl } from '../root.ts'

type Call = { name: string; code: string }
type Texts = { path: string; method?: string; body?: string; pgcue?: string; script: string }

/** The same call with curl, the command pgcue, and the client. */
const callsOf = ({ api_key_prefix }: Me, { path, method, body, pgcue, script }: Texts): Call[] => {
  const key = `KEY is your API key, ${api_key_prefix ? `${api_key_prefix}…` : 'from the page Keys and secrets'}`
  const data = body && ` -H 'Content-Type: application/json' \\\n  -d '${body}'`
  const curl = `# ${key}\ncurl${method ? ` -X ${method}` : ''} ${serviceUrl}/v1${path} \\\n  -H "Authorization: Bearer $KEY"${data ?? ''}`
  const client = `import { createClient } from 'pgcue/client'\n\n// ${key}\nconst client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })`
  return [
    { name: 'curl', code: curl },
    ...(pgcue ? [{ name: 'pgcue', code: `# ${key}\nexport PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}\n${pgcue}` }] : []),
    { name: 'TypeScript', code: `${client}\n${script}` }
  ]
}

export const createCueCalls = (me: Me) =>
  callsOf(me, {
    path: '/cues',
    body: `{"name": "daily report", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin",
       "callback_url": "https://example.com/hook", "payload": {"task": "report"}}`,
    pgcue: `pgcue cues create 'daily report' --cron '0 9 * * 1-5' --timezone Europe/Berlin \\
  --url https://example.com/hook --payload '{"task": "report"}'`,
    script: `await client.cues.create({
  name: 'daily report',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  callback_url: 'https://example.com/hook',
  payload: { task: 'report' }
})`
  })

export const calendarCalls = (me: Me) =>
  callsOf(me, {
    path: '/calendars/holidays',
    method: 'PUT',
    body: '{"dates": ["12-25", "12-26", "2030-04-19"]}',
    pgcue: `pgcue calendars put holidays --date 12-25 --date 12-26 --date 2030-04-19
pgcue cues create 'daily report' --cron '0 9 * * 1-5' --exclude-calendar holidays --url https://example.com/hook`,
    script: "await client.calendars.put('holidays', { dates: ['12-25', '12-26', '2030-04-19'] })"
  })

export const supportCalls = (me: Me) =>
  callsOf(me, {
    path: '/support',
    body: '{"subject": "Deliveries stopped at noon", "message": "Cue cue_… has had no execution since 12:00 UTC.", "severity": "high"}',
    script: `await client.support.create({
  subject: 'Deliveries stopped at noon',
  message: 'Cue cue_… has had no execution since 12:00 UTC.',
  severity: 'high'
})`
  })

export const fireCalls = (me: Me, cueId = 'cue_…') =>
  callsOf(me, {
    path: `/cues/${cueId}/fire`,
    method: 'POST',
    pgcue: `pgcue cues fire ${cueId}`,
    script: `await client.cues.fire('${cueId}')`
  })

export const workerCalls = (me: Me, task = 'report') =>
  callsOf(me, {
    path: '/executions/claim',
    body: `{"worker_id": "my-laptop", "tasks": ["${task}"], "wait": 20}`,
    pgcue: `pgcue worker --handler '${task}=sh ./report.sh'`,
    script: `for (const claim of await client.executions.claimNext({ worker_id: 'my-laptop', tasks: ['${task}'], wait: 20 })) {
  await client.executions.reportOutcome(claim.execution_id, { success: true }, { claimToken: claim.claim_token })
}`
  })

export const verificationCalls = (me: Me) =>
  callsOf(me, {
    path: '/cues',
    body: `{"name": "publish the post", "cron": "0 9 * * 1-5", "worker": true,
       "payload": {"task": "publish"}, "verification": {"mode": "manual"}}`,
    pgcue: `pgcue cues create 'publish the post' --cron '0 9 * * 1-5' --worker --task publish \\
  --data '{"verification": {"mode": "manual"}}'`,
    script: `await client.cues.create({
  name: 'publish the post',
  cron: '0 9 * * 1-5',
  worker: true,
  payload: { task: 'publish' },
  verification: { mode: 'manual' }
})`
  })

export const approvalCalls = (me: Me) =>
  callsOf(me, {
    path: '/cues',
    body: `{"name": "send refunds", "cron": "0 9 * * 1-5", "callback_url": "https://example.com/hook",
       "payload": {"order": 7}, "approval": {"expires": "24h", "message": "Refund order 7?"}}`,
    pgcue: `pgcue cues create 'send refunds' --cron '0 9 * * 1-5' --url https://example.com/hook \\
  --payload '{"order": 7}' --approval-expires 24h --approval-message 'Refund order 7?'`,
    script: `await client.cues.create({
  name: 'send refunds',
  cron: '0 9 * * 1-5',
  callback_url: 'https://example.com/hook',
  payload: { order: 7 },
  approval: { expires: '24h', message: 'Refund order 7?' }
})`
  })

export const errorCalls = (me: Me) =>
  callsOf(me, {
    path: '/errors',
    pgcue: 'pgcue errors\npgcue replay --error-group GROUP --dry-run',
    script: 'for (const { count, message } of (await client.errors()).errors) console.log(count, message)'
  })

export const operationCalls = (me: Me) =>
  callsOf(me, {
    path: '/operations',
    body: '{"type": "replay", "filter": {"dead": true}, "dry_run": true}',
    pgcue: 'pgcue replay --status failed --since 2h --dry-run',
    script: "await client.call('POST', '/v1/operations', { body: { type: 'replay', filter: { dead: true }, dry_run: true } })"
  })
