/** Fields of forms, with their labels, hints and errors. */
import { useId } from 'preact/hooks'

import type { Children } from './basics.tsx'

type FieldProps = { label: string; hint?: Children; error?: string; hidden?: boolean }

/** An error that appears may be out of sight, or under an editor's bar. */
const reveal = (shown: Element | null) => shown?.scrollIntoView({ block: 'nearest' })

const Field = ({ label, hint, error, id, children, hidden }: FieldProps & { id: string; children: Children }) => (
  <div class="field">
    <label for={id} class={hidden ? 'unseen' : undefined}>
      {label}
    </label>
    {children}
    {error && (
      <p id={`${id}-error`} class="field-error" role="alert" ref={reveal}>
        {error}
      </p>
    )}
    {hint && (
      <p id={`${id}-hint`} class="hint">
        {hint}
      </p>
    )}
  </div>
)

const described = (id: string, { hint, error }: FieldProps) =>
  [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined

type Input = FieldProps & {
  value: string
  onInput: (value: string) => void
  type?: 'text' | 'password' | 'email' | 'url' | 'number' | 'datetime-local'
  placeholder?: string
  required?: boolean
  maxLength?: number
  /** `any`: times may have seconds. */
  step?: 'any'
  autocomplete?: 'current-password' | 'email'
  autofocus?: boolean
  name?: string
  spellcheck?: boolean
  mono?: boolean
  /** Suggestions. */
  list?: string[]
}

export const TextField = ({ value, onInput, mono, list, ...props }: Input) => {
  const id = useId()
  const { label: _, hint: __, error, hidden: ___, ...input } = props
  return (
    <Field {...props} id={id}>
      <input
        id={id}
        {...(input as object)}
        value={value}
        class={mono ? 'mono' : undefined}
        list={list && `${id}-list`}
        aria-invalid={error ? true : undefined}
        aria-describedby={described(id, props)}
        onInput={event => onInput(event.currentTarget.value)}
      />
      {list && (
        <datalist id={`${id}-list`}>
          {list.map(one => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </Field>
  )
}

export const AreaField = ({
  value,
  onInput,
  rows = 5,
  mono,
  ...props
}: FieldProps & { value: string; onInput: (value: string) => void; rows?: number; mono?: boolean }) => {
  const id = useId()
  return (
    <Field {...props} id={id}>
      <textarea
        id={id}
        value={value}
        rows={rows}
        spellcheck={!mono}
        class={mono ? 'mono' : undefined}
        aria-invalid={props.error ? true : undefined}
        aria-describedby={described(id, props)}
        onInput={event => onInput(event.currentTarget.value)}
      />
    </Field>
  )
}

export type Option = { value: string; label: string }
export const SelectField = ({
  value,
  onInput,
  options,
  ...props
}: FieldProps & { value: string; onInput: (value: string) => void; options: Option[] }) => {
  const id = useId()
  return (
    <Field {...props} id={id}>
      <select id={id} value={value} aria-describedby={described(id, props)} onChange={event => onInput(event.currentTarget.value)}>
        {options.map(option => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.label}
          </option>
        ))}
      </select>
    </Field>
  )
}

export const CheckField = ({
  label,
  checked,
  onInput,
  hint
}: {
  label: string
  checked: boolean
  onInput: (checked: boolean) => void
  hint?: string
}) => {
  const id = useId()
  return (
    <div class="field check">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        aria-describedby={hint && `${id}-hint`}
        onChange={event => onInput(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

/** One of a few values, side by side. */
export const Choice = ({
  label,
  value,
  options,
  onInput
}: {
  label: string
  value: string
  options: Option[]
  onInput: (value: string) => void
}) => {
  const name = useId()
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div class="segments">
        {options.map(option => (
          <label key={option.value} class="segment">
            <input type="radio" name={name} value={option.value} checked={option.value === value} onChange={() => onInput(option.value)} />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
