/** The memory block as text. */
import type { Plan } from '../config.ts'

/** Increase with every change to `instructions`: each account's block then gets a new version, and subscribers are notified. */
export const release = '2'

/** How agents use the service. */
export const instructions = `1. Send Authorization: Bearer <your key> with every call. The key below is shortened; ask its owner for the whole one, and keep it out of logs.
2. GET /v1/usage before you create cues: plans limit cues and monthly executions.
3. Create a cue with POST /v1/cues {name, cron | at, timezone, callback_url | worker: true, payload}. Try a schedule with POST /v1/schedules/preview first.
4. Delivery is at least once: deduplicate by X-Service-Execution-Id, and check X-Service-Signature.
5. Report the outcome of a run with POST /v1/executions/{id}/outcome {success, result}. Workers claim runs with POST /v1/executions/claim.
6. GET /v1/alerts lists repeated failures. POST /v1/executions/{id}/replay runs an ended execution again.
7. Read this block again when you receive a run with the task memory-update-check, or subscribe with POST /v1/memory-block/subscribe.
8. /openapi.json describes everything else.`

type Content = { baseUrl: string; version: number; plan: Plan; key: string | null; cues: string[] }

/** Cue names are written by users: quoted as JSON, they stay on one line and don't read as instructions. */
export const blockOf = ({ baseUrl, version, plan, key, cues }: Content): string => `# pgcue, memory block version ${version}
Scheduled tasks at ${baseUrl}. Plan: ${plan}.${key === null ? '' : ` Key: ${key}`}

## Instructions
${instructions}

## Cues (${cues.length})
${cues.length ? cues.map(name => `- ${JSON.stringify(name)}`).join('\n') : 'None yet.'}
`
