/** `pgcue import`: golden files in test/cli/import. `tap --snapshot test/cli/import.test.ts` writes them. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { listening, pgcue } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const dir = fileURLToPath(new URL('import/', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'pgcue-import-'))
t.teardown(() => rmSync(scratch, { recursive: true, force: true }))

/** What is run, by the name of the golden files. */
const cases: Record<string, string[]> = {
  'github-actions': ['github-actions', 'nightly.yml', 'release train.yaml', 'inputs.yml', 'push.yml', '--set', 'acme/api ci'],
  crontab: ['crontab', 'user.crontab', '--timezone', 'Europe/London', '--handlers', 'crontab'],
  'crontab-system': ['crontab', 'system.crontab', '--paused', '--handlers', 'crontab-system'],
  'crontab-deploy': ['crontab', 'deploy.crontab', '--system', '--timezone', 'utc'],
  kubernetes: ['kubernetes', 'cronjobs.yaml', '--timezone', 'Asia/Kolkata'],
  vercel: ['vercel', 'vercel.json'],
  qstash: ['qstash', 'schedules.json'],
  eventbridge: ['eventbridge', 'schedule.json', 'dialect.json', 'rule.json'],
  pg_cron: ['pg_cron', 'jobs.csv'],
  'pg_cron-json': ['pg_cron', 'jobs.json', '--set', 'database']
}

/** Compares a text with a golden file. */
const isGolden = (t: Test, name: string, text: string) => {
  const path = join(dir, name)
  if (process.env.TAP_SNAPSHOT === '1') writeFileSync(path, text)
  t.equal(text, readFileSync(path, 'utf8'), name)
}
const argsOf = ([kind, ...args]: string[]) => [
  kind!,
  ...args.map((arg, i) => (args[i - 1] === '--handlers' ? join(scratch, arg) : existsSync(join(dir, arg)) ? join(dir, arg) : arg))
]

t.test('translates each kind, leaves out what it cannot translate, and says why', async t => {
  const env = { GITHUB_REPOSITORY: 'acme/api', GITHUB_TOKEN: 'x', VERCEL_PROJECT_PRODUCTION_URL: 'example.com', CRON_SECRET: 'x' }
  const { cli } = await listening(t, await build(t, undefined, { env: { PLANS: '{"free":{"cues":1000,"executions_per_month":1000}}' } }))
  for (const [name, args] of Object.entries(cases)) {
    const { code, out, err } = await pgcue(['import', ...argsOf(args)])
    t.equal(code, 0, name)
    isGolden(t, `${name}.cues.yaml`, out)
    isGolden(t, `${name}.problems.txt`, err.replaceAll(dir, ''))
    const count = out.match(/^ {2}- key:/gm)!.length
    const dry = await cli(['apply', '-f', '-', '--dry-run'], { stdin: out, env })
    exactly(t, dry, { code: 0, err: '', out: new RegExp(`: ${count} created, 0 updated, 0 unchanged, 0 pruned`) }, `${name} applies`)
    const handlers = join(scratch, name)
    if (!existsSync(handlers)) continue
    isGolden(t, `${name}.handlers.yaml`, readFileSync(handlers, 'utf8'))
    const refused = await pgcue(['import', ...argsOf(args)])
    exactly(t, refused, { code: 2, out: '', err: /^pgcue: --handlers: EEXIST/m }, 'a file is never replaced')
  }
})

t.test('prints nothing if a file cannot be read, and refuses what makes no sense', async t => {
  const nothing = async (args: string[], stdin: string, message: RegExp, code = 2) =>
    exactly(t, await pgcue(['import', ...args], { stdin }), { code, out: '', err: message }, args.join(' '))
  const good = '- metadata: {name: a}\n  kind: CronJob\n  spec: {schedule: "@daily"}\n'
  await nothing(['kubernetes', '-'], `${good}- {a: [}\n`, /^pgcue: -:4: /)
  await nothing(['kubernetes'], `${good}  spec: {}\n`, /^pgcue: -:4: Map keys must be unique/)
  await nothing(['kubernetes'], 'a: *b\n', /^pgcue: -:1: .*alias.*b/)
  await nothing(['vercel'], '{"crons": [\n{"path": "/a" "schedule": "0 0 * * *"}]}', /^pgcue: -:2: /)
  await nothing(['qstash'], '[{"cron": "0 0 * * *"', /^pgcue: -:1: /)
  await nothing(['pg_cron'], 'schedule,command\n0 0 * * *,"select 1\n', /^pgcue: -:2: is not valid CSV/)
  await nothing(['pg_cron'], 'schedule,command\n0 0 * * *,"a"b\n', /^pgcue: -:2: is not valid CSV/)
  await nothing(['pg_cron'], 'schedule,command\n0 0 * * *,a,b\n', /^pgcue: -:2: has 3 fields where the header has 2/)
  await nothing(['pg_cron'], '0 0 * * *,a\n', /^pgcue: -:1: is neither JSON nor CSV/)
  await nothing(['github-actions'], 'on: {schedule: [{cron: "0 0 * * *"}]}', /^pgcue: -:1: pass the workflow as a file/)
  for (const kind of ['kubernetes', 'crontab', 'vercel', 'eventbridge']) await nothing([kind], '', /^pgcue: no schedule to import/, 1)
  await nothing(['crontab'], '@reboot x\n', /^-:1: @reboot.*\npgcue: no schedule to import/, 1)
  await nothing(['qstash'], '{"error": "unauthorized"}', /^-:1: destination is missing\npgcue: no schedule/, 1)
  await nothing(['crontab', join(dir, 'none.crontab')], '', /none\.crontab/)
  await nothing([], '', /missing (required )?argument '?KIND/)
  await nothing(['anacron'], '', /anacron: use one of/)
  await nothing(['vercel', '--system'], '', /--system is for crontab/)
  await nothing(['vercel', '--handlers', 'x'], '', /--handlers is for crontab/)
  await nothing(['crontab', '--timezone', 'Mars/Base'], '@daily x\n', /--timezone Mars\/Base is not a time zone/)
  t.notOk(existsSync('x'))
})

t.test('reads standard input, prints JSON, and says that a crontab has no zone', async t => {
  const { code, out, err } = await pgcue(['import', 'crontab', '--json'], { stdin: '\ufeff@daily /srv/backup.sh\r\n' })
  t.same(
    [code, JSON.parse(out)],
    [
      0,
      {
        set: 'crontab',
        cues: [{ key: 'crontab/backup', name: 'backup', schedule: { cron: '@daily' }, worker: true, payload: { task: 'backup' } }]
      }
    ]
  )
  const tabs = await pgcue(['import', 'vercel', '--paused'], {
    stdin: '{\n\t"crons": [\n\t\t{ "path": "/a",\n\t\t"schedule": "@daily" }\n\t]\n}\n'
  })
  exactly(t, tabs, { code: 0, err: '', out: /key: vercel\/a\n[\s\S]*paused: true/ })
  t.match(err, /^pgcue: times without CRON_TZ are read as UTC; --timezone/)
})
