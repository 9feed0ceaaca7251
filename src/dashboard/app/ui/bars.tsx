/** Executions over time as small bars, stacked by result. */
import type { Overview } from '../../../client/types.ts'
import { tones } from './results.tsx'

const [width, height] = [480, 36]

export const Bars = ({ volume, label }: { volume: Overview['volume']; label: string }) => {
  const [first, last] = [volume[0]!, volume.at(-1)!].map(({ at }) => Date.parse(at)) as [number, number]
  const most = Math.max(...volume.map(({ succeeded, failed, running }) => succeeded + failed + running))
  return (
    <svg class="bars" role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
      <title>{label}</title>
      {volume.map(({ at, succeeded, failed, running }) => {
        const x = ((Date.parse(at) - first) / Math.max(last - first, 1)) * (width - 8)
        let y = height
        return (
          [
            ['failed', failed],
            ['proven', succeeded],
            ['running', running]
          ] as const
        ).map(([result, executions]) => {
          const size = (executions / most) * height
          y -= size
          return executions > 0 && <rect key={result} class={`dot ${tones[result]}`} x={x} y={y} width={8} height={size} />
        })
      })}
    </svg>
  )
}
