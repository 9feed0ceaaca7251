/** Payloads as stored: canonical JSON, at most 1 MiB. */

import { ApiError } from '../errors.ts'
import type { Json } from '../json/canonical-json.ts'

/** Bytes of JSON in UTF-8, blanks between tokens not counted. */
const MAX_PAYLOAD = 1024 * 1024
/** Maximum characters of a task's name; workers ask for tasks, and an index contains them. */
export const MAX_TASK = 255

/**
 * The columns of a payload. Null is stored as `{}`. A member `task` that is too long for a name is ordinary payload.
 *
 * @throws ApiError invalid_payload_size
 */
export const payloadColumns = (payload: Json): { payload: string; task: string | null } => {
  if (payload.bytes > MAX_PAYLOAD) {
    throw new ApiError(
      'invalid_payload_size',
      `Payload too large: the maximum is ${MAX_PAYLOAD} bytes. Store the data elsewhere and send its URL.`
    )
  }
  if (payload.text === 'null') return { payload: '{}', task: null }
  const { text, task } = payload
  return { payload: text, task: task !== null && task.length <= MAX_TASK ? task : null }
}
