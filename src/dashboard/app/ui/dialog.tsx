/** Dialogs over the page, and questions before something is done. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { Failure } from '../api.ts'

import { Button, type Children } from './basics.tsx'
import { say } from './toast.tsx'

export const Dialog = ({ title, onClose, children, wide }: { title: string; onClose: () => void; children: Children; wide?: boolean }) => {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    ref.current!.showModal()
  }, [])
  return (
    <dialog
      ref={ref}
      class={wide ? 'wide' : undefined}
      aria-label={title}
      onClose={onClose}
      onClick={event => event.target === ref.current && ref.current!.close()}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <Button label="Close" icon="close" kind="quiet" iconOnly onClick={() => ref.current!.close()} />
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** Runs an action that calls the API; returns whether it is running, and why it failed. */
export const useAction = () => {
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

type ConfirmProps = {
  title: string
  children?: Children
  label: string
  kind?: 'main' | 'danger'
  onClose: () => void
  action: () => Promise<unknown>
  done?: string
  /** The action itself closes it. */
  staysOpen?: boolean
  isDisabled?: boolean
}
/** Asks before an action. */
export const Confirm = ({ title, children, label, kind = 'main', onClose, action, done, staysOpen, isDisabled }: ConfirmProps) => {
  const { busy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    if ((await run(action, done)) && !staysOpen) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {failure && (
          <p class="field-error" role="alert">
            {failure.message}
          </p>
        )}
        <div class="dialog-foot">
          <Button label="Cancel" onClick={onClose} />
          <Button label={label} kind={kind} type="submit" busy={busy} disabled={isDisabled} />
        </div>
      </form>
    </Dialog>
  )
}
