/** URL of the page for choosing and buying a plan. */
export const upgradeUrl = (baseUrl: string): string => `${baseUrl}/dashboard#billing`
