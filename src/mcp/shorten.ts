/** Responses for agents without what is too large for them, and for parsing. */

/** Bytes of free JSON that one response keeps. */
const KEPT = 64 * 1024

// A quote that begins a name follows a comma directly only where the service wrote it: stored JSON has a blank between, and within its strings
// quotes are escaped.
const begins = /,"(payload|metadata|artifacts)":/g
const names =
  'retry|response_body|external_id|result_url|result_ref|result_type|summary|artifacts|verification_reason|rejected_at|acknowledged'
const ends = new RegExp(`(?:,"(?:${names})"|},"created_at"):`, 'g')

/** The text of a cue, an execution or a list with null for free JSON beyond 64 KB; `payload_omitted` and its like say which was left out. */
export const shorten = (text: string): string => {
  if (text.length <= KEPT) return text
  let shortened = ''
  let from = 0
  let kept = 0
  begins.lastIndex = 0
  for (let found = begins.exec(text); found; found = begins.exec(text)) {
    const start = begins.lastIndex
    ends.lastIndex = start
    const end = ends.exec(text)?.index
    if (end === undefined) break
    kept += end - start
    if (kept > KEPT) {
      kept -= end - start
      shortened += `${text.slice(from, start)}null,"${found[1]}_omitted":true`
      from = end
    }
    begins.lastIndex = end
  }
  return shortened + text.slice(from)
}
