/** Workflows of GitHub Actions: each cron of `on.schedule` becomes a cue that dispatches the workflow. */
import { isObject } from '../json/canonical-json.ts'
import { cronSchedule, type Fields, type Importer, optionalText, refuse, textOf, translate } from './entries.ts'
import { FormatError, readParts } from './parts.ts'

export const githubActions: Importer = (text, options) => {
  const [workflow] = readParts(text)
  const name = /([^/\\]+?)\.ya?ml$/i.exec(options.file)?.[1]
  const parts = readParts(text, 'on', 'schedule')
  if (parts.length > 0 && name === undefined) throw new FormatError(1, 'pass the workflow as a file: its name is part of the address')
  const { on, name: title } = (workflow?.value ?? {}) as Fields
  const file = options.file.split(/[/\\]/).at(-1)!
  const comment = [
    ...(hasDispatch(on) ? [] : [`Add workflow_dispatch to "on" in ${file}, and remove schedule when this cue is applied.`]),
    ...(text.includes('github.event.schedule') ? ['github.event.schedule is empty in a dispatched run.'] : []),
    'Set GITHUB_REPOSITORY to OWNER/NAME, GITHUB_TOKEN to a token that may write actions, and ref to the default branch.'
  ].join('\n')
  return translate(parts, entry => {
    const required = requiredInput(on)
    if (required) refuse(`workflow_dispatch requires the input ${required}, which has no default`)
    return {
      name: name!,
      comment,
      cue: {
        ...(typeof title === 'string' && { name: title }),
        schedule: cronSchedule(textOf(entry, 'cron'), optionalText(entry, 'timezone') ?? options.timezone, options),
        payload: { ref: 'main' }
      },
      template: {
        callback: {
          url: `https://api.github.com/repos/\${GITHUB_REPOSITORY}/actions/workflows/${encodeURIComponent(file)}/dispatches`,
          headers: { Authorization: `Bearer \${GITHUB_TOKEN}`, Accept: 'application/vnd.github+json' }
        }
      }
    }
  })
}

const hasDispatch = (on: unknown) => isObject(on) && 'workflow_dispatch' in on

const requiredInput = (on: unknown): string | undefined => {
  const dispatch = isObject(on) ? on.workflow_dispatch : undefined
  const inputs = isObject(dispatch) && isObject(dispatch.inputs) ? dispatch.inputs : {}
  return Object.keys(inputs).find(name => {
    const input = inputs[name]
    return isObject(input) && input.required === true && input.default === undefined
  })
}
