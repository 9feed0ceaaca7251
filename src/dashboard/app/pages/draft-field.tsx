/** Fields of a form that show and set one text of a draft. */
import type { ComponentChildren, VNode } from 'preact'

import { type Errors, errorOf } from './form-errors.ts'

type Input = { value: string; onInput: (value: string) => void; error?: string }
type TextsOf<D> = { [K in keyof D]: D[K] extends string ? K : never }[keyof D]
type Edited<D> = { draft: D; set: (changes: Partial<D>) => void; errors: Errors }

/** `at`: the paths of the API whose errors belong to the field. */
export const fieldsOf =
  <D,>({ draft, set, errors }: Edited<D>) =>
  <P extends Input>(
    Component: (props: P) => ComponentChildren,
    name: TextsOf<D>,
    { at = [], ...props }: Omit<P, keyof Input> & { at?: readonly string[] }
  ): VNode => {
    const Field = Component as (props: object) => ComponentChildren
    const onInput = (value: string) => set({ [name]: value } as Partial<D>)
    return <Field {...props} value={draft[name]} onInput={onInput} error={errorOf(errors, ...at)} />
  }
