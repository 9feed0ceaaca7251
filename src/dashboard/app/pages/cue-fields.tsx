/** The fields of a cue's form, drawn from their table. */
import { useState } from 'preact/hooks'
import type { Children } from '../ui/basics.tsx'
import { AreaField, CheckField, Choice, SelectField, TextField } from '../ui/form.tsx'
import { type Draft, type Field, fields } from './cue-model.ts'
import { type Errors, errorOf } from './form-errors.ts'
import { jsonProblem } from './json-text.ts'

export type FormProps = { draft: Draft; set: (changes: Draft) => void; errors: Errors; isNew: boolean }

const types = { number: 'number', numbers: 'text', instant: 'datetime-local' } as const
const zones = (): string[] => Intl.supportedValuesOf('timeZone')

const FieldOf = ({ field, draft, set, errors }: { field: Field } & Omit<FormProps, 'isNew'>) => {
  const { path, kind = 'text', label, hint, wide, required, maxLength, mono, autofocus, placeholder, byDefault, minimum, maximum } = field
  const value = draft[path] ?? ''
  const shared = { label, hint, wide, value, onInput: (text: string) => set({ [path]: text }), error: errorOf(errors, path) }
  const options = [...(field.options ?? [])]
  if (kind === 'check')
    return <CheckField label={label} hint={hint} checked={value === 'yes'} onInput={is => set({ [path]: is ? 'yes' : '' })} />
  if (kind === 'choice') return field.isShort ? <Choice {...shared} options={options} /> : <SelectField {...shared} options={options} />
  if (kind === 'json') shared.error ??= jsonProblem(value)
  if (kind === 'json' || kind === 'headers' || kind === 'lines')
    return <AreaField {...shared} mono wide rows={kind === 'json' ? 5 : 2} placeholder={placeholder} />
  return (
    <TextField
      {...shared}
      {...{ required, maxLength, mono, autofocus }}
      type={path === 'callback.url' ? 'url' : (types[kind as keyof typeof types] ?? 'text')}
      step={kind === 'instant' ? 'any' : undefined}
      min={minimum}
      max={maximum}
      placeholder={placeholder ?? (byDefault === undefined ? undefined : String(byDefault))}
      spellcheck={maxLength !== undefined}
      list={path === 'schedule.timezone' ? zones() : undefined}
    />
  )
}

type PartProps = FormProps & { part: Field['part'] }

/** Fields that most cues leave as they are: open where one of them is not, or is refused. */
export const Advanced = ({ title, children, ...props }: PartProps & { title: string; children?: Children }) => {
  const { part, draft, errors } = props
  const inPart = fields.filter(field => field.part === part)
  const [isOpen, setOpen] = useState(inPart.some(({ path, initial = '' }) => (draft[path] ?? '') !== initial))
  const isRefused = inPart.some(({ path }) => errorOf(errors, path))
  const kind = part === 'rules' ? undefined : 'panel'
  return (
    <details class={kind} open={isOpen || isRefused} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{`Advanced: ${title}`}</summary>
      <div class="stack">
        <Fields {...props} />
        {children}
      </div>
    </details>
  )
}

/** The transport of a cue does not change, and exclusions have a form of their own. */
export const Fields = ({ part, isNew, ...props }: PartProps) => (
  <div class="two">
    {fields
      .filter(
        ({ isUsed, kind, path, ...field }) =>
          field.part === part && isUsed?.(props.draft) !== false && kind !== 'exclusions' && (isNew || path !== 'transport')
      )
      .map(field => (
        <FieldOf key={field.path} field={field} {...props} />
      ))}
  </div>
)
