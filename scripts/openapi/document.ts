/** The parts of the OpenAPI document that are read to generate clients. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: (string | number | null)[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  format?: string
  minimum?: number
  maximum?: number
  default?: unknown
  description?: string
}
export type Content = { content?: Record<string, { schema?: Schema }>; required?: boolean }
export type Parameter = { in: 'path' | 'query' | 'header'; name: string; required?: boolean; description?: string; schema: Schema }
export type Operation = {
  operationId: string
  summary: string
  tags: string[]
  security?: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: Content
  responses: Record<string, Content>
}
export type Document = { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } }
