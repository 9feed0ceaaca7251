/** The sessions of the account: browsers and programs that are signed in. */
import type { Sessions } from '../../../client/types.ts'
import { call } from '../api.ts'
import { useRead } from '../query.ts'
import { signOut, useMay } from '../session.ts'
import { Badge, Button, Tags } from '../ui/basics.tsx'
import { askToRemove } from '../ui/dialog.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

type Session = Sessions['sessions'][number]

/** The first that matches. */
const programs = { Edge: /Edg\//, Opera: /OPR\//, Firefox: /Firefox\//, Chrome: /Chrome\//, Safari: /Safari\// }
const systems = { Android: /Android/, iOS: /iPhone|iPad/, Windows: /Windows/, macOS: /Mac OS X/, Linux: /Linux/ }
/** Firefox on Linux; what is not a browser, in its own words. */
export const programOf = (agent: string | null): string => {
  if (!agent) return 'Unknown program'
  const named = (names: Record<string, RegExp>) => Object.keys(names).find(name => names[name]!.test(agent))
  const [program, system] = [named(programs), named(systems)]
  return program ? (system ? `${program} on ${system}` : program) : agent
}

const columnsFor = (end: (session: Session) => void): Column<Session>[] => [
  [
    'Signed in with',
    ({ user_agent, key_id, key_label, ip, is_current }) => (
      <>
        <span class="name" title={user_agent ?? undefined}>
          {programOf(user_agent)}
        </span>
        <div class="under">
          {key_id ? `key ${key_label ?? 'deleted'}` : 'email link'}
          {ip && <span class="mono">{ip}</span>}
          {is_current && <Badge tone="info">this browser</Badge>}
        </div>
      </>
    ),
    'cell-main'
  ],
  ['Scopes', ({ scopes }) => <Tags labels={scopes} />, 'bare'],
  ['Since', ({ created_at }) => <When at={created_at} only="relative" />],
  ['Until', ({ expires_at }) => <When at={expires_at} only="absolute" />],
  [
    '',
    session => !session.is_current && <Button label="End the session" icon="close" kind="quiet" iconOnly onClick={() => end(session)} />,
    'cell-actions'
  ]
]

export const SessionsPage = () => {
  const read = useRead<Sessions>(useMay('account') ? '/v1/auth/sessions' : undefined, { limit: 50, offset: useOffset() })
  const end = ({ id, user_agent, ip }: Session) =>
    askToRemove({
      title: 'End the session',
      label: 'End the session',
      text: `${programOf(user_agent)}${ip ? ` at ${ip}` : ''} is signed out immediately.`,
      done: 'The session has ended',
      action: () => call('DELETE', `/v1/auth/sessions/${id}`).then(read.reload)
    })
  const endAll = () =>
    askToRemove({
      title: 'Sign out everywhere',
      label: 'Sign out everywhere',
      text: 'All sessions of the account end immediately, this one included.',
      action: () => signOut({ everywhere: true }).then(() => location.reload())
    })
  return (
    <Page
      title="Sessions"
      read={read}
      needs={{ what: 'Listing and ending sessions needs', scope: 'account' }}
      actions={<Button label="Sign out everywhere" icon="out" onClick={endAll} />}
    >
      {data => (
        <>
          <p class="lead">Each browser or program that signed in has a session. API keys are separate: they stay valid.</p>
          <Paged page={data} rows={data.sessions} columns={columnsFor(end)} caption="Sessions" noun="session" id={({ id }) => id} />
        </>
      )}
    </Page>
  )
}
