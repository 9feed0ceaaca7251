/** Creating and editing a cue, with its next runs while typing. */

import { useMemo, useState } from 'preact/hooks'
import type { Cue, CueDetail } from '../../../client/types.ts'
import { call, Failure, parseExactly, post } from '../api.ts'
import { h } from '../h.ts'
import { useHold, useRead } from '../query.ts'
import { serviceUrl } from '../root.ts'
import { go, to } from '../router.ts'
import { useMay } from '../session.ts'
import { localZone } from '../time.ts'
import { Button, ButtonLink, Empty, Loading, Panel, Problem } from '../ui/basics.ts'
import { useAction } from '../ui/dialog.ts'
import { AreaField, CheckField, Choice, SelectField, TextField } from '../ui/form.ts'
import { Above, Page } from '../ui/frame.ts'
import { say } from '../ui/toast.ts'
import { bodyOf, changesOf, type Draft, draftOf, emptyDraft } from './cue-draft.ts'
import { errorOf, errorsOf } from './form-errors.ts'
import { type FormProps, ScheduleFields } from './schedule-fields.ts'

const DeliveryFields = ({ draft, set, errors, isNew }: FormProps) =>
  h(
    Panel,
    { title: 'Where' },
    isNew &&
      h(Choice, {
        label: 'Transport',
        value: draft.transport,
        onInput: transport => set({ transport: transport as Draft['transport'] }),
        options: [
          { value: 'webhook', label: 'Webhook: pgcue calls you' },
          { value: 'worker', label: 'Worker: you claim it' }
        ]
      }),
    draft.transport === 'webhook'
      ? h(
          'div',
          { class: 'stack' },
          h(
            'div',
            { class: 'two wide-first' },
            h(TextField, {
              label: 'Callback URL',
              type: 'url',
              value: draft.url,
              onInput: url => set({ url }),
              required: true,
              mono: true,
              placeholder: 'https://example.com/hook',
              error: errorOf(errors, 'callback.url', 'callback_url', 'callback')
            }),
            h(SelectField, {
              label: 'Method',
              value: draft.method,
              onInput: method => set({ method }),
              options: ['POST', 'PUT', 'PATCH', 'GET'].map(value => ({ value, label: value }))
            })
          ),
          isNew &&
            h(
              'p',
              { class: 'hint' },
              'To try it without a server, use the echo buffer: ',
              h(
                'button',
                { type: 'button', class: 'chip', onClick: () => set({ url: `${serviceUrl}/v1/echo/dashboard-${crypto.randomUUID()}` }) },
                'fill in its address'
              )
            )
        )
      : h('p', { class: 'hint' }, 'Workers claim its executions by the task in the payload.'),
    h(AreaField, {
      label: 'Payload',
      value: draft.payload,
      onInput: payload => set({ payload }),
      mono: true,
      rows: 5,
      error: errorOf(errors, 'payload'),
      hint: 'JSON of any shape, delivered with each execution. Its member task names the task of workers.'
    })
  )

const MoreFields = ({ draft, set, errors }: FormProps) =>
  h(
    'details',
    { class: 'panel more-fields' },
    h('summary', {}, 'Retries, outcome, failures'),
    h(
      'div',
      { class: 'stack' },
      h(
        'div',
        { class: 'two' },
        h(TextField, {
          label: 'Attempts',
          type: 'number',
          value: draft.attempts,
          onInput: attempts => set({ attempts }),
          error: errorOf(errors, 'retry.max_attempts')
        }),
        h(TextField, {
          label: 'Minutes between them',
          value: draft.backoff,
          onInput: backoff => set({ backoff }),
          error: errorOf(errors, 'retry.backoff_minutes'),
          hint: 'Separated by commas.'
        })
      ),
      h(SelectField, {
        label: 'Verification',
        value: draft.verification,
        onInput: verification => set({ verification }),
        options: [
          { value: '', label: 'not set' },
          { value: 'none', label: 'none' },
          { value: 'require_external_id', label: 'needs an external id' },
          { value: 'require_result_url', label: 'needs a result URL' },
          { value: 'require_artifacts', label: 'needs artifacts' },
          { value: 'manual', label: 'a person decides' }
        ]
      }),
      h(SelectField, {
        label: 'After an outage',
        value: draft.catch_up,
        onInput: catch_up => set({ catch_up }),
        options: [
          { value: 'run_once_if_missed', label: 'run the latest missed slot' },
          { value: 'skip_missed', label: 'skip missed slots' },
          { value: 'replay_all_missed', label: 'run all missed slots' }
        ]
      }),
      h(SelectField, {
        label: 'While the run before has not ended',
        value: draft.overlap,
        onInput: overlap => set({ overlap }),
        options: [
          { value: 'allow', label: 'run beside it' },
          { value: 'skip', label: 'skip the slot' },
          { value: 'queue_one', label: 'wait; at most one waits' },
          { value: 'queue_all', label: 'wait in a queue' },
          { value: 'cancel_previous', label: 'cancel the run before' }
        ]
      }),
      h(CheckField, { label: 'Mail me when an execution fails', checked: draft.email, onInput: email => set({ email }) }),
      h(TextField, {
        label: 'Pause after failures in a row',
        type: 'number',
        value: draft.pause_after,
        onInput: pause_after => set({ pause_after }),
        error: errorOf(errors, 'on_failure.pause_after'),
        hint: 'Empty: never.'
      })
    )
  )

const AboutFields = ({ draft, set, errors }: FormProps) =>
  h(
    Panel,
    { title: 'What' },
    h(TextField, {
      label: 'Name',
      value: draft.name,
      onInput: name => set({ name }),
      required: true,
      maxLength: 255,
      placeholder: 'daily report',
      autofocus: true,
      error: errorOf(errors, 'name')
    }),
    h(TextField, {
      label: 'Description (optional)',
      value: draft.description,
      onInput: description => set({ description }),
      maxLength: 2000,
      error: errorOf(errors, 'description')
    }),
    h(
      'div',
      { class: 'two' },
      h(TextField, {
        label: 'Key (optional)',
        value: draft.key,
        onInput: key => set({ key }),
        mono: true,
        maxLength: 255,
        spellcheck: false,
        hint: 'Your own name for it, unique in the account.',
        error: errorOf(errors, 'key')
      }),
      h(TextField, {
        label: 'Tags (optional)',
        value: draft.tags,
        onInput: tags => set({ tags }),
        hint: 'Up to 10, separated by commas.',
        error: errorOf(errors, 'tags')
      })
    )
  )

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
  return h(
    Page,
    { title, above: h(Above, above) },
    h(
      'form',
      { class: 'editor', onSubmit: submit },
      h('div', { class: 'stack' }, h(AboutFields, fields), h(ScheduleFields, fields), h(DeliveryFields, fields), h(MoreFields, fields)),
      h(
        'div',
        { class: 'editor-foot panel' },
        changed.length > 0 &&
          h(
            'div',
            { class: 'diff' },
            h('h2', {}, 'Changes'),
            h(
              'dl',
              {},
              changed.map(([name, from, into]) =>
                h('div', { key: name }, h('dt', {}, name), h('dd', {}, h('del', {}, from), h('ins', {}, into)))
              )
            )
          ),
        !isNew && changed.length === 0 && h('p', { class: 'soft' }, 'Nothing has changed.'),
        failure && h('p', { class: 'field-error', role: 'alert' }, failure.message),
        h(
          'div',
          { class: 'actions left' },
          h(Button, { label, kind: 'main', type: 'submit', busy, disabled: !isNew && changed.length === 0 }),
          h(ButtonLink, { label: 'Cancel', href: to(above.path) })
        )
      )
    )
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

const refused = (title: string) =>
  h(Page, { title }, h(Empty, { title: 'Not with this session', text: 'Creating and changing cues needs the scope write.' }))

export const NewCue = () => {
  const first = useMemo(() => emptyDraft(localZone), [])
  if (!useMay('write')) return refused('Create a cue')
  return h(Editor, {
    title: 'Create a cue',
    first,
    isNew: true,
    above: { path: '/cues', name: 'Cues' },
    label: 'Create the cue',
    save: async draft => {
      const cue = await post<Cue>('/v1/cues', { ...bodyOf(draft), payload: parsed(draft) }, { 'idempotency-key': crypto.randomUUID() })
      say(cue.warning ?? `${cue.name} is scheduled.`)
      go(to(`/cues/${cue.id}`))
    }
  })
}

export const EditCue = ({ id }: { id: string }) => {
  const read = useRead<CueDetail>(`/v1/cues/${encodeURIComponent(id)}`, {}, { repeat: false })
  const mayWrite = useMay('write')
  const [cue, setCue] = useState<CueDetail>()
  // The first answer is what is edited; later ones would overwrite it.
  if (read.data && !cue && read.at > Date.now() - 60_000) setCue(read.data)
  if (!mayWrite) return refused('Edit')
  if (!cue)
    return h(
      Page,
      { title: 'Edit', above: h(Above, { path: '/cues', name: 'Cues' }) },
      read.failure ? h(Problem, { failure: read.failure }) : h(Loading, {})
    )
  const first = draftOf(cue)
  return h(Editor, {
    title: `Edit ${cue.name}`,
    first,
    isNew: false,
    above: { path: `/cues/${id}`, name: cue.name },
    label: 'Save',
    changes: draft => changesOf(first, draft),
    save: async draft => {
      const body = bodyOf(draft, first)
      await call('PATCH', `/v1/cues/${id}`, {
        body: { ...body, ...(draft.payload !== first.payload && { payload: parsed(draft) }) },
        headers: { 'if-match': `"${cue.version}"` }
      })
      say('Saved')
      go(to(`/cues/${id}`))
    }
  })
}
