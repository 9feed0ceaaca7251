import type { ErrorCode } from '../errors.ts'

/** The parts of JSON Schema that validation and serialization use. */
export type Schema = {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  additionalProperties?: boolean | Schema
  default?: unknown
  'x-json'?: 'any' | 'object' | 'array'
  'x-nullable'?: boolean
  'x-error'?: { code: ErrorCode; message: string }
}
