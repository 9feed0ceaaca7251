/** Dialogs over the page, forms, and questions before something is done. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Failure } from '../api.ts'
import { Button, type Children, Refusal } from './basics.tsx'
import { say } from './toast.tsx'

type DialogProps = { title: string; onClose: () => void; children: Children; kind?: 'wide' | 'palette' }
/** A palette has no heading. */
export const Dialog = ({ title, onClose, children, kind }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    ref.current!.showModal()
  }, [])
  const close = () => ref.current!.close()
  return (
    <dialog ref={ref} class={kind} aria-label={title} onClose={onClose} onClick={event => event.target === ref.current && close()}>
      <div>
        {kind !== 'palette' && (
          <header class="split">
            <h2>{title}</h2>
            <Button label="Close" icon="close" kind="quiet" iconOnly onClick={close} />
          </header>
        )}
        {children}
      </div>
    </dialog>
  )
}

/** Runs an action that calls the API; returns whether it is running, and why it failed. */
const useAction = () => {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const run = async (action: () => Promise<unknown>, done?: string): Promise<boolean> => {
    setBusy(true)
    setFailure(undefined)
    try {
      await action()
      if (done) say(done)
      return true
    } catch (error) {
      setFailure(error instanceof Failure ? error : new Failure(0, 'bug', String(error)))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { busy, failure, run }
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
export const Form = ({
  label,
  action,
  done,
  onDone,
  kind = 'main',
  isDisabled,
  class: name = 'stack',
  text,
  beside,
  children
}: FormProps) => {
  const { busy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    if (await run(action, done)) onDone?.()
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

type ConfirmProps = FormProps & { title: string; onClose: () => void; staysOpen?: boolean }
/** Asks before an action; if it stays open, the action itself closes it. */
export const Confirm = ({ title, onClose, staysOpen, onDone, ...form }: ConfirmProps) => {
  const finish = () => {
    onDone?.()
    if (!staysOpen) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...form} onDone={finish} beside={<Button label="Cancel" onClick={onClose} />} />
    </Dialog>
  )
}
