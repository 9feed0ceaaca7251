/** An MCP server for one key, with the tools the key may use. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import { Value } from 'typebox/value'
import { type Client, PgcueError } from '../client/index.ts'
import { published, type Schema } from '../http/schema.ts'
import { Json, JsonError, parseExactly, splice } from '../json/canonical-json.ts'
import type { LargeJson } from '../json/large-json.ts'
import { omitLarge } from './omit-large.ts'
import type { Tool } from './tool.ts'
import { tools } from './tools.ts'

const instructions =
  'pgcue schedules tasks: a cue is a schedule with an action, an execution is one run of it. Preview a schedule before creating a cue. After ' +
  'a failure, check get_execution for the attempts, and list_alerts. claim_next takes the work of cues without a callback.'

/** Makes params optional, so that the handler reports missing ones; the SDK would return an internal error. */
const CallTool = CallToolRequestSchema.extend({ params: CallToolRequestSchema.shape.params.optional().catch(undefined) })

type Caller = {
  /** They decide which tools are listed; the service checks them again on each call. */
  scopes: readonly string[]
  /** Aborted when the caller disconnects before the response is sent. */
  signal: AbortSignal
  /** Reads free JSON, which may be large. */
  json: Pick<LargeJson, 'canonicalJson'>
}

/** @param version of the service */
export const createMcpServer = (client: Client, caller: Caller, version: string): Server => {
  const { scopes } = caller
  const shown = tools.filter(tool => [tool.scope].flat().some(scope => scopes.includes(scope)))
  const server = new Server({ name: 'pgcue', version }, { capabilities: { tools: {} }, instructions })

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: shown.map(({ name, description, input, output, scope }) => ({
      name,
      description,
      inputSchema: { ...published(input as Schema, { isRequest: true, anyJson }), type: 'object' as const },
      outputSchema: { ...published(output as Schema, { isBrief: true }), type: 'object' as const },
      annotations: {
        readOnlyHint: scope.includes('read'),
        destructiveHint: name === 'delete_cue' || name === 'apply',
        openWorldHint: false
      }
    }))
  }))

  server.setRequestHandler(CallTool, async ({ params }) => {
    if (!params) throw new McpError(ErrorCode.InvalidParams, 'tools/call requires params with the name of a tool.')
    const tool = shown.find(({ name }) => name === params.name)
    if (!tool) return failed(`Tool ${params.name} not found for this key. Scopes of the key: ${scopes.join(', ') || 'none'}.`)
    return call(client, tool, params.arguments ?? {}, caller)
  })
  return server
}

/** Clients send arguments without a type as strings, so free JSON has them all. Lists within lists end somewhere. */
const scalars = ['object', 'string', 'number', 'boolean', 'null']
const anyType = [...scalars, 'array']
const anyJson: Schema = { type: anyType, items: { type: anyType, items: { type: scalars } } }

const call = async (client: Client, tool: Tool, args: object, { signal, json }: Caller) => {
  const members = Object.entries(args).map(async ([name, value]) => [name, await unquoted(value, tool.input.properties[name], json)])
  const input = Object.fromEntries(await Promise.all(members))
  if (!Value.Check(tool.input, input)) {
    const faults = Value.Errors(tool.input, input).map(({ instancePath, message }) => `${instancePath.slice(1) || 'input'} ${message}`)
    return failed(`Invalid input for ${tool.name}: ${faults.slice(0, 5).join('; ')}.`)
  }
  try {
    const text = splice(omitLarge(trimmed(await tool.run(client, input as never, signal), tool.output as Schema)))
    return { content: [{ type: 'text' as const, text }], structuredContent: parseExactly(text) as Record<string, unknown> }
  } catch (error) {
    if (error instanceof PgcueError) return failed(`${error.code}: ${error.message}`)
    throw error
  }
}

/**
 * Clients that see no type of an argument send its JSON as a string. One that is a JSON object is read as that object, or as a list where
 * only a list is possible; any other string is a string.
 */
const unquoted = async (value: unknown, schema: Schema | undefined, json: Caller['json']): Promise<unknown> => {
  if (!(value instanceof Json)) return parsed(value)
  if (value.text[0] !== '"') return value
  const text = String(JSON.parse(value.text)).trim()
  if (text[0] !== (schema?.['x-json'] === 'array' ? '[' : '{')) return value
  try {
    return new Json(await json.canonicalJson(text))
  } catch (error) {
    if (error instanceof JsonError) return value
    throw error
  }
}

/** A member of an argument may have the name of free JSON, such as `cues` in `after`. */
const parsed = (value: unknown): unknown => {
  if (value instanceof Json) return JSON.parse(value.text)
  if (Array.isArray(value)) return value.map(parsed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, parsed(member)]))
}

/** Only the members that a schema names, without optional ones that are null. */
const trimmed = (value: unknown, { properties, items }: Schema): unknown => {
  if (Array.isArray(value)) return items ? value.map(item => trimmed(item, items)) : value
  if (typeof value !== 'object' || value === null || value instanceof Json || !properties) return value
  const object = value as Record<string, unknown>
  const members = Object.entries(properties).filter(([name, member]) => object[name] != null || !('~optional' in member))
  return Object.fromEntries(members.map(([name, member]) => [name, trimmed(object[name], member)]))
}

const failed = (text: string) => ({ isError: true, content: [{ type: 'text' as const, text }] })
