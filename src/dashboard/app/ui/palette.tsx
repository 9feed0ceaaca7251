/** The command palette: pages, actions and cues by a few letters. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Cues } from '../../../client/types.ts'
import { get } from '../api.ts'

import { itemsFor } from '../nav.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { toggleTheme } from '../theme.ts'
import { Icon, type IconName } from './icon.tsx'

type Entry = { name: string; note: string; icon: IconName; run: () => void }

export const Palette = ({ onClose }: { onClose: () => void }) => {
  const ref = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [chosen, choose] = useState(0)
  const [cues, setCues] = useState<Entry[]>([])
  const mayWrite = useMay('write')
  const me = useMe()
  useEffect(() => ref.current!.showModal(), [])

  useEffect(() => {
    if (text.trim() === '') return setCues([])
    const stopped = new AbortController()
    const timer = setTimeout(async () => {
      const found = await get<Cues>('/v1/cues', { search: text.trim(), limit: 8, count_to: 0 }, stopped.signal).catch(() => undefined)
      setCues((found?.cues ?? []).map(({ id, name, key }) => ({ name, note: key ?? id, icon: 'cue', run: () => go(to(`/cues/${id}`)) })))
    }, 150)
    return () => {
      clearTimeout(timer)
      stopped.abort()
    }
  }, [text])

  const fixed: Entry[] = [
    ...itemsFor(me).map(({ path, name, icon }) => ({ name, note: 'Page', icon, run: () => go(to(path)) })),
    ...(mayWrite ? [{ name: 'Create a cue', note: 'Action', icon: 'plus' as const, run: () => go(to('/cues/new')) }] : []),
    { name: 'Switch between light and dark', note: 'Action', icon: 'moon', run: toggleTheme }
  ]
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const id = /^(cue_\w{12}|[0-9a-f-]{36})$/.exec(text.trim())?.[1]
  const direct: Entry[] = id
    ? [{ name: id, note: 'Open', icon: 'right', run: () => go(to(id.startsWith('cue_') ? `/cues/${id}` : `/executions/${id}`)) }]
    : []
  const entries = [...direct, ...fixed.filter(({ name }) => words.every(word => name.toLowerCase().includes(word))), ...cues]
  const at = Math.min(chosen, entries.length - 1)
  const run = (entry: Entry | undefined) => {
    if (!entry) return
    ref.current!.close()
    entry.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) {
      event.preventDefault()
      choose((at + step + entries.length) % entries.length)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(entries[at])
    }
  }
  return (
    <dialog
      ref={ref}
      class="palette"
      aria-label="Command palette"
      onClose={onClose}
      onClick={event => event.target === ref.current && ref.current!.close()}
    >
      <div class="palette-body" onKeyDown={onKeyDown}>
        <div class="palette-search">
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            aria-label="Go to a page, an action or a cue"
            aria-expanded={true}
            aria-controls="palette-list"
            aria-activedescendant={at >= 0 ? `palette-${at}` : undefined}
            placeholder="Go to a page, an action or a cue"
            value={text}
            onInput={event => {
              setText(event.currentTarget.value)
              choose(0)
            }}
          />
        </div>
        <ul id="palette-list" role="listbox" aria-label="Matches">
          {entries.map((entry, n) => (
            <li key={entry.name + entry.note} id={`palette-${n}`} role="option" aria-selected={n === at} onClick={() => run(entry)}>
              <Icon name={entry.icon} size={18} />
              <span class="palette-name">{entry.name}</span>
              <span class="palette-note">{entry.note}</span>
            </li>
          ))}
        </ul>
        {entries.length === 0 && <p class="soft palette-none">Nothing matches.</p>}
      </div>
    </dialog>
  )
}
