/** The advanced part of a schedule: more expressions, bounds, a window and exclusions. */
import { useState } from 'preact/hooks'
import type { Calendars } from '../../../client/types.ts'

import { useRead } from '../query.ts'
import { localZone } from '../time.ts'
import { AreaField, TextField } from '../ui/form.tsx'
import { fieldsOf } from './draft-field.tsx'
import { lines, list } from './draft-text.ts'
import { ExclusionFields } from './exclusion-fields.tsx'
import { type Errors, errorOf } from './form-errors.ts'
import type { ScheduleDraft } from './schedule-draft.ts'

type Props = { draft: ScheduleDraft; set: (changes: Partial<ScheduleDraft>) => void; errors: Errors }

const fields = ['more_crons', 'anchor', 'starts_at', 'ends_at', 'max_runs', 'window', 'exclude', 'exclude_calendars'] as const

const MoreCrons = ({ draft, set, errors }: Props) => {
  const wrong = Object.keys(errors).find(path => path.startsWith('schedule.crons.'))
  const expression = lines(draft.more_crons)[Number(wrong?.split('.')[2]) - 1]
  const error = errorOf(errors, 'schedule.crons')
  return (
    <AreaField
      label="More expressions"
      value={draft.more_crons}
      onInput={more_crons => set({ more_crons })}
      mono
      rows={3}
      hint="Cron expressions, one per line, up to 9. A time that several of them match is one run."
      error={error && expression ? `${expression}: ${error}` : error}
    />
  )
}

const CalendarsField = (props: Props) => {
  const { draft, set } = props
  const { data } = useRead<Calendars>('/v1/calendars', { limit: 20 }, { repeat: false })
  const names = list(draft.exclude_calendars)
  const others = (data?.calendars ?? []).filter(({ name }) => !names.includes(name))
  return (
    <div>
      {fieldsOf(props)(TextField, 'exclude_calendars', {
        label: 'Excluded calendars',
        spellcheck: false,
        placeholder: 'holidays/uk',
        hint: 'Names of calendars, separated by commas. The cue does not run on their dates.',
        at: ['schedule.exclude_calendars']
      })}
      {others.length > 0 && (
        <p class="examples">
          {others.map(({ name }) => (
            <button
              key={name}
              type="button"
              class="chip"
              onClick={() => set({ exclude_calendars: [...names, name].join(', ') })}
            >{`add ${name}`}</button>
          ))}
        </p>
      )}
    </div>
  )
}

export const ScheduleRules = ({ draft, set, errors: all }: Props) => {
  const [isOpen, setOpen] = useState(fields.some(name => draft[name].length > 0))
  // The first expression is above.
  const { 'schedule.crons.0': _, ...errors } = all
  const isWrong = errorOf(errors, 'schedule.crons', ...fields.map(name => `schedule.${name}`)) !== undefined
  const field = fieldsOf({ draft, set, errors })
  const bound = (name: 'anchor' | 'starts_at' | 'ends_at', label: string, hint: string) =>
    field(TextField, name, { label, type: 'datetime-local', step: 'any', hint, at: [`schedule.${name}`] })
  return (
    <details class="more-fields" open={isOpen || isWrong} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>Advanced: limits and exclusions</summary>
      <div class="stack">
        {draft.kind === 'cron' && <MoreCrons draft={draft} set={set} errors={errors} />}
        {draft.kind === 'every' &&
          bound(
            'anchor',
            'Counted from',
            `Runs are whole intervals from this time, in your time zone, ${localZone()}. If empty, from 1 January 1970, UTC.`
          )}
        <div class="two">
          {bound('starts_at', 'Not before', `In your time zone, ${localZone()}.`)}
          {bound('ends_at', 'Not after', `In your time zone, ${localZone()}. The cue then completes.`)}
          {field(TextField, 'max_runs', {
            label: 'Number of runs',
            type: 'number',
            hint: 'The cue then completes. Leave it empty for no limit. Fires and replays do not count.',
            at: ['schedule.max_runs']
          })}
          {field(TextField, 'window', {
            label: 'Window',
            spellcheck: false,
            placeholder: '30m',
            hint: 'Spreads load: each run is delayed by up to this duration, such as 30m, or share of the interval, such as 25%.',
            at: ['schedule.window']
          })}
        </div>
        <ExclusionFields rows={draft.exclude} set={exclude => set({ exclude })} errors={errors} />
        <CalendarsField draft={draft} set={set} errors={errors} />
      </div>
    </details>
  )
}
