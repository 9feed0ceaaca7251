/** Time windows that end now, chosen in the address. */
import { usePlace } from '../router.ts'
import { FilterSelect } from './list.tsx'

const spans: Record<string, [label: string, ms: number]> = {
  '1h': ['Last hour', 3_600_000],
  '24h': ['Last 24 hours', 86_400_000],
  '7d': ['Last 7 days', 604_800_000],
  '30d': ['Last 30 days', 2_592_000_000]
}

export const windows = Object.entries(spans).map(([value, [label]]) => ({ value, label }))

/** The start of the window. To the minute, so that the address of the read stays the same. */
export const startOf = (within: string | undefined): string | undefined => {
  const span = spans[within ?? '']
  return span && new Date(Math.floor((Date.now() - span[1]) / 60_000) * 60_000).toISOString()
}

/** The window of the address, or the usual one. */
export const useWindow = (usual: string): { within: string; from: string } => {
  const { within: chosen = usual } = usePlace().query
  const within = spans[chosen] ? chosen : usual
  return { within, from: startOf(within)! }
}

export const WindowSelect = ({ usual }: { usual: string }) => (
  <FilterSelect label={spans[usual]![0]} name="within" options={windows.filter(({ value }) => value !== usual)} />
)
