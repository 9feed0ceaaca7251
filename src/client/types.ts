/** Requests and responses as JSON, derived from the schemas the service validates with. Types only, nothing at run time. */
import type { Static, TSchema } from 'typebox'
import type * as accounts from '../accounts/schemas.ts'
import type * as signIn from '../accounts/sign-in-schemas.ts'
import type * as alerts from '../alerts/schemas.ts'
import type * as calendars from '../calendars/schemas.ts'
import type * as declared from '../cues/declared-schemas.ts'
import type * as lists from '../cues/list-schemas.ts'
import type * as cues from '../cues/schemas.ts'
import type * as executions from '../executions/schemas.ts'
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

export type Cue = Answer<typeof cues.Cue>
export type UpsertedCue = Answer<typeof cues.UpsertedCue>
export type CueDetail = Answer<typeof cues.CueDetail>
export type Cues = Answer<typeof lists.Cues>
export type HistoryQuery = Filter<typeof cues.HistoryQuery>
export type History = Answer<typeof cues.History>
export type CueFilter = Filter<typeof lists.ListCues>
export type NewCue = Given<typeof cues.CreateCue>
export type CueChanges = Given<typeof cues.UpdateCue>
export type DeclaredCue = Given<typeof declared.DeclaredCue>
export type Apply = Omit<Given<typeof declared.Apply>, 'cues'> & { cues: DeclaredCue[] }
export type Applied = Answer<typeof declared.Applied>
export type BulkDeleted = Answer<typeof cues.BulkDeleted>
export type Pause = Given<typeof cues.PauseCue>
export type Fire = Given<typeof cues.FireRequest>
export type FiredExecution = Answer<typeof cues.FiredExecution>

export type TestRequest = Given<typeof cues.TestCue>
export type TestResult = Answer<typeof cues.TestResult>

export type Calendar = Answer<typeof calendars.Calendar>
export type Calendars = Answer<typeof calendars.Calendars>
export type PutCalendar = Given<typeof calendars.PutCalendar>

type PreviewBody = Given<typeof schedules.PreviewRequest>
export type PreviewRequest = Pick<PreviewBody, 'schedule'> & Partial<PreviewBody>
export type Preview = Answer<typeof schedules.Preview>

export type Execution = Answer<typeof executions.Execution>
export type ExecutionDetail = Answer<typeof executions.ExecutionDetail>
export type Executions = Answer<typeof executions.Executions>
export type ExecutionFilter = Filter<typeof executions.ListExecutions>
export type Replay = { overlap?: Cue['overlap'] | null }
export type Replayed = Answer<typeof executions.Replayed>
export type Cancelled = Answer<typeof executions.Cancelled>
export type Dismissed = Answer<typeof executions.Dismissed>

export type NewOperation = Given<typeof operations.CreateOperation>
export type DryRun = Answer<typeof operations.DryRun>
export type Operation = Answer<typeof operations.Operation>
export type OperationDetail = Answer<typeof operations.OperationDetail>
export type Operations = Answer<typeof operations.Operations>
export type OperationFilter = Filter<typeof operations.ListOperations>

export type Report = Given<typeof outcomes.Report>
export type Reported = Answer<typeof outcomes.Reported>
export type Evidence = Given<typeof outcomes.Evidence>
export type Attached = Answer<typeof outcomes.Attached>
export type Verification = { valid?: boolean; reason?: string | null }
export type Verified = Answer<typeof outcomes.Verified>

export type Claimable = Answer<typeof workers.Claimable>['executions'][number]
export type ClaimableFilter = Filter<typeof workers.ClaimableQuery>
export type Claim = Answer<typeof workers.Claim>
export type ClaimNext = Given<typeof workers.ClaimNextRequest>
export type Extended = Answer<typeof workers.Extended>
export type Released = Answer<typeof workers.Released>
export type Heartbeat = Given<typeof workers.Heartbeat>
export type WorkerFilter = Filter<typeof workers.ListWorkers>
export type Workers = Answer<typeof workers.Workers>

export type Alert = Answer<typeof alerts.Alert>
export type Alerts = Answer<typeof alerts.Alerts>
export type AlertFilter = Filter<typeof alerts.ListAlerts>

export type Registered = Answer<typeof accounts.Registered>
export type Me = Answer<typeof accounts.Me>
export type MeChanges = Given<typeof accounts.UpdateMe>
export type Key = Answer<typeof accounts.Key>
export type NewKey = Given<typeof accounts.CreateKey>
export type CreatedKey = Answer<typeof accounts.CreatedKey>
export type RevokedKey = Answer<typeof accounts.RevokedKey>
export type RegeneratedKey = Answer<typeof accounts.RegeneratedKey>
export type RevealedKey = Answer<typeof accounts.RevealedKey>
export type AuditEvents = Answer<typeof accounts.Events>
export type WebhookSecret = Answer<typeof accounts.WebhookSecret>
export type NewWebhookSecret = Answer<typeof accounts.NewWebhookSecret>
export type AlertWebhookSecret = Answer<typeof accounts.AlertWebhookSecret>
export type NewAlertWebhookSecret = Answer<typeof accounts.NewAlertWebhookSecret>

export type CreatedDeviceCode = Answer<typeof signIn.CreatedDeviceCode>
export type PolledDeviceCode = Answer<typeof signIn.Polled>
export type Session = Answer<typeof signIn.Session>
export type Sessions = Answer<typeof signIn.Sessions>
export type DeletionRequested = Answer<typeof signIn.DeletionRequested>

export type Overview = Answer<typeof overview.Overview>
export type ListErrors = Filter<typeof overview.ListErrors>
export type ListDestinations = Filter<typeof overview.ListDestinations>
export type Errors = Answer<typeof overview.Errors>
export type Destinations = Answer<typeof overview.Destinations>

export type NewTicket = Given<typeof support.CreateTicket>
export type Ticket = Answer<typeof support.TicketDetail>
export type Tickets = Answer<typeof support.Tickets>

export type Usage = Answer<typeof usage.Usage>

export type Operator = Answer<typeof operator.Operator>
export type OperatorAnswer = Answer<typeof operator.Answer>
export type OperatorAccount = Answer<typeof operator.Account>
