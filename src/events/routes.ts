/** Events: the feed of an account, as pages, as long polls, and as a stream of server-sent events. */
import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import type { ReadEventsRow } from '../database/functions.ts'
import { shareReads } from '../database/shared-read.ts'
import type { EventType } from '../db.types.ts'
import { invalid } from '../errors.ts'
import { goneSignal } from '../http/connections.ts'
import { cursorOf, placeOf } from './cursor.ts'
import { Events, ListEvents } from './schemas.ts'
import { shown, textOf } from './shown.ts'
import { readTypes } from './types.ts'

type Query = Static<typeof ListEvents>
type Filters = { account_id: string; types?: EventType[]; cue_ids?: string[]; tags?: string[] }

const heartbeatMs = 15_000
/** A stream that has nothing to say reads now and then all the same, so that its cursor doesn't grow old. */
const quietHeartbeats = 40
/** Events that a stream holds in memory while its client doesn't read. */
const streamed = 10
/** At most so often, a stream checks whether it may still read. */
const checkMs = 1000
const fromStart = -1

const routes: FastifyPluginAsyncTypebox = async app => {
  const { waiting } = app
  const read = shareReads((query: Parameters<typeof app.fn.readEvents>[0]) => app.fn.readEvents(query))

  const page = async (filters: Filters, after: number | undefined, limit: number) => {
    const rows = await read({ ...filters, after, limit })
    const [{ next_place, has_more, truncated }] = rows as [ReadEventsRow]
    return { events: rows.filter(isEvent), next_place, has_more, truncated }
  }

  app.get(
    '/v1/events',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'listEvents',
        summary: 'Read the feed of events, oldest first',
        description:
          'What happened in the account. Whoever continues from each `cursor` misses none, and may get one twice: `id` tells. With ' +
          '`Accept: text/event-stream` it is a stream, in which `id` is the cursor, `Last-Event-ID` resumes, and an event `heartbeat` comes every ' +
          '15 seconds. ' +
          '`execution.succeeded`, `execution.retrying` and `execution.verified` only come with `PATCH /v1/auth/me {"events": "all"}`. Events are ' +
          'kept for 7 days (EVENT_RETENTION_DAYS).',
        querystring: ListEvents,
        response: { 200: Events }
      }
    },
    async (request, reply) => {
      const { account_id } = request.caller
      const { limit, wait, cue_id, tag: tags } = request.query
      const filters: Filters = { account_id, types: typesOf(request.query), ...(cue_id !== undefined && { cue_ids: [cue_id] }), tags }
      const { accept = '', 'last-event-id': last } = request.headers
      const isStream = accept.includes('text/event-stream')
      const after = afterOf(account_id, request.query, isStream ? last?.toString() : undefined)
      if (isStream) return stream(filters, after, request, reply)
      let latest = await page(filters, after, limit)
      if (after !== undefined) {
        const ask = async () => {
          latest = await page(filters, latest.next_place, limit)
          return isWorthTelling(latest) ? [latest] : []
        }
        if (!isWorthTelling(latest))
          await waiting.until({ topic: 'events', account_id, waitMs: wait * 1000, signal: goneSignal(reply), ask })
      }
      const { events, next_place, has_more, truncated } = latest
      return { events: events.map(shown), cursor: cursorOf(account_id, next_place), has_more, truncated }
    }
  )

  /** Whether the key or session of a stream is still valid: it may be revoked while the stream is open. */
  const hasAccess = shareReads(async ({ actor }: { actor: string }) => {
    const [kind, id = ''] = actor.split(':')
    const query =
      kind === 'key'
        ? app.db.selectFrom('key_view').select('id').where('id', '=', id).where('revoked_at', 'is', null)
        : app.db.selectFrom('session_view').select('id').where('id', '=', id).where('expires_at', '>', app.now())
    return (await query.executeTakeFirst()) !== undefined
  })

  const stream = async (filters: Filters, after: number | undefined, request: FastifyRequest, reply: FastifyReply) => {
    const watching = await waiting.watch('events', filters.account_id, goneSignal(reply))
    reply.raw.once('close', watching.leave)
    const isOpen = () => !reply.raw.destroyed && !app.closing.aborted
    return reply.type('text/event-stream').send(Readable.from(messages(filters, after, watching, request, isOpen), { highWaterMark: 1 }))
  }

  /** The messages of a stream, until its client has gone, its key is revoked, the service stops, or the database is unavailable. */
  const messages = async function* (
    filters: Filters,
    after: number | undefined,
    watching: Awaited<ReturnType<typeof waiting.watch>>,
    request: FastifyRequest,
    isOpen: () => boolean
  ) {
    const { account_id, actor } = request.caller
    const control = (type: string, place: number) => {
      const cursor = cursorOf(account_id, place)
      return message(cursor, JSON.stringify({ cursor }), type)
    }
    let place = after
    let beatAt = 0
    let checkedAt = performance.now()
    let quiet = 0
    let isNew = true
    try {
      while (isOpen()) {
        const now = performance.now()
        if (now - checkedAt > checkMs) {
          if (!(await hasAccess({ actor }))) return
          checkedAt = now
        }
        if (isNew || quiet >= quietHeartbeats) {
          const { events, next_place, has_more, truncated } = await page(filters, place, streamed)
          if (truncated) yield control('truncated', next_place)
          for (const event of events) yield message(cursorOf(account_id, event.place!), textOf(event))
          place = next_place
          quiet = 0
          isNew = has_more
          if (has_more) continue
        }
        if (beatAt <= now) {
          yield control('heartbeat', place!)
          beatAt = now + heartbeatMs
          quiet++
        }
        isNew = await watching.sleep(beatAt - now)
      }
    } catch (error) {
      // The client connects again, and gets the error then.
      if (!app.outageLog.lost(error, 'stream of events')) request.log.error({ err: error }, 'stream of events failed')
    }
  }
}

const isEvent = (row: ReadEventsRow): boolean => row.id !== null

const isWorthTelling = ({ events, has_more, truncated }: { events: unknown[]; has_more: boolean; truncated: boolean }) =>
  events.length > 0 || has_more || truncated

const message = (id: string, data: string, type?: string) => `${type ? `event: ${type}\n` : ''}id: ${id}\ndata: ${data}\n\n`

/** @throws ApiError for a cursor that is malformed or another account's */
const afterOf = (account_id: string, { after }: Query, last: string | undefined): number | undefined => {
  const cursor = last ?? after
  if (cursor === undefined) return undefined
  if (cursor === 'start') return fromStart
  const place = placeOf(account_id, cursor)
  if (place !== undefined) return place
  const loc = last === undefined ? ['query', 'after'] : ['header', 'Last-Event-ID']
  throw invalid([
    {
      type: 'value_error',
      loc,
      msg: 'Not a cursor of this account. Send `start` for the oldest event, or no cursor to begin now.',
      input: cursor
    }
  ])
}

const typesOf = ({ types }: Query): EventType[] | undefined =>
  types === undefined ? types : readTypes(types.split(','), ['query', 'types'], types)

export default routes
