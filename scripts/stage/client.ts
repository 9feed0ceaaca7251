/** Calls of the API. */
export type Answer = {
  /** 0: no response. */
  status: number
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
  body: any
  headers: Headers
  ms: number
}

export const call = async (
  address: string,
  method: string,
  path: string,
  api_key?: string,
  body?: object | string,
  more: Record<string, string> = {}
): Promise<Answer> => {
  const startedAt = performance.now()
  const headers = { ...(api_key && { authorization: `Bearer ${api_key}` }), ...(body && { 'content-type': 'application/json' }), ...more }
  const content = typeof body === 'object' ? JSON.stringify(body) : body
  try {
    const signal = AbortSignal.timeout(60_000)
    const response = await fetch(address + path, { method, headers, signal, ...(content && { body: content }) })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '')
    const ms = performance.now() - startedAt
    return { status: response.status, text, body: isJson ? JSON.parse(text) : {}, headers: response.headers, ms }
  } catch (error) {
    return { status: 0, text: String(error), body: {}, headers: new Headers(), ms: performance.now() - startedAt }
  }
}

/** Repeats a call while the service is unavailable, as clients do, and rejects any other answer than the expected one. */
export const insist = async (expected: number, ...args: Parameters<typeof call>): Promise<Answer['body']> => {
  for (const end = Date.now() + 60_000; ; await new Promise(resolve => setTimeout(resolve, 50))) {
    const { status, text, body } = await call(...args)
    if (status === expected) return body
    if ((status !== 0 && status !== 503) || Date.now() > end) throw new Error(`${args[1]} ${args[2]}: ${status} ${text.slice(0, 500)}`)
  }
}
