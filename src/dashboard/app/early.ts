/** Asks for what the first view shows while the rest of the dashboard is still loading. */
declare global {
  interface Window {
    early?: Map<string, Promise<Response | undefined>>
  }
}

const { root = '', session } = document.documentElement.dataset
// A link with a token opens a session first.
if (session !== undefined && !location.hash.startsWith('#token=')) {
  const isHome = location.pathname.replace(/\/$/, '') === `${root}/dashboard`
  const paths = ['/v1/auth/me', ...(isHome ? ['/v1/overview'] : [])]
  const ask = (path: string) =>
    fetch(root + path, { headers: { accept: 'application/json' }, credentials: 'same-origin' }).catch(() => undefined)
  window.early = new Map(paths.map(path => [path, ask(path)]))
}

export {}
