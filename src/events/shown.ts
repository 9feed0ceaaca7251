/** Events as readers and endpoints get them. */
import type { ReadEventsRow } from '../database/functions.ts'
import { Json } from '../json/canonical-json.ts'

/** A row that has an event. */
type Row = Pick<ReadEventsRow, 'id' | 'type' | 'at' | 'cue_id' | 'cue_key' | 'execution_id' | 'data'>

export const shown = ({ id, type, at, cue_id, cue_key, execution_id, data }: Row) => ({
  id: id!,
  type: type!,
  at: at!,
  cue_id,
  cue_key,
  execution_id,
  data: new Json(data!)
})

/** Its JSON, with the data as stored. */
export const textOf = (row: Row): string => {
  const { data, ...event } = shown(row)
  return `${JSON.stringify(event).slice(0, -1)},"data":${data.text}}`
}
