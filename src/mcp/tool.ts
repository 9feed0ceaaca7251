/** A tool, and arguments that several tools take. */
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import type { Needed } from '../accounts/admission.ts'
import type { Client } from '../client/index.ts'
import { IdempotencyKey as Header } from '../database/idempotent.ts'
import { Page } from '../schemas.ts'

export type Tool = {
  name: string
  description: string
  /** The scope required to see the tool; of a list, any one. One that needs no more than `read` changes nothing. */
  scope: Exclude<Needed, 'any'>
  input: TObject
  /** The allow-list of the result: other members are left out, and so are optional ones that are null. */
  output: TObject
  /** `signal` is aborted when the caller disconnects before the response is sent. */
  run: (client: Client, input: never, signal: AbortSignal) => Promise<object>
}

export const tool = <P extends TProperties>(
  definition: Omit<Tool, 'run' | 'input'> & {
    input: TObject<P>
    run: (client: Client, input: Static<TObject<P>>, signal: AbortSignal) => Promise<object>
  }
): Tool => definition as unknown as Tool

/** A schema with another description. */
export const described = <S extends TSchema>(schema: S, description: string): S => ({ ...schema, description })

export const Id = (what: string) => Type.String({ description: `The ${what}'s id.` })
/** Lists are short by default: agents pay for every token. */
export const limit = Type.Optional({ ...Page().limit, default: 10 })
export const IdempotencyKey = Header.properties['idempotency-key']

export const NextStep = Type.String()
