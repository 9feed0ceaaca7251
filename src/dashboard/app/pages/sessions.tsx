/** The sessions of the account: browsers and programs that are signed in. */
import { useState } from 'preact/hooks'
import type { Sessions } from '../../../client/types.ts'
import { call } from '../api.ts'
import { useRead } from '../query.ts'
import { signOut, useMay } from '../session.ts'
import { Badge, Button, Tags } from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

type Session = Sessions['sessions'][number]

const programs: [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari']
]
const systems: [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux']
]
/** Firefox on Linux; what is not a browser, in its own words. */
export const programOf = (agent: string | null): string => {
  if (!agent) return 'Unknown program'
  const named = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent))?.[1]
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
  const [ending, end] = useState<'everywhere' | Session>()
  const close = () => end(undefined)
  return (
    <Page
      title="Sessions"
      read={read}
      needs={{ what: 'Listing and ending sessions needs', scope: 'account' }}
      actions={<Button label="Sign out everywhere" icon="out" onClick={() => end('everywhere')} />}
    >
      {data => (
        <>
          <p class="lead">A browser or program that signed in has a session for a year. API keys are separate: they stay valid.</p>
          <Paged page={data} rows={data.sessions} columns={columnsFor(end)} caption="Sessions" noun="session" id={({ id }) => id} />
          {ending === 'everywhere' && (
            <Confirm
              title="Sign out everywhere"
              label="Sign out everywhere"
              kind="danger"
              onClose={close}
              action={() => signOut({ everywhere: true }).then(() => location.reload())}
            >
              <p>All sessions of the account end immediately, this one included.</p>
            </Confirm>
          )}
          {ending && ending !== 'everywhere' && (
            <Confirm
              title="End the session"
              label="End the session"
              kind="danger"
              onClose={close}
              done="The session has ended"
              action={() => call('DELETE', `/v1/auth/sessions/${ending.id}`).then(read.reload)}
            >
              <p>{`${programOf(ending.user_agent)}${ending.ip ? ` at ${ending.ip}` : ''} is signed out immediately.`}</p>
            </Confirm>
          )}
        </>
      )}
    </Page>
  )
}
