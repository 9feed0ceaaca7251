/** Changes to cues: reads the cue, then calls one SQL function, and retries if the cue was changed in between. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../accounts/admission.ts'
import { constants } from '../catalog.ts'
import type { ExecutionsRow } from '../database/functions.ts'
import { createTurns } from '../database/turns.ts'
import type { AddressRules } from '../deliveries/address.ts'
import { ApiError, fault, invalid, toApiError } from '../errors.ts'
import { ignoredMembers } from '../http/validation.ts'
import { Json } from '../json/canonical-json.ts'
import { namesOf } from '../schedule/parse-schedule.ts'
import type { Rules } from '../schedule/schedule.ts'
import { readCalendars } from '../schedule/stored-calendars.ts'
import { changesOf, newCue, pauseOf, replacementOf } from './changes.ts'
import { checkTogether, faultsOf, together } from './faults.ts'
import type { Change, Columns } from './next-runs.ts'
import { payloadColumns } from './payload.ts'
import type { CreateCue, FireRequest, PauseCue, UpdateCue } from './schemas.ts'
import type { StoredCue } from './stored.ts'

/** Refusals of a cue's definition. */
export const refusals = ['cue_limit_exceeded', 'cue_cycle', 'invalid_schedule', 'invalid_callback_url', 'invalid_payload_size'] as const

const RETRIES = 5
const YEAR_MS = 366 * 86_400_000

/** The caller, its scopes and its limits. */
export type Asking = Pick<FastifyRequest, 'caller' | 'scopes' | 'limits' | 'body' | 'validationError'>

/** Changes for SQL. A payload may be large, so another thread serialises it. */
export const changesText = async (app: FastifyInstance, asking: Asking, { payload, ...columns }: Columns): Promise<string> => {
  const text = JSON.stringify({ ...columns, callback_allowed: mayReceiveKey(asking) })
  // A change of the payload always includes its task.
  return typeof payload === 'string' ? `${text.slice(0, -1)},"payload":${await app.largeJson.literal(payload)}}` : text
}

/** Whether these scopes equal those of the account's own key, which may be sent to callbacks. */
const mayReceiveKey = ({ scopes }: Asking) => scopes.includes('account')

/** What creating a cue writes with. */
type Writes = { cues: Pick<FastifyInstance['cues'], 'create'>; shared: Pick<FastifyInstance['shared'], 'hasLiveWorker'> }

export const createCue = async (
  app: FastifyInstance,
  asking: Asking,
  request: CreateCue,
  { cues, shared }: Writes = app
): Promise<StoredCue> => {
  const { caller } = asking
  const names = namesOf(request.schedule ?? {})
  const read = async () =>
    newCue(request, app.now(), asking.limits.min_interval_seconds, await readCalendars(app.fn, caller.account_id, names))
  const checks = [() => checkTimeout(asking, request), () => checkAddresses(app, request, request.callback_url)]
  await checkTogether(asking, checks, read)
  const cue = await untilUnmoved(async () => {
    const change = await read()
    return cues.create({
      cue: await changesText(app, asking, change.columns),
      ...change,
      isAlone: names.length > 0 || request.after != null,
      ...caller
    })
  })
  const isUnattended = cue.transport === 'worker' && !(await shared.hasLiveWorker(caller))
  const warnings = [ignoredWarning(ignoredMembers(request)), isUnattended ? unattended : null]
  return { ...cue, warning: warnings.filter(warning => warning !== null).join(' ') || null }
}

export type Upserted = { cue: StoredCue; created: boolean; changed: boolean }

/** Creates the cue with a key, or replaces its definition. */
export const putCue = async (
  app: FastifyInstance,
  asking: Asking,
  key: string,
  request: CreateCue,
  { isOnlyNew = false, versions }: { isOnlyNew?: boolean; versions?: Versions }
): Promise<Upserted> => {
  const { caller } = asking
  if (!asking.validationError && request.key != null && request.key !== key)
    throw invalid([fault(['key'], 'differs from the key in the path; leave it out')])
  return changeInTurn(`${caller.account_id} ${key}`, async () => {
    const cue_id = await app.fn.cueIdByKey({ key, ...caller })
    if (cue_id !== null && isOnlyNew) throw new ApiError('cue_exists', `Key ${key} belongs to cue ${cue_id}.`, { about: { cue_id } })
    if (cue_id === null && versions) throw new ApiError('version_conflict', `No cue has the key ${key}. Leave out If-Match to create it.`)
    const put =
      cue_id === null ? createCue(app, asking, { ...request, key }).then(isNew) : replaceCue(app, asking, cue_id, request, versions)
    return put.catch(error => {
      // Another request has created or deleted it since it was looked up.
      throw ['key_taken', 'cue_not_found'].includes(toApiError(error).code) ? moved() : error
    })
  })
}

/** Versions that a caller expects, from If-Match. */
export type Versions = readonly number[] | '*'

export const versionsOf = (header: string | undefined): Versions | undefined =>
  header === undefined || header === '*' ? header : header.match(/\d+/g)!.map(Number)

/** @throws ApiError cue_not_found, or version_conflict if the cue has none of the versions */
const findVersion = async (app: FastifyInstance, { account_id }: Caller, cue_id: string, versions?: Versions): Promise<StoredCue> => {
  const stored = await app.cues.find(account_id, cue_id)
  const { version } = stored
  if (versions === undefined || versions === '*' || versions.includes(version)) return stored
  const message = `Cue ${cue_id} has version ${version}, not the one in If-Match. Read it, and decide again.`
  throw new ApiError('version_conflict', message, { about: { version }, headers: { etag: etagOf(stored) } })
}

const etagOf = ({ version }: { version: number }) => `"${version}"`

/** Adds the version of a cue to its response. */
export const tagged = <C extends { version: number }>(reply: { header: (name: string, value: string) => unknown }, cue: C): C => {
  reply.header('etag', etagOf(cue))
  return cue
}

const isNew = (cue: StoredCue): Upserted => ({ cue, created: true, changed: true })

const replaceCue = async (
  app: FastifyInstance,
  asking: Asking,
  cue_id: string,
  request: CreateCue,
  versions: Versions | undefined
): Promise<Upserted> => {
  const { caller } = asking
  const stored = await findVersion(app, caller, cue_id, versions)
  const calendars = await readCalendars(app.fn, caller.account_id, namesOf(request.schedule ?? {}))
  const read = () => replacementOf(request, stored, app.now(), asking.limits.min_interval_seconds, calendars)
  const hasNewTimeout = request.delivery?.timeout_seconds !== stored.delivery?.timeout_seconds
  const checks = [() => hasNewTimeout && checkTimeout(asking, request), () => checkAddresses(app, request, request.callback_url)]
  await checkTogether(asking, checks, read)
  const { columns, ...next } = read()
  const changes = await changesText(app, asking, columns)
  const changed = await app.fn.updateCue({ cue_id, version: stored.revision, changes, ...next, ...caller })
  return { cue: changed ? await app.cues.find(caller.account_id, cue_id) : stored, created: false, changed }
}

export const updateCue = async (
  app: FastifyInstance,
  asking: Asking,
  cue_id: string,
  request: UpdateCue,
  versions?: Versions
): Promise<StoredCue> => {
  const read = async (stored: StoredCue) => {
    const names = namesOf(request.schedule?.exclude_calendars === undefined ? ((stored.schedule as Rules | null) ?? {}) : request.schedule)
    const calendars = await readCalendars(app.fn, asking.caller.account_id, names)
    return changesOf(request, stored, app.now(), asking.limits.min_interval_seconds, calendars)
  }
  const checks = [() => checkTimeout(asking, request), () => checkAddresses(app, request)]
  await checkTogether(asking, checks, async () => read(await app.cues.find(asking.caller.account_id, cue_id)))
  return changeStored(app, asking, cue_id, versions, read)
}

/** Pauses a cue. Of one that is paused already, sets the reason and the end. */
export const pauseCue = (
  app: FastifyInstance,
  asking: Asking,
  cue_id: string,
  request: PauseCue,
  versions?: Versions
): Promise<StoredCue> => changeStored(app, asking, cue_id, versions, async stored => pauseOf(request, stored, app.now()))

const changeStored = (
  app: FastifyInstance,
  asking: Asking,
  cue_id: string,
  versions: Versions | undefined,
  changeOf: (stored: StoredCue) => Promise<Change>
): Promise<StoredCue> => {
  const { caller } = asking
  return changeInTurn(`${caller.account_id} ${cue_id}`, async () => {
    const stored = await findVersion(app, caller, cue_id, versions)
    const { columns, ...next } = await changeOf(stored)
    if (Object.keys(columns).length === 0) return stored
    const changes = await changesText(app, asking, columns)
    const changed = await app.fn.updateCue({ cue_id, version: stored.revision, changes, ...next, ...caller })
    return changed ? app.cues.find(caller.account_id, cue_id) : stored
  })
}

/** Fires a cue. An override is merged with the payload of exactly the version that runs. */
export const fireCue = async (
  app: FastifyInstance,
  caller: Caller,
  cue_id: string,
  fire: FireRequest,
  fn: Pick<FastifyInstance['fn'], 'fireCue'> = app.fn
): Promise<ExecutionsRow> => {
  const { payload_override, merge_strategy = 'merge', idempotency_key } = fire
  const overlap = fire.overlap ?? undefined
  const override = payload_override && payload_override.text !== 'null' ? payload_override : undefined
  const send_at = fire.send_at == null ? undefined : new Date(fire.send_at)
  if (send_at && +send_at > +app.now() + YEAR_MS) {
    throw invalid([
      { type: 'value_error', loc: ['body', 'send_at'], msg: 'Value error, must be at most a year ahead', input: fire.send_at }
    ])
  }
  const request = {
    cue_id,
    send_at,
    overlap,
    ...(idempotency_key != null && {
      idempotency_key,
      request_hash: createHash('sha256')
        .update(JSON.stringify([merge_strategy, send_at ?? null, overlap ?? null]))
        .update(override?.text ?? '')
        .digest('hex')
    })
  }
  if (!override) return fn.fireCue({ ...request, ...caller })
  if (merge_strategy === 'replace') return fn.fireCue({ ...request, ...payloadColumns(override), ...caller })
  return untilUnmoved(async () => {
    const { payload, revision: version } = await app.cues.find(caller.account_id, cue_id)
    const { text, bytes, task } = await app.largeJson.mergeJson(payload.text, override.text)
    const merged = payloadColumns(new Json(text, bytes, task))
    return fn.fireCue({ ...request, ...merged, version, ...caller })
  })
}

/** Deletes a cue, if it has one of the versions. */
export const deleteCue = async (app: FastifyInstance, caller: Caller, cue_id: string, versions?: Versions): Promise<void> => {
  if (!versions) return app.fn.deleteCue({ cue_id, ...caller })
  return untilUnmoved(async () => {
    const { revision: version } = await findVersion(app, caller, cue_id, versions)
    await app.fn.deleteCue({ cue_id, version, ...caller })
  })
}

export const deleteCues = async (
  app: FastifyInstance,
  caller: Caller,
  ids: string[]
): Promise<{ deleted: string[]; skipped: string[] }> => {
  const cue_ids = [...new Set(ids)]
  const removed = new Set(await app.fn.deleteCues({ cue_ids, ...caller }))
  return { deleted: cue_ids.filter(id => removed.has(id)), skipped: cue_ids.filter(id => !removed.has(id)) }
}

const inTurn = createTurns(1)

/** Serialises the changes of one cue or list in this replica; other replicas may still change it in between. */
export const changeInTurn = <T>(cue: string, change: () => Promise<T>): Promise<T> => inTurn(cue, () => untilUnmoved(change))

/** What `update_cue` throws as well: the cue was changed between reading and writing. */
const moved = () => Object.assign(new Error('the cue was changed at the same time'), { code: 'QU014' })

/** Retries with growing delays if the cue was changed between reading and writing. */
const untilUnmoved = async <T>(attempt: () => Promise<T>): Promise<T> => {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt()
    } catch (error) {
      if ((error as { code?: string }).code !== 'QU014' || retries === RETRIES) throw error
      await sleep(Math.random() * 50 * 2 ** retries)
    }
  }
}

type Urls = Pick<UpdateCue, 'callback' | 'on_failure'>

export const checkAddresses = async (
  app: { rules: Pick<AddressRules, 'checkUrl'> },
  { callback, on_failure }: Urls,
  callbackUrl?: string | null
): Promise<void> => {
  const urls = { 'callback.url': callback?.url ?? callbackUrl, 'on_failure.webhook': on_failure?.webhook }
  const refused: ApiError[] = []
  for (const [name, url] of Object.entries(urls)) {
    if (url == null) continue
    const checked = await app.rules.checkUrl(url)
    if (!checked.ok) refused.push(new ApiError('invalid_callback_url', `${name}: ${checked.reason}`))
  }
  if (refused.length > 0) throw refused.length === 1 ? refused[0] : together(refused.map(error => faultsOf(error)))
}

/**
 * Applies an account's maximum timeout to the timeout in a request. For cues created under another one, and for the default, it applies when
 * executions are sent.
 *
 * @throws ApiError
 */
export const checkTimeout = ({ limits }: Asking, { delivery }: Pick<UpdateCue, 'delivery'>): void => {
  const limit = limits.max_timeout_seconds
  const seconds = delivery?.timeout_seconds
  if (limit === null || seconds === undefined || seconds <= limit) return
  const msg = `Input should be less than or equal to ${limit}, the maximum on your plan`
  throw invalid([{ type: 'less_than_equal', loc: ['body', 'delivery', 'timeout_seconds'], msg, input: seconds }])
}

const unattended =
  `No worker of this account has sent a heartbeat in the last ${constants.workerTimeoutMs / 60_000} minutes. ` +
  'Start one: executions that no worker claims in time end as missed.'

/** Maximum names in a warning, and characters of each. */
const MAX_NAMES = 10
const MAX_NAME = 64

const ignoredWarning = (paths: readonly string[]): string | null => {
  if (paths.length === 0) return null
  const names = paths.slice(0, MAX_NAMES).map(path => (path.length > MAX_NAME ? `${path.slice(0, MAX_NAME).toWellFormed()}…` : path))
  const more = paths.length > MAX_NAMES ? ` and ${paths.length - MAX_NAMES} more` : ''
  return `Unknown fields were ignored: ${names.join(', ')}${more}. Check their spelling.`
}
