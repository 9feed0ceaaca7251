/** The crons of a vercel.json become cues that call the production deployment. */
import { cronSchedule, type Importer, refuse, textOf, translate } from './entries.ts'
import { readParts } from './parts.ts'

export const vercel: Importer = (text, options) =>
  translate(readParts(text, 'crons'), entry => {
    const path = textOf(entry, 'path')
    if (!path.startsWith('/')) refuse(`path ${path} does not begin with /`)
    return {
      name: path.replace(/\?.*$/s, '').replace(/^\/(api\/)?/, '') || 'root',
      comment: 'Set VERCEL_PROJECT_PRODUCTION_URL to the domain. Without a CRON_SECRET in the project, remove Authorization.',
      cue: {
        name: path,
        schedule: cronSchedule(textOf(entry, 'schedule'), options.timezone, options),
        retry: { max_attempts: 1 } // as there
      },
      template: {
        callback: {
          url: `https://\${VERCEL_PROJECT_PRODUCTION_URL}${path.replaceAll('${', '%24{')}`,
          method: 'GET',
          headers: { Authorization: `Bearer \${CRON_SECRET}` }
        }
      }
    }
  })
