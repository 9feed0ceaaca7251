/** What was reported, and the decision of a person. */
import type { Execution } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useMay } from '../session.ts'
import { Badge, Button, type Children, Code, Facts } from '../ui/basics.tsx'
import { act, Confirm, show } from '../ui/dialog.tsx'
import { TextField, useText } from '../ui/form.tsx'
import { When } from '../ui/when.tsx'

type Outcome = NonNullable<Execution['outcome']>

/** A link for web addresses only: the text comes from other people's programs. */
const isWeb = (url: unknown): url is string => typeof url === 'string' && /^https?:\/\//i.test(url) && URL.canParse(url)
const WebLink = ({ url, label = url }: { url: string; label?: string }) =>
  isWeb(url) ? (
    <a href={url} target="_blank" rel="noreferrer noopener" class="break">
      {label}
    </a>
  ) : (
    <span class="break">{url}</span>
  )
const linked = (text: string | null | undefined): Children => text && <WebLink url={text} />

/** The addresses in artifacts, under the names of what they belong to. */
const artifactLinks = (artifacts: unknown): Children =>
  (Array.isArray(artifacts) ? artifacts : []).flatMap(artifact =>
    (typeof artifact === 'string' ? [artifact] : Object.values(artifact ?? {})).filter(isWeb).map(url => (
      <div key={url}>
        <WebLink url={url} label={typeof artifact.name === 'string' ? artifact.name : url} />
      </div>
    ))
  )

const Json = ({ name, value }: { name: string; value: unknown }) =>
  value === undefined || value === null ? null : (
    <div>
      <p class="soft">{name}</p>
      <Code text={JSON.stringify(value, null, 2)} label={name.toLowerCase()} />
    </div>
  )

const mono = (text: string | null | undefined): Children => text && <span class="mono break">{text}</span>

type EvidenceProps = { outcome: Outcome; costs: Execution['costs'] }
export const Evidence = ({ outcome: { success, recorded_at, ...outcome }, costs }: EvidenceProps) => (
  <div class="stack">
    <Facts
      items={[
        [
          'Reported',
          <>
            <Badge tone={success ? 'good' : 'bad'}>{success ? 'success' : 'failure'}</Badge> <When at={recorded_at} only="relative" />
          </>
        ],
        ['Summary', linked(outcome.summary)],
        ['Result', linked(outcome.result)],
        ['Error', outcome.error],
        ['Kind of result', outcome.result_type],
        ['External id', mono(outcome.external_id)],
        ['Link', linked(outcome.result_url)],
        ['Reference', linked(outcome.result_ref)],
        ['Files', artifactLinks(outcome.artifacts)],
        ['Costs', costs.map(({ amount, unit }) => `${amount} ${unit}`).join(', ')],
        ['Reason', outcome.verification_reason]
      ]}
    />
    <Json name="Artifacts" value={outcome.artifacts} />
    <Json name="Metadata" value={outcome.metadata} />
  </div>
)

const verify = (id: string, valid: boolean, reason: string) =>
  post(`/v1/executions/${id}/verify`, { valid, ...(reason.trim() && { reason: reason.trim() }) })
export const approve = (id: string, note = '') => act(() => verify(id, true, note), 'Approved')

type RejectProps = { id: string; note?: string; onDone: () => void }
const Reject = ({ id, note, onDone }: RejectProps) => {
  const reason = useText(note)
  const reject = () => verify(id, false, reason.value)
  return (
    <Confirm title="Reject the outcome" label="Reject" kind="danger" done="Rejected" action={reject} onDone={onDone}>
      <TextField label="Reason" {...reason} maxLength={2000} hint="Stored with the outcome." />
    </Confirm>
  )
}

export const reject = (props: RejectProps): void => show(<Reject {...props} />)

export const VerifyButtons = ({ id, onDone }: { id: string; onDone: () => void }) => {
  if (!useMay('write')) return null
  return (
    <>
      <Button label="Approve" icon="check" kind="main" onClick={() => void approve(id).then(onDone)} />
      <Button label="Reject" icon="close" onClick={() => reject({ id, onDone })} />
    </>
  )
}
