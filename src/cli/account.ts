/** `pgcue whoami`, `usage`, `keys …`, `sessions …` and `logout`. */
import { type NewKey, PgcueError } from '../client/index.ts'
import { command, filtersOf } from './command.ts'
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
        [
          ['', row => row.name],
          ['used', row => row.used],
          ['limit', row => row.limit ?? 'none'],
          ['remaining', row => row.remaining],
          ['%', row => row.percent_used]
        ]
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

export const keysList = command({
  run: async context => {
    const { out } = context
    const keys = await (await context.connect()).keys.list()
    out.list(
      { keys },
      keys,
      [
        ['id', key => key.id],
        ['key', key => `${key.prefix}…`],
        ['label', key => key.label],
        ['scopes', key => key.scopes.join(',')],
        ['created', key => key.created_at],
        ['last used', key => key.last_used_at],
        ['revoked', key => key.revoked_at]
      ],
      'No keys.'
    )
  }
})

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

export const keysRevoke = command({
  run: async context => {
    const { out } = context
    const id = context.args[0]!
    const revoked = await (await context.connect()).keys.revoke(id)
    out.show(revoked, () => out.line(`Key ${revoked.id} revoked at ${revoked.revoked_at}`))
  }
})

export const sessionsList = command({
  options: filtersOf('listSessions'),
  run: async context => {
    const { out } = context
    const { client, body } = await context.ready()
    const answer = await client.auth.sessions(body)
    out.list(
      answer,
      answer.sessions,
      [
        ['id', session => session.id],
        ['opened with', session => session.key_label ?? 'email link'],
        ['address', session => session.ip],
        ['program', session => session.user_agent],
        ['since', session => session.created_at],
        ['until', session => session.expires_at]
      ],
      'No sessions.'
    )
  }
})

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
