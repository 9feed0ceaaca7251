/** Where people choose and pay for a plan. */
export const upgradeUrl = (baseUrl: string): string => `${baseUrl}/dashboard#billing`
