/** Executions or attempts over time as small bars, stacked by result. */
import { tones } from './results.tsx'

const [width, height] = [480, 36]

type Part = { at: string; succeeded: number; failed: number; running?: number }
type Props = { volume: readonly Part[]; label: string; since?: string; until?: string }

export const Bars = ({ volume, label, since = volume[0]!.at, until = volume.at(-1)!.at }: Props) => {
  const [first, last] = [since, until].map(at => Date.parse(at)) as [number, number]
  const most = Math.max(...volume.map(({ succeeded, failed, running = 0 }) => succeeded + failed + running))
  return (
    <svg class="bars" role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
      <title>{label}</title>
      {volume.map(({ at, succeeded, failed, running = 0 }) => {
        const x = (Math.max(Date.parse(at) - first, 0) / Math.max(last - first, 1)) * (width - 8)
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
