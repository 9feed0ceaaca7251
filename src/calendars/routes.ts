/** Calendars: exclusions that several cues share. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { Type } from 'typebox'
import { readPage } from '../database/read-page.ts'
import { ApiError } from '../errors.ts'
import * as schemas from './schemas.ts'
import { putCalendar } from './write.ts'

const columns = ['name', 'description', 'dates', 'ranges', 'created_at', 'updated_at'] as const
type Calendar = Static<typeof schemas.Calendar>

const routes: FastifyPluginAsyncTypebox = async app => {
  const calendarsOf = (account_id: string) => app.db.selectFrom('calendar_view').where('account_id', '=', account_id)

  const find = async (account_id: string, name: string) =>
    calendarsOf(account_id)
      .select(columns)
      .where('name', '=', name)
      .$castTo<Calendar>()
      .executeTakeFirstOrThrow(() => new ApiError('calendar_not_found', 'Calendar not found in this account.'))

  app.get(
    '/v1/calendars',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listCalendars',
        summary: 'List calendars by name',
        description: 'With all their dates and ranges.',
        querystring: schemas.ListCalendars,
        response: { 200: schemas.Calendars }
      }
    },
    async request => {
      const query = calendarsOf(request.caller.account_id).select(columns).orderBy('name').$castTo<Calendar>()
      const { rows: calendars, ...page } = await readPage(query, request.query)
      return { calendars, ...page }
    }
  )

  app.get(
    '/v1/calendars/:name',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getCalendar',
        summary: 'Get a calendar',
        description: 'Cues that name it skip its dates and ranges.',
        params: schemas.CalendarParams,
        response: { 200: schemas.Calendar }
      }
    },
    async request => find(request.caller.account_id, request.params.name)
  )

  app.put(
    '/v1/calendars/:name',
    {
      config: { scope: 'write', computes: true, errors: ['calendar_limit_exceeded'] },
      bodyLimit: 128 * 1024, // the most dates, ranges and escaped characters
      schema: {
        operationId: 'putCalendar',
        summary: 'Create or replace a calendar',
        description:
          'Cues leave out its dates and ranges if `schedule.exclude_calendars` names it. A change moves the next run of all of them at once. Omitted fields are empty.',
        params: schemas.NewCalendarParams,
        body: schemas.PutCalendar,
        response: { 200: schemas.Calendar, 201: schemas.Calendar }
      }
    },
    async (request, reply) => {
      const { name } = request.params
      const isNew = await putCalendar(app, request.caller, name, request.body)
      return reply.code(isNew ? 201 : 200).send(await find(request.caller.account_id, name))
    }
  )

  app.delete(
    '/v1/calendars/:name',
    {
      config: { scope: 'write', errors: ['calendar_in_use'] },
      schema: {
        operationId: 'deleteCalendar',
        summary: 'Delete a calendar that no cue uses',
        description: 'If cues use it, `calendar_in_use` lists them.',
        params: schemas.CalendarParams,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await app.fn.deleteCalendar({ ...request.params, ...request.caller })
      return reply.code(204).send(null)
    }
  )
}

export default routes
