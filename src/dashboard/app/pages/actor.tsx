/** Who did something, in words: the label of a key, the browser of a session. */
import type { Key, Sessions } from '../../../client/types.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { programOf } from './sessions.tsx'

/** Sessions and keys that are gone, or that this session may not list, keep the beginning of their ids. */
export const useActorText = (): ((actor: string) => string) => {
  const mayList = useMay('account')
  const keys = useRead<{ keys: Key[] }>(mayList ? '/v1/auth/keys' : undefined, {}, { repeat: false }).data?.keys
  const sessions = useRead<Sessions>(mayList ? '/v1/auth/sessions' : undefined, { limit: 100 }, { repeat: false }).data?.sessions
  return actor => {
    const [kind, id] = actor.split(':')
    const key = kind === 'key' && keys?.find(key => key.id === id)
    if (key) return `key ${key.label ?? key.prefix}`
    const session = kind === 'session' && sessions?.find(session => session.id === id)
    return session ? programOf(session.user_agent) : actor.replace(/:([0-9a-f]{8})[0-9a-f-]+$/, ' $1…')
  }
}
