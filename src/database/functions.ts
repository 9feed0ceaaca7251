/**
 * The SQL functions, typed: the only file that names one. A test holds names and parameters against the catalog.
 * Parameters are named as in SQL, without their p_; of what a caller passes, only those are taken, so a request's body, path and caller can be
 * spread into one object. What is undefined keeps its default. `now` is passed only where a clock was given, which tests do.
 */
import type { Admission, Scope } from '../accounts/admission.ts'
import type { Plan } from '../config.ts'
import { createCalls, type Queryable } from './calls.ts'
import type {
  Account,
  Actor,
  AheadCue,
  BegunAttempt,
  Claim,
  CreatedCue,
  CueFailedMail,
  DeviceLink,
  DeviceStatus,
  DueCues,
  Evidence,
  MemoryChange,
  MovedExecution,
  NewKey,
  OpenedSession,
  OutcomeState,
  PassedWindow,
  Requests,
  Results,
  ServiceHealth,
  SubscriptionEvent,
  Ticket,
  Usage,
  WaitingAttempt
} from './function-types.ts'
import type { Gate } from './gate.ts'

export type * from './function-types.ts'

/** What each function takes, as the catalog has it. */
export const signatures = {
  create_cues: 'account_ids cues next_runs now',
  create_cue: 'account_id cue next_run now',
  update_cue: 'account_id cue_id version changes next_run now',
  delete_cue: 'account_id cue_id now',
  delete_cues: 'account_id cue_ids now',
  fire_cue: 'account_id cue_id payload task version send_at idempotency_key request_hash now',
  replay_execution: 'account_id execution_id now',
  cancel_execution: 'account_id execution_id now',
  add_job: 'queue data id start_after singleton_key',
  failure_notice: 'execution_id now',
  beat_engine: 'engine_id version lateness_ms open_deliveries missed_after now',
  stop_engine: 'engine_id now',
  look_ahead: 'until limit skip_accounts now',
  take_due_cues: 'cue_ids versions expected next success_due missed_after lease now',
  catch_up_cues: 'cues now',
  refuse_due_cues: 'cue_ids versions expected next now',
  begin_waiting: 'limit skip_accounts lease now',
  look_waiting: 'after after_id limit now',
  begin_attempts: 'execution_ids lease now',
  gone_attempts: 'execution_ids attempts',
  open_limits: 'account_ids',
  finish_attempts: 'execution_ids attempts cue_ids started_at duration_ms http_status bodies ended_flights now',
  settle_attempts:
    'execution_ids attempts cue_ids started_at duration_ms http_status bodies errors retry_after_ms gone reported reported_results reported_errors ended_flights now',
  extend_flights: 'flight_ids lease now',
  release_flight: 'flight_id execution_ids now',
  end_flights: 'flight_ids',
  held_attempts: 'execution_ids cue_ids',
  recover_flights: 'limit asked_at now',
  recover_stuck: 'now',
  expire_outcomes: 'limit now',
  lose_attempts: 'execution_ids flight_id error now',
  next_wakes: '',
  read_cues: 'account_ids cue_ids',
  read_execution_details: 'account_ids execution_ids',
  requeue_attempts: 'limit now',
  admit: 'key_hashes session_ids execution_ids addresses scopes limited now',
  admit_and_read_cues: 'key_hashes session_ids execution_ids addresses scopes cue_ids limited now',
  allow: 'subject limit window now',
  register: 'email key_hash prefix ciphertext address ip now',
  update_account: 'account_id changes actor ip now',
  webhook_secret: 'account_id',
  regenerate_webhook_secret: 'account_id overlap_seconds actor ip now',
  alert_webhook_secret: 'account_id actor ip now',
  regenerate_alert_webhook_secret: 'account_id overlap_seconds actor ip now',
  create_key: 'account_id label key_hash prefix scopes actor ip now',
  rename_key: 'account_id key_id label actor ip now',
  revoke_key: 'account_id key_id actor ip now',
  regenerate_key: 'account_id key_hash prefix ciphertext actor ip now',
  reveal_key: 'account_id encryption_key_ids actor ip now',
  open_session: 'token_hash ip now',
  refresh_session: 'account_id actor ip now',
  revoke_sessions: 'account_id all actor ip now',
  exchange_session_token: 'token_hash client_id label key_hash prefix ip now',
  create_device_code: 'code_hash address ip now',
  device_code_status: 'code_hash now',
  send_device_link: 'code_hash email code_ciphertext now',
  device_link: 'code_hash link_id now',
  approve_device: 'code_hash link_id key_hash prefix ciphertext ip now',
  poll_device: 'code_hash token_hash limited now',
  request_deletion: 'account_id actor ip now',
  deletion_status: 'deletion_id now',
  cancel_deletion: 'deletion_id ip now',
  disownable_account: 'account_id now',
  disown_account: 'account_id ip now',
  delete_due_accounts: 'batch now',
  mail_registered: 'account_id key_id',
  mail_cue_failed: 'account_id execution_id counted now',
  confirm_email: 'account_id now',
  is_email_confirmed: 'account_id',
  disowned_until: 'account_id',
  mail_limit_reached: 'account_id now',
  mail_magic_link: 'link_id now',
  mail_deletion_requested: 'deletion_id',
  mail_downgrade: 'account_id cue_ids',
  mail_payment_failed: 'account_id',
  executions_used: 'account_id now',
  store_echo: 'token payload headers address now',
  read_echo: 'token now',
  service_health: 'now',
  heartbeat_worker: 'account_id worker_id handlers now',
  delete_worker: 'account_id worker_id now',
  has_live_worker: 'account_id now',
  claimable_page: 'account_id task limit bytes now',
  claim_executions: 'account_id worker_id execution_id tasks limit lease now',
  claim_next: 'claims lease now',
  next_claimable: 'account_id now',
  heartbeat_execution: 'account_id execution_id worker_id claim_token lease now',
  release_execution: 'account_id execution_id claim_token now',
  recover_leases: 'limit now',
  miss_unclaimed: 'limit now',
  report_outcome:
    'account_id execution_id success result error metadata external_id result_url result_type summary artifacts claim_token now result_ref',
  attach_evidence: 'account_id execution_id external_id result_url result_ref result_type summary artifacts metadata claim_token now',
  verify_outcome: 'account_id execution_id state reason now',
  acknowledge_alert: 'account_id alert_id now',
  passed_windows: 'limit now',
  move_windows: 'cue_ids versions expected next missed now',
  alert_notice: 'alert_id now',
  read_usage: 'account_id actor now',
  billing_account: 'account_id',
  set_customer: 'account_id customer_id now',
  apply_subscription: 'event_id type subscription_id customer_id account_id plan status at first version now',
  note_failed_payment: 'event_id type customer_id subscription_id next_attempt_at now',
  create_ticket: 'account_id subject message severity type tracked now',
  begin_issue: 'ticket_id now',
  end_issue: 'ticket_id url',
  read_memory: 'account_id release reader now',
  subscribe_memory: 'account_id agent_id callback_url release now',
  memory_notice: 'subscription_id release now',
  end_memory_notice: 'subscription_id version url',
  note_memory_release: 'release',
  set_plans: 'plans',
  check_secrets: 'encryption_key_ids session_secret changed now',
  fold_usage: 'now',
  maintain_partitions: 'months now',
  drop_old_executions: 'before now',
  delete_old_executions: 'before batch',
  prune_payloads: 'before batch now',
  store_payloads: 'batch now',
  purge_cue: 'cue_id batch',
  requeue_purges: 'now',
  prune: 'now'
} as const

/** Binds the functions to a pool or a connection. With a clock, every function that has a `now` is given the clock's. */
export const createFunctions = (db: Queryable, clock?: () => Date, gate?: Gate) => {
  const { rows, row, value, values } = createCalls(signatures, db, clock, gate)
  return {
    createCue: value<Account & { cue: object | string; next_run: Date | null }, string>('create_cue'),
    createCues: rows<{ account_ids: string[]; cues: string; next_runs: (Date | null)[] }, CreatedCue>('create_cues'),
    updateCue: value<Account & { cue_id: string; version: number; changes: object | string; next_run?: Date | null }>('update_cue'),
    deleteCue: value<Account & { cue_id: string }>('delete_cue'),
    deleteCues: values<Account & { cue_ids: string[] }, string>('delete_cues'),
    fireCue: row<
      Account & {
        cue_id: string
        payload?: string
        task?: string | null
        version?: number
        send_at?: Date
        idempotency_key?: string
        request_hash?: string
      },
      MovedExecution
    >('fire_cue'),
    replayExecution: row<Account & { execution_id: string }, MovedExecution>('replay_execution'),
    cancelExecution: row<Account & { execution_id: string }, MovedExecution>('cancel_execution'),

    addJob: value<{ queue: string; data: object; start_after?: Date; singleton_key?: string }>('add_job'),
    failureNotice: row<
      { execution_id: string },
      | {
          cue_id: string
          cue_name: string
          execution_id: string
          attempts: number
          last_http_status: number | null
          last_error: string | null
          secrets: string[]
        }
      | undefined
    >('failure_notice'),
    beatEngine: row<
      { engine_id: string; version: string; lateness_ms: number | null; open_deliveries: number; missed_after: string },
      { database_now: Date; outage_recorded: boolean; engines: number; place: number }
    >('beat_engine'),
    stopEngine: value<{ engine_id: string }>('stop_engine'),
    lookAhead: rows<{ until: Date; limit?: number; skip_accounts?: string[] }, AheadCue>('look_ahead'),
    takeDueCues: rows<DueCues & { success_due?: (Date | null)[]; missed_after: string; lease?: string }, BegunAttempt>('take_due_cues'),
    catchUpCues: value<{ cues: string }, number>('catch_up_cues'),
    refuseDueCues: value<DueCues, number>('refuse_due_cues'),
    beginWaiting: rows<{ limit: number; skip_accounts?: string[]; lease?: string }, BegunAttempt>('begin_waiting'),
    lookWaiting: rows<{ after: number; after_id: string; limit?: number }, WaitingAttempt>('look_waiting'),
    beginAttempts: rows<{ execution_ids: string[]; lease?: string }, BegunAttempt>('begin_attempts'),
    goneAttempts: values<{ execution_ids: string[]; attempts: number[] }, string>('gone_attempts'),
    openLimits: rows<{ account_ids: string[] }, { account_id: string; open_deliveries: number }>('open_limits'),
    finishAttempts: value<Results, number>('finish_attempts'),
    settleAttempts: value<
      Results & {
        errors: (string | null)[]
        retry_after_ms: (number | null)[]
        gone: boolean[]
        reported: (boolean | null)[]
        reported_results: (string | null)[]
        reported_errors: (string | null)[]
      },
      number
    >('settle_attempts'),
    extendFlights: values<{ flight_ids: number[]; lease?: string }, number>('extend_flights'),
    releaseFlight: value<{ flight_id: number; execution_ids: string[] }, number>('release_flight'),
    endFlights: value<{ flight_ids: number[] }>('end_flights'),
    heldAttempts: values<{ execution_ids: string[]; cue_ids: string[] }, string>('held_attempts'),
    recoverFlights: value<{ limit?: number; asked_at?: Date }, number>('recover_flights'),
    recoverStuck: value<object, number>('recover_stuck'),
    expireOutcomes: value<{ limit?: number }, number>('expire_outcomes'),
    loseAttempts: value<{ execution_ids: string[]; flight_id: number; error: string }, number>('lose_attempts'),
    readCues: rows<{ account_ids: string[]; cue_ids: string[] }, { id: string; account_id: string }>('read_cues'),
    readExecutionDetails: rows<{ account_ids: string[]; execution_ids: string[] }, { id: string; account_id: string }>(
      'read_execution_details'
    ),
    nextWakes: row<object, { waiting_at: Date | null; deadline_at: Date | null }>('next_wakes'),
    requeueAttempts: value<{ limit?: number }, number>('requeue_attempts'),

    admit: rows<Requests, Admission>('admit'),
    admitAndReadCues: rows<Requests & { cue_ids: (string | null)[] }, Admission>('admit_and_read_cues'),
    allow: row<
      { subject: string; limit: number; window?: string },
      { allowed: boolean; remaining: number; reset_at: Date; retry_after: number | null }
    >('allow'),
    register: row<
      NewKey & { email: string; ciphertext: string; address: string | null; ip: string },
      { id: string; email: string; plan: Plan }
    >('register'),
    updateAccount: value<Actor & { changes: object }>('update_account'),
    webhookSecret: value<Account, string>('webhook_secret'),
    regenerateWebhookSecret: value<Actor & { overlap_seconds?: number }, string>('regenerate_webhook_secret'),
    alertWebhookSecret: value<Actor, string>('alert_webhook_secret'),
    regenerateAlertWebhookSecret: value<Actor & { overlap_seconds?: number }, string>('regenerate_alert_webhook_secret'),
    createKey: value<Actor & NewKey & { label: string; scopes?: Scope[] }, string>('create_key'),
    renameKey: value<Actor & { key_id: string; label: string }>('rename_key'),
    revokeKey: value<Actor & { key_id: string }, Date>('revoke_key'),
    regenerateKey: value<Actor & NewKey & { ciphertext: string }, string | null>('regenerate_key'),
    revealKey: row<Actor & { encryption_key_ids: string[] }, { key_prefix: string; ciphertext: string }>('reveal_key'),

    openSession: row<{ token_hash: Buffer; ip: string }, OpenedSession>('open_session'),
    refreshSession: row<Actor, OpenedSession>('refresh_session'),
    revokeSessions: value<Actor & { all: boolean }, number>('revoke_sessions'),
    exchangeSessionToken: row<
      NewKey & { token_hash: Buffer; client_id: string; label: string; ip: string },
      { account_id: string; key_id: string; scopes: Scope[] }
    >('exchange_session_token'),
    createDeviceCode: value<{ code_hash: Buffer; address: string | null; ip: string }>('create_device_code'),
    deviceCodeStatus: value<{ code_hash: Buffer }, DeviceStatus>('device_code_status'),
    sendDeviceLink: value<{ code_hash: Buffer; email: string; code_ciphertext: string }>('send_device_link'),
    deviceLink: row<{ code_hash: Buffer; link_id: string }, DeviceLink | undefined>('device_link'),
    approveDevice: value<NewKey & { code_hash: Buffer; link_id: string; ciphertext: string; ip: string }, boolean>('approve_device'),
    pollDevice: row<
      { code_hash: Buffer; token_hash: Buffer; limited: boolean },
      { status: DeviceStatus; email: string | null; key_ciphertext: string | null }
    >('poll_device'),
    requestDeletion: value<Actor, Date>('request_deletion'),
    deletionStatus: row<{ deletion_id: string }, { status: 'pending' | 'cancelled' | 'completed'; due_at: Date | null }>('deletion_status'),
    cancelDeletion: value<{ deletion_id: string; ip: string }>('cancel_deletion'),
    disownableAccount: row<Account, { email: string; created_at: Date; untouched: boolean } | undefined>('disownable_account'),
    disownAccount: value<Account & { ip: string }, Date | null>('disown_account'),
    deleteDueAccounts: value<{ batch?: number }, number>('delete_due_accounts'),

    mailRegistered: row<
      Account & { key_id: string },
      { email: string; key_prefix: string; ip: string | null; created_at: Date } | undefined
    >('mail_registered'),
    mailCueFailed: row<Account & { execution_id: string; counted: boolean }, CueFailedMail | undefined>('mail_cue_failed'),
    isEmailConfirmed: value<Account, boolean>('is_email_confirmed'),
    confirmEmail: value<Account, null>('confirm_email'),
    disownedUntil: value<Account, Date | null>('disowned_until'),
    mailLimitReached: row<Account, { email: string; plan: Plan; executions_per_month: number; grace_ends_at: Date } | undefined>(
      'mail_limit_reached'
    ),
    mailMagicLink: row<{ link_id: string }, { email: string; code_ciphertext: string; ip: string | null; expires_at: Date } | undefined>(
      'mail_magic_link'
    ),
    mailDeletionRequested: row<{ deletion_id: string }, { email: string; due_at: Date } | undefined>('mail_deletion_requested'),
    mailDowngrade: row<Account & { cue_ids: string[] }, { email: string; plan: Plan; cues: number; paused: string[] } | undefined>(
      'mail_downgrade'
    ),
    mailPaymentFailed: row<Account, { email: string; plan: Plan } | undefined>('mail_payment_failed'),
    executionsUsed: value<Account, number>('executions_used'),

    storeEcho: value<{ token: string; payload: string; headers: object; address: string | null }>('store_echo'),
    readEcho: row<{ token: string }, { payload: string; headers: Record<string, string>; received_at: Date } | undefined>('read_echo'),
    serviceHealth: row<object, ServiceHealth>('service_health'),

    heartbeatWorker: value<Account & { worker_id: string; handlers: string[] }>('heartbeat_worker'),
    deleteWorker: value<Account & { worker_id: string }>('delete_worker'),
    hasLiveWorker: value<Account, boolean>('has_live_worker'),
    claimablePage: rows<
      Account & { task?: string; limit?: number; bytes?: number },
      Pick<Claim, 'execution_id' | 'cue_id' | 'cue_name' | 'task' | 'scheduled_for' | 'attempt' | 'payload'> & {
        id: string
        has_more: boolean
      }
    >('claimable_page'),
    claimExecutions: rows<Account & { worker_id: string; execution_id?: string; tasks?: string[]; limit?: number }, Claim>(
      'claim_executions'
    ),
    claimNext: rows<{ claims: string }, Claim & { claim: number }>('claim_next'),
    nextClaimable: value<Account, Date | null>('next_claimable'),
    heartbeatExecution: value<Account & { execution_id: string; worker_id?: string; claim_token?: string }, Date>('heartbeat_execution'),
    releaseExecution: value<Account & { execution_id: string; claim_token: string }>('release_execution'),
    recoverLeases: value<{ limit?: number }, number>('recover_leases'),
    missUnclaimed: value<{ limit?: number }, number>('miss_unclaimed'),

    reportOutcome: row<
      Account & Evidence & { execution_id: string; success: boolean; result?: string | null; error?: string | null },
      {
        id: string
        status: string
        outcome_state: OutcomeState
        outcome_success: boolean
        outcome_recorded_at: Date
        result: string | null
      }
    >('report_outcome'),
    attachEvidence: row<
      Account & Evidence & { execution_id: string },
      { execution_id: string; outcome_state: OutcomeState; evidence_updated: boolean }
    >('attach_evidence'),
    verifyOutcome: row<
      Account & {
        execution_id: string
        state: 'verified_success' | 'verification_failed' | 'verification_pending'
        reason?: string | null
      },
      { id: string; status: string; outcome_state: OutcomeState }
    >('verify_outcome'),

    acknowledgeAlert: value<Account & { alert_id: string }>('acknowledge_alert'),
    passedWindows: rows<{ limit?: number }, PassedWindow>('passed_windows'),
    moveWindows: value<{ cue_ids: string[]; versions: number[]; expected: Date[]; next: (Date | null)[]; missed: boolean[] }, number>(
      'move_windows'
    ),
    alertNotice: row<
      { alert_id: string },
      | {
          url: string
          secrets: string[]
          alert_id: string
          alert_type: 'consecutive_failure' | 'missed_window' | 'outcome_timeout'
          severity: string
          message: string
          cue_id: string
          execution_id: string | null
          created_at: Date
          metadata: object
        }
      | undefined
    >('alert_notice'),

    readUsage: row<Account & { actor: string }, Usage | undefined>('read_usage'),

    billingAccount: row<Account, { email: string; customer_id: string | null; subscription_id: string | null } | undefined>(
      'billing_account'
    ),
    setCustomer: value<Account & { customer_id: string }, string>('set_customer'),
    applySubscription: row<SubscriptionEvent, { result: 'applied' | 'replayed' | 'stale' | 'unknown' | 'unclear'; version: number | null }>(
      'apply_subscription'
    ),
    noteFailedPayment: value<
      { event_id: string; type: string; customer_id: string; subscription_id: string | null; next_attempt_at: Date | null },
      boolean
    >('note_failed_payment'),

    createTicket: value<Account & { subject: string; message: string; severity: string; type: string; tracked: boolean }, number>(
      'create_ticket'
    ),
    beginIssue: row<{ ticket_id: number }, Ticket | undefined>('begin_issue'),
    endIssue: value<{ ticket_id: number; url: string }>('end_issue'),

    readMemory: row<
      Account & { release: string },
      { version: number; plan: Plan; cues: string[]; key_prefix: string | null; changelog: MemoryChange[]; updated_at: Date }
    >('read_memory'),
    subscribeMemory: value<Account & { agent_id: string; callback_url: string; release: string }>('subscribe_memory'),
    memoryNotice: row<
      { subscription_id: string; release: string },
      { url: string; secrets: string[]; version: number; changelog: MemoryChange[]; updated_at: Date } | undefined
    >('memory_notice'),
    endMemoryNotice: value<{ subscription_id: string; version: number | null; url: string }>('end_memory_notice'),
    noteMemoryRelease: value<{ release: string }, number>('note_memory_release'),

    setPlans: value<{ plans: object }>('set_plans'),
    checkSecrets: values<{ encryption_key_ids: string[]; session_secret: string; changed: boolean }, string>('check_secrets'),
    foldUsage: value<object, number>('fold_usage'),
    maintainPartitions: value<{ months?: number }, number>('maintain_partitions'),
    dropOldExecutions: values<{ before: Date }, string>('drop_old_executions'),
    deleteOldExecutions: value<{ before: Date; batch?: number }, number>('delete_old_executions'),
    prunePayloads: value<{ before: Date; batch?: number }, number>('prune_payloads'),
    storePayloads: value<{ batch?: number }, number>('store_payloads'),
    purgeCue: value<{ cue_id: string; batch?: number }, number>('purge_cue'),
    requeuePurges: value<object, number>('requeue_purges'),
    prune: value<object>('prune')
  }
}
export type Functions = ReturnType<typeof createFunctions>
