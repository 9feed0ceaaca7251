/** Dialogs over the page, forms, and questions before something is done. */
import { signal } from '@preact/signals'
import { Fragment, type VNode } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Failure, failureOf } from '../api.ts'
import { usePlace } from '../router.ts'
import { Button, type Children, Refusal } from './basics.tsx'
import { say } from './toast.tsx'

const shown = signal<{ content: VNode; key: number } | undefined>(undefined)
let last = 0
/** Shows a dialog, instead of one that is there. */
export const show = (content: VNode): void => {
  shown.value = { content, key: ++last }
}
const close = (key: number) => {
  if (shown.value?.key === key) shown.value = undefined
}
/** The dialog, until somebody closes it or the page is another one. */
export const Shown = () => {
  const { path } = usePlace()
  useLayoutEffect(() => () => close(last), [path])
  return shown.value && <Fragment key={shown.value.key}>{shown.value.content}</Fragment>
}
/** Closes the dialog that it is called in; another one may have been shown since. */
export const useClose = (): (() => void) => {
  const [key] = useState(last)
  return () => close(key)
}

type DialogProps = { title: string; onClose?: () => void; children: Children; kind?: 'wide' | 'palette' }
/** A palette has no heading. */
export const Dialog = ({ title, onClose, children, kind }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null)
  const end = useClose()
  // Before the next key, which is for the dialog.
  useLayoutEffect(() => ref.current!.showModal(), [])
  const leave = () => ref.current!.close()
  return (
    <dialog ref={ref} class={kind} aria-label={title} onClose={onClose ?? end} onClick={event => event.target === ref.current && leave()}>
      <div>
        {kind !== 'palette' && (
          <header class="split">
            <h2>{title}</h2>
            <Button label="Close" icon="close" kind="quiet" iconOnly onClick={leave} />
          </header>
        )}
        {children}
      </div>
    </dialog>
  )
}

/** Runs an action, and shows why it failed in a toast: for actions without a form. */
export const act = async (action: () => Promise<unknown>, done?: string): Promise<void> => {
  try {
    await action()
    if (done) say(done)
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), 'bad')
  }
}

type FormProps = {
  label: string
  action: () => Promise<unknown>
  /** Said once it has succeeded. */
  done?: string
  onDone?: () => void
  kind?: 'main' | 'danger'
  isDisabled?: boolean
  class?: string
  /** Above the fields. */
  text?: Children
  /** Beside the button. */
  beside?: Children
  children?: Children | ((failure: Failure | undefined) => Children)
}
/** Several fields are listed one by one, also those that the form does not have. */
const textOf = ({ fields, message }: Failure): string => {
  const refused = Object.entries(fields)
  return refused.length > 1 ? refused.map(entry => entry.join(': ')).join('\n') : message
}

/** A form that runs an action, shows why it failed, and is busy meanwhile. */
export const Form = ({ label, action, done, onDone, text, beside, children, ...form }: FormProps) => {
  const { kind = 'main', isDisabled, class: name = 'stack' } = form
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setFailure(undefined)
    try {
      await action()
      if (done) say(done)
      onDone?.()
    } catch (error) {
      setFailure(failureOf(error))
    }
    setBusy(false)
  }
  return (
    <form class={name} onSubmit={submit}>
      {text && <p>{text}</p>}
      {typeof children === 'function' ? children(failure) : children}
      <Refusal text={failure && textOf(failure)} />
      <div class="row">
        <Button label={label} kind={kind} type="submit" busy={busy} disabled={isDisabled} />
        {beside}
      </div>
    </form>
  )
}

type ConfirmProps = FormProps & { title: string; staysOpen?: boolean }
/** Asks before an action, and shows what it has done if it stays open. */
export const Confirm = ({ title, staysOpen, onDone, ...form }: ConfirmProps) => {
  const close = useClose()
  const finish = () => {
    onDone?.()
    if (!staysOpen) close()
  }
  return (
    <Dialog title={title}>
      <Form {...form} onDone={finish} beside={<Button label="Cancel" onClick={close} />} />
    </Dialog>
  )
}

type Removal = { title: string; text: string; done?: string; label?: string; action: () => Promise<unknown> }
/** Asks before something ends for good. */
export const askToRemove = (removal: Removal): void => show(<Confirm label="Delete" kind="danger" {...removal} />)
