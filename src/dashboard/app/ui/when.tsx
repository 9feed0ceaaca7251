/** Instants, relative and absolute. */

import { fullTime, relative, shortTime, useNow, useZone, zoneFor } from '../time.ts'

/** 15 Jan, 09:00, with the relative time below or alone; the full time is its title, once the pointer is there. */
export const When = ({
  at,
  zone,
  only,
  isNext,
  none = '–'
}: {
  at: string | null | undefined
  zone?: string
  only?: 'relative' | 'absolute'
  /** A time to come: it is now until the page is read again. */
  isNext?: boolean
  none?: string
}) => {
  const now = useNow()
  const choice = useZone()
  if (!at) return <span class="soft">{none}</span>
  const shown = () => zoneFor(choice, zone)
  const texts = { relative: () => relative(at, isNext ? Math.min(now, Date.parse(at)) : now), absolute: () => shortTime(at, shown()) }
  return (
    <time
      dateTime={at}
      class="when"
      onPointerEnter={event => {
        event.currentTarget.title = `${fullTime(at, shown())} (${shown()})`
      }}
    >
      {only ? (
        texts[only]()
      ) : (
        <>
          <span class="when-relative">{texts.relative()}</span>
          <span class="when-absolute">{texts.absolute()}</span>
        </>
      )}
    </time>
  )
}
