/** A tool, and arguments that several tools take. */
import { type Static, type TSchema, Type } from 'typebox'
import type { Needed } from '../accounts/admission.ts'
import type { Client } from '../client/index.ts'

export type Tool = {
  name: string
  description: string
  /** The scope required to see the tool; of a list, any one. */
  scope: Exclude<Needed, 'any'>
  readOnly: boolean
  input: TSchema
  run: (client: Client, input: never) => Promise<object>
}

export const tool = <S extends TSchema>(
  definition: Omit<Tool, 'run' | 'input'> & { input: S; run: (client: Client, input: Static<S>) => Promise<object> }
): Tool => definition as unknown as Tool

export const Id = (what: string) => Type.String({ description: `The ${what}'s id.` })
export const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Maximum number of results. Default: 10.' }))
export const offset = Type.Optional(Type.Integer({ minimum: 0 }))
/** For long lists. */
export const cursor = Type.Optional(Type.String({ description: 'The next_cursor of the page before.' }))
export const count_to = Type.Optional(Type.Integer({ minimum: 0, description: 'Count the total only up to this number, which is faster.' }))

export const tag = Type.Optional(Type.Array(Type.String(), { description: 'Only with all of these tags.' }))

export const IdempotencyKey = Type.Optional(
  Type.String({ description: 'Repeating the call with the same key within 24 hours has no further effect.' })
)
