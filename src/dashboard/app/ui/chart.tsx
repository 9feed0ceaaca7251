/** Charts. uPlot is loaded when the first one comes into view. */
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { isDark } from '../theme.ts'
import { hourTime, localZone, shortTime } from '../time.ts'

type Series = { name: string /** A colour of the style sheet. */; color: string; values: (number | null)[] }
type ChartProps = {
  label: string /** Seconds since 1970. */
  times: number[]
  series: Series[]
  unit: (value: number) => string
  height?: number
}

/** A colour of the style sheet as the scheme has it now: canvases don't know variables. */
const colorOf = (element: HTMLElement, name: string): string => {
  element.style.color = `var(--${name})`
  const { color } = getComputedStyle(element)
  element.style.color = ''
  return color
}

const dateOf = (at: number, zone: string) => shortTime(at, zone).replace(/, .*/, '')

export const Chart = ({ label, times, series, unit, height = 180 }: ChartProps) => {
  const ref = useRef<HTMLDivElement>(null)
  const dark = isDark()
  const data = JSON.stringify([times, series])
  useEffect(() => {
    let chart: uPlot | undefined
    let stopped = false
    const element = ref.current!
    const resized = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height }))
    const colored = (name: string) => colorOf(element, name)
    const draw = async () => {
      const { default: Plot } = await import('uplot')
      if (stopped) return
      // Days would repeat.
      const isShort = times.at(-1)! - times[0]! < 3 * 86_400
      const axis = {
        stroke: colored('ink-3'),
        grid: { stroke: colored('line'), width: 1 },
        ticks: { show: false },
        font: '11.5px Inter, system-ui, sans-serif'
      }
      chart = new Plot(
        {
          width: element.clientWidth,
          height,
          legend: { show: false },
          cursor: { y: false, points: { size: 7 } },
          padding: [8, 22, 0, 0],
          scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.15] } },
          axes: [
            {
              ...axis,
              grid: { show: false },
              size: 26,
              values: (_, values) => values.map(value => (isShort ? hourTime : dateOf)(value * 1000, localZone())),
              space: 70
            },
            {
              ...axis,
              values: (_, values) => values.map(unit),
              size: 66,
              space: 36
            }
          ],
          series: [
            {},
            ...series.map(({ name, color }) => ({
              label: name,
              stroke: colored(color),
              width: 1.75,
              points: { show: times.length < 40, size: 5, fill: colored(color) }
            }))
          ]
        },
        [times, ...series.map(({ values }) => values)] as uPlot.AlignedData,
        element
      )
      resized.observe(element)
    }
    const seen = new IntersectionObserver(entries => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return
      seen.disconnect()
      void draw()
    })
    seen.observe(element)
    return () => {
      stopped = true
      seen.disconnect()
      resized.disconnect()
      chart?.destroy()
    }
  }, [data, dark])
  return (
    <figure class="chart">
      <figcaption>
        {series.map(({ name, color }) => (
          <span key={name} class={`key ${color.replace('-dot', '')}`}>
            {name}
          </span>
        ))}
      </figcaption>
      <div ref={ref} class="chart-area" role="img" aria-label={label} style={{ minHeight: `${height}px` }} />
    </figure>
  )
}
