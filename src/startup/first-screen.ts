/** What `npm start` prints last: addresses, and the tour. At most 15 lines. */
import { resolve } from 'node:path'
import { type Config, version } from '../config.ts'
import { shortPath } from '../directories.ts'

/** @param link opens the dashboard signed in */
export const firstScreen = (config: Config, link?: string): string => {
  const url = config.baseUrl
  if (!config.roles.api)
    return `
pgcue ${version} fires and delivers. It serves health checks only, at ${url}
  ${url}/health   ${url}/status
`
  return `
pgcue ${version} serves at ${url}
  dashboard      ${link ?? `${url}/dashboard`}${link ? '\n                 signed in: works once, within 15 minutes, on this machine; npx pgcue dashboard prints another' : ''}
  API reference  ${url}/docs
  guide          ${url}/docs/guide

A tour: create a cue, fire it, and see what arrives. In another terminal, in this folder:
${tour(config)}
`
}

/** Lines for a shell, to be pasted as they are. */
export const tour = ({ embedded, dataDir, baseUrl }: Pick<Config, 'embedded' | 'dataDir' | 'baseUrl'>): string => {
  if (embedded) return `  ${dataDir === resolve('.data') ? '' : `DATA_DIR='${shortPath(dataDir)}' `}npx pgcue tour`
  return `  npx pgcue register you@example.com --base-url ${baseUrl}
  npx pgcue tour --base-url ${baseUrl}
The tour's callback is on this machine. To allow that, start with CALLBACK_ALLOW_HTTP=on CALLBACK_ALLOW_CIDRS=127.0.0.0/8,::1/128`
}
