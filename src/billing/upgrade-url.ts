/** URL of the page for choosing and buying a plan. */
export const upgradeUrl = (baseUrl: string): string => `${baseUrl}/dashboard#billing`

/** Where plans cannot be bought. */
export const setByOperator = 'The operator of this service sets plans and limits.'
