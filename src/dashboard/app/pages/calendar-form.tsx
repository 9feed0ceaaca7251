/** Creating and editing a calendar: by clicking dates, or as text. */
import { useState } from 'preact/hooks'
import type { Calendar } from '../../../client/types.ts'
import { call } from '../api.ts'
import { useHold } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { Button, ButtonLink, Panel } from '../ui/basics.tsx'
import { Form } from '../ui/dialog.tsx'
import { AreaField, CheckField, TextField } from '../ui/form.tsx'
import { dateText, MonthsPanel } from '../ui/months.tsx'
import { EditPage, Page } from '../ui/page.tsx'
import { say } from '../ui/toast.tsx'
import { type CalendarDraft, calendarDraftOf, calendarOf, emptyCalendar, excludes, toggled } from './calendar-draft.ts'
import { list, pickerOf } from './draft-text.ts'
import { type Errors, errorOf, errorsOf } from './form-errors.ts'

export const calendarPath = (name: string): string => `/calendars/${encodeURIComponent(name)}`
const needs = { what: 'Creating and changing calendars needs', scope: 'write' } as const
const calendars = { path: '/calendars', name: 'Calendars' }

type Props = { draft: CalendarDraft; set: (changes: Partial<CalendarDraft>) => void; errors: Errors }

const DatesField = ({ draft, set, errors }: Props) => {
  const [isYearly, setYearly] = useState(false)
  const [picked, pick] = useState('')
  const dates = list(draft.dates)
  const toggle = (date: string) => set({ dates: toggled(draft.dates, date, isYearly) })
  const Day = (date: string) => {
    const kind = excludes(dates, date)
    return (
      <button
        type="button"
        class={`day ${kind ?? ''}`}
        aria-pressed={kind !== undefined}
        aria-label={dateText(date)}
        onClick={() => toggle(date)}
      >
        {Number(date.slice(8))}
      </button>
    )
  }
  return (
    <MonthsPanel
      title="Dates"
      day={Day}
      above={
        <>
          <p class="hint">Click or pick the dates on which cues do not run, each in the time zone of the cue.</p>
          <div class="range">
            <TextField label="Date" type="date" value={picked} onInput={pick} />
            <CheckField label="New dates repeat every year" checked={isYearly} onInput={setYearly} />
            <Button label={excludes(dates, picked) ? 'Remove' : 'Add'} disabled={!picked} onClick={() => toggle(picked)} />
          </div>
        </>
      }
    >
      <AreaField
        label="The same as text"
        value={draft.dates}
        onInput={value => set({ dates: value })}
        mono
        rows={3}
        hint="YYYY-MM-DD, or MM-DD for every year; separated by commas."
        error={errorOf(errors, 'dates')}
      />
    </MonthsPanel>
  )
}

const RangesField = ({ draft: { ranges }, set, errors }: Props) => {
  const change = (n: number, changes: object) => set({ ranges: ranges.map((range, at) => (at === n ? { ...range, ...changes } : range)) })
  return (
    <Panel title="Times">
      <p class="hint">Times that do not run, local to each cue. With the API, also the same instant for all.</p>
      {ranges.map((range, n) => (
        <div key={n} class="range">
          {(['from', 'to'] as const).map(name => (
            <TextField
              key={name}
              label={`${name === 'from' ? 'From' : 'Until'} (${n + 1})`}
              value={range[name]}
              onInput={text => change(n, { [name]: text })}
              type={pickerOf(range[name])}
              step="any"
              error={errorOf(errors, `ranges.${n}.${name}`)}
            />
          ))}
          <Button
            label={`Remove time ${n + 1}`}
            icon="close"
            iconOnly
            kind="quiet"
            onClick={() => set({ ranges: ranges.filter((_, at) => at !== n) })}
          />
        </div>
      ))}
      <div>
        <Button label="Add a time" icon="plus" onClick={() => set({ ranges: [...ranges, { from: '', to: '' }] })} />
      </div>
    </Panel>
  )
}

const Editor = ({ first, isNew }: { first: CalendarDraft; isNew?: boolean }) => {
  const [draft, setDraft] = useState(first)
  const { go } = usePlace()
  useHold(true)
  const set = (changes: Partial<CalendarDraft>) => setDraft(old => ({ ...old, ...changes }))
  const path = calendarPath(draft.name.trim())
  const save = async () => {
    await call('PUT', `/v1${path}`, { body: calendarOf(draft) })
    say('Saved')
    go(to(path))
  }
  return (
    <Form
      label={isNew ? 'Create the calendar' : 'Save'}
      action={save}
      beside={<ButtonLink label="Cancel" href={to(isNew ? calendars.path : path)} />}
    >
      {failure => {
        const errors = errorsOf(failure)
        return (
          <>
            <Panel>
              {isNew && (
                <TextField
                  label="Name"
                  value={draft.name}
                  onInput={name => set({ name })}
                  required
                  maxLength={64}
                  mono
                  spellcheck={false}
                  autofocus
                  placeholder="holidays/uk"
                  hint="Cues refer to it by this name: letters, digits and . _ : / -"
                  error={errorOf(errors, 'name') ?? errorOf(errors, 'path.name')}
                />
              )}
              <TextField
                label="Description (optional)"
                value={draft.description}
                onInput={description => set({ description })}
                maxLength={2000}
                error={errorOf(errors, 'description')}
              />
            </Panel>
            <DatesField draft={draft} set={set} errors={errors} />
            <RangesField draft={draft} set={set} errors={errors} />
            {!isNew && <p class="hint">The next runs of all cues that use the calendar change immediately.</p>}
          </>
        )
      }}
    </Form>
  )
}

export const NewCalendar = () => (
  <Page title="Create a calendar" above={calendars} needs={needs}>
    <Editor first={emptyCalendar} isNew />
  </Page>
)

export const EditCalendar = ({ name }: { name: string }) => (
  <EditPage<Calendar> path={calendarPath(name)} above={calendars} needs={needs}>
    {calendar => <Editor first={calendarDraftOf(calendar)} />}
  </EditPage>
)
