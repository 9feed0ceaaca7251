/** Rows to act on: some of a page, or everything that matches the filters. */
import { useEffect, useState } from 'preact/hooks'
import type { OperationDetail } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useShortcuts } from '../keys.ts'
import { useHold } from '../query.ts'
import { go, to } from '../router.ts'
import { Button, type Children, count, counted } from './basics.tsx'
import { Confirm } from './dialog.tsx'
import { TextField } from './form.tsx'
import type { IconName } from './icon.tsx'
import { say } from './toast.tsx'

export type Selection = {
  ids: ReadonlySet<string>
  /** Everything that matches, also on other pages. */
  isAll: boolean
  toggle: (id: string) => void
  togglePage: () => void
  selectAll: () => void
  clear: () => void
}

/** Selects among the rows of a page. A change of filters ends the selection; while there is one, nothing is read again. */
export const useSelection = (page: string[], filters: string): Selection => {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const [isAll, setAll] = useState(false)
  const clear = () => {
    setIds(new Set())
    setAll(false)
  }
  useEffect(clear, [filters])
  useHold(ids.size > 0)
  const toggle = (id: string) => {
    const next = new Set(ids)
    if (!next.delete(id)) next.add(id)
    setAll(false)
    setIds(next)
  }
  const togglePage = () => (page.every(id => ids.has(id)) ? clear() : setIds(new Set(page)))
  const selectAll = () => {
    setIds(new Set(page))
    setAll(true)
  }
  useShortcuts([
    {
      key: ' ',
      text: 'Select the row (space)',
      run: () => document.activeElement?.closest('[data-row]')?.querySelector<HTMLInputElement>('input[type=checkbox]')?.click()
    },
    { key: 'Escape', text: 'End the selection', run: clear }
  ])
  return { ids, isAll, toggle, togglePage, selectAll, clear }
}

export const SelectBox = ({ label, checked, onChange }: { label: string; checked: boolean; onChange: () => void }) => (
  <td class="cell-select">
    <label>
      <span class="unseen">{label}</span>
      <input type="checkbox" checked={checked} onChange={onChange} />
    </label>
  </td>
)

export const SelectHead = ({ checked, onChange }: { checked: boolean; onChange: () => void }) => (
  <th class="cell-select" scope="col">
    <label>
      <span class="unseen">Select all on this page</span>
      <input type="checkbox" checked={checked} onChange={onChange} />
    </label>
  </th>
)

export type BulkType = { type: string; label: string; icon: IconName; does: string; isDangerous?: boolean; hasReason?: boolean }
type BarProps = {
  selection: Selection
  total: { total: number; total_exact: boolean }
  noun: string
  types: BulkType[]
  filter: Record<string, unknown>
}

/** What to do with the selected rows. */
export const BulkBar = ({ selection, total, noun, types, filter }: BarProps) => {
  const { ids, isAll } = selection
  const [chosen, choose] = useState<BulkType>()
  if (ids.size === 0) return null
  // An operation needs at least one filter.
  const mayAll = !isAll && (total.total > ids.size || !total.total_exact) && Object.values(filter).some(value => value !== undefined)
  const target = isAll ? { filter } : { ids: [...ids] }
  return (
    <section class="bulk" aria-label="Selection">
      <p>
        {isAll ? `Everything that matches: ${count(total.total)}${total.total_exact ? '' : '+'}` : counted(ids.size, noun)}
        {' selected'}
      </p>
      {mayAll && (
        <Button
          label={`Select everything that matches (${count(total.total)}${total.total_exact ? '' : '+'})`}
          kind="quiet"
          onClick={selection.selectAll}
        />
      )}
      <div class="actions">
        {types.map(one => (
          <Button key={one.type} label={one.label} icon={one.icon} onClick={() => choose(one)} />
        ))}
        <Button label="End the selection" icon="close" kind="quiet" iconOnly onClick={selection.clear} />
      </div>
      {chosen && <BulkDialog of={chosen} target={target} noun={noun} onClose={() => choose(undefined)} />}
    </section>
  )
}

type Preview = {
  total: number
  sample: { id?: string; name?: string; cue_name?: string; status?: string; error_message?: string | null }[]
}
type DialogProps = { of: BulkType; target: Record<string, unknown>; noun: string; onClose: () => void }

/** Shows what will happen, from a dry run, before anything does. */
export const BulkDialog = ({ of, target, noun, onClose }: DialogProps) => {
  const [preview, setPreview] = useState<Preview>()
  const [problem, setProblem] = useState<string>()
  const [reason, setReason] = useState('')
  const confirmed: Record<string, string> = of.type === 'delete' ? { 'x-confirm-destructive': 'true' } : {}
  useEffect(() => {
    post<Preview>('/v1/operations', { type: of.type, ...target, dry_run: true }, confirmed).then(setPreview, error =>
      setProblem((error as Error).message)
    )
  }, [])
  const start = async () => {
    const { id } = await post<OperationDetail>(
      '/v1/operations',
      { type: of.type, ...target, ...(reason.trim() && { reason: reason.trim() }) },
      { ...confirmed, 'idempotency-key': crypto.randomUUID() }
    )
    say('The operation has started.')
    go(to(`/operations/${id}`))
  }
  const rest = preview ? preview.total - preview.sample.length : 0
  let text: Children = <p class="soft">Checking what it would do …</p>
  if (problem)
    text = (
      <p class="field-error" role="alert">
        {problem}
      </p>
    )
  else if (preview)
    text = (
      <>
        <p>
          {`${counted(preview.total, noun)} ${of.does}`}
          {preview.total > 0 && ':'}
        </p>
        <ul class="sample">
          {preview.sample.map((one, n) => (
            <li key={n}>
              <span>{one.name ?? one.cue_name ?? one.id}</span>
              <span class="soft">{one.status}</span>
            </li>
          ))}
          {rest > 0 && <li class="soft">{`and ${count(rest)} more`}</li>}
        </ul>
      </>
    )
  return (
    <Confirm
      title={`${of.label}: ${preview ? counted(preview.total, noun) : '…'}`}
      label={of.label}
      kind={of.isDangerous ? 'danger' : 'main'}
      onClose={onClose}
      action={start}
      isDisabled={!preview || preview.total === 0}
    >
      {text}
      {of.hasReason && <TextField label="Reason (optional)" value={reason} onInput={setReason} maxLength={500} />}
    </Confirm>
  )
}
