/** Rows to act on: some of a page, or everything that matches the filters. */
import { useEffect, useState } from 'preact/hooks'
import type { OperationDetail } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useShortcuts } from '../keys.ts'
import { useHold } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { Button, type Children, count, counted, Refusal, totalText } from './basics.tsx'
import { Confirm, show } from './dialog.tsx'
import { TextField, useText } from './form.tsx'
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
  const [{ ids, isAll }, set] = useState<{ ids: ReadonlySet<string>; isAll: boolean }>({ ids: new Set(), isAll: false })
  const select = (chosen: Iterable<string>, isAll = false) => set({ ids: new Set(chosen), isAll })
  const clear = () => select([])
  useEffect(clear, [filters])
  useHold(ids.size > 0)
  const toggle = (id: string) => select(ids.has(id) ? [...ids].filter(selected => selected !== id) : [...ids, id])
  const togglePage = () => select(page.every(id => ids.has(id)) ? [] : page)
  useShortcuts([
    {
      key: ' ',
      text: 'Select the row (space)',
      run: () => document.activeElement?.closest('[data-row]')?.querySelector<HTMLInputElement>('input[type=checkbox]')?.click()
    },
    { key: 'Escape', text: 'End the selection', run: clear }
  ])
  return { ids, isAll, toggle, togglePage, selectAll: () => select(page, true), clear }
}

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
  if (ids.size === 0) return null
  // An operation needs at least one filter.
  const mayAll = !isAll && (total.total > ids.size || !total.total_exact) && Object.values(filter).some(value => value !== undefined)
  const target = isAll ? { filter } : { ids: [...ids] }
  return (
    <section class="bulk split" aria-label="Selection">
      <p>{`${isAll ? `Everything that matches: ${totalText(total)}` : counted(ids.size, noun)} selected`}</p>
      {mayAll && <Button label={`Select everything that matches (${totalText(total)})`} kind="quiet" onClick={selection.selectAll} />}
      <div class="row">
        {types.map(of => (
          <Button key={of.type} label={of.label} icon={of.icon} onClick={() => show(<BulkDialog of={of} target={target} noun={noun} />)} />
        ))}
        <Button label="End the selection" icon="close" kind="quiet" iconOnly onClick={selection.clear} />
      </div>
    </section>
  )
}

type Preview = {
  total: number
  sample: { id?: string; name?: string; cue_name?: string; status?: string; error_message?: string | null }[]
}
type DialogProps = { of: BulkType; target: Record<string, unknown>; noun: string }

/** Shows what will happen, from a dry run, before anything does. */
export const BulkDialog = ({ of, target, noun }: DialogProps) => {
  const [preview, setPreview] = useState<Preview>()
  const [problem, setProblem] = useState<string>()
  const reason = useText()
  const { go } = usePlace()
  const confirmed: Record<string, string> = of.type === 'delete' ? { 'x-confirm-destructive': 'true' } : {}
  useEffect(() => {
    post<Preview>('/v1/operations', { type: of.type, ...target, dry_run: true }, confirmed).then(setPreview, error =>
      setProblem((error as Error).message)
    )
  }, [])
  const start = async () => {
    const { id } = await post<OperationDetail>(
      '/v1/operations',
      { type: of.type, ...target, reason: reason.value.trim() || undefined },
      { ...confirmed, 'idempotency-key': crypto.randomUUID() }
    )
    say('The operation has started.')
    go(to(`/operations/${id}`))
  }
  return (
    <Confirm
      title={`${of.label}: ${preview ? counted(preview.total, noun) : '…'}`}
      label={of.label}
      kind={of.isDangerous ? 'danger' : 'main'}
      action={start}
      isDisabled={!preview || preview.total === 0}
    >
      {problem ? (
        <Refusal text={problem} />
      ) : preview ? (
        <Sample preview={preview} text={`${counted(preview.total, noun)} ${of.does}`} />
      ) : (
        <p class="soft">Checking what it would do …</p>
      )}
      {of.hasReason && <TextField label="Reason (optional)" {...reason} maxLength={500} />}
    </Confirm>
  )
}

const Sample = ({ preview: { total, sample }, text }: { preview: Preview; text: Children }) => (
  <>
    <p>
      {text}
      {total > 0 && ':'}
    </p>
    <ul class="sample">
      {sample.map(({ id, name, cue_name, status }, n) => (
        <li key={n} class="split">
          <span>{name ?? cue_name ?? id}</span>
          <span class="soft">{status}</span>
        </li>
      ))}
      {total > sample.length && <li class="soft">{`and ${count(total - sample.length)} more`}</li>}
    </ul>
  </>
)
