/**
 * The MCP tools, built on the client: a key can do here exactly what it can do over HTTP. Responses are short: ids, the relevant state and
 * a next step.
 */
import { Type } from 'typebox'
import { ListAlerts } from '../alerts/schemas.ts'
import { Calendar, CalendarName, ListCalendars, PutCalendar } from '../calendars/schemas.ts'
import { CostSums, ReadCosts } from '../costs/schemas.ts'
import { ListEvents } from '../events/schemas.ts'
import type { Schema } from '../http/schema.ts'
import { Overview } from '../overview/schemas.ts'
import { Usage } from '../usage/schemas.ts'
import { approvalTools } from './approval-tools.ts'
import { cueTools } from './cue-tools.ts'
import { executionTools } from './execution-tools.ts'
import { gateTools } from './gate-tools.ts'
import { AlertLine, alertLine, EventLine, eventLine, more, page } from './lines.ts'
import { Id, limit, NextStep, type Tool, tool } from './tool.ts'

/** Members of API responses that contain free JSON. */
export const freeAnswers = ['changes', 'payload', 'artifacts', 'metadata']

export const tools: readonly Tool[] = [
  ...cueTools,
  tool({
    name: 'list_calendars',
    description: 'List calendars: dates and times that cues leave out, by the names in exclude_calendars.',
    scope: 'read',
    input: Type.Object({ ...Type.Partial(ListCalendars).properties, limit }),
    output: Type.Object({ calendars: Type.Array(Calendar), total: Type.Integer(), next_step: NextStep }),
    run: async (client, { limit = 10, ...page }) => {
      const { calendars, total } = await client.calendars.list({ limit, ...page })
      return { calendars, total, next_step: 'put_calendar replaces one; exclude_calendars of a cue names those that it uses' }
    }
  }),
  tool({
    name: 'put_calendar',
    description: 'Create or replace a calendar. The next runs of all cues that use it change at once. Omitted members are empty.',
    scope: 'write',
    input: Type.Object({ name: CalendarName, ...PutCalendar.properties }),
    output: Type.Object({ ...Calendar.properties, next_step: NextStep }),
    run: async (client, { name, ...body }) => ({
      ...(await client.calendars.put(name, body as never)),
      next_step: 'get_cue shows the next run of a cue that uses it'
    })
  }),
  tool({
    name: 'delete_calendar',
    description: 'Delete a calendar that no cue uses.',
    scope: 'write',
    input: Type.Object({ name: CalendarName }),
    output: Type.Object({ name: Type.String(), deleted: Type.Boolean() }),
    run: async (client, { name }) => {
      await client.calendars.delete(name)
      return { name, deleted: true }
    }
  }),
  ...gateTools,
  ...executionTools,
  ...approvalTools,
  tool({
    name: 'get_costs',
    description: 'Sums of the costs that executions reported, by cue, tag or day. Report costs with report_outcome.',
    scope: 'read',
    input: Type.Partial(ReadCosts),
    output: Type.Object({ ...CostSums.properties, next_step: NextStep }),
    run: async (client, query) => ({ ...(await client.costs(query)), next_step: 'list_executions shows the costs of each run' })
  }),
  tool({
    name: 'list_alerts',
    description: 'List alerts: repeated failures, missed runs, missing outcomes, paused cues. Unacknowledged ones by default.',
    scope: 'read',
    input: Type.Object({
      ...Type.Partial(Type.Pick(ListAlerts, ['cue_id', 'offset', 'cursor', 'count_to'])).properties,
      acknowledged: Type.Optional(Type.Boolean({ default: false })),
      limit
    }),
    output: Type.Object({ alerts: Type.Array(AlertLine), ...page }),
    run: async (client, { acknowledged = false, limit = 10, ...filter }) => {
      const { alerts, ...page } = await client.alerts.list({ acknowledged, limit, ...filter })
      return { alerts: alerts.map(alertLine), ...more(page, 'acknowledge_alert acknowledges one') }
    }
  }),
  tool({
    name: 'acknowledge_alert',
    description: 'Acknowledge an alert. Another failure raises a new one.',
    scope: 'write',
    input: Type.Object({ alert_id: Id('alert') }),
    output: AlertLine,
    run: async (client, { alert_id }) => alertLine(await client.alerts.acknowledge(alert_id))
  }),
  tool({
    name: 'list_events',
    description:
      'What happened, oldest first: changes of cues, failed runs, alerts, operations. Begins with the oldest event that is kept.',
    scope: 'read',
    input: Type.Object({ ...Type.Partial(Type.Pick(ListEvents, ['after', 'types', 'cue_id', 'tag', 'wait'])).properties, limit }),
    output: Type.Object({
      events: Type.Array(EventLine),
      cursor: Type.String(),
      has_more: Type.Boolean(),
      truncated: Type.Boolean(),
      next_step: NextStep
    }),
    run: async (client, { after = 'start', limit = 10, wait = 0, ...filter }) => {
      const { events, ...page } = await client.events({ after, limit, wait, ...filter })
      return {
        events: events.map(eventLine),
        ...page,
        next_step: 'list_events with after: cursor continues; wait: 30 waits for what comes'
      }
    }
  }),
  tool({
    name: 'get_overview',
    description:
      'What needs attention: failing cues, work without a worker, outcomes to decide, pauses, alerts; and how the last day went.',
    scope: 'read',
    input: Type.Object({}),
    output: Type.Object({
      ...Type.Omit(Overview, ['volume', 'per_minute']).properties,
      alerts: Type.Array(Type.Omit(AlertLine, ['acknowledged'])),
      next_step: NextStep
    }),
    run: async client => {
      const { alerts, upcoming, volume: _, per_minute: __, ...overview } = await client.overview()
      return {
        ...overview,
        alerts: alerts.map(alertLine),
        upcoming: upcoming.slice(0, 10),
        next_step: 'get_execution shows why a run failed'
      }
    }
  }),
  tool({
    name: 'get_usage',
    description: 'Usage against the limits of the plan. Check it before creating many cues.',
    scope: 'read',
    input: Type.Object({}),
    output: Usage,
    run: async client => client.usage()
  })
]

/** Arguments that are free JSON: passed on as text without losing digits; the API validates them. */
export const freeArguments = [...new Set(tools.flatMap(({ input }) => freeMembers(input)))]

function freeMembers({ properties }: Tool['input']): string[] {
  return Object.entries(properties as Record<string, Schema>).flatMap(([name, member]) => (member['x-json'] ? [name] : []))
}
