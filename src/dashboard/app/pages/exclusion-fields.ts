/** The exclusions of a schedule: rows that can be added and removed. */
import { h } from '../h.ts'
import { Button } from '../ui/basics.ts'
import { SelectField, TextField } from '../ui/form.ts'
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
  const point = (name: 'from' | 'to', label: string) =>
    h(TextField, {
      label,
      type: typeOf(row[name]),
      step: 'any',
      value: row[name],
      onInput: value => set({ [name]: value }),
      error: errorOf(errors, `${path}.${name}`)
    })
  return h(
    'li',
    { class: 'exclusion' },
    h(SelectField, {
      label: `Exclusion ${n}`,
      value: row.kind,
      onInput: kind => set({ kind: kind as ExclusionDraft['kind'] }),
      options: [
        { value: 'dates', label: 'Dates' },
        { value: 'range', label: 'From, to' },
        { value: 'cron', label: 'Repeating' }
      ]
    }),
    row.kind === 'dates'
      ? h(TextField, {
          label: 'Dates',
          value: row.dates,
          onInput: dates => set({ dates }),
          placeholder: '12-25, 2026-12-26',
          hint: 'YYYY-MM-DD, or MM-DD for every year; separated by commas.',
          error: errorOf(errors, `${path}.dates`)
        })
      : row.kind === 'range'
        ? h('div', { class: 'two' }, point('from', 'From'), point('to', 'Until'))
        : h(
            'div',
            { class: 'two' },
            h(TextField, {
              label: 'Starts (cron)',
              value: row.cron,
              onInput: cron => set({ cron }),
              mono: true,
              spellcheck: false,
              placeholder: '0 22 * * *',
              error: errorOf(errors, `${path}.cron`)
            }),
            h(TextField, {
              label: 'Minutes',
              type: 'number',
              value: row.minutes,
              onInput: minutes => set({ minutes }),
              placeholder: '480',
              error: errorOf(errors, `${path}.minutes`)
            })
          ),
    h(Button, { label: `Remove exclusion ${n}`, icon: 'close', iconOnly: true, kind: 'quiet', onClick: remove }),
    errors[path] && h('p', { class: 'field-error', role: 'alert' }, errorOf(errors, path))
  )
}

type Props = { rows: readonly ExclusionDraft[]; set: (rows: ExclusionDraft[]) => void; errors: Errors }

export const ExclusionFields = ({ rows, set, errors }: Props) =>
  h(
    'fieldset',
    { class: 'exclusions' },
    h('legend', {}, 'Exclusions'),
    h('p', { class: 'hint' }, "Times that do not run, in the cue's time zone. The next runs below leave them out."),
    rows.length > 0 &&
      h(
        'ol',
        {},
        rows.map((row, n) =>
          h(ExclusionRow, {
            key: n,
            row,
            n: n + 1,
            set: changes => set(rows.map((one, i) => (i === n ? { ...one, ...changes } : one))),
            remove: () => set(rows.filter((_, i) => i !== n)),
            path: `schedule.exclude.${placeOf(rows, n) ?? 'none'}`,
            errors
          })
        )
      ),
    errors['schedule.exclude'] && h('p', { class: 'field-error', role: 'alert' }, errorOf(errors, 'schedule.exclude')),
    h('div', {}, h(Button, { label: 'Add an exclusion', icon: 'plus', onClick: () => set([...rows, emptyExclusion]) }))
  )
