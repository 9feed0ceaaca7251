/** The text that an agent keeps about its account. Pure. */
import type { Plan } from '../config.ts'

/** Increase it with every change to `instructions`: it gives each account's block a new version and notifies subscribers. */
export const release = '2'

/** How an agent uses the service, in a few lines. */
export const instructions = `1. Send Authorization: Bearer <your key> with every call. The key below is shortened; ask its owner for the whole one, and keep it out of logs.
2. GET /v1/usage before you create cues: plans limit cues and monthly executions.
3. Create a cue with POST /v1/cues {name, cron | at, timezone, callback_url | worker: true, payload}. Try a schedule with POST /v1/schedules/preview first.
4. Delivery is at least once: deduplicate by X-Service-Execution-Id, and check X-Service-Signature.
5. Report the outcome of a run with POST /v1/executions/{id}/outcome {success, result}. Workers claim runs with POST /v1/executions/claim.
6. GET /v1/alerts lists repeated failures. POST /v1/executions/{id}/replay runs an ended execution again.
7. Read this block again when you receive a run with the task memory-update-check, or subscribe with POST /v1/memory-block/subscribe.
8. /openapi.json describes everything else.`

type Content = { baseUrl: string; version: number; plan: Plan; key: string | null; cues: string[] }

/** Names are users' words: quoted, each stays on its line and is no instruction. */
export const blockOf = ({ baseUrl, version, plan, key, cues }: Content): string => `# pgcue, memory block version ${version}
Scheduled tasks at ${baseUrl}. Plan: ${plan}.${key === null ? '' : ` Key: ${key}`}

## Instructions
${instructions}

## Cues (${cues.length})
${cues.length ? cues.map(name => `- ${JSON.stringify(name)}`).join('\n') : 'None yet.'}
`
