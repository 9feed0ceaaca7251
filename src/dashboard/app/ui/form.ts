/** Fields of forms, with their labels, hints and errors. */
import { useId } from 'preact/hooks'
import { h } from '../h.ts'
import type { Children } from './basics.ts'

type FieldProps = { label: string; hint?: Children; error?: string; hidden?: boolean }

/** An error that appears may be out of sight, or under an editor's bar. */
const reveal = (shown: Element | null) => shown?.scrollIntoView({ block: 'nearest' })

const Field = ({ label, hint, error, id, children, hidden }: FieldProps & { id: string; children: Children }) =>
  h(
    'div',
    { class: 'field' },
    h('label', { for: id, class: hidden ? 'unseen' : undefined }, label),
    children,
    error && h('p', { id: `${id}-error`, class: 'field-error', role: 'alert', ref: reveal }, error),
    hint && h('p', { id: `${id}-hint`, class: 'hint' }, hint)
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
  return h(
    Field,
    { ...props, id },
    h('input', {
      id,
      ...(input as object),
      value,
      class: mono ? 'mono' : undefined,
      list: list && `${id}-list`,
      'aria-invalid': error ? true : undefined,
      'aria-describedby': described(id, props),
      onInput: event => onInput(event.currentTarget.value)
    }),
    list &&
      h(
        'datalist',
        { id: `${id}-list` },
        list.map(one => h('option', { key: one, value: one }))
      )
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
  return h(
    Field,
    { ...props, id },
    h('textarea', {
      id,
      value,
      rows,
      spellcheck: !mono,
      class: mono ? 'mono' : undefined,
      'aria-invalid': props.error ? true : undefined,
      'aria-describedby': described(id, props),
      onInput: event => onInput(event.currentTarget.value)
    })
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
  return h(
    Field,
    { ...props, id },
    h(
      'select',
      { id, value, 'aria-describedby': described(id, props), onChange: event => onInput(event.currentTarget.value) },
      options.map(option => h('option', { key: option.value, value: option.value, selected: option.value === value }, option.label))
    )
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
  return h(
    'div',
    { class: 'field check' },
    h('input', {
      id,
      type: 'checkbox',
      checked,
      'aria-describedby': hint && `${id}-hint`,
      onChange: event => onInput(event.currentTarget.checked)
    }),
    h('label', { for: id }, label),
    hint && h('p', { id: `${id}-hint`, class: 'hint' }, hint)
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
  return h(
    'fieldset',
    { class: 'choice' },
    h('legend', {}, label),
    h(
      'div',
      { class: 'segments' },
      options.map(option =>
        h(
          'label',
          { key: option.value, class: 'segment' },
          h('input', { type: 'radio', name, value: option.value, checked: option.value === value, onChange: () => onInput(option.value) }),
          h('span', {}, option.label)
        )
      )
    )
  )
}
