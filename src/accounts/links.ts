// Links in mails. Each carries the id of what it is about, signed for one purpose, so nothing of a link is stored, and a mail that is sent
// once more has the same link. How long it is good for, and whether it was used, is for the row with that id to tell.
import type { Config } from '../config.ts'
import { deriveKey, readSignedId, signId } from '../deliveries/signature.ts'

const paths = {
  /** Its id is a device code's `link_id`. */
  verify: '/v1/auth/verify',
  /** Its id is a deletion's. */
  'cancel-deletion': '/auth/cancel-deletion',
  /** Its id is an account's. */
  'confirm-email': '/auth/confirm-email',
  /** Its id is an account's. */
  'not-me': '/auth/not-me'
}
export type LinkKind = keyof typeof paths

/** Makes and reads links. `baseUrl` may be left out by those who only read. */
export const createLinks = ({ sessionSecret, baseUrl = '' }: Pick<Config, 'sessionSecret'> & { baseUrl?: string }) => {
  const keys = Object.fromEntries(Object.keys(paths).map(kind => [kind, deriveKey(sessionSecret, `link ${kind}`)] as const)) as Record<
    LinkKind,
    ReturnType<typeof deriveKey>
  >
  return {
    /** The whole URL, with more query parameters after the token. */
    url: (kind: LinkKind, id: string, query: Record<string, string> = {}): string =>
      `${baseUrl}${paths[kind]}?${new URLSearchParams({ token: signId(keys[kind], id), ...query })}`,
    /** The id in a token of this kind, or undefined when it is none of ours. */
    read: (kind: LinkKind, token: string): string | undefined => readSignedId(keys[kind], token)
  }
}

export type Links = ReturnType<typeof createLinks>
