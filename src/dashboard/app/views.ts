/** The page of the address: the home page comes with the first bundle, all others with a second one. */
import { useEffect, useState } from 'preact/hooks'
import { h } from './h.ts'
import { Attention } from './pages/attention.ts'
import { Loading } from './ui/basics.ts'
import { Page } from './ui/frame.ts'

type Pages = typeof import('./pages.ts')
let loaded: Pages | undefined
let loading: Promise<void> | undefined
const load = (): Promise<void> => {
  loading ??= import('./pages.ts').then(pages => {
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
  if (isHome) return h(Attention, {})
  if (loaded) return loaded.pageOf(path)
  return h(
    Page,
    { title: 'Loading' },
    hasFailed
      ? h(
          'p',
          {},
          'This page could not be loaded. There may be a newer release: ',
          h('a', { href: location.href, target: '_self' }, 'reload it'),
          '.'
        )
      : h(Loading, {})
  )
}
