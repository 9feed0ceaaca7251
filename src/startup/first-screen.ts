/** What `npm start` prints after startup: addresses, and a tour to paste. */
import { type Config, version } from '../config.ts'

/** @param link opens the dashboard signed in */
export const firstScreen = (config: Config, link?: string): string => {
  const url = config.baseUrl
  const health = `  health         ${url}/health    status   ${url}/status`
  if (!config.roles.api) {
    return `
pgcue ${version} fires and delivers. It serves health checks only, at ${url}
${health}
`
  }
  const settings = config.embedded
    ? ''
    : `
The tour's callback is on this machine. To allow that, start with CALLBACK_ALLOW_HTTP=on CALLBACK_ALLOW_CIDRS=127.0.0.0/8,::1/128
`
  const signedIn = link
    ? `
Open the dashboard, signed in (works once, within 15 minutes, on this machine):
  ${link}
`
    : ''
  return `
pgcue ${version} serves at ${url}
  dashboard      ${url}/dashboard
  API reference  ${url}/docs      OpenAPI  ${url}/openapi.json
${health}
${signedIn}${settings}
A tour in three lines of shell: create an account, schedule a webhook to the echo buffer, run it now and see the delivery.
${tour(url)}
`
}

/** Three lines for a POSIX shell, each to be pasted as it is. The last waits up to 10 s for the delivery. */
export const tour = (url: string): string =>
  `
KEY=$(curl -s ${url}/v1/auth/register -H content-type:application/json -d '{"email":"me-'$(date +%s)'@example.com"}' | sed 's/.*"api_key":"\\([^"]*\\)".*/\\1/'); ECHO=tour-$(date +%s)-echo; echo "$KEY"
CUE=$(curl -s ${url}/v1/cues -H "Authorization: Bearer $KEY" -H content-type:application/json -d '{"name":"hello","cron":"0 9 * * 1-5","callback_url":"${url}/v1/echo/'$ECHO'","payload":{"task":"hello"}}' | sed 's/.*"id":"\\(cue_[^"]*\\)".*/\\1/'); echo "$CUE"
curl -s -o /dev/null -X POST ${url}/v1/cues/$CUE/fire -H "Authorization: Bearer $KEY"; for I in 1 2 3 4 5 6 7 8 9 10; do GOT=$(curl -s ${url}/v1/echo/$ECHO -H "Authorization: Bearer $KEY"); case "$GOT" in *'"delivered"'*) break;; esac; sleep 1; done; echo "$GOT"
`.trim()
