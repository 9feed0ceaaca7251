/** `pgcue mcp`: the service's MCP server on standard input and output, for clients that start servers as processes. */
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { Client } from '../client/index.ts'
import { command } from './command.ts'
import { isObject, parseExactly } from './io.ts'

type Message = { jsonrpc?: string; id?: string | number | null; method?: string }

/** Streamable HTTP requires both types, although this server always responds with JSON. */
const headers = { accept: 'application/json, text/event-stream' }
const invalidRequest = -32600
const internalError = -32603
const parseError = -32700

export const mcp = command({
  notes: `For an agent's configuration: {"command": "pgcue", "args": ["mcp"], "env": {"PGCUE_API_KEY": "…", "PGCUE_BASE_URL": "…"}}.
Clients that support HTTP can use /mcp of the service directly, with the key as bearer token.`,
  longRunning: true,
  run: async context => {
    const { io } = context
    const client = context.connect()
    const lines = createInterface({ input: Readable.from(io.stdin), signal: io.stopping })
    const open = new Set<Promise<void>>()
    for await (const line of lines) {
      if (line.trim() === '') continue
      const answer = forward(client, line).then(text => {
        if (text !== undefined) io.stdout.write(`${text}\n`)
      })
      open.add(answer)
      void answer.finally(() => open.delete(answer))
    }
    await Promise.all(open)
  }
})

/** Forwards one message and returns the response as a line; undefined for a notification. */
const forward = async (client: Client, line: string): Promise<string | undefined> => {
  let message: Message
  try {
    message = parseExactly(line) as Message
  } catch {
    return failure(null, parseError, 'not valid JSON')
  }
  if (!isObject(message) && !Array.isArray(message)) return failure(null, invalidRequest, 'not a JSON-RPC message')
  try {
    const answer = await client.call<unknown>('POST', '/mcp', { body: message }, { headers, retries: 0 })
    return answer == null || answer === '' ? undefined : JSON.stringify(answer)
  } catch (error) {
    return message.id === undefined ? undefined : failure(message.id, internalError, (error as Error).message)
  }
}

const failure = (id: Message['id'], code: number, message: string) =>
  JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message } })
