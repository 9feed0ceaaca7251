/** The command palette: pages, actions and cues by a few letters. */
import { useEffect, useState } from 'preact/hooks'
import type { Cues } from '../../../client/types.ts'
import { get, post } from '../api.ts'
import { itemsFor } from '../nav.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { toggleTheme } from '../theme.ts'
import { act, Dialog, useClose } from './dialog.tsx'
import { Icon, type IconName } from './icon.tsx'

/** What it does is a call, or the page it leads to. */
type Entry = { name: string; note: string; icon: IconName; run: string | (() => void) }

/** `fire report` fires the cue that is chosen. */
const verbs = { fire: 'cue', pause: 'pause', resume: 'play' } as const
const verbOf = (text: string) => /^(fire|pause|resume)\s+(.*)$/i.exec(text.trim())
const doTo = (verb: keyof typeof verbs, id: string, name: string) => () =>
  void act(() => post(`/v1/cues/${id}/${verb}`, {}, { 'idempotency-key': crypto.randomUUID() }), `${name}: ${verb}d`)

/** Cues whose name, key, task or tag contains the text, to open or to act on. */
const useCues = (input: string, mayWrite: boolean): Entry[] => {
  const [, verb, rest] = (mayWrite && verbOf(input)) || [undefined, undefined, input]
  const text = rest ?? input
  const [cues, setCues] = useState<Entry[]>([])
  useEffect(() => {
    if (text.trim() === '') return setCues([])
    const stopped = new AbortController()
    const timer = setTimeout(async () => {
      const answer = await get<Cues>('/v1/cues', { search: text.trim(), limit: 8, count_to: 0 }, stopped.signal).catch(() => undefined)
      const verbName = verb?.toLowerCase() as keyof typeof verbs | undefined
      setCues(
        (answer?.cues ?? []).map(({ id, name, key }) =>
          verbName
            ? { name: `${verb} ${name}`, note: key ?? id, icon: verbs[verbName], run: doTo(verbName, id, name) }
            : { name, note: key ?? id, icon: 'cue', run: `/cues/${id}` }
        )
      )
    }, 150)
    return () => {
      clearTimeout(timer)
      stopped.abort()
    }
  }, [input])
  return cues
}

const directOf = (text: string): Entry[] => {
  const id = /^(cue_\w{12}|[0-9a-f-]{36})$/.exec(text.trim())?.[1]
  return id ? [{ name: id, note: 'Open', icon: 'right', run: id.startsWith('cue_') ? `/cues/${id}` : `/executions/${id}` }] : []
}

export const Palette = () => {
  const close = useClose()
  const [text, setText] = useState('')
  const [chosen, choose] = useState(0)
  const mayWrite = useMay('write')
  const cues = useCues(text, mayWrite)
  const me = useMe()
  const { go } = usePlace()
  const fixed: Entry[] = [
    ...itemsFor(me).map(({ path, name, icon }) => ({ name, note: 'Page', icon, run: path })),
    ...(mayWrite ? [{ name: 'Create a cue', note: 'Action', icon: 'plus' as const, run: '/cues/new' }] : []),
    { name: 'Switch between light and dark', note: 'Action', icon: 'moon', run: toggleTheme }
  ]
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const matching = fixed.filter(({ name }) => words.every(word => name.toLowerCase().includes(word)))
  const entries = [...directOf(text), ...matching, ...cues]
  const at = Math.min(chosen, entries.length - 1)
  const run = (entry: Entry | undefined) => {
    if (!entry) return
    close()
    if (typeof entry.run === 'string') go(to(entry.run))
    else entry.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step && event.key !== 'Enter') return
    event.preventDefault()
    if (step) choose((at + step + entries.length) % entries.length)
    else run(entries[at])
  }
  const input = (event: { currentTarget: HTMLInputElement }) => {
    setText(event.currentTarget.value)
    choose(0)
  }
  const label = 'Go to a page or a cue, or type: fire, pause, resume'
  return (
    <Dialog title="Command palette" kind="palette">
      <div class="row palette-search">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label={label}
          aria-expanded={true}
          aria-controls="palette-list"
          aria-activedescendant={at >= 0 ? `palette-${at}` : undefined}
          placeholder={label}
          value={text}
          onInput={input}
          onKeyDown={onKeyDown}
        />
      </div>
      <ul id="palette-list" role="listbox" aria-label="Matches">
        {entries.map((entry, n) => (
          <li key={entry.name + entry.note} id={`palette-${n}`} role="option" aria-selected={n === at} onClick={() => run(entry)}>
            <Icon name={entry.icon} size={18} />
            <span class="one-line">{entry.name}</span>
            <span class="soft small">{entry.note}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p class="soft item">Nothing matches.</p>}
    </Dialog>
  )
}
