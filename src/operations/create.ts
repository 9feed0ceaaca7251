/** Creates operations, or says what one would act on. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import type { Functions, OperationsRow } from '../database/functions.ts'
import { ApiError, fault, invalid } from '../errors.ts'
import { slotsToBackfill } from './backfill.ts'
import type { CreateOperation, DryRun } from './schemas.ts'
import { countTargets, listTargets, sampleTargets, targetsOf } from './targets.ts'

type Asking = Pick<FastifyRequest, 'caller'>

/** Members that only some types have. */
const ownTypes = {
  reason: ['pause', 'approve', 'reject'],
  until: ['pause'],
  overlap: ['replay', 'fire', 'backfill'],
  cue_id: ['backfill'],
  from: ['backfill'],
  to: ['backfill']
} as const

/** @throws ApiError for what no filter or id can repair, before anything is read */
export const checkOperation = (request: CreateOperation, confirmation: unknown, now: Date): void => {
  const { type, dry_run, until, reason } = request
  for (const [name, types] of Object.entries(ownTypes))
    if (request[name as keyof typeof ownTypes] != null && !(types as readonly string[]).includes(type))
      throw invalid([fault([name], `is only for type ${types.join(', ')}`)])
  if (until != null && new Date(until) <= now) throw invalid([fault(['until'], 'must be in the future')])
  if (type === 'reject' && !dry_run && !reason) throw invalid([fault(['reason'], 'is required with type reject')])
  if (type === 'delete' && !dry_run && confirmation !== 'true')
    throw new ApiError('confirmation_required', 'This cannot be undone. To confirm, send the header X-Confirm-Destructive: true.')
}

export const dryRun = async (app: FastifyInstance, asking: Asking, request: CreateOperation): Promise<Static<typeof DryRun>> => {
  const { caller } = asking
  if (request.type === 'backfill') {
    const slots = await slotsToBackfill(app, asking, request)
    return { total: slots.length, sample: slots.slice(0, 10).map(slot => ({ scheduled_for: new Date(slot) })) }
  }
  const targets = targetsOf(app.db, caller.account_id, request, app.now())
  return app.readList(caller.account_id, async () => ({ total: await countTargets(targets), sample: await sampleTargets(targets) }))
}

export const createOperation = async (
  app: FastifyInstance,
  asking: Asking,
  request: CreateOperation,
  fn: Pick<Functions, 'createOperation'> = app.fn
): Promise<OperationsRow> => {
  const { type, name, rate_per_minute } = request
  const { caller } = asking
  const selection = await (type === 'backfill' ? slots(app, asking, request) : selected(app, asking, request))
  return fn.createOperation({ type, ...selection, name, rate_per_minute, settings: settingsOf(request), ...caller })
}

const slots = async (app: FastifyInstance, asking: Asking, request: CreateOperation) => ({
  targets: JSON.stringify(await slotsToBackfill(app, asking, request)),
  missing: []
})

const selected = async (app: FastifyInstance, { caller: { account_id } }: Asking, request: CreateOperation) => {
  const chosen = targetsOf(app.db, account_id, request, app.now())
  return app.readList(account_id, async () => {
    await countTargets(chosen)
    return listTargets(app.db, request.type, chosen)
  })
}

/** The reason of decisions, or the columns that pausing sets, as for one cue. Without any, cues that are paused already stay as they are. */
const settingsOf = ({ type, reason, until, overlap, cue_id }: CreateOperation) => ({
  ...(type !== 'pause' && reason != null && { reason }),
  ...(type === 'pause' &&
    (reason != null || until != null) && { pause_reason: reason ?? null, paused_until: until == null ? null : new Date(until) }),
  ...(overlap != null && { overlap }),
  ...(cue_id != null && { cue_id })
})
