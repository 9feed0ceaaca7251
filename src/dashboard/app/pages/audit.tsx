/** Who changed the account, its keys, secrets and cues. */
import type { AuditEvents } from '../../../client/types.ts'
import { plain } from '../labels.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay } from '../session.ts'
import { PageLink } from '../ui/basics.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { useActorText } from './actor.tsx'

type Event = AuditEvents['events'][number]

/** Where "created cue" for `cue.created` would not say it. */
const phrases: Record<string, string> = {
  'account.registered': 'registered the account',
  'account.updated': 'changed the settings of the account',
  'account.deletion_requested': 'asked for the deletion of the account',
  'account.deletion_cancelled': 'cancelled the deletion of the account',
  'session.created': 'signed in',
  'session.refreshed': 'stayed signed in',
  'session.revoked': 'signed out',
  'key.regenerated': 'replaced the key',
  'plan.changed': 'changed the plan',
  'cues.applied': 'applied a set of cues',
  'operation.created': 'started the operation',
  'approval.decided': 'decided about a run of'
}
const phraseOf = (event: string) => {
  const [noun, verb] = event.split('.').map(plain) as [string, string]
  return phrases[event] ?? `${verb} the ${noun}`
}

const Sentence = ({ of: { event, actor, detail }, by }: { of: Event; by: (actor: string) => string }) => {
  const {
    cue_id,
    operation_id,
    label,
    prefix,
    name = label,
    key_id: _,
    session_id: __,
    ...rest
  } = detail as Partial<Record<string, string>>
  const facts = Object.entries(rest).flatMap(([name, value]: [string, unknown]) =>
    value === null || value === 0 || value === false
      ? []
      : `${plain(name)} ${Array.isArray(value) ? value.map(plain).join(', ') : typeof value === 'object' ? JSON.stringify(value) : value}`
  )
  const link = cue_id ? `/cues/${cue_id}` : operation_id && `/operations/${operation_id}`
  return (
    <>
      <span class="name">{by(actor)}</span> {[phraseOf(event), name ?? (event.startsWith('key.') && prefix)].filter(Boolean).join(' ')}
      {link && [' ', <PageLink kind="mono" href={to(link)} text={cue_id ?? operation_id} />]}
      {facts.length > 0 && <span class="soft break">{`: ${facts.join('; ')}`}</span>}
    </>
  )
}

const columnsFor = (by: (actor: string) => string): Column<Event>[] => [
  ['Event', event => <Sentence of={event} by={by} />, 'cell-main'],
  ['Address', ({ ip }) => ip],
  ['When', ({ created_at }) => <When at={created_at} />]
]

export const Audit = () => {
  const offset = useOffset()
  const read = useRead<AuditEvents>(useMay('account') ? '/v1/auth/audit' : undefined, { limit: 50, offset })
  const columns = columnsFor(useActorText())
  return (
    <Page title="Audit log" read={read} needs={{ what: 'The audit log needs', scope: 'account' }}>
      {data => <Paged page={data} rows={data.events} columns={columns} caption="Audit log" noun="event" id={({ id }) => String(id)} />}
    </Page>
  )
}
