/** Cues that are templates. */
import { fault, invalid } from '../errors.ts'
import { templateFaults } from '../templates/faults.ts'
import type { Columns } from './next-runs.ts'
import type { StoredCue } from './stored.ts'

const textColumns = ['template', 'payload', 'callback_url', 'callback_headers', 'approval', 'after']

type Texts = Parameters<typeof templateFaults>[0]

export const textsOf = (columns: Columns, stored?: StoredCue): Texts => ({
  payload: (columns.payload as string | undefined) ?? stored?.payload.text ?? '{}',
  url: ((columns.callback_url ?? stored?.callback.url) as string | undefined) ?? null,
  headers: (columns.callback_headers ?? {}) as Record<string, string>,
  message: (columns.approval === undefined ? stored?.approval : (columns.approval as StoredCue['approval']))?.message
})

/**
 * Checks the texts of a cue that is a template, or becomes one. Values of stored headers are not known here: `cue.update_cue` checks them.
 *
 * @throws ApiError
 */
export const checkTemplate = (columns: Columns, stored?: StoredCue): void => {
  if (!(columns.template ?? stored?.template) || !textColumns.some(name => name in columns)) return
  const after = columns.after as { cues?: string[] } | null | undefined
  const parents = after === null ? [] : (after?.cues ?? stored?.after?.cues ?? [])
  const faults = templateFaults(textsOf(columns, stored), parents)
  if (faults.length > 0) throw invalid(faults.map(({ member, message }) => fault(member, message)))
}
