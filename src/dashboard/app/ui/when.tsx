/** Instants, relative and absolute. */
import { fullTime, relative, shortTime, useNow, useZone, zoneFor } from '../time.ts'

type Props = {
  at: string | null | undefined
  zone?: string
  only?: 'relative' | 'absolute'
  /** A time to come: it is now until the page is read again. */
  isNext?: boolean
  none?: string
  /** The relative time is left out then: there is no room for both. */
  withSeconds?: boolean
}

/** 15 Jan, 09:00, with the relative time before or alone; the full time is its title, once the pointer is there. */
export const When = ({ at, zone, only, isNext, none = '–', withSeconds }: Props) => {
  const now = useNow()
  const choice = useZone()
  if (!at) return <span class="soft">{none}</span>
  const shown = () => zoneFor(choice, zone)
  const explain = (event: { currentTarget: HTMLElement }) => {
    event.currentTarget.title = `${fullTime(at, shown())} (${shown()})`
  }
  return (
    <time dateTime={at} class="when" onPointerEnter={explain}>
      {only !== 'absolute' && !withSeconds && <span>{relative(at, isNext ? Math.min(now, Date.parse(at)) : now)}</span>}
      {only !== 'relative' && <span class={only || withSeconds ? undefined : 'soft'}>{shortTime(at, shown(), withSeconds)}</span>}
    </time>
  )
}
