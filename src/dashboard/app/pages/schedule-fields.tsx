/** When a cue runs, with its next runs while typing. */

import { localZone } from '../time.ts'
import { Panel } from '../ui/basics.tsx'
import { Choice, TextField } from '../ui/form.tsx'
import type { Draft } from './cue-draft.ts'
import { fieldsOf } from './draft-field.tsx'
import { type Errors, errorsOf } from './form-errors.ts'
import { NextRuns, useSchedulePreview } from './schedule.tsx'
import { scheduleOf } from './schedule-draft.ts'
import { ScheduleRules } from './schedule-rules.tsx'

export type FormProps = { draft: Draft; set: (changes: Partial<Draft>) => void; errors: Errors; isNew: boolean }

const zones = (): string[] => Intl.supportedValuesOf('timeZone')
const examples: [string, string][] = [
  ['*/5 * * * *', 'every 5 minutes'],
  ['0 * * * *', 'hourly'],
  ['0 9 * * 1-5', 'weekdays at 9'],
  ['0 0 1 * *', 'monthly']
]

const CronField = (props: FormProps) => (
  <div>
    {fieldsOf(props)(TextField, 'cron', {
      label: 'Cron expression',
      mono: true,
      required: true,
      spellcheck: false,
      placeholder: '0 9 * * 1-5',
      at: ['schedule.cron', 'schedule.crons.0', 'cron']
    })}
    <p class="examples">
      {examples.map(([cron, text]) => (
        <button key={cron} type="button" class="chip" onClick={() => props.set({ cron })}>
          {text}
        </button>
      ))}
    </p>
  </div>
)

const IntervalField = (props: FormProps) =>
  fieldsOf(props)(TextField, 'every', {
    label: 'Interval',
    required: true,
    spellcheck: false,
    placeholder: '45m',
    hint: 'Such as 90s, 45m, 36h or 2d.',
    at: ['schedule.every']
  })

const AtField = (props: FormProps) =>
  fieldsOf(props)(TextField, 'at', {
    label: 'At',
    type: 'datetime-local',
    step: 'any',
    required: true,
    hint: `In your time zone, ${localZone()}.`,
    at: ['schedule.at', 'at']
  })

const mainFields = { cron: CronField, every: IntervalField, at: AtField }

export const ScheduleFields = ({ errors: refused, ...props }: FormProps) => {
  const { draft, set } = props
  const { data, failure } = useSchedulePreview(scheduleOf(draft), 8)
  const live = errorsOf(failure)
  const errors = { ...refused, ...live }
  const field = fieldsOf({ ...props, errors })
  const MainField = mainFields[draft.kind]
  const isRefused = failure !== undefined && failure.status >= 400 && failure.status < 500
  return (
    <Panel title="When">
      {field(Choice, 'kind', {
        label: 'Schedule',
        options: [
          { value: 'cron', label: 'Cron' },
          { value: 'every', label: 'Every' },
          { value: 'at', label: 'Once' }
        ]
      })}
      <div class="two">
        <MainField {...props} errors={errors} />
        {draft.kind !== 'at' &&
          field(TextField, 'timezone', { label: 'Time zone', list: zones(), spellcheck: false, at: ['schedule.timezone', 'timezone'] })}
      </div>
      {draft.kind !== 'at' && <ScheduleRules draft={draft} set={set} errors={errors} />}
      <div class="preview" aria-live="polite">
        {data ? (
          <>
            <p class="words">{data.description}</p>
            <NextRuns preview={data} zone={draft.timezone || 'UTC'} />
          </>
        ) : (
          <p class="soft">{isRefused ? 'No runs: the schedule is not valid.' : 'The next runs appear here.'}</p>
        )}
        {isRefused && Object.keys(live).length === 0 && <p class="field-error">{failure.message}</p>}
      </div>
    </Panel>
  )
}
