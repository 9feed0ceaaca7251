/** An MCP server for one key, with the tools the key may use. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import { Value } from 'typebox/value'
import { type Client, PgcueError } from '../client/index.ts'
import { Json } from '../json/canonical-json.ts'
import { splice } from '../json/splice.ts'
import type { Tool } from './tool.ts'
import { tools } from './tools.ts'

const instructions =
  'pgcue schedules tasks: a cue is a schedule with an action, an execution is one run of it. Preview a schedule before creating a cue. After ' +
  'a failure, check get_execution for the attempts, and list_alerts.'

/** Makes params optional, so that the handler reports missing ones; the SDK would return an internal error. */
const CallTool = CallToolRequestSchema.extend({ params: CallToolRequestSchema.shape.params.optional().catch(undefined) })

/**
 * @param scopes of the key; they decide which tools are listed, and the service checks them again on each call
 * @param version of the service
 */
export const createMcpServer = (client: Client, scopes: readonly string[], version: string): Server => {
  const shown = tools.filter(tool => [tool.scope].flat().some(scope => scopes.includes(scope)))
  const server = new Server({ name: 'pgcue', version }, { capabilities: { tools: {} }, instructions })

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: shown.map(({ name, description, input, readOnly }) => ({
      name,
      description,
      inputSchema: { ...input, type: 'object' as const },
      annotations: { readOnlyHint: readOnly, destructiveHint: name === 'delete_cue' || name === 'apply', openWorldHint: false }
    }))
  }))

  server.setRequestHandler(CallTool, async ({ params }) => {
    if (!params) throw new McpError(ErrorCode.InvalidParams, 'tools/call requires params with the name of a tool.')
    const tool = shown.find(({ name }) => name === params.name)
    if (!tool) return failed(`Tool ${params.name} not found for this key. Scopes of the key: ${scopes.join(', ') || 'none'}.`)
    return call(client, tool, params.arguments ?? {})
  })
  return server
}

const call = async (client: Client, tool: Tool, input: object) => {
  const checked = Object.fromEntries(Object.entries(input).filter(([, value]) => !(value instanceof Json)))
  if (!Value.Check(tool.input, checked)) {
    const faults = Value.Errors(tool.input, checked).map(({ instancePath, message }) => `${instancePath.slice(1) || 'input'} ${message}`)
    return failed(`Invalid input for ${tool.name}: ${faults.slice(0, 5).join('; ')}.`)
  }
  try {
    return { content: [{ type: 'text' as const, text: splice(await tool.run(client, input as never)) }] }
  } catch (error) {
    if (error instanceof PgcueError) return failed(`${error.code}: ${error.message}`)
    throw error
  }
}

const failed = (text: string) => ({ isError: true, content: [{ type: 'text' as const, text }] })
