/** The dashboard: starts with who is signed in. */
import { render } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { LocationProvider, useLocation } from 'preact-iso/router'
import type { Me } from '../../client/types.ts'
import { type Failure, failureOf, get, onSignedOut } from './api.ts'
import { SignIn } from './pages/sign-in.tsx'
import { forget } from './query.ts'
import { mayBeSignedIn } from './root.ts'
import { base, to } from './router.ts'
import { session, signIn } from './session.ts'
import './theme.ts'
import { Problem } from './ui/basics.tsx'
import { Frame } from './ui/frame.tsx'
import { Logo } from './ui/icon.tsx'
import { Toasts } from './ui/toast.tsx'
import { View } from './views.tsx'

type State = { kind: 'starting'; failure?: Failure } | { kind: 'signed-out'; problem?: string } | { kind: 'signed-in' }

/** The one-time token of the link that an embedded start prints. It leaves the address at once. */
const takeToken = (): string | undefined => {
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1]
  if (token) history.replaceState(null, '', location.pathname + location.search)
  return token
}

const App = () => {
  const [state, setState] = useState<State>({ kind: 'starting' })
  const { url, wasPush } = useLocation() as unknown as { url: string; wasPush: boolean }
  // The browser itself scrolls to where somebody was.
  useLayoutEffect(() => {
    if (wasPush) scrollTo(0, 0)
  }, [url])

  const start = useCallback(async (problem?: string): Promise<void> => {
    try {
      session.value = await get<Me>('/v1/auth/me')
      setState({ kind: 'signed-in' })
    } catch (error) {
      const failure = failureOf(error)
      if (failure.status === 401) return setState({ kind: 'signed-out', problem })
      setState({ kind: 'starting', failure })
      setTimeout(() => start(problem), Math.max(failure.retryAfter * 1000, 2000))
    }
  }, [])

  useEffect(() => {
    onSignedOut(() => {
      forget()
      setState({ kind: 'signed-out' })
    })
    const token = takeToken()
    if (!token) return mayBeSignedIn ? void start() : setState({ kind: 'signed-out' })
    // Somebody who is signed in already may open a link that was used.
    signIn({ token }).then(
      () => start(),
      error => start(`${(error as Error).message} The service prints a new link when it starts.`)
    )
  }, [])

  const signedOut = useCallback(() => setState({ kind: 'signed-out' }), [])
  if (state.kind === 'starting')
    return (
      <div class="starting">
        <Logo size={44} />
        <Problem failure={state.failure} />
      </div>
    )
  if (state.kind === 'signed-out') return <SignIn problem={state.problem} onSignedIn={() => void start()} />
  return (
    <>
      <Frame onSignedOut={signedOut}>
        <View />
      </Frame>
      <Toasts />
    </>
  )
}

// Links of mails and of the API, from before there were pages.
if (location.hash === '#billing') history.replaceState(null, '', to('/usage'))
const dashboard = (
  <LocationProvider scope={base}>
    <App />
  </LocationProvider>
)
render(dashboard, document.getElementById('app')!)
