/** `pgcue whoami`, `usage`, `keys …`, `sessions …` and `logout`. */
import { type NewKey, PgcueError } from '../client/index.ts'
import { acting, command, filtersOf, listing } from './command.ts'
import { forgetKey } from './credentials.ts'
import { UsageError } from './exit-codes.ts'

export const whoami = command({
  run: async context => {
    const { out } = context
    const client = await context.connect()
    const me = await client.me()
    out.show({ base_url: client.baseUrl, ...me }, () =>
      out.fields({
        email: me.email,
        account: me.id,
        plan: me.plan,
        key: me.api_key_prefix && `${me.api_key_prefix}…`,
        service: client.baseUrl
      })
    )
  }
})

export const usage = command({
  run: async context => {
    const { out } = context
    const client = await context.connect()
    const answer = await client.usage()
    if (!answer?.billing_period) {
      const message = `${client.baseUrl} did not respond like pgcue. Check the address of the service.`
      throw new PgcueError({ code: 'unexpected_answer', message })
    }
    const { plan, billing_period: period, cues, executions, outcomes, rate_limit } = answer
    out.show(answer, () => {
      out.fields({ plan, period: `${period.start} to ${period.end}, ${period.days_remaining} days left` })
      out.line('')
      out.table(
        [
          { name: 'cues', ...cues },
          { name: 'executions', ...executions }
        ],
        [['', 'name'], 'used', ['limit', row => row.limit ?? 'none'], 'remaining', ['%', 'percent_used']]
      )
      out.line('')
      out.fields({
        'projected executions': `${executions.projected_month_end}${executions.will_exceed_limit ? `, over the limit: ${answer.upgrade_url}` : ''}`,
        outcomes: `${outcomes.reported} reported, ${outcomes.succeeded} succeeded, ${outcomes.failed} failed`,
        requests: `${rate_limit.current_usage}${rate_limit.limit === null ? '' : ` of ${rate_limit.limit}`} in this minute`
      })
    })
  }
})

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

export const keysCreate = command({
  options: { scopes: { type: 'string', value: 'SCOPES', help: 'comma-separated: read, write, worker, account (default: all)' } },
  run: async context => {
    const { options, out } = context
    const label = context.args[0]!
    const scopes = options.scopes?.split(',').map(scope => scope.trim())
    const key = await (await context.connect()).keys.create({ label, ...(scopes && { scopes }) } as NewKey)
    out.show(key, () => out.fields({ id: key.id, label: key.label, scopes: key.scopes.join(','), key: key.api_key }))
  }
})

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
  run: async ({ args: [id], options, out, connect }) => {
    if ((id === undefined) !== (options.all === true)) throw new UsageError('give either ID or --all')
    const { auth } = await connect()
    if (id === undefined) {
      const ended = await auth.endSession({ all: true })
      return out.show(ended, () => out.line(`${ended.revoked} sessions ended`))
    }
    await auth.revokeSession(id)
    out.show({ id, revoked: true }, () => out.line(`Session ${id} ended`))
  }
})

export const logout = command({
  run: async context => {
    const { out } = context
    const base_url = await context.baseUrl()
    const forgotten = forgetKey(context.io.env, base_url)
    out.show({ base_url, forgotten }, () =>
      out.line(forgotten ? `Removed the stored key for ${base_url}` : `No stored key for ${base_url}`)
    )
  }
})
