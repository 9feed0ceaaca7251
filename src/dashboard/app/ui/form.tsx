/** Fields of forms, with their labels, hints and errors. */
import type { VNode } from 'preact'
import { useId, useState } from 'preact/hooks'
import type { Option } from '../labels.ts'
import { type Children, Refusal } from './basics.tsx'

type FieldProps = { label: string; hint?: Children; error?: string; hidden?: boolean; wide?: boolean }
type Value = { value: string; onInput: (value: string) => void }
/** The text of a field. */
export const useText = (first = ''): Value => {
  const [value, onInput] = useState(first)
  return { value, onInput }
}
type Aria = { id: string; 'aria-invalid'?: true; 'aria-describedby'?: string }

const Field = ({ label, hint, error, hidden, wide, children }: FieldProps & { children: (aria: Aria) => VNode }) => {
  const id = useId()
  const described = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined
  return (
    <div class={wide ? 'field wide' : 'field'}>
      <label for={id} class={hidden ? 'unseen' : undefined}>
        {label}
      </label>
      {children({ id, 'aria-invalid': error ? true : undefined, 'aria-describedby': described })}
      <Refusal text={error} id={`${id}-error`} />
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

type InputProps = FieldProps & {
  type?: 'text' | 'password' | 'email' | 'url' | 'number' | 'date' | 'datetime-local'
  placeholder?: string
  required?: boolean
  maxLength?: number
  min?: number
  max?: number
  /** `any`: times may have seconds. */
  step?: 'any'
  autocomplete?: 'current-password' | 'email'
  autofocus?: boolean
  name?: string
  spellcheck?: boolean
  mono?: boolean
  /** Suggestions. */
  list?: string[]
  onFocus?: () => void
  /** Once somebody has finished typing. */
  onChange?: () => void
}

export const TextField = ({ label, hint, error, hidden, wide, value, onInput, mono, list, ...input }: InputProps & Value) => (
  <Field {...{ label, hint, error, hidden, wide }}>
    {aria => (
      <>
        <input
          {...aria}
          {...(input as object)}
          value={value}
          class={mono ? 'mono' : undefined}
          list={list && `${aria.id}-list`}
          onInput={event => onInput(event.currentTarget.value)}
        />
        {list && (
          <datalist id={`${aria.id}-list`}>
            {list.map(text => (
              <option key={text} value={text} />
            ))}
          </datalist>
        )}
      </>
    )}
  </Field>
)

type AreaProps = FieldProps & Value & { rows?: number; mono?: boolean; placeholder?: string }
export const AreaField = ({ value, onInput, rows = 5, mono, placeholder, ...field }: AreaProps) => (
  <Field {...field}>
    {aria => (
      <textarea
        {...aria}
        {...{ value, rows, placeholder }}
        spellcheck={!mono}
        class={mono ? 'mono' : undefined}
        onInput={event => onInput(event.currentTarget.value)}
      />
    )}
  </Field>
)

export const SelectField = ({ value, onInput, options, ...field }: FieldProps & Value & { options: Option[] }) => (
  <Field {...field}>
    {aria => (
      <select {...aria} value={value} onChange={event => onInput(event.currentTarget.value)}>
        {options.map(option => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.label}
          </option>
        ))}
      </select>
    )}
  </Field>
)

type CheckProps = { label: string; checked: boolean; onInput: (checked: boolean) => void; hint?: Children }
export const CheckField = ({ label, checked, onInput, hint }: CheckProps) => {
  const id = useId()
  return (
    <div class="field check">
      <input
        {...{ id, checked }}
        type="checkbox"
        aria-describedby={hint ? `${id}-hint` : undefined}
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
export const Choice = ({ label, value, options, onInput }: { label: string; options: Option[] } & Value) => {
  const name = useId()
  return (
    <fieldset>
      <legend>{label}</legend>
      <div class="row segments">
        {options.map(option => (
          <label key={option.value}>
            <input
              {...{ name, value: option.value }}
              type="radio"
              checked={option.value === value}
              onChange={() => onInput(option.value)}
            />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
