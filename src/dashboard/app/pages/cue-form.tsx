/** Creating and editing a cue. */

import { useMemo, useState } from 'preact/hooks'
import type { Cue, CueDetail } from '../../../client/types.ts'
import { call, Failure, parseExactly, post } from '../api.ts'

import { useHold, useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay } from '../session.ts'
import { localZone } from '../time.ts'
import { Button, ButtonLink, Loading, Problem } from '../ui/basics.tsx'
import { useAction } from '../ui/dialog.tsx'
import { Above, NotAllowed, Page } from '../ui/frame.tsx'
import { say } from '../ui/toast.tsx'
import { bodyOf, changesOf, type Draft, draftOf, emptyDraft } from './cue-draft.ts'
import { AboutFields, DeliveryFields, MoreFields } from './cue-fields.tsx'
import { errorsOf } from './form-errors.ts'
import { ScheduleFields } from './schedule-fields.tsx'

type EditorProps = {
  title: string
  first: Draft
  isNew: boolean
  above: { path: string; name: string }
  label: string
  changes?: (draft: Draft) => [string, string, string][]
  save: (draft: Draft) => Promise<void>
}

const Editor = ({ title, first, isNew, above, label, changes, save }: EditorProps) => {
  const [draft, setDraft] = useState(first)
  const { busy, failure, run } = useAction()
  useHold(true)
  const set = (more: Partial<Draft>) => setDraft(old => ({ ...old, ...more }))
  const submit = (event: Event) => {
    event.preventDefault()
    void run(() => save(draft))
  }
  const errors = errorsOf(failure)
  const changed = useMemo(() => {
    try {
      return changes?.(draft) ?? []
    } catch {
      return []
    }
  }, [draft])
  const fields = { draft, set, errors, isNew }
  return (
    <Page title={title} above={<Above {...above} />}>
      <form class="editor" onSubmit={submit}>
        <div class="stack">
          <AboutFields {...fields} />
          <ScheduleFields {...fields} />
          <DeliveryFields {...fields} />
          <MoreFields {...fields} />
        </div>
        <div class="editor-foot panel">
          {changed.length > 0 && (
            <div class="diff">
              <h2>Changes</h2>
              <dl>
                {changed.map(([name, from, into]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>
                      <del>{from}</del>
                      <ins>{into}</ins>
                    </dd>
                  </div>
                ))}
              </dl>
            </div>
          )}
          {!isNew && changed.length === 0 && <p class="soft">Nothing has changed.</p>}
          {failure && (
            <p class="field-error" role="alert">
              {failure.message}
            </p>
          )}
          <div class="actions left">
            <Button label={label} kind="main" type="submit" busy={busy} disabled={!isNew && changed.length === 0} />
            <ButtonLink label="Cancel" href={to(above.path)} />
          </div>
        </div>
      </form>
    </Page>
  )
}

/** @throws {Failure} at the field that is not JSON */
const parsed = (draft: Draft): unknown => {
  try {
    return parseExactly(draft.payload.trim() || '{}')
  } catch (error) {
    const text = `not valid JSON: ${(error as Error).message}`
    throw new Failure(422, 'validation_error', `payload: ${text}`, { payload: text })
  }
}

const refused = (title: string) => <NotAllowed title={title} what="Creating and changing cues needs" scope="write" />

export const NewCue = () => {
  const first = useMemo(() => emptyDraft(localZone()), [])
  if (!useMay('write')) return refused('Create a cue')
  return (
    <Editor
      title="Create a cue"
      first={first}
      isNew
      above={{ path: '/cues', name: 'Cues' }}
      label="Create the cue"
      save={async draft => {
        const cue = await post<Cue>('/v1/cues', { ...bodyOf(draft), payload: parsed(draft) }, { 'idempotency-key': crypto.randomUUID() })
        say(cue.warning ?? `${cue.name} is scheduled.`)
        go(to(`/cues/${cue.id}`))
      }}
    />
  )
}

export const EditCue = ({ id }: { id: string }) => {
  const read = useRead<CueDetail>(`/v1/cues/${encodeURIComponent(id)}`, {}, { repeat: false })
  const mayWrite = useMay('write')
  const [cue, setCue] = useState<CueDetail>()
  // The first answer is what is edited; later ones would overwrite it.
  if (read.data && !cue && read.at > Date.now() - 60_000) setCue(read.data)
  if (!mayWrite) return refused('Edit')
  if (!cue)
    return (
      <Page title="Edit" above={<Above path="/cues" name="Cues" />}>
        {read.failure ? <Problem failure={read.failure} /> : <Loading />}
      </Page>
    )
  const first = draftOf(cue)
  return (
    <Editor
      title={`Edit ${cue.name}`}
      first={first}
      isNew={false}
      above={{ path: `/cues/${id}`, name: cue.name }}
      label="Save"
      changes={draft => changesOf(first, draft)}
      save={async draft => {
        const body = bodyOf(draft, first)
        await call('PATCH', `/v1/cues/${id}`, {
          body: { ...body, ...(draft.payload !== first.payload && { payload: parsed(draft) }) },
          headers: { 'if-match': `"${cue.version}"` }
        })
        say('Saved')
        go(to(`/cues/${id}`))
      }}
    />
  )
}
