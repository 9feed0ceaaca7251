/** Who is signed in, and what they may do. */
import { signal } from '@preact/signals'
import type { Me } from '../../client/types.ts'
import { call } from './api.ts'
import { forget } from './query.ts'

export type Scope = 'read' | 'write' | 'worker' | 'account' | 'approve'
export const session = signal<Me | undefined>(undefined)

export const useMe = (): Me => session.value!

/** Whether the session has a scope. The API refuses what it lacks; the pages show no action that would be refused. */
export const useMay = (scope: Scope): boolean => useMe().scopes.includes(scope)

export const signIn = (credential: { api_key: string } | { token: string }): Promise<unknown> =>
  call('POST', '/v1/auth/browser-session', { body: credential })

export const signOut = async ({ everywhere = false } = {}): Promise<void> => {
  await call('DELETE', '/v1/auth/session', { query: everywhere ? { all: true } : {} })
  forget()
}
