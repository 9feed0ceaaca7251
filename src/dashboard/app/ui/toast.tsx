/** Short messages that disappear by themselves. */
import { signal } from '@preact/signals'

type Toast = { id: number; text: string; tone: 'good' | 'bad'; link?: { href: string; text: string } }
const toasts = signal<Toast[]>([])
let last = 0

/** Shows a message, with a link to what it is about. */
export const say = (text: string, tone: Toast['tone'] = 'good', link?: Toast['link']): void => {
  const toast = { id: ++last, text, tone, link }
  toasts.value = [...toasts.value.slice(-2), toast]
  setTimeout(
    () => {
      toasts.value = toasts.value.filter(({ id }) => id !== toast.id)
    },
    tone === 'bad' ? 9000 : 5000
  )
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, text, tone, link }) => (
      <p key={id} class={`toast ${tone}`}>
        {text} {link && <a href={link.href}>{link.text}</a>}
      </p>
    ))}
  </div>
)
