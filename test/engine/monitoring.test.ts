/** The Grafana dashboard and the alert rules, against a scrape of a replica of two cells that has worked. */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { createFunctions } from '../../src/database/functions.ts'
import { createMetrics, type Metrics } from '../../src/metrics/metrics.ts'
import { addAccount, patienceMs, stage } from '../support/cells-stage.ts'
import { eventually } from '../support/eventually.ts'
import { receiver } from '../support/receiver.ts'
import { build } from '../support/setup.ts'

type Sample = { name: string; labels: Record<string, string> }
type Query = { title: string; expr: string; text: string }

const read = (file: string) => readFileSync(new URL(`../../src/metrics/${file}`, import.meta.url), 'utf8')
const dashboard = JSON.parse(read('grafana.json'))
const rules = parse(read('alerts.yml')).groups.flatMap(({ rules }: { rules: object[] }) => rules)

/** Expressions with the text that names labels of their results. */
const queries: Query[] = [
  ...dashboard.panels.flatMap(({ title, targets }: { title: string; targets: { expr: string; legendFormat: string }[] }) =>
    targets.map(({ expr, legendFormat }) => ({ title, expr, text: legendFormat }))
  ),
  ...rules.map(({ alert, expr, annotations }: { alert: string; expr: string; annotations: object }) => ({
    title: alert,
    expr,
    text: Object.values(annotations).join('\n')
  }))
]

/** The selectors of an expression, and the labels by which it groups or joins. Covers the PromQL that the two files use. */
const parseQuery = (expr: string) => {
  const grouped: string[] = []
  const rest = expr
    .replaceAll(/\[[^\]]*\]|\boffset \w+/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, list: string) => {
      grouped.push(...list.split(',').map(label => label.trim()))
      return ''
    })
  const selectors = [...rest.matchAll(/(?<![\w.$"])([a-z_:][\w:]*)\s*(?:\{([^}]*)\}|(\())?/gi)]
    .filter(([, name, , isCall]) => !isCall && !['and', 'or', 'unless', 'sum', 'min', 'max', 'count'].includes(name!))
    .map(([, name = '', matchers = '']) => ({
      name,
      matchers: [...matchers.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = '', operator = '', value = '']) => ({
        label,
        matches: (actual: string) => {
          const pattern = operator.includes('~') ? value.replace(/^\$\w+$/, '.*') : RegExp.escape(value)
          return new RegExp(`^(?:${pattern})$`).test(actual) !== operator.startsWith('!')
        }
      }))
    }))
  return { selectors, grouped }
}

/** Samples with the labels that Prometheus adds, and the names of the metrics. */
const parseScrape = (text: string): { metrics: string[]; samples: Sample[] } => ({
  metrics: [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name!),
  samples: [...text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)].map(([, name = '', labels = '']) => ({
    name,
    labels: {
      job: 'pgcue',
      instance: 'localhost:8080',
      ...Object.fromEntries([...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]) => [label, value]))
    }
  }))
})

/** Scrapes a replica that has delivered in time, been refused, handed work to a worker, and failed a job. */
const scrapeAfterWork = async (t: Test): Promise<string> => {
  const { pools, start } = await stage(t)
  const accounts = [await addAccount(pools[0], 1), await addAccount(pools[1], 2)] as const
  const { call, tick } = await start()
  const good = await receiver(t)
  const bad = await receiver(t, () => ({ status: 500 }))
  for (const [n, { api_key: key }] of accounts.entries()) {
    await tick(key, good.url)
    const fire = async (body: object) => {
      const cue = await call('POST', '/v1/cues', { key, body: { name: 'job', cron: '0 9 * * *', ...body } })
      await call('POST', `/v1/cues/${cue.body.id}/fire`, { key, body: {} })
    }
    await fire({ callback_url: bad.url })
    await fire({ worker: true })
    const { body } = await call('POST', '/v1/executions/claim', { key, body: { worker_id: 'w' } })
    const outcome = await call('POST', `/v1/executions/${body.execution_id}/outcome`, { key, body: { success: false } })
    t.equal(outcome.status, 200)
    await createFunctions(pools[n]!).addJob({ queue: 'tickets', data: { ticket_id: 1 } })
  }
  return eventually(async () => {
    const { body } = await call('GET', '/metrics')
    const shown = ['pgcue_lateness_seconds_count{', 'pgcue_attempt_duration_seconds_count{result="failed",', 'pgcue_job_failures_total{']
    return (
      [1, 2].every(cell => shown.every(start => new RegExp(`^${RegExp.escape(start)}.*cell="${cell}"\\} [1-9]`, 'm').test(body))) && body
    )
  }, patienceMs)
}

t.test('the dashboard and the alert rules name metrics and labels that a replica exports, and together all of its metrics', async t => {
  const { metrics, samples } = parseScrape(await scrapeAfterWork(t))
  const used = new Set<string>()
  for (const { title, expr, text } of queries) {
    const { selectors, grouped } = parseQuery(expr)
    t.ok(selectors.length > 0, `${title} has a selector`)
    const found = selectors.map(({ name, matchers }) => {
      used.add(name)
      return samples.filter(
        sample => sample.name === name && matchers.every(({ label, matches }) => label in sample.labels && matches(sample.labels[label]!))
      )
    })
    for (const [n, some] of found.entries()) t.ok(some.length > 0, `${title}: ${selectors[n]!.name} and its labels are exported`, { expr })
    const labels = new Set(found.flat().flatMap(sample => Object.keys(sample.labels)))
    for (const label of grouped) t.ok(labels.has(label), `${title}: ${label} is exported`, { expr })
    for (const [, label = ''] of text.matchAll(/(?:\{\{|\$labels\.)(\w+)/g)) {
      if (label === 'with' || label === 'end') continue
      t.ok(grouped.length > 0 ? grouped.includes(label) : labels.has(label), `${title}: its text has the label ${label}`, { expr })
    }
  }
  t.same(
    metrics.filter(name => !['', '_bucket', '_sum', '_count'].some(suffix => used.has(name + suffix))),
    [],
    'metrics in neither file'
  )
  for (const { name, query } of dashboard.templating.list) {
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? []
    if (name === 'datasource') t.equal(query, 'prometheus')
    else
      t.ok(
        samples.some(sample => sample.name === metric && label! in sample.labels),
        `the variable ${name} has values`
      )
  }
})

t.test('each panel has a place of its own, a description, and a data source and filters from the variables', async t => {
  const variables = dashboard.templating.list.map(({ name }: { name: string }) => name)
  t.same(variables, ['datasource', 'instance', 'cell'])
  const places = new Set<string>()
  for (const { title, description, datasource, gridPos, targets } of dashboard.panels) {
    t.match(description, /^[A-Z].*\.$/, title)
    t.same(datasource, { type: 'prometheus', uid: `\${datasource}` }, title)
    for (const { expr } of targets) {
      t.match(expr, /instance=~"\$instance"/, title)
      for (const [, name] of expr.matchAll(/\$(\w+)/g)) t.ok([...variables, '__rate_interval'].includes(name), `${title}: ${name}`)
    }
    t.ok(gridPos.x + gridPos.w <= 24, title)
    const cells = Array.from(
      { length: gridPos.w * gridPos.h },
      (_, n) => `${gridPos.x + (n % gridPos.w)},${gridPos.y + Math.floor(n / gridPos.w)}`
    )
    t.notOk(
      cells.some(cell => places.has(cell)),
      `${title} overlaps no other panel`
    )
    for (const cell of cells) places.add(cell)
  }
})

t.test('each alert has a severity, and says what happened and what to do next', async t => {
  for (const { alert, labels, annotations } of rules) {
    t.ok(['warning', 'critical'].includes(labels.severity), alert)
    t.same(Object.keys(annotations), ['summary', 'description', 'action'], alert)
    t.match(annotations.description, /\.$/, alert)
    t.match(annotations.action, /\.$/, alert)
  }
})

// Alert rules against scrapes of what they are for ----------------------------------------------------------------------------------

const promtool = process.env.PROMTOOL_PATH ?? '/usr/bin/promtool'
const start = '2030-01-15T09:00:00Z'
type Service = Awaited<ReturnType<typeof build>> & { metrics: Metrics }

/** What happens between two scrapes, and for how many minutes the values of each last; those of counters grow steadily to the second one. */
type Situation = {
  alerts: string[]
  /** Before the first scrape. */
  began?: (service: Service) => unknown
  happens?: (service: Service) => unknown
  before?: number
  after?: number
  isScraped?: false
  change?: (text: string) => string
}

const beat = ({ fn }: Service) => fn.beatEngine({ engine_id: randomUUID(), version: 'test', lateness_ms: 3, missed_after: '1 day' })

const situations: Record<string, Situation> = {
  'a replica that has nothing to do': { alerts: [], happens: beat },
  'no replica is scraped': { alerts: ['PgcueNotScraped'], isScraped: false },
  'the database refuses connections': {
    alerts: ['PgcueDatabaseDown'],
    happens: ({ pool }) => Object.assign(pool, { query: () => Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })) })
  },
  'no engine runs': { alerts: ['PgcueNoEngine'] },
  'due work is not taken, as with a full disk': {
    alerts: ['PgcueBehind', 'PgcueLate'],
    happens: async service => {
      await service.post('/v1/cues', { name: 'c', at: '2030-01-15T09:00:01Z', worker: true })
      service.clock.advance('40 seconds')
      await beat(service)
    }
  },
  'webhooks are sent late': {
    alerts: ['PgcueLate'],
    happens: async service => {
      await beat(service)
      for (let n = 0; n < 100; n++) service.metrics.taken(n < 98 ? 5 : 8000)
    }
  },
  'an account has as many open deliveries as it may': {
    alerts: [],
    happens: async service => {
      await service.post('/v1/cues', { name: 'c', at: '2030-01-15T09:00:01Z', callback_url: 'http://127.0.0.1:9999/' })
      service.clock.advance('40 seconds')
      await service.fn.beatEngine({ engine_id: randomUUID(), version: 'test', missed_after: '1 day', full_accounts: [service.account.id] })
    }
  },
  'slow receivers hold all deliveries': {
    alerts: ['PgcueDeliveriesAtLimit'],
    happens: async service => {
      await beat(service)
      service.metrics.watchDeliveries({ open: 5000, openLimit: 6000, held: 100 })
    }
  },
  'a nightly job fails four times': {
    alerts: ['PgcueJobsFailing'],
    happens: async service => {
      await beat(service)
      for (let tries = 0; tries < 4; tries++) service.metrics.jobFailed('housekeeping', tries === 3)
    }
  },
  'a job fails four times, as it did yesterday': {
    alerts: ['PgcueJobsFailing'],
    began: ({ metrics }) => metrics.jobFailed('mails', false),
    before: 26 * 60,
    happens: async service => {
      await beat(service)
      for (let tries = 0; tries < 4; tries++) service.metrics.jobFailed('mails', false)
    }
  },
  'the process needs twice the memory of a day before': {
    alerts: ['PgcueMemoryGrows'],
    happens: beat,
    before: 26 * 60,
    after: 4 * 60,
    change: text => text.replace(/^(process_resident_memory_bytes) (\d+)$/m, (_, name, value) => `${name} ${2 * value}`)
  }
}

/** Values of a scrape by series, with the labels that Prometheus adds. */
const seriesOf = (text: string): Map<string, number> =>
  new Map(
    [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels, value]) => [
      `${name}{${labels ? `${labels},` : ''}job="pgcue",instance="replica-1:8080"}`,
      // Prometheus' tests begin at the epoch.
      name === 'process_start_time_seconds' ? 0 : Number(value)
    ])
  )

t.test(
  'each alert fires in the situation it is for, and no other',
  { skip: !existsSync(promtool) && 'promtool is not installed' },
  async t => {
    const covered = new Set(Object.values(situations).flatMap(({ alerts }) => alerts))
    t.same(
      rules.map(({ alert }: { alert: string }) => alert).filter((alert: string) => !covered.has(alert)),
      []
    )
    const tests = []
    for (const [name, situation] of Object.entries(situations)) {
      const { alerts, began, happens, before = 5, after = 15, isScraped = true, change = (text: string) => text } = situation
      const metrics = createMetrics()
      const service = { ...(await build(t, start, { metrics })), metrics }
      const scrape = async (): Promise<string> => (await service.as(null).call('GET', '/metrics')).body
      await began?.(service)
      const first = seriesOf(await scrape())
      await happens?.(service)
      service.clock.advance('6 seconds')
      const last = seriesOf(change(await scrape()))
      const valuesOf = (series: string, value: number) => {
        const from = first.get(series)
        if (from === undefined) return `_x${before} ${value}x${after}`
        const isCounter = /_(total|count|sum|bucket)\{/.test(series)
        return `${from}x${before} ${isCounter ? `${from}+${(value - from) / after}` : value}x${after}`
      }
      tests.push({
        name,
        interval: '1m',
        input_series: isScraped ? [...last].map(([series, value]) => ({ series, values: valuesOf(series, value) })) : [],
        promql_expr_test: [
          {
            expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
            eval_time: `${before + after}m`,
            exp_samples: alerts.map(alert => ({ labels: `{alertname="${alert}"}`, value: 1 }))
          }
        ]
      })
    }
    const file = join(t.testdir({}), 'tests.json')
    const alertsFile = fileURLToPath(new URL('../../src/metrics/alerts.yml', import.meta.url))
    writeFileSync(file, JSON.stringify({ rule_files: [alertsFile], evaluation_interval: '1m', tests }))
    t.doesNotThrow(() => execFileSync(promtool, ['test', 'rules', file], { stdio: 'pipe' }))
  }
)
