/** Previews of requests, without a cue. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { Json } from '../json/canonical-json.ts'
import { namesOf } from '../schedule/parse-schedule.ts'
import { readCalendars } from '../schedule/stored-calendars.ts'
import { namesIn, readValues, renderHeaders, renderPayload, renderUrl, type Values } from '../templates/template.ts'
import { newCue, replacementOf } from './changes.ts'
import { checkTogether } from './faults.ts'
import type { CreateCue, PayloadPreview } from './schemas.ts'
import { textsOf } from './templates.ts'
import { type Asking, changesText } from './write.ts'

/** Previews the request of the next run of a cue, which may exist under the same key. Values of an earlier run that there has not been are examples. */
export const previewPayload = async (app: FastifyInstance, asking: Asking, request: CreateCue): Promise<Static<typeof PayloadPreview>> => {
  const { caller, limits } = asking
  const calendars = await readCalendars(app.fn, caller.account_id, namesOf(request.schedule ?? {}))
  const cue_id = request.key == null ? null : await app.fn.cueIdByKey({ key: request.key, ...caller })
  const stored = cue_id === null ? undefined : await app.cues.find(caller.account_id, cue_id)
  const read = () =>
    stored
      ? replacementOf(request, stored, app.now(), limits.min_interval_seconds, calendars)
      : newCue(request, app.now(), limits.min_interval_seconds, calendars)
  await checkTogether(asking, [], read)
  const { columns, next_run, next_slot } = read()
  const { payload, url, headers } = textsOf(columns)
  if (!columns.template) return { payload: new Json(payload), url, headers }
  const scheduled_for = next_slot ?? next_run ?? app.now()
  const cue = await changesText(app, asking, columns)
  const names = [payload, url ?? '', ...Object.values(headers)].flatMap(namesIn)
  const values: Values = {
    ...Object.fromEntries(names.map(name => [name, exampleOf(name, scheduled_for)])),
    ...readValues(await app.fn.previewValues({ cue, scheduled_for, cue_id, ...caller }))
  }
  return { payload: new Json(renderPayload(payload, values)), url: url && renderUrl(url, values), headers: renderHeaders(headers, values) }
}

/** The value of a name of an earlier run. */
const exampleOf = (name: string, scheduled_for: Date): string | null => {
  if (!/^(previous|parents)\./.test(name)) return null
  const before = new Date(+scheduled_for - 86_400_000).toISOString()
  const [member = ''] = /[^.]+$/.exec(name) ?? []
  const examples: Record<string, string> = {
    scheduled_for: before,
    success_at: before,
    execution_id: '00000000-0000-7000-8000-000000000000',
    result: 'done',
    external_id: 'id-1',
    result_url: 'https://example.com/result',
    summary: 'A summary'
  }
  return (/\.metadata\./.test(name) ? undefined : examples[member]) ?? 'value'
}
