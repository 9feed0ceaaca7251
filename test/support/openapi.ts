/** The API's description, src/openapi.json, for tests that go through all operations. */
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'

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

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
ajv.addSchema(description, 'api')
const escaped = (path: string) => path.replaceAll('~', '~0').replaceAll('/', '~1')

/** A place in the description. */
export const pointerTo = (path: string, method: string, part: string) => `#/paths/${escaped(path)}/${method}/${part}`

/** Returns the faults of a request's or response's JSON, by the description at that place; null if there are none. */
export const faultsOf = (pointer: string, value: unknown): unknown[] | null => {
  const validate = ajv.getSchema(encodeURI(`api${pointer}/content/application~1json/schema`).replaceAll('{', '%7B'))
  if (!validate) return ['is not described']
  return validate(value) ? null : validate.errors!
}

/** The operations, those without parameters first. */
const targets = Object.entries(paths)
  .toSorted(([a], [b]) => a.split('{').length - b.split('{').length)
  .map(([path, methods]) => ({ path, methods, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }))

/** @throws {Error} if a JSON response is not as the description says */
export const checkResponse = (method: string, url: string, status: number, body: unknown): void => {
  const [address = ''] = url.split('?')
  const name = method.toLowerCase()
  const target = targets.find(({ pattern, methods }) => pattern.test(address) && methods[name])
  if (!target) return
  const { responses } = target.methods[name]!
  const code = [String(status), `${String(status)[0]}XX`].find(code => code in responses)
  const { $ref } = (responses[code ?? ''] ?? {}) as { $ref?: string }
  const faults = faultsOf($ref ?? pointerTo(target.path, name, `responses/${code}`), body)
  if (faults) throw new Error(`${method} ${url}: the response ${status} is not as described: ${JSON.stringify(faults).slice(0, 1000)}`)
}
