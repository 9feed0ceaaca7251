/** Faults of templates. */
import { constants } from '../catalog.ts'
import { namesIn, queryOf, stringsIn } from './template.ts'

/** The parts of a cue that may have placeholders. */
export type Texts = { payload: string; url: string | null; headers: Record<string, string>; message?: string | null }
export type TemplateFault = { member: string[]; message: string }

const { maxPlaceholders } = constants
const pattern = new RegExp(constants.templateNames)
const ofParent = new RegExp(constants.parentNames)

const outcome = 'outcome.{result, external_id, result_url, summary, metadata.MEMBER}'
/** The names, as messages list them. */
export const nameList =
  'execution_id, scheduled_for, scheduled_date, due_at, triggered_by, cue.{id, key, name}, ' +
  `previous.{scheduled_for, success_at, ${outcome}}, parents.KEY.{execution_id, scheduled_for, ${outcome}}`

const isKnown = (name: string, parents: readonly string[]): boolean =>
  pattern.test(name) || parents.some(key => name.startsWith(`parents.${key}.`) && ofParent.test(name.slice(`parents.${key}.`.length)))

/**
 * Checks the texts of a template.
 *
 * @param parents keys or ids of the cues that it follows
 */
export const templateFaults = ({ payload, url, headers, message }: Texts, parents: readonly string[] = []): TemplateFault[] => {
  const faults: TemplateFault[] = []
  const check = (member: string[], text: string) => {
    const name = namesIn(text).find(name => !isKnown(name, parents))
    if (name !== undefined)
      faults.push({
        member,
        message: `{{${name.slice(0, 100).toWellFormed()}}} is not a known name. Known: ${nameList}. For the text {{, write {{{{`
      })
  }
  const texts: [string[], string][] = [...stringsIn(payload)].map(({ text }) => [['payload'], text])
  for (const [name, value] of Object.entries(headers)) texts.push([['callback', 'headers', name], value])
  if (message) texts.push([['approval', 'message'], message])
  if (url !== null) {
    const [start, end] = queryOf(url)
    texts.push([['callback', 'url'], url.slice(start, end)])
    if (namesIn(url.slice(0, start)).length > 0 || namesIn(url.slice(end)).length > 0)
      faults.push({ member: ['callback', 'url'], message: 'a placeholder may stand only in the query, behind ?' })
  }
  const marks = texts.reduce((sum, [, text]) => sum + text.split('{{').length - 1, 0)
  if (marks > maxPlaceholders)
    faults.push({
      member: ['template'],
      message: `at most ${maxPlaceholders} placeholders are allowed, and {{{{ counts as two; these texts have ${marks}`
    })
  else for (const [member, text] of texts) check(member, text)
  return faults.filter(({ member }, n) => faults.findIndex(other => String(other.member) === String(member)) === n)
}
