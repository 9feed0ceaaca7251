/** The sessions of the account: browsers and programs that are signed in. */
import { useState } from 'preact/hooks'
import type { Sessions } from '../../../client/types.ts'
import { call } from '../api.ts'

import { useRead } from '../query.ts'
import { signOut, useMay } from '../session.ts'
import { Badge, Button, Tag } from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { NotAllowed, Page } from '../ui/frame.tsx'
import { OffsetList, useOffset } from '../ui/list.tsx'
import { When } from '../ui/when.tsx'

type Session = Sessions['sessions'][number]
type Asked = 'everywhere' | Session

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

export const SessionsPage = () => {
  const mayManage = useMay('account')
  const read = useRead<Sessions>(mayManage ? '/v1/auth/sessions' : undefined, { limit: 50, offset: useOffset() })
  const [asked, ask] = useState<Asked>()
  if (!mayManage) return <NotAllowed title="Sessions" what="Listing and ending sessions needs" scope="account" />
  const close = () => ask(undefined)
  return (
    <Page title="Sessions" read={read} actions={<Button label="Sign out everywhere" icon="out" onClick={() => ask('everywhere')} />}>
      <p class="lead">A browser or program that signed in has a session for a year. API keys are separate: they stay valid.</p>
      <OffsetList<Sessions>
        read={read}
        caption="Sessions"
        columns={['Signed in with', 'Scopes', 'Since', 'Until', '']}
        noun="session"
        rows={({ sessions }) => sessions.map(one => <Row key={one.id} one={one} onEnd={() => ask(one)} />)}
      />
      {asked === 'everywhere' && (
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
      {asked !== undefined && asked !== 'everywhere' && (
        <Confirm
          title="End the session"
          label="End the session"
          kind="danger"
          onClose={close}
          done="The session has ended"
          action={() => call('DELETE', `/v1/auth/sessions/${asked.id}`).then(read.reload)}
        >
          <p>{`${programOf(asked.user_agent)}${asked.ip ? ` at ${asked.ip}` : ''} is signed out immediately.`}</p>
        </Confirm>
      )}
    </Page>
  )
}

const Row = ({ one, onEnd }: { one: Session; onEnd: () => void }) => (
  <tr data-row>
    <td class="cell-main">
      <span class="name" title={one.user_agent ?? undefined}>
        {programOf(one.user_agent)}
      </span>
      <div class="under">
        {one.key_id ? `key ${one.key_label ?? 'deleted'}` : 'email link'}
        {one.ip && <span class="mono">{one.ip}</span>}
        {one.is_current && <Badge tone="info">this browser</Badge>}
      </div>
    </td>
    <td>
      <div class="tags">
        {one.scopes.map(scope => (
          <Tag key={scope} label={scope} />
        ))}
      </div>
    </td>
    <td>
      <span class="phone-only">{'since '}</span>
      <When at={one.created_at} only="relative" />
    </td>
    <td>
      <span class="phone-only">{'until '}</span>
      <When at={one.expires_at} only="absolute" />
    </td>
    <td class="cell-actions">{!one.is_current && <Button label="End the session" icon="close" kind="quiet" iconOnly onClick={onEnd} />}</td>
  </tr>
)
