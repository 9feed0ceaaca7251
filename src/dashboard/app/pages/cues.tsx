/** The list of cues. */

import type { Cue, Cues } from '../../../client/types.ts'

import { useRows, useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, ButtonLink, Empty, Loading, Problem, Tag } from '../ui/basics.tsx'
import { Page } from '../ui/frame.tsx'
import { FilterChip, FilterSelect, Filters, NoMatch, Pager, SEARCH_TO, SearchBox, useFilters } from '../ui/list.tsx'
import { CueLink, Dots, streakOf } from '../ui/results.tsx'
import { BulkBar, type BulkType, SelectBox, SelectHead, type Selection, useSelection } from '../ui/select.tsx'
import { When } from '../ui/when.tsx'
import { createCueCalls } from './teach.ts'

export type Listed = Cues['cues'][number]

export const CueStatus = ({ cue }: { cue: Pick<Cue, 'status' | 'paused_by'> }) => {
  if (cue.status === 'active') return <Badge tone="good">active</Badge>
  if (cue.status === 'paused') return <Badge tone={cue.paused_by && cue.paused_by !== 'user' ? 'bad' : 'warn'}>paused</Badge>
  return <Badge tone={cue.status === 'failed' ? 'bad' : 'quiet'}>{cue.status}</Badge>
}

/** Why it is paused, in a few words. */
export const pauseText = ({ paused_by, pause_reason }: Pick<Cue, 'paused_by' | 'pause_reason'>): string => {
  const by = {
    plan: 'Over the limit of the plan',
    failures: 'Too many failures',
    deletion: 'The account was disowned',
    user: 'Paused by a request'
  }
  return pause_reason || (paused_by ? (by[paused_by] ?? paused_by) : 'Paused')
}

export const zoneOf = (cue: Pick<Cue, 'schedule'>): string | undefined => cue.schedule?.timezone

const Row = ({ cue, selection }: { cue: Listed; selection?: Selection }) => {
  const { latest = [], schedule = '' } = cue.summary ?? {}
  const streak = streakOf(latest)
  return (
    <tr data-row class={selection?.ids.has(cue.id) ? 'selected' : undefined}>
      {selection && (
        <SelectBox label={`Select ${cue.name}`} checked={selection.ids.has(cue.id)} onChange={() => selection.toggle(cue.id)} />
      )}
      <td class="cell-main">
        <CueLink id={cue.id} name={cue.name} />
        <div class="under">
          {cue.key && <span class="mono">{cue.key}</span>}
          {cue.tags.map(tag => (
            <Tag key={tag} label={tag} href={to('/cues', { tag })} />
          ))}
          {!cue.key && cue.tags.length === 0 && <span class="soft">{cue.transport === 'worker' ? 'for workers' : 'webhook'}</span>}
        </div>
      </td>
      <td class="cell-schedule">
        <span>{cue.schedule.type === 'once' ? 'Once' : schedule.replace(/, [^,]+$/, '')}</span>
        <div class="under soft">{zoneOf(cue)}</div>
      </td>
      <td class="cell-next">
        {cue.status === 'active' ? (
          <When at={cue.next_run} zone={zoneOf(cue)} isNext />
        ) : (
          <div>
            <CueStatus cue={cue} />
            {cue.status === 'paused' && <div class="under soft">{pauseText(cue)}</div>}
          </div>
        )}
      </td>
      <td class="cell-dots">
        <Dots latest={latest} />
        {streak > 1 && <div class="under streak">{`${streak}${streak === 20 ? '+' : ''} failures in a row`}</div>}
      </td>
    </tr>
  )
}

const bulkTypes: BulkType[] = [
  { type: 'pause', label: 'Pause', icon: 'pause', does: 'will be paused', hasReason: true },
  { type: 'resume', label: 'Resume', icon: 'play', does: 'will run again' },
  { type: 'fire', label: 'Fire', icon: 'cue', does: 'will be fired once' },
  { type: 'delete', label: 'Delete', icon: 'trash', does: 'will be deleted with all history, which cannot be undone', isDangerous: true }
]

export const CuesPage = () => {
  const filters = useFilters(['search', 'status', 'transport', 'tag', 'set', 'calendar', 'key', 'cursor'])
  const read = useRead<Cues>('/v1/cues', { ...filters, summary: true, limit: 50, count_to: 1000, search_to: SEARCH_TO })
  const me = useMe()
  const mayWrite = useMay('write')
  useRows()
  useShortcuts(mayWrite ? [{ key: 'c', text: 'Create a cue', run: () => go(to('/cues/new')) }] : [])
  const { data } = read
  const isFiltered = Object.values(filters).some(Boolean)
  const { cursor: _, key: __, ...filter } = filters
  const page = data?.cues.map(({ id }) => id) ?? []
  const rows = useSelection(page, JSON.stringify(filters))
  const selection = mayWrite ? rows : undefined
  return (
    <Page title="Cues" read={read} actions={mayWrite && <ButtonLink label="Create a cue" href={to('/cues/new')} icon="plus" kind="main" />}>
      {(isFiltered || (data && data.total > 0)) && (
        <Filters>
          <SearchBox label="Search name, key, task or tag" />
          <FilterSelect
            label="Any status"
            name="status"
            options={['active', 'paused', 'completed', 'failed'].map(value => ({ value, label: value }))}
          />
          <FilterSelect
            label="Any transport"
            name="transport"
            options={[
              { value: 'webhook', label: 'webhook' },
              { value: 'worker', label: 'worker' }
            ]}
          />
          <FilterChip label="Tag" name="tag" />
          <FilterChip label="Set" name="set" />
          <FilterChip label="Calendar" name="calendar" />
        </Filters>
      )}
      <Problem failure={read.failure} />
      {!data ? (
        !read.failure && <Loading lines={8} />
      ) : data.cues.length === 0 ? (
        isFiltered ? (
          <NoMatch noun="cue" next_cursor={data.next_cursor} />
        ) : (
          <Empty
            title="No cues yet"
            text="A cue is a scheduled task: when it runs, and where it is delivered. Create one here, or from your code:"
            action={mayWrite ? <ButtonLink label="Create a cue" href={to('/cues/new')} icon="plus" kind="main" /> : undefined}
            calls={createCueCalls(me)}
          />
        )
      ) : (
        <>
          {data && selection && <BulkBar selection={selection} total={data} noun="cue" types={bulkTypes} filter={filter} />}
          <div class="panel flush">
            <table class="table cues">
              <caption class="unseen">Cues</caption>
              <thead>
                <tr>
                  {selection && <SelectHead checked={page.every(id => selection.ids.has(id))} onChange={selection.togglePage} />}
                  {['Name', 'Schedule', 'Next run', 'Latest results'].map(name => (
                    <th key={name} scope="col">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {data.cues.map(cue => (
                  <Row key={cue.id} cue={cue} selection={selection} />
                ))}
              </tbody>
            </table>
          </div>
          <Pager {...data} noun="cue" />
        </>
      )}
    </Page>
  )
}
