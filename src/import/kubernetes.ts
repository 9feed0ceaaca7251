/** CronJobs of Kubernetes become worker cues. */
import { type Fields, type Importer, objectOf, optionalText, refuse, textOf, translate } from './entries.ts'
import { goSchedule } from './go-cron.ts'
import { type Part, readParts } from './parts.ts'

const overlaps = { Allow: 'allow', Forbid: 'skip', Replace: 'cancel_previous' } as const

export const kubernetes: Importer = (text, options) => {
  const isCronJob = ({ value }: Part) => (value as Fields | null)?.kind === 'CronJob'
  // `kubectl get -o yaml` writes a list.
  const parts = [...readParts(text), ...readParts(text, 'items')].filter(isCronJob)
  return translate(parts, job => {
    const [metadata, spec] = [objectOf(job, 'metadata'), objectOf(job, 'spec')]
    const [name, namespace] = [textOf(metadata, 'name'), optionalText(metadata, 'namespace')]
    const policy = optionalText(spec, 'concurrencyPolicy') ?? 'Allow'
    const overlap = overlaps[policy as keyof typeof overlaps] ?? refuse(`concurrencyPolicy ${policy} is unknown`)
    const schedule = goSchedule(textOf(spec, 'schedule'), optionalText(spec, 'timeZone') ?? options.timezone, options)
    const deadline = spec.startingDeadlineSeconds
    const inNamespace = namespace === undefined ? '' : ` -n ${namespace}`
    return {
      name: namespace === undefined ? name : `${namespace}/${name}`,
      comment: `A handler: kubectl create job --from=cronjob/${name} "${name.slice(0, 50)}-\${SERVICE_EXECUTION_ID##*-}"${inNamespace}`,
      cue: {
        name,
        schedule,
        worker: true,
        ...(overlap !== 'allow' && { overlap }),
        // There, a start that is later than the deadline is skipped; without one, the latest missed start is made up for. Few outages last an hour.
        ...(typeof deadline === 'number' && deadline < 3600 && { catch_up: 'skip_missed' as const }),
        ...(spec.suspend === true && { paused: true })
      }
    }
  })
}
