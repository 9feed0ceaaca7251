/** The calls that empty lists show, with the name of the user's own key. */

import type { Me } from '../../../client/types.ts'
import { serviceUrl } from '../root.ts'

const comment = ({ api_key_prefix }: Me) => `# KEY is your API key, ${api_key_prefix ? `${api_key_prefix}…` : 'from the Keys page'}`

export const createCueCalls = (me: Me) => [
  {
    name: 'curl',
    code: `${comment(me)}
curl ${serviceUrl}/v1/cues \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"name": "daily report", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin",
       "callback_url": "https://example.com/hook", "payload": {"task": "report"}}'`
  },
  {
    name: 'pgcue',
    code: `${comment(me)}
export PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}
pgcue cues create 'daily report' --cron '0 9 * * 1-5' --timezone Europe/Berlin \\
  --url https://example.com/hook --payload '{"task": "report"}'`
  },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
await client.cues.create({
  name: 'daily report',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  callback_url: 'https://example.com/hook',
  payload: { task: 'report' }
})`
  }
]

export const calendarCalls = (me: Me) => [
  {
    name: 'curl',
    code: `${comment(me)}
curl -X PUT ${serviceUrl}/v1/calendars/holidays \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"dates": ["12-25", "12-26", "2030-04-19"]}'
# In a cue: "schedule": {"cron": "0 9 * * 1-5", "exclude_calendars": ["holidays"]}`
  },
  {
    name: 'pgcue',
    code: `${comment(me)}
export PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}
pgcue calendars put holidays --date 12-25 --date 12-26 --date 2030-04-19
pgcue cues create 'daily report' --cron '0 9 * * 1-5' --exclude-calendar holidays --url https://example.com/hook`
  },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
await client.calendars.put('holidays', { dates: ['12-25', '12-26', '2030-04-19'] })`
  }
]

export const supportCalls = (me: Me) => [
  {
    name: 'curl',
    code: `${comment(me)}
curl ${serviceUrl}/v1/support \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"subject": "Deliveries stopped at noon", "message": "Cue cue_… has had no execution since 12:00 UTC.", "severity": "high"}'`
  },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
await client.support.create({
  subject: 'Deliveries stopped at noon',
  message: 'Cue cue_… has had no execution since 12:00 UTC.',
  severity: 'high'
})`
  }
]

export const fireCalls = (me: Me, cueId = 'cue_…') => [
  { name: 'curl', code: `${comment(me)}\ncurl -X POST ${serviceUrl}/v1/cues/${cueId}/fire -H "Authorization: Bearer $KEY"` },
  { name: 'pgcue', code: `${comment(me)}\nexport PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}\npgcue cues fire ${cueId}` },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
await client.cues.fire('${cueId}')`
  }
]

export const workerCalls = (me: Me, task = 'report') => [
  {
    name: 'pgcue',
    code: `${comment(me)}\nexport PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}\npgcue worker --handler '${task}=sh ./report.sh'`
  },
  {
    name: 'curl',
    code: `${comment(me)}
curl ${serviceUrl}/v1/executions/claim \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"worker_id": "my-laptop", "tasks": ["${task}"], "wait": 20}'`
  },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
for (const claim of await client.executions.claimNext({ worker_id: 'my-laptop', tasks: ['${task}'], wait: 20 })) {
  await client.executions.reportOutcome(claim.execution_id, { success: true }, { claimToken: claim.claim_token })
}`
  }
]

export const verificationCalls = (me: Me) => [
  {
    name: 'curl',
    code: `${comment(me)}
curl ${serviceUrl}/v1/cues \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"name": "publish the post", "cron": "0 9 * * 1-5", "worker": true,
       "payload": {"task": "publish"}, "verification": {"mode": "manual"}}'`
  },
  {
    name: 'pgcue',
    code: `${comment(me)}
export PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}
pgcue cues create 'publish the post' --cron '0 9 * * 1-5' --worker --task publish \\
  --data '{"verification": {"mode": "manual"}}'`
  },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
await client.cues.create({
  name: 'publish the post',
  cron: '0 9 * * 1-5',
  worker: true,
  payload: { task: 'publish' },
  verification: { mode: 'manual' }
})`
  }
]

export const errorCalls = (me: Me) => [
  { name: 'curl', code: `${comment(me)}\ncurl ${serviceUrl}/v1/errors -H "Authorization: Bearer $KEY"` },
  {
    name: 'pgcue',
    code: `${comment(me)}\nexport PGCUE_API_KEY=$KEY PGCUE_BASE_URL=${serviceUrl}\npgcue errors\npgcue replay --error-group GROUP --dry-run`
  },
  {
    name: 'TypeScript',
    code: `import { createClient } from 'pgcue/client'

// ${comment(me).slice(2)}
const client = createClient({ baseUrl: '${serviceUrl}', apiKey: process.env.KEY })
for (const { count, message } of (await client.errors()).errors) console.log(count, message)`
  }
]
