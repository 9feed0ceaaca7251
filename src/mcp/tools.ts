/**
 * The MCP tools, built on the client: a key can do here exactly what it can do over HTTP. Responses are short: ids, the relevant state and
 * a next step.
 */
import { Type } from 'typebox'
import { CalendarName, PutCalendar } from '../calendars/schemas.ts'
import { cueTools } from './cue-tools.ts'
import { executionTools } from './execution-tools.ts'
import { alertLine, more } from './lines.ts'
import { count_to, cursor, Id, limit, offset, type Tool, tool } from './tool.ts'

/** Passed on as text without losing digits; the API validates them. */
export const freeArguments = ['cues', 'payload', 'payload_override', 'artifacts', 'metadata']
/** Members of API responses that contain free JSON. */
export const freeAnswers = ['changes', 'payload', 'artifacts', 'metadata']

export const tools: readonly Tool[] = [
  ...cueTools,
  tool({
    name: 'list_calendars',
    description: 'List calendars: dates and times that cues leave out, by the names in exclude_calendars.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ limit, offset }),
    run: async (client, { limit = 10, ...page }) => {
      const { calendars, total } = await client.calendars.list({ limit, ...page })
      return { calendars, total, next_step: 'put_calendar replaces one; exclude_calendars of a cue names those that it uses' }
    }
  }),
  tool({
    name: 'put_calendar',
    description: 'Create or replace a calendar. The next runs of all cues that use it change at once. Omitted members are empty.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ name: CalendarName, ...PutCalendar.properties }),
    run: async (client, { name, ...body }) => ({
      ...(await client.calendars.put(name, body as never)),
      next_step: 'get_cue shows the next run of a cue that uses it'
    })
  }),
  tool({
    name: 'delete_calendar',
    description: 'Delete a calendar that no cue uses.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ name: CalendarName }),
    run: async (client, { name }) => {
      await client.calendars.delete(name)
      return { name, deleted: true }
    }
  }),
  ...executionTools,
  tool({
    name: 'list_alerts',
    description: 'List alerts: repeated failures, missed runs, missing outcomes, paused cues. Unacknowledged ones by default.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ acknowledged: Type.Optional(Type.Boolean()), cue_id: Type.Optional(Id('cue')), limit, offset, cursor, count_to }),
    run: async (client, { acknowledged = false, limit = 10, ...filter }) => {
      const { alerts, ...page } = await client.alerts.list({ acknowledged, limit, ...filter })
      return { alerts: alerts.map(alertLine), ...more(page, 'acknowledge_alert acknowledges one') }
    }
  }),
  tool({
    name: 'acknowledge_alert',
    description: 'Acknowledge an alert. Another failure raises a new one.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ alert_id: Id('alert') }),
    run: async (client, { alert_id }) => alertLine(await client.alerts.acknowledge(alert_id))
  }),
  tool({
    name: 'get_overview',
    description:
      'What needs attention: failing cues, work without a worker, outcomes to decide, pauses, alerts; and how the last day went.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({}),
    run: async client => {
      const { per_minute: _, upcoming, ...overview } = await client.overview()
      return { ...overview, upcoming: upcoming.slice(0, 10), next_step: 'get_execution shows why a run failed' }
    }
  }),
  tool({
    name: 'get_usage',
    description: 'Usage against the limits of the plan. Check it before creating many cues.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({}),
    run: async client => client.usage()
  })
]
