/** The API's description, src/openapi.json, for tests that go through all operations. */
import { readFileSync } from 'node:fs'

export type Operation<Schema = object> = {
  operationId: string
  summary?: string
  tags?: string[]
  security?: object[]
  parameters?: { name: string; in: 'path' | 'query' | 'header'; schema: Schema }[]
  requestBody?: { required?: boolean; content: { 'application/json': { schema: Schema } } }
  responses: Record<string, { content?: object }>
}

export const description = JSON.parse(readFileSync(new URL('../../src/openapi.json', import.meta.url), 'utf8'))
export const paths: Record<string, Record<string, Operation>> = description.paths
