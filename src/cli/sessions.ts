/** `pgcue sessions …` */
import type { Sessions } from '../client/index.ts'
import { command, none, only } from './command.ts'
import { page, pageOf } from './page.ts'

type Session = Sessions['sessions'][number]

export const sessionsList = command({
  summary: 'List sessions of browsers and programs, newest first',
  options: page,
  run: async context => {
    none(context)
    const { options, out } = context
    const answer = await (await context.connect()).auth.sessions(pageOf(options))
    const columns: Parameters<typeof out.list<Session>>[2] = [
      ['id', session => session.id],
      ['opened with', session => session.key_label ?? 'email link'],
      ['address', session => session.ip],
      ['program', session => session.user_agent],
      ['since', session => session.created_at],
      ['until', session => session.expires_at]
    ]
    out.list(answer, answer.sessions, columns, 'No sessions.')
  }
})

export const sessionsRevoke = command({
  args: '(ID | --all)',
  summary: 'End a session, or all of them, effective immediately',
  options: { all: { type: 'boolean', help: 'end all sessions of the account' } },
  names: { session_id: 'ID' },
  run: async context => {
    const { options, out } = context
    if (options.all) {
      none(context)
      const ended = await (await context.connect()).auth.endSession({ all: true })
      out.show(ended, () => out.line(`${ended.revoked} sessions ended`))
      return
    }
    const id = only(context, 'ID')
    await (await context.connect()).auth.revokeSession(id)
    out.show({ id, revoked: true }, () => out.line(`Session ${id} ended`))
  }
})
