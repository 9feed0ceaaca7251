/** Names the schemas that have one: in the description, each is a component, and everything that contains it refers to it. */
import type { TSchema } from 'typebox'
import * as accounts from '../../src/accounts/schemas.ts'
import * as alerts from '../../src/alerts/schemas.ts'
import * as blog from '../../src/blog/schemas.ts'
import * as calendars from '../../src/calendars/schemas.ts'
import * as endpoints from '../../src/channels/endpoint-schemas.ts'
import * as channels from '../../src/channels/schemas.ts'
import * as declared from '../../src/cues/declared-schemas.ts'
import * as lists from '../../src/cues/list-schemas.ts'
import * as cues from '../../src/cues/schemas.ts'
import * as events from '../../src/events/schemas.ts'
import * as executions from '../../src/executions/schemas.ts'
import * as gates from '../../src/gates/schemas.ts'
import * as health from '../../src/health/schemas.ts'
import { published, type Schema } from '../../src/http/schema.ts'
import * as operations from '../../src/operations/schemas.ts'
import * as operator from '../../src/operator/schemas.ts'
import * as outcomes from '../../src/outcomes/schemas.ts'
import * as overview from '../../src/overview/schemas.ts'
import * as schedules from '../../src/schedule/schemas.ts'
import * as support from '../../src/support/schemas.ts'
import * as usage from '../../src/usage/schemas.ts'
import * as workers from '../../src/workers/schemas.ts'

/** The schemas of a module that have these names in it. */
const from = (module: object, names: string): Record<string, TSchema> =>
  Object.fromEntries(names.split(' ').map(name => [name, (module as Record<string, TSchema>)[name]!]))

/** The objects of a cue. */
const groups = {
  ...{ callback: 'Callback', retry: 'Retry', on_failure: 'OnFailure', delivery: 'Delivery', alerts: 'AlertSettings' },
  ...{ verification: 'Verification', after: 'After', approval: 'Approval' }
}
const groupsOf = ({ properties }: { properties: object }, prefix = '', suffix = ''): Record<string, TSchema> =>
  Object.fromEntries(
    Object.entries(groups).map(([member, name]) => [`${prefix}${name}${suffix}`, (properties as Record<string, TSchema>)[member]!])
  )

const requests: Record<string, TSchema> = {
  CueInput: cues.CreateCue,
  CueReplacement: cues.PutCue,
  CueUpdate: cues.UpdateCue,
  ...from(declared, 'DeclaredCue'),
  ...groupsOf(cues.CreateCue, '', 'Input'),
  ...groupsOf(cues.PutCue, 'Strict', 'Input'),
  CueSet: declared.Apply,
  ScheduleInput: schedules.GivenSchedule,
  StrictScheduleInput: schedules.StrictSchedule,
  DeclaredScheduleInput: schedules.DeclaredSchedule,
  ExclusionInput: schedules.GivenExclusion,
  RangeInput: schedules.GivenRange,
  CalendarInput: calendars.PutCalendar,
  GateInput: gates.PutGate,
  BreakerInput: gates.PutGate.properties.breaker,
  BudgetInput: gates.PutGate.properties.budget,
  ChannelInput: channels.PutChannel,
  EventEndpointInput: endpoints.CreateEventEndpoint,
  OperationInput: operations.CreateOperation,
  FireInput: cues.FireRequest,
  TestInput: cues.TestCue,
  OutcomeReport: outcomes.Report,
  EvidenceInput: outcomes.Evidence,
  TicketInput: support.CreateTicket
}
const responses: Record<string, TSchema> = {
  ...from(cues, 'Cue CueDetail TestResult'),
  ...groupsOf(cues.Cue),
  After: cues.After,
  ChangedCue: cues.UpsertedCue,
  CueSummary: lists.CueSummary,
  CueHistory: cues.History,
  AppliedCues: declared.Applied,
  Schedule: schedules.ScheduleBody,
  SchedulePreview: schedules.Preview,
  ...from(schedules, 'Exclusion Range'),
  ...{ ...from(calendars, 'Calendar'), ...from(gates, 'Gate'), ...from(channels, 'Channel'), ...from(endpoints, 'EventEndpoint') },
  ...from(executions, 'Execution Parent ExecutionDetail Decision Outcome'),
  ExecutionApproval: executions.Execution.properties.approval,
  Held: executions.Execution.properties.held,
  ReportedOutcome: outcomes.Reported,
  ...{ ...from(workers, 'Claim Worker'), ...from(operations, 'Operation OperationDetail'), ...from(alerts, 'Alert') },
  FeedEvent: events.Event,
  Account: accounts.Me,
  ...{ ...from(overview, 'Overview'), ...from(accounts, 'Key Event'), ...from(usage, 'Usage'), ...from(support, 'Ticket TicketDetail') },
  ...{ ...from(blog, 'Post'), ...from(health, 'Health') },
  AccountOfService: operator.Account,
  AccountLimits: operator.Account.properties.limits,
  ServiceFigures: operator.Operator
}

type Node = { [name: string]: unknown }
type Body = { required: boolean; content: Record<string, { schema: Schema }> }
type Document = { paths: Record<string, Record<string, Node>>; webhooks: Node; components: Record<string, Record<string, unknown>> }

/** Without its own description, which each use may replace. */
const keyOf = ({ description: _, type, ...schema }: Node): string => JSON.stringify({ type, ...schema })
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)
const capitalised = (word: string) => word[0]!.toUpperCase() + word.slice(1)
const pascal = (code: string) => code.split('_').map(capitalised).join('')

/** Moves named schemas, and responses with errors, to the document's components. */
export const withComponents = (original: object): object => {
  const document = JSON.parse(JSON.stringify(original)) as Document
  const { paths, webhooks, components } = document
  const schemas: Node = { ...components.schemas }
  const refusals: Node = {}
  const entries = Object.entries({ ...requests, ...responses }).map(([name, schema]) => {
    const { type, ...node } = published(schema as Schema, { isRequest: name in requests })
    return [name, JSON.parse(JSON.stringify({ type: [type].flat()[0], ...node })) as Node] as const
  })
  const names = new Map(entries.map(([name, node]) => [keyOf(node), name]))
  const descriptions = new Map(entries.map(([name, node]) => [name, node.description]))

  const refer = (node: Node): Node | undefined => {
    const name = names.get(keyOf(node))
    if (name === undefined) return
    const { description } = node
    return { $ref: `#/components/schemas/${name}`, ...(description !== descriptions.get(name) && { description }) }
  }
  /** The value with references for all named schemas below it, or for itself. */
  const replace = (value: unknown, isItself = true): unknown => {
    if (Array.isArray(value)) return value.map(item => replace(item))
    if (!isNode(value)) return value
    if (isItself) {
      const reference = refer(value)
      if (reference) return reference
      const { type } = value
      const orNull = Array.isArray(type) && type.length === 2 && type[1] === 'null' && refer({ ...value, type: type[0] })
      if (orNull) return { anyOf: [orNull, { type: 'null' }] }
    }
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replace(member)]))
  }

  for (const [name, node] of entries) schemas[name] = replace(node, false)
  for (const operations of Object.values(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const body = (operation.requestBody as Body | undefined)?.content['application/json']?.schema
      const replaced = replace(operation) as Node & { requestBody: Body; responses: Record<string, { description: string }> }
      if (body?.type === 'object' || body?.anyOf) replaced.requestBody.required = Boolean(body.required?.length)
      for (const [status, response] of Object.entries(replaced.responses)) {
        if (!/^[45]/.test(status) || !isError(response)) continue
        const name = nameOf(status, response.description)
        refusals[name] = response
        replaced.responses[status] = { $ref: `#/components/responses/${name}` } as never
      }
      operations[method] = replaced
    }
  }
  document.webhooks = replace(webhooks) as Node
  Object.assign(components, { schemas, responses: refusals })
  return document
}

const isError = (response: unknown) => JSON.stringify(response).includes('"#/components/schemas/Error"')
const nameOf = (status: string, description: string) => {
  const codes = description.match(/`\w+`/g)?.map(code => pascal(code.slice(1, -1)))
  return `${status}${codes && /^`/.test(description) ? `_${codes.join('_')}` : ''}`
}
