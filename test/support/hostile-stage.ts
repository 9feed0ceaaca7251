/**
 * Tables of attacks on accounts, sessions, links, pages and mails, with the expected responses. Each attack gets its own service; afterwards
 * `harmless` checks that it had no effect.
 */
import t, { type Test } from 'tap'
import { exactly } from './exactly.ts'
import { buildWithMail, form, formHeaders } from './sign-in.ts'

// Every test starts a service, which takes long on busy machines; the default limit of a file run by node is 30 seconds.
t.setTimeout(110_000)

export const noon = '2030-01-15T12:00:00.000Z'

export type World = Awaited<ReturnType<typeof setup>>
export type Answer = { status: number; body?: unknown; headers?: Record<string, string> }
export type Attack = {
  name: string
  env?: Record<string, string>
  skip?: string | false
  /** Attempts the attack and returns the response, or several that must all be as expected. */
  attempt: (world: World) => Promise<Answer | Answer[]>
  expected: object
  harmless?: (world: World, t: Test) => Promise<unknown>
}

const setup = async (t: Test, env?: Record<string, string>) => {
  const service = await buildWithMail(t, noon, env)
  const { app, nobody, account } = service
  /** A request from any address. */
  const send = async (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    options: { body?: object; bearer?: string; from?: string } = {}
  ): Promise<Answer> => {
    const answer = await app.inject({
      method,
      url,
      ...(options.body && { payload: options.body }),
      headers: { ...(options.bearer !== undefined && { authorization: `Bearer ${options.bearer}` }) },
      remoteAddress: options.from ?? '198.51.100.7'
    })
    return {
      status: answer.statusCode,
      body: answer.body && answer.headers['content-type']?.startsWith('application/json') ? answer.json() : answer.body
    }
  }
  const show = (path: string) => nobody.call('GET', path)
  const submit = (path: string, fields: Record<string, string>) => nobody.call('POST', path, form(fields), formHeaders)
  const asSession = (bearer: string) => send('GET', '/v1/auth/me', { bearer })
  const victim = { email: account.email }
  return { ...service, send, show, submit, asSession, victim }
}

export const refused = (code: string, status: number) => ({ status, body: { error: { code, status } } })
export const times = <T>(count: number, make: (i: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, i) => make(i)))
/** Sends 65 requests in turn and returns the responses after the first 60. */
export const afterSixty = async (send: () => Promise<Answer>) => {
  const answers = []
  for (let i = 0; i < 65; i++) answers.push(await send())
  return answers.slice(60)
}

export const tryAll = (attacks: Attack[]): void => {
  for (const { name, env, skip = false, attempt, expected, harmless } of attacks) {
    t.test(name, { skip }, async t => {
      const world = await setup(t, env)
      const answers = [await attempt(world)].flat()
      t.ok(answers.length > 0)
      for (const answer of answers) exactly(t, answer, expected)
      await harmless?.(world, t)
    })
  }
}
