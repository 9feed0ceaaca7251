/** Schedule preview, without a cue. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { namesOf } from './parse-schedule.ts'
import { preview } from './preview.ts'
import { Preview, PreviewRequest } from './schemas.ts'
import { readCalendars } from './stored-calendars.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/v1/schedules/preview',
    {
      config: { scope: 'read', computes: true },
      schema: {
        operationId: 'previewSchedule',
        summary: 'Preview the next runs of a schedule, in words and as instants',
        description: 'Accepts the same schedules as cues do. Nothing is stored.',
        body: PreviewRequest,
        response: { 200: Preview }
      }
    },
    async request => {
      const names = namesOf(request.body.schedule)
      return preview(request.body, app.now(), await readCalendars(app.fn, request.caller.account_id, names))
    }
  )
}

export default routes
