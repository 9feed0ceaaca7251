/** Creating and editing a calendar: by clicking dates, or as text. */
import { useState } from 'preact/hooks'
import type { Calendar } from '../../../client/types.ts'
import { call } from '../api.ts'

import { useHold, useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Button, ButtonLink, Loading, Panel, Problem } from '../ui/basics.tsx'
import { useAction } from '../ui/dialog.tsx'
import { AreaField, CheckField, TextField } from '../ui/form.tsx'
import { Above, NotAllowed, Page } from '../ui/frame.tsx'
import { addMonths, dateText, Months, monthOf, monthsShown, monthsUntil } from '../ui/months.tsx'
import { say } from '../ui/toast.tsx'
import { type CalendarDraft, calendarDraftOf, calendarOf, emptyCalendar, excludes, toggled } from './calendar-draft.ts'
import { fieldsOf } from './draft-field.tsx'
import { list } from './draft-text.ts'
import { type Errors, errorOf, errorsOf } from './form-errors.ts'

export const calendarPath = (name: string): string => `/calendars/${encodeURIComponent(name)}`
const apiPath = (name: string) => `/v1${calendarPath(name)}`

type Props = { draft: CalendarDraft; set: (changes: Partial<CalendarDraft>) => void; errors: Errors }

const DatesField = ({ draft, set, errors }: Props) => {
  const [isYearly, setYearly] = useState(false)
  const [last, setLast] = useState(() => addMonths(monthOf(new Date(serviceNow()).toISOString()), monthsShown() - 1))
  const dates = list(draft.dates)
  const months = monthsUntil(last, monthsShown())
  const Day = (date: string) => {
    const kind = excludes(dates, date)
    return (
      <button
        type="button"
        class={`day ${kind ?? ''}`}
        aria-pressed={kind !== undefined}
        aria-label={dateText(date)}
        onClick={() => set({ dates: toggled(draft.dates, date, isYearly) })}
      >
        {Number(date.slice(8))}
      </button>
    )
  }
  return (
    <Panel
      title="Dates"
      actions={
        <>
          <Button label="Earlier" icon="back" iconOnly onClick={() => setLast(addMonths(last, -monthsShown()))} />
          <Button label="Later" icon="right" iconOnly onClick={() => setLast(addMonths(last, monthsShown()))} />
        </>
      }
    >
      <p class="hint">Click the dates on which cues do not run, each in the time zone of the cue.</p>
      <CheckField label="Dates that I click repeat every year" checked={isYearly} onInput={setYearly} />
      <Months months={months} day={Day} />
      <AreaField
        label="The same as text"
        value={draft.dates}
        onInput={value => set({ dates: value })}
        mono
        rows={3}
        hint="YYYY-MM-DD, or MM-DD for every year; separated by commas."
        error={errorOf(errors, 'dates')}
      />
    </Panel>
  )
}

const RangesField = ({ draft, set, errors }: Props) => {
  const change = (n: number, changes: object) => set({ ranges: draft.ranges.map((one, at) => (at === n ? { ...one, ...changes } : one)) })
  return (
    <Panel title="Times">
      <p class="hint">Times that do not run, such as 2030-12-24T12:00, local to each cue; or with Z or an offset, the same for all.</p>
      {draft.ranges.length > 0 && (
        <ol class="plain-list">
          {draft.ranges.map((row, n) => {
            const field = fieldsOf({ draft: row, set: (changes: object) => change(n, changes), errors })
            const point = (name: 'from' | 'to', label: string) =>
              field(TextField, name, { label, mono: true, spellcheck: false, placeholder: '2030-12-24T12:00', at: [`ranges.${n}.${name}`] })
            return (
              <li key={n} class="range">
                <div class="two">
                  {point('from', `From (${n + 1})`)}
                  {point('to', `Until (${n + 1})`)}
                </div>
                <Button
                  label={`Remove time ${n + 1}`}
                  icon="close"
                  iconOnly
                  kind="quiet"
                  onClick={() => set({ ranges: draft.ranges.filter((_, at) => at !== n) })}
                />
              </li>
            )
          })}
        </ol>
      )}
      <Button label="Add a time" icon="plus" onClick={() => set({ ranges: [...draft.ranges, { from: '', to: '' }] })} />
    </Panel>
  )
}

const Editor = ({ first, isNew }: { first: CalendarDraft; isNew: boolean }) => {
  const [draft, setDraft] = useState(first)
  const { busy, failure, run } = useAction()
  useHold(true)
  const errors = errorsOf(failure)
  const props = { draft, set: (changes: Partial<CalendarDraft>) => setDraft(old => ({ ...old, ...changes })), errors }
  const field = fieldsOf(props)
  const above = isNew ? { path: '/calendars', name: 'Calendars' } : { path: calendarPath(first.name), name: first.name }
  const submit = (event: Event) => {
    event.preventDefault()
    const name = draft.name.trim()
    void run(async () => {
      await call('PUT', apiPath(name), { body: calendarOf(draft) })
      say('Saved')
      go(to(calendarPath(name)))
    })
  }
  return (
    <Page title={isNew ? 'Create a calendar' : `Edit ${first.name}`} above={<Above {...above} />}>
      <form class="stack" onSubmit={submit}>
        <Panel>
          {isNew &&
            field(TextField, 'name', {
              label: 'Name',
              required: true,
              maxLength: 64,
              mono: true,
              spellcheck: false,
              autofocus: true,
              placeholder: 'holidays/uk',
              hint: 'Cues refer to it by this name: letters, digits and . _ : / -',
              at: ['name', 'path.name']
            })}
          {field(TextField, 'description', { label: 'Description (optional)', maxLength: 2000, at: ['description'] })}
        </Panel>
        <DatesField {...props} />
        <RangesField {...props} />
        <div class="editor-foot panel">
          {failure && (
            <p class="field-error" role="alert">
              {failure.message}
            </p>
          )}
          {!isNew && <p class="hint">The next runs of all cues that use the calendar change immediately.</p>}
          <div class="actions left">
            <Button label={isNew ? 'Create the calendar' : 'Save'} kind="main" type="submit" busy={busy} />
            <ButtonLink label="Cancel" href={to(above.path)} />
          </div>
        </div>
      </form>
    </Page>
  )
}

const refused = (title: string) => <NotAllowed title={title} what="Creating and changing calendars needs" scope="write" />

export const NewCalendar = () => (useMay('write') ? <Editor first={emptyCalendar} isNew /> : refused('Create a calendar'))

export const EditCalendar = ({ name }: { name: string }) => {
  const mayWrite = useMay('write')
  const { data, failure, at } = useRead<Calendar>(mayWrite ? apiPath(name) : undefined, {}, { repeat: false })
  const [first, setFirst] = useState<CalendarDraft>()
  // The first fresh answer is what is edited; later ones would overwrite it.
  if (data && !first && at > Date.now() - 60_000) setFirst(calendarDraftOf(data))
  if (!mayWrite) return refused('Edit')
  if (first) return <Editor first={first} isNew={false} />
  return (
    <Page title="Edit" above={<Above path="/calendars" name="Calendars" />}>
      {failure ? <Problem failure={failure} /> : <Loading />}
    </Page>
  )
}
