const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Returns the request's claim token. A malformed one is treated like an outdated one. */
export const claimTokenOf = (headers: { 'x-claim-token'?: string }): string | undefined => {
  const token = headers['x-claim-token']
  return token === undefined || uuid.test(token) ? token : '00000000-0000-0000-0000-000000000000'
}
