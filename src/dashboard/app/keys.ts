/** The keyboard: letters act unless somebody is typing. */
import { useEffect } from 'preact/hooks'

type Shortcut = { key: string; text: string; run: () => void }

/** Those of the page shown, for its help. */
export const active = new Set<Shortcut>()

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
  useEffect(() => {
    for (const shortcut of shortcuts) active.add(shortcut)
    return () => {
      for (const shortcut of shortcuts) active.delete(shortcut)
    }
  })
}

/** Moves through the rows of the page's list with j and k; the row's link has the focus, so Enter opens it. */
export const useRows = (): void => {
  const move = (step: number) => {
    const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
    if (rows.length === 0) return
    const current = rows.findIndex(row => row.contains(document.activeElement))
    const next = rows[current === -1 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(current + step, 0), rows.length - 1)]!
    next.querySelector<HTMLElement>('a[href], button')?.focus()
    next.scrollIntoView({ block: 'nearest' })
  }
  useShortcuts([
    { key: 'j', text: 'Next row', run: () => move(1) },
    { key: 'k', text: 'Previous row', run: () => move(-1) }
  ])
}
