/** The methods of the client: one group per noun. */
import { PgcueError } from './errors.ts'
import { feedOf, type ItemOf, iterable, type List, listOf } from './lists.ts'
import { type CallOptions, type ClientOptions, createTransport, type Query } from './transport.ts'
import type * as T from './types.ts'

/** Proof of a claim. `workerId` is sent in a header, so it must be Latin-1; `claimToken` works for any worker. */
export type ClaimProof = CallOptions & { claimToken?: string | undefined; workerId?: string | undefined }

export type Methods = ReturnType<typeof createMethods>

export const createMethods = (options: ClientOptions) => {
  const { base, call } = createTransport(options)
  const get = <A>(path: string, query?: object, o?: CallOptions) => call<A>('GET', path, { query: query as Query }, o)
  const list =
    <P extends object>() =>
    <N extends keyof P & string>(name: N, path: string, query: object = {}, o?: CallOptions): List<P, ItemOf<P[N]>> =>
      listOf((further: Query) => get<P>(path, { ...query, ...further }, o), name, query as Query)
  const post = <A>(path: string, body?: object, o?: CallOptions) => call<A>('POST', path, { body }, o)
  /** A POST that is safe to repeat with an idempotency key. */
  const once = <A>(path: string, body: object | undefined, o: CallOptions = {}, isKeyed = false) =>
    call<A>('POST', path, { body, repeatable: isKeyed || o.idempotencyKey !== undefined }, o)
  /** A POST that is safe to repeat. */
  const repeat = <A>(path: string, body?: object, o?: CallOptions) => call<A>('POST', path, { body, repeatable: true }, o)
  const patch = <A>(path: string, body: object, o?: CallOptions) => call<A>('PATCH', path, { body }, o)
  const remove = (path: string, o?: CallOptions) => call<void>('DELETE', path, {}, o)
  const cue = (id: string) => `/v1/cues/${encodeURIComponent(id)}`
  const byKey = (key: string) => `/v1/cues/by-key/${encodeURIComponent(key)}`
  const calendar = (name: string) => `/v1/calendars/${encodeURIComponent(name)}`
  const channel = (name: string) => `/v1/channels/${encodeURIComponent(name)}`
  const gate = (key: string) => `/v1/gates/${encodeURIComponent(key)}`
  const endpoint = (id: string) => `/v1/event-endpoints/${encodeURIComponent(id)}`
  const execution = (id: string) => `/v1/executions/${encodeURIComponent(id)}`
  const operation = (id: string) => `/v1/operations/${encodeURIComponent(id)}`

  return {
    baseUrl: base,
    /** Calls any path, for routes without a method here. */
    call,

    cues: {
      create: <P>(body: T.NewCue<P>, o?: CallOptions) => once<T.Cue<P>>('/v1/cues', body, o),
      list: (filter?: T.CueFilter, o?: CallOptions) => list<T.Cues>()('cues', '/v1/cues', filter, o),
      get: <P = unknown>(id: string, o?: CallOptions) => get<T.CueDetail<P>>(cue(id), {}, o),
      /** What became of the cue's slots, by day. */
      history: (id: string, query?: T.HistoryQuery, o?: CallOptions) => get<T.History>(`${cue(id)}/history`, query, o),
      getByKey: <P = unknown>(key: string, o?: CallOptions) => get<T.CueDetail<P>>(byKey(key), {}, o),
      /** Creates the cue with this key, or replaces its definition. `changed` is false if it was the same. */
      put: <P>(key: string, body: T.NewCue<P>, o?: CallOptions) => call<T.UpsertedCue<P>>('PUT', byKey(key), { body }, o),
      /** Makes the cues of a set as declared, all or none. With `dry_run`, only says what it would do. */
      apply: (body: T.Apply, o?: CallOptions) => once<T.Applied>('/v1/cues/apply', body, o, body.dry_run === true),
      deleteByKey: (key: string, o?: CallOptions) => remove(byKey(key), o),
      update: (id: string, changes: T.CueChanges, o?: CallOptions) => patch<T.Cue>(cue(id), changes, o),
      /** Pauses a cue, until it is resumed or until a time. */
      pause: (id: string, { reason, until, ...o }: CallOptions & T.Pause = {}) =>
        repeat<T.Cue>(`${cue(id)}/pause`, { ...(reason != null && { reason }), ...(until != null && { until }) }, o),
      resume: (id: string, o?: CallOptions) => repeat<T.Cue>(`${cue(id)}/resume`, {}, o),
      delete: (id: string, o?: CallOptions) => remove(cue(id), o),
      bulkDelete: (ids: string[], o?: CallOptions) =>
        call<T.BulkDeleted>('POST', '/v1/cues/bulk-delete', { body: { ids }, headers: confirmed }, o),
      /** Fires a cue now, or at `send_at`. With an `idempotency_key`, it is retried if the response is lost. */
      fire: (id: string, body: T.Fire = {}, o?: CallOptions) =>
        once<T.FiredExecution>(`${cue(id)}/fire`, body, o, Boolean(body.idempotency_key)),
      /** Sends one signed request to a cue's address, or to a URL, and returns the response. */
      test: (body: T.TestRequest, o?: CallOptions) => call<T.TestResult>('POST', '/v1/cues/test', { body, wait: 30 }, o),
      /** Returns the request of a cue's next run, with the values of its template. */
      previewPayload: (body: T.NewCue, o?: CallOptions) => repeat<T.PayloadPreview>('/v1/cues/preview-payload', body, o),
      preview: (body: T.PreviewRequest, o?: CallOptions) => repeat<T.Preview>('/v1/schedules/preview', body, o)
    },

    /** Exclusions that several cues share. */
    calendars: {
      list: (page?: T.PageQuery, o?: CallOptions) => list<T.Calendars>()('calendars', '/v1/calendars', page, o),
      get: (name: string, o?: CallOptions) => get<T.Calendar>(calendar(name), {}, o),
      /** Creates or replaces a calendar. The next runs of all cues that use it change at once. */
      put: (name: string, body: T.PutCalendar, o?: CallOptions) => call<T.Calendar>('PUT', calendar(name), { body }, o),
      delete: (name: string, o?: CallOptions) => remove(calendar(name), o)
    },

    executions: {
      list: (filter?: T.ExecutionFilter, o?: CallOptions) => list<T.Executions>()('executions', '/v1/executions', filter, o),
      get: <P = unknown>(id: string, o?: CallOptions) => get<T.ExecutionDetail<P>>(execution(id), {}, o),
      replay: (id: string, { overlap, ...o }: CallOptions & T.Replay = {}) =>
        once<T.Replayed>(`${execution(id)}/replay`, overlap ? { overlap } : undefined, o),
      cancel: (id: string, o?: CallOptions) => post<T.Cancelled>(`${execution(id)}/cancel`, undefined, o),
      /** Counts a failed execution as good enough for the followers of its cue. */
      signal: (id: string, body: T.Signal, o?: CallOptions) => repeat<T.Signalled>(`${execution(id)}/signal`, body, o),
      /** Removes a failed execution from the dead letters. */
      dismiss: (id: string, o?: CallOptions) => repeat<T.Dismissed>(`${execution(id)}/dismiss`, undefined, o),
      /** Approves an execution that waits for approval. */
      approve: (id: string, body: T.Approve = {}, o?: CallOptions) => post<T.Decision>(`${execution(id)}/approve`, body, o),
      /** Rejects it: it ends as failed, without an alert. */
      reject: (id: string, body: T.Reject, o?: CallOptions) => post<T.Decision>(`${execution(id)}/reject`, body, o),
      /** Verifies a reported success; `{ valid: false, reason }` rejects it. */
      verify: (id: string, body: T.Verification = {}, o?: CallOptions) => post<T.Verified>(`${execution(id)}/verify`, body, o),
      verificationPending: (id: string, o?: CallOptions) => post<T.Verified>(`${execution(id)}/verification-pending`, undefined, o),
      /** Reports an outcome, once. Retried if the response is lost; `outcome_already_reported` may then refer to this report. */
      reportOutcome: (id: string, report: T.Report, o?: ClaimProof) =>
        call<T.Reported>('POST', `${execution(id)}/outcome`, { body: report, headers: proofOf(o), repeatable: true }, o),
      attachEvidence: (id: string, evidence: T.Evidence, o?: ClaimProof) =>
        call<T.Attached>('PATCH', `${execution(id)}/evidence`, { body: evidence, headers: proofOf(o) }, o),
      /** Extends a claim, proved by `claimToken`, `workerId`, or the execution's token as `apiKey`. */
      heartbeat: (id: string, o: ClaimProof) =>
        call<T.Extended>('POST', `${execution(id)}/heartbeat`, { headers: proofOf(o), repeatable: true }, o),
      /** Releases a claim, so that the execution can be claimed again immediately. */
      release: (id: string, claimToken: string, o?: CallOptions) =>
        call<T.Released>('POST', `${execution(id)}/release`, { headers: proofOf({ claimToken }), repeatable: true }, o),
      claim: (id: string, body: { worker_id?: string } = {}, o?: CallOptions) => post<T.Claim>(`${execution(id)}/claim`, body, o),
      /** Claims up to `limit` (1) executions, waiting up to `wait` seconds for the first; an empty list if there are none. */
      claimNext: async (body: T.ClaimNext = {}, o?: CallOptions): Promise<T.Claim[]> => {
        // Without a limit, the response is a single claim instead of a list.
        const request = { body: { ...body, limit: body.limit ?? 1 }, wait: body.wait }
        const answer = await call<{ executions: T.Claim[] }>('POST', '/v1/executions/claim', request, o).catch(error => {
          if (error instanceof PgcueError && error.code === 'nothing_claimable') return { executions: [] }
          throw error
        })
        return answer.executions
      },
      claimable: async (filter: T.ClaimableFilter = {}, o?: CallOptions): Promise<T.Claimable[]> => {
        const request = { query: filter as Query, wait: filter.wait }
        return (await call<{ executions: T.Claimable[] }>('GET', '/v1/executions/claimable', request, o)).executions
      }
    },

    /** Work on many executions or cues, in the background. */
    operations: {
      /** Creates an operation. One that deletes cues is confirmed by this call. */
      create: ({ dry_run: _, ...body }: T.NewOperation, o: CallOptions = {}) =>
        call<T.Operation>(
          'POST',
          '/v1/operations',
          { body, headers: body.type === 'delete' ? confirmed : {}, repeatable: o.idempotencyKey !== undefined },
          o
        ),
      /** Returns what an operation would act on, and does nothing. */
      dryRun: (body: T.NewOperation, o?: CallOptions) => repeat<T.DryRun>('/v1/operations', { ...body, dry_run: true }, o),
      list: (filter?: T.OperationFilter, o?: CallOptions) => list<T.Operations>()('operations', '/v1/operations', filter, o),
      get: (id: string, o?: CallOptions) => get<T.OperationDetail>(operation(id), {}, o),
      abort: (id: string, o?: CallOptions) => repeat<T.Operation>(`${operation(id)}/abort`, undefined, o)
    },

    workers: {
      list: (filter?: T.WorkerFilter, o?: CallOptions) => list<T.Workers>()('workers', '/v1/workers', filter, o),
      /** Removes a worker and releases its claims. */
      delete: (id: string, o?: CallOptions) => remove(`/v1/workers/${encodeURIComponent(id)}`, o),
      heartbeat: (body: T.Heartbeat, o?: CallOptions) => repeat<{ acknowledged: boolean }>('/v1/worker/heartbeat', body, o)
    },

    /** What needs attention, and figures on a time window. */
    overview: (window?: T.OverviewQuery, o?: CallOptions) => get<T.Overview>('/v1/overview', window, o),
    /** Dead letters of a time window, grouped by error. */
    errors: (window?: T.ListErrors, o?: CallOptions) => get<T.Errors>('/v1/errors', window, o),
    /** The hosts that webhooks went to in a time window. */
    destinations: (window?: T.ListDestinations, o?: CallOptions) => get<T.Destinations>('/v1/destinations', window, o),

    alerts: {
      list: (filter?: T.AlertFilter, o?: CallOptions) => list<T.Alerts>()('alerts', '/v1/alerts', filter, o),
      acknowledge: (id: string, o?: CallOptions) => repeat<T.Alert>(`/v1/alerts/${encodeURIComponent(id)}/acknowledge`, undefined, o),
      /** Sends nothing to channels until then, and afterwards what happened meanwhile. */
      snooze: (id: string, until: string, o?: CallOptions) => repeat<T.Alert>(`/v1/alerts/${encodeURIComponent(id)}/snooze`, { until }, o)
    },

    /** Limits that cues share. */
    gates: {
      list: (page?: T.PageQuery, o?: CallOptions) => list<T.Gates>()('gates', '/v1/gates', page, o),
      /** A gate, or `key#part`, with what it does now. */
      get: (key: string, o?: CallOptions) => get<T.GateDetail>(gate(key), {}, o),
      /** Creates or replaces the gate with this key. */
      put: (key: string, body: T.PutGate, o?: CallOptions) => call<T.Gate>('PUT', gate(key), { body }, o),
      /** Holds its executions until it is resumed, or until a time. */
      pause: (key: string, { reason, until, ...o }: CallOptions & T.PauseGate = {}) =>
        repeat<T.Gate>(`${gate(key)}/pause`, { ...(reason != null && { reason }), ...(until != null && { until }) }, o),
      resume: (key: string, o?: CallOptions) => repeat<T.Gate>(`${gate(key)}/resume`, {}, o),
      delete: (key: string, o?: CallOptions) => remove(gate(key), o)
    },

    /** Sums of the costs that executions reported, by cue, tag or day. */
    costs: (query?: T.CostsQuery, o?: CallOptions) => get<T.CostSums>('/v1/costs', query, o),

    /** Where alerts and events are sent. */
    channels: {
      list: (page?: T.PageQuery, o?: CallOptions) => list<T.Channels>()('channels', '/v1/channels', page, o),
      get: (name: string, o?: CallOptions) => get<T.Channel>(channel(name), {}, o),
      /** Creates or replaces a channel. An address that is not confirmed gets a link first: `address_unconfirmed`. */
      put: (name: string, body: T.PutChannel, o?: CallOptions) => call<T.Channel>('PUT', channel(name), { body }, o),
      delete: (name: string, o?: CallOptions) => remove(channel(name), o),
      /** Sends a message now; `error` says why it would not arrive. */
      test: (name: string, o?: CallOptions) => call<T.ChannelTest>('POST', `${channel(name)}/test`, { wait: 30 }, o)
    },

    /**
     * The feed of events. `for await` reads it from `after` (from now on, without it) and goes on with what happens, until `signal` is aborted;
     * with `wait: 0`, to the latest event. Each event is read at least once; `cursor` of the feed is where to continue after a restart.
     */
    events: ({ types, wait, ...query }: T.EventFeed = {}, o?: CallOptions) => {
      const fixed = { ...query, ...(types && { types: [types].flat().join(',') }) }
      const read = (further: Query) => {
        const page = { ...fixed, ...further } as Query
        return call<T.Events>('GET', '/v1/events', { query: page, wait: page.wait as number }, o)
      }
      return feedOf<T.Events, T.Event>(read, wait, o?.signal)
    },

    /** URLs that get events, signed and in order. */
    eventEndpoints: {
      list: (page?: T.PageQuery, o?: CallOptions) => list<T.EventEndpoints>()('event_endpoints', '/v1/event-endpoints', page, o),
      get: (id: string, o?: CallOptions) => get<T.EventEndpoint>(endpoint(id), {}, o),
      /** `secret`, for `verifyWebhook`, is shown only here. */
      create: (body: T.NewEventEndpoint, o?: CallOptions) => post<T.CreatedEventEndpoint>('/v1/event-endpoints', body, o),
      delete: (id: string, o?: CallOptions) => remove(endpoint(id), o),
      /** Goes on at the first event that it has not got, or from now on. */
      enable: (id: string, from: T.EnableEventEndpoint['from'], o?: CallOptions) =>
        repeat<T.EnabledEventEndpoint>(`${endpoint(id)}/enable`, { from }, o),
      /** Sends a test event now; `error` says why an event would not arrive. */
      test: (id: string, o?: CallOptions) => call<T.ChannelTest>('POST', `${endpoint(id)}/test`, { wait: 30 }, o)
    },

    keys: {
      list: (o?: CallOptions) =>
        iterable(
          get<{ keys: T.Key[] }>('/v1/auth/keys', {}, o).then(({ keys }) => keys),
          keys => keys
        ),
      create: (body: T.NewKey, o?: CallOptions) => post<T.CreatedKey>('/v1/auth/keys', body, o),
      rename: (id: string, label: string, o?: CallOptions) => patch<T.Key>(`/v1/auth/keys/${encodeURIComponent(id)}`, { label }, o),
      revoke: (id: string, o?: CallOptions) => call<T.RevokedKey>('DELETE', `/v1/auth/keys/${encodeURIComponent(id)}`, {}, o),
      regenerate: (o?: CallOptions) => post<T.RegeneratedKey>('/v1/auth/key/regenerate', undefined, o),
      /** Returns the default key; requires a session or another key. */
      reveal: (o?: CallOptions) => get<T.RevealedKey>('/v1/auth/key', {}, o)
    },

    secrets: {
      webhook: (o?: CallOptions) => get<T.WebhookSecret>('/v1/auth/webhook-secret', {}, o),
      regenerateWebhook: (body: Overlap = {}, o?: CallOptions) =>
        call<T.NewWebhookSecret>('POST', '/v1/auth/webhook-secret/regenerate', { query: body }, o),
      alertWebhook: (o?: CallOptions) => get<T.AlertWebhookSecret>('/v1/auth/alert-webhook-secret', {}, o),
      regenerateAlertWebhook: (body: Overlap = {}, o?: CallOptions) =>
        call<T.NewAlertWebhookSecret>('POST', '/v1/auth/alert-webhook-secret/regenerate', { query: body, headers: confirmed }, o)
    },

    /** Sign-in by device code, and sessions. `session` can be used as `apiKey`. */
    auth: {
      createDeviceCode: (device_code: string, o?: CallOptions) => post<T.CreatedDeviceCode>('/v1/auth/device-code', { device_code }, o),
      /** Not retried: `approved` is returned once, together with the session token. */
      pollDeviceCode: (device_code: string, o?: CallOptions) => post<T.PolledDeviceCode>('/v1/auth/device-code/poll', { device_code }, o),
      submitEmail: (device_code: string, email: string, o?: CallOptions) =>
        post<{ status: 'email_sent' }>('/v1/auth/device-code/submit-email', { device_code, email }, o),
      openSession: (token: string, o?: CallOptions) => post<T.Session>('/v1/auth/session', { token }, o),
      refreshSession: (o?: CallOptions) => post<T.Session>('/v1/auth/session/refresh', undefined, o),
      sessions: (page?: T.PageQuery, o?: CallOptions) => list<T.Sessions>()('sessions', '/v1/auth/sessions', page, o),
      revokeSession: (id: string, o?: CallOptions) => remove(`/v1/auth/sessions/${encodeURIComponent(id)}`, o),
      endSession: (query: { all?: boolean } = {}, o?: CallOptions) => call<{ revoked: number }>('DELETE', '/v1/auth/session', { query }, o)
    },

    /** Tickets, for the people who run the service. */
    support: {
      create: (body: Partial<T.NewTicket> & Pick<T.NewTicket, 'subject' | 'message'>, o?: CallOptions) =>
        post<{ ticket_id: number; message: string }>('/v1/support', body, o),
      list: (page?: T.PageQuery, o?: CallOptions) => list<T.Tickets>()('tickets', '/v1/support', page, o),
      get: (id: number, o?: CallOptions) => get<T.Ticket>(`/v1/support/${id}`, {}, o)
    },

    register: (email: string, o?: CallOptions) => post<T.Registered>('/v1/auth/register', { email }, o),
    me: (o?: CallOptions) => get<T.Me>('/v1/auth/me', {}, o),
    updateMe: (changes: T.MeChanges, o?: CallOptions) => patch<T.Me>('/v1/auth/me', changes, o),
    /** Requests deletion of the account; a mail has a link to cancel it. */
    deleteMe: (o?: CallOptions) => call<T.DeletionRequested>('DELETE', '/v1/auth/me', { headers: confirmed }, o),
    audit: (page?: T.PageQuery, o?: CallOptions) => list<T.AuditEvents>()('events', '/v1/auth/audit', page, o),
    usage: (o?: CallOptions) => get<T.Usage>('/v1/usage', {}, o),
    /** Figures on the whole service, with OPERATOR_TOKEN as `apiKey`. */
    operator: (o?: CallOptions) => get<T.Operator>('/v1/operator', {}, o)
  }
}

/** Seconds for which the old secret keeps signing. */
type Overlap = { overlap_seconds?: number }

const confirmed = { 'x-confirm-destructive': 'true' }

const proofOf = ({ claimToken, workerId }: ClaimProof = {}) => ({ 'x-claim-token': claimToken, 'x-worker-id': workerId })
