/** Instants, relative and absolute. */
import { h } from '../h.ts'
import { fullTime, relative, shortTime, useNow, useZone, zoneFor } from '../time.ts'

/** 15 Jan, 09:00, with the relative time below or alone; the full time is its title. */
export const When = ({
  at,
  zone,
  only,
  none = '–'
}: {
  at: string | null | undefined
  zone?: string
  only?: 'relative' | 'absolute'
  none?: string
}) => {
  const now = useNow()
  const shown = zoneFor(useZone(), zone)
  if (!at) return h('span', { class: 'soft' }, none)
  const texts = { relative: relative(at, now), absolute: shortTime(at, shown) }
  return h(
    'time',
    { dateTime: at, title: `${fullTime(at, shown)} (${shown})`, class: 'when' },
    only ? texts[only] : [h('span', { class: 'when-relative' }, texts.relative), h('span', { class: 'when-absolute' }, texts.absolute)]
  )
}
