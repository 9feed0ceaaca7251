import t from 'tap'
import { build } from './setup.ts'

type Service = Awaited<ReturnType<typeof build>>

/** A key of the account's with these scopes only. */
const keyed = async ({ post, as, account }: Service, scopes: string[]) => {
  const { api_key } = await post('/v1/auth/keys', { label: scopes.join(), scopes })
  return as({ ...account, api_key })
}

t.test('read opens every GET that shows no key and no secret, and worker those that workers need', async t => {
  const service = await build(t)
  const { post } = service
  const cue = await post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
  const { id } = await post(`/v1/cues/${cue.id}/fire`)
  const keys = Object.fromEntries(
    await Promise.all(['read', 'write', 'worker', 'account'].map(async scope => [scope, await keyed(service, [scope])] as const))
  )
  for (const [path, scopes] of [
    ['/v1/cues', ['read']],
    [`/v1/cues/${cue.id}`, ['read']],
    ['/v1/executions', ['read']],
    [`/v1/executions/${id}`, ['read', 'worker']],
    ['/v1/executions/claimable', ['worker']],
    ['/v1/workers', ['read', 'worker']],
    ['/v1/alerts', ['read']],
    ['/v1/usage', ['read']],
    ['/v1/echo/a-token-of-16-or-more', ['read']],
    ['/v1/auth/me', ['read', 'write', 'worker', 'account']],
    ['/v1/auth/keys', ['account']],
    ['/v1/auth/audit', ['account']],
    ['/v1/auth/webhook-secret', ['account']],
    ['/v1/support', ['account']]
  ] as const) {
    const answers = await Promise.all(Object.entries(keys).map(async ([scope, key]) => [scope, (await key.call('GET', path)).status]))
    const expected = Object.keys(keys).map(scope => [scope, (scopes as readonly string[]).includes(scope) ? 200 : 403])
    t.same(answers, expected, path)
  }
})
