/** The page of the address: the home page comes with the first bundle, all others with a second one. */
import { useEffect, useState } from 'preact/hooks'

import { Attention } from './pages/attention.tsx'
import { Loading } from './ui/basics.tsx'
import { Page } from './ui/frame.tsx'

type Pages = typeof import('./pages.tsx')
let loaded: Pages | undefined
let loading: Promise<void> | undefined
const load = (): Promise<void> => {
  loading ??= import('./pages.tsx').then(pages => {
    loaded = pages
  })
  return loading
}

export const View = ({ path }: { path: string }) => {
  const isHome = path === '/'
  const [hasFailed, fail] = useState(false)
  const [, redraw] = useState(0)
  useEffect(() => {
    if (loaded) return
    const start = () =>
      void load().then(
        () => redraw(n => n + 1),
        () => fail(true)
      )
    if (!isHome) return start()
    // The second bundle comes once the first view is there.
    const timer = setTimeout(start, 1500)
    return () => clearTimeout(timer)
  }, [isHome])
  if (isHome) return <Attention />
  if (loaded) return loaded.pageOf(path)
  return (
    <Page title="Loading">
      {hasFailed ? (
        <p>
          {'This page could not be loaded. There may be a newer release: '}
          <a href={location.href} target="_self">
            reload it
          </a>
          .
        </p>
      ) : (
        <Loading />
      )}
    </Page>
  )
}
