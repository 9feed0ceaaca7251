/** Short messages that disappear by themselves. */

import { createStore } from '../store.ts'

type Toast = { id: number; text: string; tone: 'good' | 'bad'; href?: string; link?: string }
const toasts = createStore<Toast[]>([])
let last = 0

/** Shows a message, with a link to what it is about. */
export const say = (text: string, tone: 'good' | 'bad' = 'good', link?: { href: string; text: string }): void => {
  const toast = { id: ++last, text, tone, href: link?.href, link: link?.text }
  toasts.set([...toasts.get().slice(-2), toast])
  setTimeout(() => toasts.set(toasts.get().filter(({ id }) => id !== toast.id)), tone === 'bad' ? 9000 : 5000)
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.use().map(({ id, text, tone, href, link }) => (
      <p key={id} class={`toast ${tone}`}>
        {text}
        {href && (
          <>
            {' '}
            <a href={href}>{link}</a>
          </>
        )}
      </p>
    ))}
  </div>
)
