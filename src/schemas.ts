/** Schemas shared by several nouns. */
import { type Static, type TSchema, Type } from 'typebox'
import { constants } from './catalog.ts'
import type { ErrorCode } from './errors.ts'
import type { Json } from './json/canonical-json.ts'

/** An instant: a Date in the program, ISO 8601 in UTC with milliseconds on the wire. */
export const Timestamp = Type.Unsafe<Date>(Type.String({ format: 'date-time' }))

/** Makes a schema nullable. */
export const Nullable = <T extends TSchema>(schema: T) => {
  const { type, enum: values, 'x-json': json } = schema as { type?: string | string[]; enum?: unknown[]; 'x-json'?: string }
  if (json) return Type.Unsafe<Static<T> | null>({ ...schema, 'x-nullable': true })
  if (values) return Type.Unsafe<Static<T> | null>({ ...schema, enum: [...values, null] })
  if (Array.isArray(type)) return Type.Unsafe<Static<T> | null>(schema)
  return Type.Unsafe<Static<T> | null>(type ? { ...schema, type: [type, 'null'] } : { anyOf: [schema, { type: 'null' }] })
}

/** An object schema that rejects unknown members, for request bodies. A plain `Type.Object` removes them. */
export const Strict = <P extends Record<string, TSchema>>(properties: P, options = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false })

/**
 * JSON of any shape as a member of a body: arrives as `Json`, the canonical text. Only outermost members can be that.
 * `JsonObject` and `JsonArray` refuse other values; a `Nullable` one passes null on as null.
 */
export const AnyJson = (options: { description?: string } = {}) => Type.Unsafe<Json>({ ...options, 'x-json': 'any' })
export const JsonObject = (options: { description?: string } = {}) => Type.Unsafe<Json>({ ...options, 'x-json': 'object' })
export const JsonArray = (options: { description?: string } = {}) => Type.Unsafe<Json>({ ...options, 'x-json': 'array' })

/**
 * A value that fails the schema is refused with this code instead of a 422, such as `invalid_plan`, or `cue_not_found` for a
 * malformed id. Goes inside `Type.Optional`, not around it.
 */
export const orElse = <T extends TSchema>(code: ErrorCode, message: string, schema: T): T =>
  ({ ...schema, 'x-error': { code, message } }) as T

/** The beginning of a pattern of names that occur in paths, from which clients remove `.` and `..`. The same as in checks of columns. */
export const notDots = '(?![.]{1,2}$)'

export const uuid = '[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}'
export const uuidPattern = `^${uuid}$`

/** An id in a path. A malformed id gets the same error as an unknown one. */
export const Uuid = (code: ErrorCode, message = 'Not found in this account.') =>
  orElse(code, message, Type.String({ format: 'uuid', pattern: uuidPattern }))

const cueId = '^cue_[0-9A-Za-z]{12}$'
export const CueId = Type.String({ pattern: cueId })
const cueIdPattern = new RegExp(cueId)
export const isCueId = (text: string) => cueIdPattern.test(text)

/** The header required by destructive operations. */
export const Confirmation = orElse(
  'confirmation_required',
  'This cannot be undone. To confirm, send the header X-Confirm-Destructive: true.',
  Type.Object({ 'x-confirm-destructive': Type.String({ pattern: '^true$' }) })
)

/** Bytes of stored text at which a list page ends, unless it has only one item. The same for claims. */
export const PAGE_BYTES = constants.pageBytes
export const endsEarly = 'A page ends early at 4 MiB, but has at least one item.'

/** `limit` and `offset` of a list. Both have defaults, so neither is undefined. */
export const Page = (limit = 20) => ({
  limit: Type.Integer({ minimum: 1, maximum: 100, default: limit }),
  offset: Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, default: 0 })
})

/** Said of a page beside its items. */
export const Listed = { total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() }

/** Keyset pages take the same time wherever they begin. */
export const NextCursor = Nullable(Type.String({ description: 'The `cursor` of the next page; null on the last one.' }))
const ofPage = 'The `next_cursor` of the page before; instead of `offset`.'
export const IdCursor = Type.Optional(Type.String({ format: 'uuid', pattern: uuidPattern, description: ofPage }))
/** Of a list that has several orders. */
export const Cursor = (pattern: string) => Type.Optional(Type.String({ pattern: `^(${pattern}|\\d{1,5})$`, description: ofPage }))
export const TotalExact = Type.Boolean({ description: 'False if there are more than `total`, as it was counted up to `count_to`.' })
export const CountTo = Type.Optional(
  Type.Integer({ minimum: 0, maximum: constants.countedTo, description: 'Count `total` only up to this number, which is faster.' })
)
export const SearchTo = Type.Optional(
  Type.Integer({
    minimum: 100,
    maximum: constants.countedTo,
    description:
      'With filters and `cursor`: search only this many, matching or not, so that rare matches take no longer. A page may then have fewer items ' +
      'than `limit`, or none, and `next_cursor` continues the search; `total` counts those found.'
  })
)

const MAX_TAG = 64
export const Tag = Type.String({ minLength: 1, maxLength: MAX_TAG })
/** A filter of lists. */
export const TagFilter = Type.Optional(Type.Array(Tag, { maxItems: 10, description: 'If repeated, all of them must match.' }))

export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: Type.String(),
      message: Type.String(),
      status: Type.Integer(),
      cue_id: Type.Optional(Type.String({ description: 'With `key_taken` and `cue_exists`: the cue that has the key.' })),
      operation_id: Type.Optional(Type.String({ description: 'With `operation_running`: that operation.' })),
      cue_ids: Type.Optional(
        Type.Array(Type.String(), {
          description: 'With `calendar_in_use`, `gate_in_use` and `cue_has_followers`: up to 100 of the cues that use or follow it.'
        })
      ),
      version: Type.Optional(Type.Integer({ description: 'With `version_conflict`: the current version.' })),
      decision: Type.Optional(Type.String({ description: 'With `already_decided`: the first decision.' })),
      decided_by: Type.Optional(Nullable(Type.String({ description: 'Who made it; null: it expired.' }))),
      decided_at: Type.Optional(Type.String({ format: 'date-time' }))
    }),
    detail: Type.Optional(
      Type.Array(
        Type.Object({
          type: Type.String(),
          loc: Type.Array(Type.Unsafe<string | number>({ type: ['string', 'integer'] })),
          msg: Type.String(),
          input: Type.Unknown()
        }),
        { description: 'With 422, and with refusals of several cues at once: the invalid fields, and what is wrong with each.' }
      )
    )
  },
  { $id: 'Error', description: 'An error. Match on `code`; `message` is for people and may change.' }
)
