/** Values over time as lines. */
import { hourTime, localZone, shortTime } from '../time.ts'

type Series = { name: string /** A class that sets a colour. */; tone: string; values: (number | null)[] }
type Props = { label: string /** Milliseconds since 1970. */; times: number[]; series: Series[]; unit: (value: number) => string }

const [width, height] = [1000, 160]

export const Chart = ({ label, times, series, unit }: Props) => {
  const [first, last] = [times[0]!, times.at(-1)!]
  const most = Math.max(...series.flatMap(({ values }) => values.map(value => value ?? 0)), 1)
  // Days would repeat.
  const text = (at: number) => (last - first < 3 * 86_400_000 ? hourTime : shortTime)(at, localZone()).replace(/, .*/, '')
  const point = (value: number, n: number) =>
    `${Math.round(((times[n]! - first) / Math.max(last - first, 1)) * width)} ${Math.round((1 - value / most) * height)}`
  /** Null leaves a gap. */
  const path = (values: Series['values']) =>
    values.map((value, n) => (value === null ? '' : `${values[n - 1] == null ? 'M' : 'L'}${point(value, n)}`)).join('')
  return (
    <figure class="chart">
      <figcaption class="row">
        {series.map(({ name, tone }) => (
          <span key={name} class={`key ${tone}`}>
            {name}
          </span>
        ))}
      </figcaption>
      <div class="scale">
        {[most, most / 2, 0].map(value => (
          <span key={value}>{unit(value)}</span>
        ))}
      </div>
      <svg role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
        <path d={`M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}`} />
        {series.map(({ name, tone, values }) => (
          <path key={name} class={tone} d={path(values)} />
        ))}
      </svg>
      <div class="split">
        {[0, 0.25, 0.5, 0.75, 1].map(share => (
          <span key={share}>{text(first + share * (last - first))}</span>
        ))}
      </div>
    </figure>
  )
}
