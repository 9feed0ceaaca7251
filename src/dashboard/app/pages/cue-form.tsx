/** Creating and editing a cue. */
import { useMemo, useState } from 'preact/hooks'
import type { Cue, CueDetail } from '../../../client/types.ts'
import { call, post } from '../api.ts'
import { useHold, useRead } from '../query.ts'
import { serviceUrl } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { localZone } from '../time.ts'
import { ButtonLink, Panel } from '../ui/basics.tsx'
import { Form } from '../ui/dialog.tsx'
import { EditPage, Page } from '../ui/page.tsx'
import { say } from '../ui/toast.tsx'
import { Advanced, Fields, type FormProps } from './cue-fields.tsx'
import { bodyOf, changesOf, type Draft, draftOf, emptyDraft } from './cue-model.ts'
import { errorsOf } from './form-errors.ts'
import { jsonOf } from './json-text.ts'
import { ScheduleFields } from './schedule-fields.tsx'

const cues = { path: '/cues', name: 'Cues' }
const needs = { what: 'Creating and changing cues needs', scope: 'write' } as const

type EditorProps = { first: Draft; isNew?: boolean; above: string; label: string; save: (draft: Draft) => Promise<unknown> }

const Editor = ({ first, isNew = false, above, label, save }: EditorProps) => {
  const [draft, setDraft] = useState(first)
  useHold(true)
  const set = (more: Draft) => setDraft(old => ({ ...old, ...more }))
  const changes = isNew ? [] : changesOf(first, draft)
  const fields = { draft, set, isNew }
  return (
    <Form
      class="editor stack"
      label={label}
      action={() => save(draft)}
      isDisabled={!isNew && changes.length === 0}
      beside={<ButtonLink label="Cancel" href={to(above)} />}
    >
      {failure => {
        const props = { ...fields, errors: errorsOf(failure) }
        return (
          <>
            <Panel title="What">
              <Fields part="what" {...props} />
            </Panel>
            <ScheduleFields {...props} />
            <Panel title="After other cues">
              <Fields part="after" {...props} />
            </Panel>
            <Panel title="Where">
              <Fields part="where" {...props} />
              <DeliveryHint {...props} />
            </Panel>
            <Advanced title="approval" part="approval" {...props} />
            <Advanced title="deadlines and retries" part="delivery" {...props} />
            <Advanced title="verification, overlap and failures" part="failures" {...props} />
            {!isNew && <Changes changes={changes} />}
          </>
        )
      }}
    </Form>
  )
}

const DeliveryHint = ({ draft, set, isNew }: FormProps) => {
  if (draft.transport === 'worker') return <p class="hint">Workers claim its executions by the task in the payload.</p>
  if (!isNew) return null
  const fill = () => set({ 'callback.url': `${serviceUrl}/v1/echo/dashboard-${crypto.randomUUID()}` })
  return (
    <p class="hint row">
      To try it without a server, use the echo buffer:
      <button type="button" class="chip" onClick={fill}>
        fill in its address
      </button>
    </p>
  )
}

const Changes = ({ changes }: { changes: [string, string, string][] }) => (
  <Panel title={changes.length > 0 ? 'Changes' : 'Nothing has changed'}>
    <dl class="facts diff">
      {changes.map(([name, from, into]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <del>{from}</del>
            <ins>{into}</ins>
          </dd>
        </div>
      ))}
    </dl>
  </Panel>
)

/** A new cue, or a copy of another one, whose masked headers are to be filled in again. */
export const NewCue = () => {
  const { go, query } = usePlace()
  const read = useRead<CueDetail>(query.from && `/v1/cues/${encodeURIComponent(query.from)}`, {}, { repeat: false })
  const first = useMemo(() => {
    if (!read.data) return emptyDraft(localZone())
    const draft = draftOf(read.data)
    return { ...draft, name: `${draft.name} (copy)`, key: '', 'callback.headers': draft['callback.headers']!.replaceAll('********', '') }
  }, [read.data?.id])
  const save = async (draft: Draft) => {
    const body = { ...bodyOf(draft), payload: jsonOf(draft.payload!) }
    const cue = await post<Cue>('/v1/cues', body, { 'idempotency-key': crypto.randomUUID() })
    say(cue.warning ?? `${cue.name} is scheduled.`)
    go(to(`/cues/${cue.id}`))
  }
  const editor = <Editor key={first.name} first={first} isNew above="/cues" label="Create the cue" save={save} />
  return (
    <Page title="Create a cue" above={cues} needs={needs} read={query.from ? read : undefined}>
      {query.from ? () => editor : editor}
    </Page>
  )
}

export const EditCue = ({ id }: { id: string }) => {
  const { go } = usePlace()
  const path = `/cues/${encodeURIComponent(id)}`
  const save = async (cue: CueDetail, draft: Draft) => {
    const first = draftOf(cue)
    const payload = draft.payload !== first.payload && { payload: jsonOf(draft.payload!) }
    await call('PATCH', `/v1${path}`, { body: { ...bodyOf(draft, first), ...payload }, headers: { 'if-match': `"${cue.version}"` } })
    say('Saved')
    go(to(path))
  }
  return (
    <EditPage<CueDetail> path={path} above={cues} needs={needs}>
      {cue => <Editor first={draftOf(cue)} above={path} label="Save" save={draft => save(cue, draft)} />}
    </EditPage>
  )
}
