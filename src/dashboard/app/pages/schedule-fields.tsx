/** When a cue runs, with its next runs while typing. */
import type { Calendars } from '../../../client/types.ts'
import { useRead } from '../query.ts'
import { Button, Panel, Refusal } from '../ui/basics.tsx'
import { SelectField, TextField } from '../ui/form.tsx'
import { Advanced, Fields, type FormProps } from './cue-fields.tsx'
import { type Draft, scheduleOf } from './cue-model.ts'
import { lines, list, pickerOf } from './draft-text.ts'
import { type ExclusionDraft, emptyExclusion, placeOf, rowsOf } from './exclusion-draft.ts'
import { type Errors, errorOf, errorsOf } from './form-errors.ts'
import { NextRuns, useSchedulePreview } from './schedule.tsx'

const Chips = ({ chips }: { chips: [text: string, onClick: () => void][] }) => (
  <p class="row">
    {chips.map(([text, onClick]) => (
      <button key={text} type="button" class="chip" onClick={onClick}>
        {text}
      </button>
    ))}
  </p>
)

const examples: [string, string][] = [
  ['*/5 * * * *', 'every 5 minutes'],
  ['0 * * * *', 'hourly'],
  ['0 9 * * 1-5', 'weekdays at 9'],
  ['0 0 1 * *', 'monthly']
]

/** Errors of the first expression and of the others, which are two fields. */
const byField = (errors: Errors, draft: Draft): Errors => {
  const [path, text] = Object.entries(errors).find(([at]) => at.startsWith('schedule.crons.')) ?? []
  const expression = lines(draft['schedule.more_crons'] ?? '')[Number(path?.split('.')[2]) - 1]
  return path ? { ...errors, 'schedule.more_crons': expression ? `${expression}: ${text}` : text! } : errors
}

export const ScheduleFields = ({ errors: refused, ...props }: FormProps) => {
  const { draft, set } = props
  const { data, failure } = useSchedulePreview(scheduleOf(draft), 8)
  const live = errorsOf(failure)
  const errors = byField({ ...refused, ...live }, draft)
  const isRefused = failure !== undefined && failure.status >= 400 && failure.status < 500
  const kind = draft['schedule.kind']
  return (
    <Panel title="When">
      <Fields part="when" {...props} errors={errors} />
      {kind === 'cron' && <Chips chips={examples.map(([cron, text]) => [text, () => set({ 'schedule.cron': cron })])} />}
      {(kind === 'cron' || kind === 'every') && <Rules {...props} errors={errors} />}
      <div class="preview" aria-live="polite">
        {kind === 'none' ? (
          <p class="soft">It runs after other cues, or when it is fired.</p>
        ) : data ? (
          <>
            <p class="words">{data.description}</p>
            <NextRuns preview={data} zone={draft['schedule.timezone'] || 'UTC'} />
          </>
        ) : (
          <p class="soft">{isRefused ? 'No runs: the schedule is not valid.' : 'The next runs appear here.'}</p>
        )}
        {isRefused && Object.keys(live).length === 0 && <Refusal text={failure.message} />}
      </div>
    </Panel>
  )
}

const Rules = (props: FormProps) => {
  const { draft, set, errors } = props
  const calendars = useRead<Calendars>('/v1/calendars', { limit: 20 }, { repeat: false }).data?.calendars ?? []
  const names = list(draft['schedule.exclude_calendars'] ?? '')
  const add = (name: string) => set({ 'schedule.exclude_calendars': [...names, name].join(', ') })
  return (
    <Advanced title="limits and exclusions" part="rules" {...props}>
      <Chips chips={calendars.filter(({ name }) => !names.includes(name)).map(({ name }) => [`add ${name}`, () => add(name)])} />
      <Exclusions
        rows={rowsOf(draft['schedule.exclude'])}
        set={rows => set({ 'schedule.exclude': JSON.stringify(rows) })}
        errors={errors}
      />
    </Advanced>
  )
}

type RowsProps = { rows: readonly ExclusionDraft[]; set: (rows: ExclusionDraft[]) => void; errors: Errors }
const Exclusions = ({ rows, set, errors }: RowsProps) => (
  <fieldset class="stack">
    <legend>Exclusions</legend>
    <p class="hint">Times at which the cue does not run, in its time zone. The next runs below leave them out.</p>
    {rows.map((row, n) => (
      <ExclusionRow
        key={n}
        row={row}
        n={n + 1}
        set={changes => set(rows.map((other, at) => (at === n ? { ...other, ...changes } : other)))}
        remove={() => set(rows.filter((_, at) => at !== n))}
        path={`schedule.exclude.${placeOf(rows, n) ?? 'none'}`}
        errors={errors}
      />
    ))}
    <Refusal text={errors['schedule.exclude']} />
    <div>
      <Button label="Add an exclusion" icon="plus" onClick={() => set([...rows, emptyExclusion])} />
    </div>
  </fieldset>
)

const kinds = [
  { value: 'dates', label: 'Dates' },
  { value: 'range', label: 'Time range' },
  { value: 'cron', label: 'Repeating' }
]
type RowProps = {
  row: ExclusionDraft
  n: number
  set: (changes: Partial<ExclusionDraft>) => void
  remove: () => void
  path: string
  errors: Errors
}
const ExclusionRow = ({ row, n, set, remove, path, errors }: RowProps) => {
  const field = (name: Exclude<keyof ExclusionDraft, 'kind'>, label: string) => ({
    label,
    value: row[name],
    onInput: (text: string) => set({ [name]: text }),
    error: errorOf(errors, `${path}.${name}`)
  })
  return (
    <div class="exclusion">
      <SelectField
        label={`Exclusion ${n}`}
        value={row.kind}
        options={kinds}
        onInput={kind => set({ kind: kind as ExclusionDraft['kind'] })}
      />
      {row.kind === 'dates' ? (
        <TextField
          {...field('dates', 'Dates')}
          placeholder="12-25, 2026-12-26"
          hint="YYYY-MM-DD, or MM-DD for every year; separated by commas."
        />
      ) : row.kind === 'range' ? (
        <div class="two">
          <TextField {...field('from', 'From')} type={pickerOf(row.from)} step="any" />
          <TextField {...field('to', 'Until')} type={pickerOf(row.to)} step="any" />
        </div>
      ) : (
        <div class="two">
          <TextField {...field('cron', 'Starts (cron)')} mono spellcheck={false} placeholder="0 22 * * *" />
          <TextField {...field('minutes', 'Minutes')} type="number" placeholder="480" />
        </div>
      )}
      <Button label={`Remove exclusion ${n}`} icon="close" iconOnly kind="quiet" onClick={remove} />
      <Refusal text={errors[path]} />
    </div>
  )
}
