/** The exclusions of a schedule: rows that can be added and removed. */

import { Button } from '../ui/basics.tsx'
import { SelectField, TextField } from '../ui/form.tsx'
import { fieldsOf } from './draft-field.tsx'
import { type ExclusionDraft, emptyExclusion, placeOf } from './exclusion-draft.ts'
import { type Errors, errorOf } from './form-errors.ts'

type RowProps = {
  row: ExclusionDraft
  set: (changes: Partial<ExclusionDraft>) => void
  remove: () => void
  path: string
  errors: Errors
  n: number
}

/** Local times get the browser's picker; instants with an offset stay text. */
const typeOf = (point: string) => (/([Zz]|[+-]\d\d:\d\d)$/.test(point) ? 'text' : 'datetime-local')

const ExclusionRow = ({ row, set, remove, path, errors, n }: RowProps) => {
  const field = fieldsOf({ draft: row, set, errors })
  const point = (name: 'from' | 'to', label: string) =>
    field(TextField, name, { label, type: typeOf(row[name]), step: 'any', at: [`${path}.${name}`] })
  return (
    <li class="exclusion">
      {field(SelectField, 'kind', {
        label: `Exclusion ${n}`,
        options: [
          { value: 'dates', label: 'Dates' },
          { value: 'range', label: 'Time range' },
          { value: 'cron', label: 'Repeating' }
        ]
      })}
      {row.kind === 'dates' ? (
        field(TextField, 'dates', {
          label: 'Dates',
          placeholder: '12-25, 2026-12-26',
          hint: 'YYYY-MM-DD, or MM-DD for every year; separated by commas.',
          at: [`${path}.dates`]
        })
      ) : row.kind === 'range' ? (
        <div class="two">
          {point('from', 'From')}
          {point('to', 'Until')}
        </div>
      ) : (
        <div class="two">
          {field(TextField, 'cron', {
            label: 'Starts (cron)',
            mono: true,
            spellcheck: false,
            placeholder: '0 22 * * *',
            at: [`${path}.cron`]
          })}
          {field(TextField, 'minutes', { label: 'Minutes', type: 'number', placeholder: '480', at: [`${path}.minutes`] })}
        </div>
      )}
      <Button label={`Remove exclusion ${n}`} icon="close" iconOnly kind="quiet" onClick={remove} />
      {errors[path] && (
        <p class="field-error" role="alert">
          {errorOf(errors, path)}
        </p>
      )}
    </li>
  )
}

type Props = { rows: readonly ExclusionDraft[]; set: (rows: ExclusionDraft[]) => void; errors: Errors }

export const ExclusionFields = ({ rows, set, errors }: Props) => (
  <fieldset class="exclusions">
    <legend>Exclusions</legend>
    <p class="hint">Times at which the cue does not run, in its time zone. The next runs below leave them out.</p>
    {rows.length > 0 && (
      <ol>
        {rows.map((row, n) => (
          <ExclusionRow
            key={n}
            row={row}
            n={n + 1}
            set={changes => set(rows.map((one, i) => (i === n ? { ...one, ...changes } : one)))}
            remove={() => set(rows.filter((_, i) => i !== n))}
            path={`schedule.exclude.${placeOf(rows, n) ?? 'none'}`}
            errors={errors}
          />
        ))}
      </ol>
    )}
    {errors['schedule.exclude'] && (
      <p class="field-error" role="alert">
        {errorOf(errors, 'schedule.exclude')}
      </p>
    )}
    <div>
      <Button label="Add an exclusion" icon="plus" onClick={() => set([...rows, emptyExclusion])} />
    </div>
  </fieldset>
)
