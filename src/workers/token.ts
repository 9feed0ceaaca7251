const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The claim token that a request shows. One that is none is as lost as an old one. */
export const claimTokenOf = (headers: { 'x-claim-token'?: string }): string | undefined => {
  const token = headers['x-claim-token']
  return token === undefined || uuid.test(token) ? token : '00000000-0000-0000-0000-000000000000'
}
