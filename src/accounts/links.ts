// Links in mails. Each contains a signed id, valid for one kind of link, so no link is stored, and a mail that is sent again has the same
// link. The row with that id shows whether the link is still valid.
import type { Config } from '../config.ts'
import { deriveKey, readSignedId, signId } from '../deliveries/signature.ts'

const paths = {
  /** The id is a device code's `link_id`. */
  verify: '/v1/auth/verify',
  /** The id is that of a deletion. */
  'cancel-deletion': '/auth/cancel-deletion',
  /** The id is that of an account. */
  'confirm-email': '/auth/confirm-email',
  /** The id is that of an address for channels. */
  'confirm-address': '/auth/confirm-address',
  /** The id is that of an account. */
  'not-me': '/auth/not-me',
  /** The id is that of an execution that waits for approval. */
  approval: '/approval'
}
export type LinkKind = keyof typeof paths

/** Creates and reads links. `baseUrl` is needed only for creating them. */
export const createLinks = ({ sessionSecret, baseUrl = '' }: Pick<Config, 'sessionSecret'> & { baseUrl?: string }) => {
  const keys = Object.fromEntries(Object.keys(paths).map(kind => [kind, deriveKey(sessionSecret, `link ${kind}`)] as const)) as Record<
    LinkKind,
    ReturnType<typeof deriveKey>
  >
  return {
    /** Returns the complete URL; `query` follows the token. */
    url: (kind: LinkKind, id: string, query: Record<string, string> = {}): string =>
      `${baseUrl}${paths[kind]}?${new URLSearchParams({ token: signId(keys[kind], id), ...query })}`,
    /** Returns the id in a token of this kind, or undefined if the token is invalid. */
    read: (kind: LinkKind, token: string): string | undefined => readSignedId(keys[kind], token)
  }
}

export type Links = ReturnType<typeof createLinks>
