/** `pgcue whoami`, `usage`, `keys …`, `sessions …` and `logout`. */
import { type NewKey, PgcueError } from '../client/index.ts'
import { acting, command, filtersOf, listing } from './command.ts'
import { forgetKey } from './credentials.ts'
import { UsageError } from './exit-codes.ts'

export const whoami = acting(
  async client => ({ base_url: client.baseUrl, ...(await client.me()) }),
  ({ email, id, plan, api_key_prefix, base_url }, out) =>
    out.fields({ email, account: id, plan, key: api_key_prefix && `${api_key_prefix}…`, service: base_url })
)

export const usage = acting(
  async client => {
    const answer = await client.usage()
    if (answer?.billing_period) return answer
    const message = `${client.baseUrl} did not respond like pgcue. Check the address of the service.`
    throw new PgcueError({ code: 'unexpected_answer', message })
  },
  ({ plan, billing_period: period, cues, executions, outcomes, rate_limit, upgrade_url }, out) => {
    out.fields({ plan, period: `${period.start} to ${period.end}, ${period.days_remaining} days left` })
    out.line('')
    const rows = Object.entries({ cues, executions }).map(([name, used]) => ({ name, ...used }))
    out.table(rows, [['', 'name'], 'used', ['limit', row => row.limit ?? 'none'], 'remaining', ['%', 'percent_used']])
    out.line('')
    out.fields({
      'projected executions': `${executions.projected_month_end}${executions.will_exceed_limit ? `, over the limit: ${upgrade_url}` : ''}`,
      outcomes: `${outcomes.reported} reported, ${outcomes.succeeded} succeeded, ${outcomes.failed} failed`,
      requests: `${rate_limit.current_usage}${rate_limit.limit === null ? '' : ` of ${rate_limit.limit}`} in this minute`
    })
  }
)

export const keysList = listing(
  ({ keys }) => keys.list().then(keys => ({ keys })),
  answer => answer.keys,
  [
    'id',
    ['key', ({ prefix }) => `${prefix}…`],
    'label',
    ['scopes', ({ scopes }) => scopes.join(',')],
    'created_at',
    'last_used_at',
    'revoked_at'
  ],
  { empty: 'No keys.' }
)

export const keysCreate = acting(
  ({ keys }, label, body: Partial<NewKey>) => keys.create({ label, ...body }),
  ({ id, label, scopes, api_key }, out) => out.fields({ id, label, scopes: scopes.join(','), key: api_key }),
  {
    options: {
      scopes: {
        type: 'string',
        value: 'SCOPES',
        help: 'comma-separated: read, write, worker, account (default: all)',
        part: (text: string) => ({ scopes: text.split(',').map(scope => scope.trim()) })
      }
    }
  }
)

export const keysRevoke = acting(
  ({ keys }, id) => keys.revoke(id),
  ({ id, revoked_at }) => `Key ${id} revoked at ${revoked_at}`
)

export const sessionsList = listing(
  ({ auth }, page) => auth.sessions(page),
  answer => answer.sessions,
  [
    'id',
    ['opened with', ({ key_label }) => key_label ?? 'email link'],
    ['address', 'ip'],
    ['program', 'user_agent'],
    ['since', 'created_at'],
    ['until', 'expires_at']
  ],
  { empty: 'No sessions.', options: filtersOf('listSessions') }
)

export const sessionsRevoke = command({
  options: { all: { type: 'boolean', help: 'end all sessions of the account' } },
  names: { session_id: 'ID' },
  run: async ({ args: [id], options, connect }): Promise<{ id?: string; revoked: boolean | number }> => {
    if ((id === undefined) !== (options.all === true)) throw new UsageError('give either ID or --all')
    const { auth } = connect()
    if (id === undefined) return auth.endSession({ all: true })
    await auth.revokeSession(id)
    return { id, revoked: true }
  },
  text: ({ id, revoked }) => (id === undefined ? `${revoked} sessions ended` : `Session ${id} ended`)
})

export const logout = command({
  run: ({ baseUrl, io }) => {
    const base_url = baseUrl()
    return { base_url, forgotten: forgetKey(io.env, base_url) }
  },
  text: ({ base_url, forgotten }) => (forgotten ? `Removed the stored key for ${base_url}` : `No stored key for ${base_url}`)
})
