/** Converts the compiler's errors to the `detail` of a 422: one entry per field with type, loc, msg and input, as in pydantic. */
import type { TLocalizedValidationError } from 'typebox/error'
import { constants } from '../catalog.ts'
import { ApiError, type Detail, invalid } from '../errors.ts'
import { Json } from '../json/canonical-json.ts'
import type { Schema } from './schema.ts'

const MAX_ENTRIES = 20
const MAX_INPUT = 200

/**
 * @param place the first element of every `loc`
 * @param detail entries found elsewhere, which come first
 */
export const explain = (
  schema: Schema,
  errors: TLocalizedValidationError[],
  place: string,
  value: unknown,
  detail: Detail[] = []
): ApiError => {
  const entries = new Map(detail.map(entry => [entry.loc.join('\n'), entry]))
  const add = (entry: Detail) => {
    const key = entry.loc.join('\n')
    if (!entries.has(key) && entries.size < MAX_ENTRIES) entries.set(key, entry)
  }
  for (const error of withoutUnions(schema, errors)) {
    const refusal = walk(schema, error.schemaPath).findLast(node => node['x-error'])?.['x-error']
    if (refusal && refusal.code !== 'validation_error') return new ApiError(refusal.code, refusal.message)
    const { path, found: actual } = locate(value, error.instancePath)
    if (refusal) {
      add({ type: 'value_error', loc: [place, ...path], msg: `Value error, ${refusal.message}`, input: shown(actual, path) })
    } else if (error.keyword === 'required') {
      for (const name of error.params.requiredProperties) {
        // Not the other headers, which may contain keys.
        const input = place === 'header' ? null : shown(actual, path)
        add({ type: 'missing', loc: [place, ...path, name], msg: 'Field required', input })
      }
    } else if (error.keyword === 'boolean' && error.schemaPath.endsWith('/additionalProperties')) {
      add({ type: 'extra_forbidden', msg: unknownField(schema, error.schemaPath, path), loc: [place, ...path], input: shown(actual, path) })
    } else if (error.keyword !== 'additionalProperties') {
      add({ ...complaint(error, place !== 'body', actual), loc: [place, ...path], input: shown(actual, path) })
    }
  }
  return invalid([...entries.values()])
}

/** Says which names there are, and where the unknown one is. */
const unknownField = (schema: Schema, schemaPath: string, path: (string | number)[]): string => {
  const members = walk(schema, schemaPath.slice(0, -'/additionalProperties'.length)).at(-1)?.properties ?? {}
  const name = String(path.at(-1))
  const holder = Object.keys(members).find(member => Object.hasOwn(members[member]!.properties ?? {}, name))
  if (holder) return `Unknown field here: put it into \`${holder}\``
  const names = Object.keys(members)
  return `Unknown field. ${names.length > 0 ? `Allowed: ${names.join(', ')}` : 'None is allowed here'}`
}

/** Keeps only the errors of one branch of each union: the branch whose type fits. */
const withoutUnions = (schema: Schema, errors: TLocalizedValidationError[]): TLocalizedValidationError[] => {
  const unions = new Map<string, TLocalizedValidationError[]>()
  const kept = errors.flatMap(error => {
    const [union] = /^.*?(?=\/anyOf\/\d)/.exec(`${error.schemaPath}${error.keyword === 'anyOf' ? '/anyOf/0' : ''}`) ?? []
    if (union === undefined) return [error]
    const first = !unions.has(union)
    unions.set(union, [...(unions.get(union) ?? []), error])
    return first ? [{ ...error, schemaPath: union, keyword: 'anyOf', params: {} } as TLocalizedValidationError] : []
  })
  return kept.flatMap(error => {
    const group = error.keyword === 'anyOf' && unions.get(error.schemaPath)
    return group ? meant(walk(schema, error.schemaPath).at(-1)!, error.schemaPath, group) : [error]
  })
}

const meant = (union: Schema, path: string, group: TLocalizedValidationError[]): TLocalizedValidationError[] => {
  const at = group.reduce((a, b) => (a.instancePath.length <= b.instancePath.length ? a : b))
  const branches = union.anyOf!.map((node, i) => ({ node, errors: group.filter(e => e.schemaPath.startsWith(`${path}/anyOf/${i}`)) }))
  const values = branches.map(({ node }) => (node as { const?: unknown }).const)
  if (values.every(value => value !== undefined))
    return [{ ...at, schemaPath: path, keyword: 'enum', params: { allowedValues: values } } as never]
  const candidates = branches.filter(({ node, errors }) => node.type !== 'null' && errors.length > 0)
  const fits = candidates.filter(({ errors }) => !errors.some(e => e.keyword === 'type' && e.instancePath === at.instancePath))
  if (fits.length || candidates.length === 1)
    return (fits.length ? fits : candidates).reduce((a, b) => (a.errors.length <= b.errors.length ? a : b)).errors
  return [{ ...at, schemaPath: path, keyword: 'type', params: { type: candidates.flatMap(({ node }) => node.type ?? []) } } as never]
}

/** The schemas on the path to the one that it points to. */
const walk = (schema: Schema, path: string): Schema[] => {
  const nodes = [schema]
  let node: unknown = schema
  for (const step of steps(path.replace(/^#/, ''))) {
    node = (node as Record<string, unknown> | undefined)?.[step]
    if (typeof node === 'object' && node) nodes.push(node as Schema)
  }
  return nodes
}

const steps = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))

const locate = (value: unknown, pointer: string): { path: (string | number)[]; found: unknown } => {
  let current = value
  const path = steps(pointer).map(step => {
    const name = Array.isArray(current) ? Number(step) : step
    current = Object.getOwnPropertyDescriptor(Object(current), name)?.value
    return name
  })
  return { path, found: current }
}

const names: Record<string, [string, string]> = {
  string: ['string', 'string'],
  integer: ['int', 'integer'],
  number: ['float', 'number'],
  boolean: ['bool', 'boolean'],
  array: ['list', 'list'],
  object: ['dict', 'object'],
  null: ['none', 'null']
}

/** The type and the message of one error. */
const complaint = (error: TLocalizedValidationError, textual: boolean, input: unknown): Pick<Detail, 'type' | 'msg'> => {
  const should = (type: string, msg: string) => ({ type, msg: `Input should ${msg}` })
  const unit = typeof input === 'string' ? 'String' : 'List'
  const items = typeof input === 'string' ? 'characters' : 'items'
  switch (error.keyword) {
    case 'boolean':
      return { type: 'value_error', msg: 'Value is not permitted' }
    case 'type': {
      const types = [error.params.type].flat().filter(type => type !== 'null')
      const [name, noun] = names[types[0] ?? 'null']!
      if (types.length > 1) return should('union_type', `be a valid ${types.map(type => names[type]?.[1]).join(' or ')}`)
      if (name === 'int' && typeof input === 'number')
        return should('int_from_float', 'be a valid integer, got a number with a fractional part')
      if (textual && /^(int|float|bool)$/.test(name)) return should(`${name}_parsing`, `be a valid ${noun}`)
      return should(`${name}_type`, `be a valid ${noun}`)
    }
    case 'enum':
      return should('enum', `be ${error.params.allowedValues.map(value => (value === null ? 'null' : `'${value}'`)).join(' or ')}`)
    case 'const':
      return should('literal_error', `be '${error.params.allowedValue}'`)
    case 'minLength':
    case 'minItems':
      if (error.params.limit === 1) return should(unit === 'String' ? 'string_too_short' : 'too_short', 'not be empty')
      return {
        type: unit === 'String' ? 'string_too_short' : 'too_short',
        msg: `${unit} should have at least ${error.params.limit} ${items}`
      }
    case 'minProperties':
      return { type: 'too_short', msg: `At least ${error.params.limit === 1 ? 'one field' : `${error.params.limit} fields`} must be sent` }
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return { type: unit === 'String' ? 'string_too_long' : 'too_long', msg: `${unit} should have at most ${error.params.limit} ${items}` }
    case 'minimum':
      return should('greater_than_equal', `be greater than or equal to ${error.params.limit}`)
    case 'maximum':
      return should('less_than_equal', `be less than or equal to ${error.params.limit}`)
    case 'exclusiveMinimum':
      return should('greater_than', `be greater than ${error.params.limit}`)
    case 'exclusiveMaximum':
      return should('less_than', `be less than ${error.params.limit}`)
    case 'multipleOf':
      return should('multiple_of', `be a multiple of ${error.params.multipleOf}`)
    case 'pattern':
      if (/^[.]{1,2}$/.test(String(input)) && String(error.params.pattern).startsWith('^(?![.]'))
        return should('string_pattern_mismatch', "not be '.' or '..': clients remove these from paths")
      return { type: 'string_pattern_mismatch', msg: `String should match pattern '${error.params.pattern}'` }
    case 'format':
      return formats[error.params.format] ?? { type: 'value_error', msg: `Value is not a valid ${error.params.format}` }
    default:
      return { type: 'value_error', msg: `Value error, ${error.message}` }
  }
}

const formats: Record<string, Pick<Detail, 'type' | 'msg'>> = {
  'date-time': { type: 'datetime_from_date_parsing', msg: 'Input should be a valid ISO 8601 datetime with Z or an offset' },
  uuid: { type: 'uuid_parsing', msg: 'Input should be a valid UUID' },
  uri: { type: 'url_parsing', msg: 'Input should be a valid URL' },
  email: { type: 'value_error', msg: 'Value is not a valid email address' }
}

const secretName = /token|secret|key|password|authorization|cookie|headers|device_code/i
const secretText = /svc_sk_|whsec_|\beyJ[\w-]+\.|:\/\/[^/]*@/
const { mask } = constants

/** An input for display in an error: truncated, with secrets masked. */
export const shown = (value: unknown, path: (string | number)[]): unknown => {
  if (value === undefined) return null
  if (path.some(step => typeof step === 'string' && secretName.test(step))) return mask
  if (typeof value === 'string') return secretText.test(value) ? mask : value.slice(0, MAX_INPUT)
  if (typeof value !== 'object' || value === null) return value
  const text = value instanceof Json ? value.text : preview(value)
  if (secretText.test(text)) return mask
  return text.length > MAX_INPUT ? text.slice(0, MAX_INPUT) : JSON.parse(text)
}

/** The beginning of a value as JSON: at least as much of it as is shown, since a body may have megabytes. */
const preview = (value: unknown): string => {
  if (value instanceof Json) return value.text.slice(0, MAX_INPUT + 1)
  if (typeof value === 'string') return JSON.stringify(value.slice(0, MAX_INPUT + 1))
  if (Array.isArray(value)) return `[${value.slice(0, MAX_INPUT).map(preview)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).slice(0, MAX_INPUT)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${preview(secretName.test(name) ? mask : member)}`)}}`
}
