/** `pgcue whoami`, `usage`, `keys …` and `logout`. */
import { type NewKey, PgcueError } from '../client/index.ts'
import { command, none, only } from './command.ts'
import { forgetKey } from './credentials.ts'

export const whoami = command({
  summary: 'Show the account and key in use',
  run: async context => {
    none(context)
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
  summary: "Show usage against the plan's limits",
  run: async context => {
    none(context)
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
  summary: 'List keys, including revoked ones, newest first',
  run: async context => {
    none(context)
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
  args: 'LABEL [--scopes SCOPES]',
  summary: 'Create a key; it is shown only once',
  options: { scopes: { type: 'string', value: 'SCOPES', help: 'comma-separated: read, write, worker, account (default: all)' } },
  run: async context => {
    const { options, out } = context
    const label = only(context, 'LABEL')
    const scopes = options.scopes?.split(',').map(scope => scope.trim())
    const key = await (await context.connect()).keys.create({ label, ...(scopes && { scopes }) } as NewKey)
    out.show(key, () => out.fields({ id: key.id, label: key.label, scopes: key.scopes.join(','), key: key.api_key }))
  }
})

export const keysRevoke = command({
  args: 'ID',
  summary: 'Revoke a key, effective immediately',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    const revoked = await (await context.connect()).keys.revoke(id)
    out.show(revoked, () => out.line(`Key ${revoked.id} revoked at ${revoked.revoked_at}`))
  }
})

export const logout = command({
  summary: 'Remove the stored key of this service (does not revoke it)',
  run: async context => {
    none(context)
    const { out } = context
    const base_url = await context.baseUrl()
    const forgotten = forgetKey(context.io.env, base_url)
    out.show({ base_url, forgotten }, () =>
      out.line(forgotten ? `Removed the stored key for ${base_url}` : `No stored key for ${base_url}`)
    )
  }
})
