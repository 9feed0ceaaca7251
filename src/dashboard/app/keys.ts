/** The keyboard: letters act unless somebody is typing. */
import { useLayoutEffect } from 'preact/hooks'

type Shortcut = { key: string; text: string; run: () => void }

const rows = () => [...document.querySelectorAll<HTMLElement>('[data-row]')]
const focusedRow = () => rows().findIndex(row => row.contains(document.activeElement))
/** Moves through the rows of the page's list; the row's link has the focus, so Enter opens it. */
const move = (step: number) => () => {
  const [all, current] = [rows(), focusedRow()]
  const next = all[current === -1 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(current + step, 0), all.length - 1)]
  next?.querySelector<HTMLElement>('a[href], button')?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

/** Those of every page and of the page shown, for its help. */
export const active = new Set<Shortcut>([
  { key: 'j', text: 'Next row', run: move(1) },
  { key: 'k', text: 'Previous row', run: move(-1) }
])

const isEditing = (target: EventTarget | null) =>
  target instanceof Element && target.matches('input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]')

document.addEventListener('keydown', event => {
  const isPalette = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
  if (!isPalette && (event.ctrlKey || event.metaKey || event.altKey || isEditing(event.target))) return
  if (!isPalette && document.querySelector('dialog[open]')) return
  const pressed = isPalette ? 'Ctrl+K' : event.key
  // The latest registered wins: a page's over the frame's.
  const shortcut = [...active].reverse().find(({ key }) => key === pressed)
  if (!shortcut) return
  // Enter and Space keep their meaning on what has the focus.
  if (pressed === ' ' && event.target instanceof Element && event.target.matches('button, summary, input')) return
  if (pressed === 'Enter' && event.target instanceof Element && event.target.matches('a, button, summary')) return
  event.preventDefault()
  shortcut.run()
})

export const useShortcuts = (shortcuts: Shortcut[]): void => {
  // With what it shows: a key may come before other effects.
  useLayoutEffect(() => {
    for (const shortcut of shortcuts) active.add(shortcut)
    return () => {
      for (const shortcut of shortcuts) active.delete(shortcut)
    }
  })
}

/** Shortcuts that act on the row with the focus. */
export const useRowShortcuts = <T>(
  rows: readonly T[] | undefined,
  shortcuts: { key: string; text: string; run: (row: T) => void }[]
): void =>
  useShortcuts(
    shortcuts.map(({ run, ...shortcut }) => ({
      ...shortcut,
      run: () => {
        const row = rows?.[focusedRow()]
        if (row) run(row)
      }
    }))
  )
