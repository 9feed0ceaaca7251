/** The page of the address: the home page comes with the first bundle, all others with a second one. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Attention } from './pages/attention.tsx'
import { usePlace } from './router.ts'
import { Button, Empty, Loading } from './ui/basics.tsx'
import { Page } from './ui/page.tsx'

const pages = signal<typeof import('./pages.ts') | 'failed' | undefined>(undefined)
let _loading: Promise<void> | undefined
const load = () => {
  _loading ??= import('./pages.ts').then(
    loaded => {
      pages.value = loaded
    },
    () => {
      pages.value = 'failed'
    }
  )
}

export const View = () => {
  const { path } = usePlace()
  const isHome = path === '/'
  useEffect(() => {
    if (!isHome) return load()
    // The second bundle comes once the first view is there.
    const timer = setTimeout(load, 1500)
    return () => clearTimeout(timer)
  }, [isHome])
  if (isHome) return <Attention />
  if (typeof pages.value === 'object') return pages.value.pageOf(path)
  return (
    <Page title="Loading">
      {pages.value ? (
        <Empty
          title="This page could not be loaded"
          text="There may be a newer release."
          action={<Button label="Reload" onClick={() => location.reload()} />}
        />
      ) : (
        <Loading />
      )}
    </Page>
  )
}
