/** Requests and responses as JSON, derived from the schemas the service validates with. Types only, nothing at run time. */
import type { Static, TSchema } from 'typebox'
import type * as accounts from '../accounts/schemas.ts'
import type * as signIn from '../accounts/sign-in-schemas.ts'
import type * as alerts from '../alerts/schemas.ts'
import type * as calendars from '../calendars/schemas.ts'
import type * as endpoints from '../channels/endpoint-schemas.ts'
import type * as channels from '../channels/schemas.ts'
import type * as costs from '../costs/schemas.ts'
import type * as declared from '../cues/declared-schemas.ts'
import type * as lists from '../cues/list-schemas.ts'
import type * as cues from '../cues/schemas.ts'
import type * as events from '../events/schemas.ts'
import type * as executions from '../executions/schemas.ts'
import type * as gates from '../gates/schemas.ts'
import type { Json } from '../json/canonical-json.ts'
import type * as operations from '../operations/schemas.ts'
import type * as operator from '../operator/schemas.ts'
import type * as outcomes from '../outcomes/schemas.ts'
import type * as overview from '../overview/schemas.ts'
import type * as schedules from '../schedule/schemas.ts'
import type * as support from '../support/schemas.ts'
import type * as usage from '../usage/schemas.ts'
import type * as workers from '../workers/schemas.ts'

/** Timestamps are ISO 8601 strings in UTC; free JSON is unknown. */
type Wire<T> = T extends Date
  ? string
  : T extends Json
    ? unknown
    : T extends (infer Item)[]
      ? Wire<Item>[]
      : T extends object
        ? { [Name in keyof T]: Wire<T[Name]> }
        : T
type Answer<S extends TSchema> = Wire<Static<S>>
type Given<S extends TSchema> = Wire<NonNullable<Static<S>>>
/** Members with a default are optional. */
type Filter<S extends TSchema> = Partial<Given<S>>

export type PageQuery = { limit?: number; offset?: number }

/** A cue: a schedule, and what each of its runs does. `P` is the type of its payload. */
export interface Cue<P = unknown> extends Omit<Answer<typeof cues.Cue>, 'payload'> {
  payload: P
}
export interface UpsertedCue<P = unknown> extends Omit<Answer<typeof cues.UpsertedCue>, 'payload'> {
  payload: P
}
/** A cue with its latest executions and missed slots. */
export interface CueDetail<P = unknown> extends Omit<Answer<typeof cues.CueDetail>, 'payload'> {
  payload: P
}
/** A cue in a list. */
export interface CueSummary extends Answer<typeof lists.CueSummary> {}
export interface Cues extends Answer<typeof lists.Cues> {}
export interface HistoryQuery extends Filter<typeof cues.HistoryQuery> {}
export interface History extends Answer<typeof cues.History> {}
export interface CueFilter extends Filter<typeof lists.ListCues> {}
type CueInput = Given<typeof cues.CreateCue>
/** Exactly one of these members. */
type OneOf<T, Names extends keyof T> = {
  [Name in Names]: { [Member in Name]: NonNullable<T[Member]> } & { [Member in Exclude<Names, Name>]?: null | undefined }
}[Names]
type GivenSchedule = NonNullable<CueInput['schedule']>
/** Slots of a new cue: `cron`, `crons`, `every`, `at` or `in`, and rules. */
export type NewSchedule = Omit<GivenSchedule, SlotNames> & OneOf<GivenSchedule, SlotNames>
type SlotNames = 'cron' | 'crons' | 'every' | 'at' | 'in'
type ShortNames = Exclude<SlotNames, 'in'>
type Beside = OneOf<CueInput, ShortNames> & { timezone?: string | null | undefined; schedule?: null | undefined }
type Inside = { [Name in ShortNames | 'timezone']?: null | undefined } & { schedule: NewSchedule }
type Following = { [Name in ShortNames | 'timezone' | 'schedule']?: null | undefined } & {
  after: NonNullable<CueInput['after']> & { cues: string[] }
}
/** A cue to create, with exactly one schedule, or cues that it follows. `P` is the type of its payload. */
export type NewCue<P = unknown> = Omit<CueInput, 'schedule' | ShortNames | 'timezone' | 'payload'> & { payload?: P } & (
    | Beside
    | Inside
    | Following
  )
export interface CueChanges extends Given<typeof cues.UpdateCue> {}
export interface DeclaredCue extends Given<typeof declared.DeclaredCue> {}
export type Apply = Omit<Given<typeof declared.Apply>, 'cues'> & { cues: DeclaredCue[] }
export interface Applied extends Answer<typeof declared.Applied> {}
export interface BulkDeleted extends Answer<typeof cues.BulkDeleted> {}
export interface Pause extends Given<typeof cues.PauseCue> {}
export interface Fire extends Given<typeof cues.FireRequest> {}
export interface FiredExecution extends Answer<typeof cues.FiredExecution> {}

export interface TestRequest extends Given<typeof cues.TestCue> {}
export interface TestResult extends Answer<typeof cues.TestResult> {}

/** Exclusions that several cues share. */
export interface Calendar extends Answer<typeof calendars.Calendar> {}
export interface Calendars extends Answer<typeof calendars.Calendars> {}
export interface PutCalendar extends Given<typeof calendars.PutCalendar> {}

type PreviewBody = Given<typeof schedules.PreviewRequest>
export type PreviewRequest = Pick<PreviewBody, 'schedule'> & Partial<PreviewBody>
export interface PayloadPreview extends Answer<typeof cues.PayloadPreview> {}
export interface Preview extends Answer<typeof schedules.Preview> {}

/** A reported outcome. */
export interface RecordedOutcome extends Answer<typeof executions.Outcome> {}
/** A run of a cue. */
export interface Execution extends Answer<typeof executions.Execution> {}
/** An execution with its payload, response and attempts. `P` is the type of the payload. */
export interface ExecutionDetail<P = unknown> extends Omit<Answer<typeof executions.ExecutionDetail>, 'payload'> {
  payload: P
}
export interface Executions extends Answer<typeof executions.Executions> {}
export interface ExecutionFilter extends Filter<typeof executions.ListExecutions> {}
export type Replay = { overlap?: Cue['overlap'] | null }
export interface Replayed extends Answer<typeof executions.Replayed> {}
export interface Cancelled extends Answer<typeof executions.Cancelled> {}
export interface Signal extends Given<typeof executions.Signal> {}
export interface Signalled extends Answer<typeof executions.Signalled> {}
export interface Dismissed extends Answer<typeof executions.Dismissed> {}
/** The decision about an execution that waits for approval. */
export interface Decision extends Answer<typeof executions.Decision> {}
export type Approve = { reason?: string | null }
export interface Reject extends Given<typeof executions.Reject> {}

export interface NewOperation extends Given<typeof operations.CreateOperation> {}
export interface DryRun extends Answer<typeof operations.DryRun> {}
/** Work on many executions or cues, in the background. */
export interface Operation extends Answer<typeof operations.Operation> {}
export interface OperationDetail extends Answer<typeof operations.OperationDetail> {}
export interface Operations extends Answer<typeof operations.Operations> {}
export interface OperationFilter extends Filter<typeof operations.ListOperations> {}

/** The outcome of an execution, and evidence. */
export interface Report extends Given<typeof outcomes.Report> {}
export interface Reported extends Answer<typeof outcomes.Reported> {}
export interface Evidence extends Given<typeof outcomes.Evidence> {}
export interface Attached extends Answer<typeof outcomes.Attached> {}
export type Verification = { valid?: boolean; reason?: string | null }
export interface Verified extends Answer<typeof outcomes.Verified> {}

export type Claimable = Answer<typeof workers.Claimable>['executions'][number]
export interface ClaimableFilter extends Filter<typeof workers.ClaimableQuery> {}
/** An execution that a worker has claimed. `P` is the type of the payload. */
export interface Claim<P = unknown> extends Omit<Answer<typeof workers.Claim>, 'payload'> {
  payload: P
}
export interface ClaimNext extends Given<typeof workers.ClaimNextRequest> {}
export interface Extended extends Answer<typeof workers.Extended> {}
export interface Released extends Answer<typeof workers.Released> {}
export interface Heartbeat extends Given<typeof workers.Heartbeat> {}
export interface WorkerFilter extends Filter<typeof workers.ListWorkers> {}
export interface Workers extends Answer<typeof workers.Workers> {}

/** An alert about failures, missed windows or outcomes that did not come. */
export interface Alert extends Answer<typeof alerts.Alert> {}
export interface Alerts extends Answer<typeof alerts.Alerts> {}
export interface AlertFilter extends Filter<typeof alerts.ListAlerts> {}
/** Limits that cues share. */
export interface Gate extends Answer<typeof gates.Gate> {}
export interface GateDetail extends Answer<typeof gates.GateDetail> {}
export interface Gates extends Answer<typeof gates.Gates> {}
export interface PutGate extends Given<typeof gates.PutGate> {}
export interface PauseGate extends Given<typeof gates.PauseGate> {}
export interface DeclaredGate extends Given<typeof gates.DeclaredGate> {}
export type CostsQuery = Partial<Given<typeof costs.ReadCosts>>
export interface CostSums extends Answer<typeof costs.CostSums> {}
/** Where alerts and events are sent. */
export interface Channel extends Answer<typeof channels.Channel> {}
export interface Channels extends Answer<typeof channels.Channels> {}
export interface PutChannel extends Given<typeof channels.PutChannel> {}
export interface ChannelTest extends Answer<typeof channels.ChannelTest> {}

/** Something that happened in the account. */
export interface Event extends Answer<typeof events.Event> {}
export interface Events extends Answer<typeof events.Events> {}
export interface EventFilter extends Filter<typeof events.ListEvents> {}
export type EventFeed = Omit<EventFilter, 'types'> & { types?: string | readonly string[] }
/** A URL that gets events. */
export interface EventEndpoint extends Answer<typeof endpoints.EventEndpoint> {}
export interface EventEndpoints extends Answer<typeof endpoints.EventEndpoints> {}
export interface NewEventEndpoint extends Given<typeof endpoints.CreateEventEndpoint> {}
export interface CreatedEventEndpoint extends Answer<typeof endpoints.CreatedEventEndpoint> {}
export interface EnabledEventEndpoint extends Answer<typeof endpoints.EnabledEventEndpoint> {}
export type EnableEventEndpoint = Given<typeof endpoints.EnableEventEndpoint>

export interface Registered extends Answer<typeof accounts.Registered> {}
/** The account. */
export interface Me extends Answer<typeof accounts.Me> {}
export interface MeChanges extends Given<typeof accounts.UpdateMe> {}
/** An API key, without its secret. */
export interface Key extends Answer<typeof accounts.Key> {}
export interface NewKey extends Given<typeof accounts.CreateKey> {}
export interface CreatedKey extends Answer<typeof accounts.CreatedKey> {}
export interface RevokedKey extends Answer<typeof accounts.RevokedKey> {}
export interface RegeneratedKey extends Answer<typeof accounts.RegeneratedKey> {}
export interface RevealedKey extends Answer<typeof accounts.RevealedKey> {}
export interface AuditEvents extends Answer<typeof accounts.Events> {}
export interface WebhookSecret extends Answer<typeof accounts.WebhookSecret> {}
export interface NewWebhookSecret extends Answer<typeof accounts.NewWebhookSecret> {}
export interface AlertWebhookSecret extends Answer<typeof accounts.AlertWebhookSecret> {}
export interface NewAlertWebhookSecret extends Answer<typeof accounts.NewAlertWebhookSecret> {}

export interface CreatedDeviceCode extends Answer<typeof signIn.CreatedDeviceCode> {}
export interface PolledDeviceCode extends Answer<typeof signIn.Polled> {}
export interface Session extends Answer<typeof signIn.Session> {}
export interface Sessions extends Answer<typeof signIn.Sessions> {}
export interface DeletionRequested extends Answer<typeof signIn.DeletionRequested> {}

export interface Overview extends Answer<typeof overview.Overview> {}
export interface OverviewQuery extends Filter<typeof overview.OverviewQuery> {}
export interface ListErrors extends Filter<typeof overview.ListErrors> {}
export interface ListDestinations extends Filter<typeof overview.ListDestinations> {}
export interface Errors extends Answer<typeof overview.Errors> {}
export interface Destinations extends Answer<typeof overview.Destinations> {}

export interface NewTicket extends Given<typeof support.CreateTicket> {}
export interface Ticket extends Answer<typeof support.TicketDetail> {}
export interface Tickets extends Answer<typeof support.Tickets> {}

export interface Usage extends Answer<typeof usage.Usage> {}

export interface Operator extends Answer<typeof operator.Operator> {}
export interface OperatorAnswer extends Answer<typeof operator.Answer> {}
export interface OperatorAccount extends Answer<typeof operator.Account> {}
