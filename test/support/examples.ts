/**
 * Runs the examples of a Markdown file in the order in which a reader meets them, in one shell, against a real service with an engine. An
 * example that cannot run here has a comment `<!-- not run: REASON -->` above it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import tap, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { freePort } from '../../src/embedded-postgres/embedded-postgres.ts'
import { startEngine } from './engine.ts'
import { build, eventually, receiver } from './setup.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export type Example = { language: string; file: string | undefined; code: string; line: number; reason: string | undefined }

/** The code blocks of a Markdown text. A block with a file's name is saved under it, for the shell's commands. */
export const examplesOf = (markdown: string): Example[] =>
  [...markdown.matchAll(/(?:^<!-- not run: (.+?) -->\n)?^```(\w*)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(
    ({ 1: reason, 2: language = '', 3: file, 4: code = '', index }) => ({
      language,
      file,
      code,
      line: markdown.slice(0, index).split('\n').length,
      reason
    })
  )

export const noPython = spawnSync('python3', ['--version']).status !== 0

/** A service for the examples of several files, with an engine, and what stands in for every host on the Internet. */
const serveExamples = async (t: Test) => {
  const plan = { cues: 1000, executions_per_month: 100_000 }
  const service = await build(t, undefined, { env: { PLANS: JSON.stringify({ free: plan }), OPERATOR_TOKEN: 'a-token-for-examples' } })
  const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
  await startEngine(t, service.config)
  return { ...service, address, internet: await receiver(t) }
}
let shared: ReturnType<typeof serveExamples> | undefined
const share = () => (shared ??= serveExamples(tap))

/**
 * Runs all examples of a file as an account of its own; those in SQL, which take the newest rows of any account, on a service of their own. Returns
 * how many executions are in each status, and the hosts outside that they called; not those that a schedule fired by chance.
 */
export const runExamples = async (t: Test, file: string): Promise<{ ended: Record<string, number>; hosts: string[] }> => {
  const text = readFileSync(join(root, file), 'utf8')
  const { address, internet, ...service } = await (text.includes('```sql\n') ? serveExamples(t) : share())
  const account = await service.register()
  const approver = await service.addKey(account, ['read', 'write', 'approve'])
  const ports = new Map<string, number>()
  for (const port of ['3000', '3001']) ports.set(port, await freePort('127.0.0.1'))
  const here = (code: string) =>
    code
      .replaceAll(/http:\/\/localhost:8080/g, address)
      .replaceAll(/https:\/\/([a-z][\w.-]*\.[a-z]+)/g, `${internet.url}$1`)
      .replaceAll(/\b300[01]\b/g, port => String(ports.get(port)))

  const examples = examplesOf(text)
  for (const { reason, line } of examples) if (reason) t.comment(`${file}:${line} is not run: ${reason}`)
  if (noPython) t.comment('examples in Python are not run: python3 is not installed')
  const dir = t.testdir({})
  const needsPython = ({ language, code }: Example) => language === 'python' || /\bpython3\b/.test(code)
  const steps = examples
    .filter(example => !example.reason && !(noPython && needsPython(example)))
    .map(example => ({ ...example, code: here(example.code) }))
  const script = steps.flatMap(example => {
    const isNamed = example.file !== undefined && steps.some(other => other !== example && other.code.includes(example.file!))
    return [`step '${file}:${example.line}'`, commandOf(dir, example, isNamed)]
  })
  const env = {
    ...tools(dir),
    PGCUE_BASE_URL: address,
    PGCUE_API_KEY: account.api_key,
    APPROVER_KEY: approver.api_key,
    DATABASE_URL: service.url
  }
  const select = `select id, status::text from cue.executions where account_id = '${account.id}' and triggered_by <> 'schedule'`
  const settle = () =>
    eventually(async () => {
      const { rowCount } = await service.pool.query(`${select} and ended_at is null and scheduled_for <= now()`)
      return rowCount === 0
    }, 30_000).catch(() => t.fail('an execution has not ended'))
  const { code, output } = await runShell(dir, [prelude, ...script].join('\n'), env, settle)
  t.equal(code, 0, `the examples of ${file} run`, { output: output.slice(-3000) })
  await settle()
  const { rows } = await service.pool.query(select)
  const requests = internet.requests.filter(({ headers }) => rows.some(({ id }) => id === headers['x-service-execution-id']))
  const hosts = [...new Set(requests.map(({ path }) => path.split('/')[1]!))].sort()
  const counts = Object.groupBy(rows, ({ status }) => status)
  return { ended: Object.fromEntries(Object.entries(counts).map(([status, list]) => [status, list!.length])), hosts }
}

const prelude = `set -euo pipefail
step() { printf '\\n== %s\\n' "$1"; }
# On a busy machine, everything takes longer: the test says when to go on.
sleep() { echo "$1" >&3; read -r _ <&4; }
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT`

/** The shell's command that runs an example, unless another one does. @throws {Error} if nothing says how */
const commandOf = (dir: string, { language, file, code, line }: Example, isUsed: boolean): string => {
  const path = join(dir, file ?? `line-${line}.${language}`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, code)
  switch (language) {
    case 'sh':
      return file === undefined ? code : isUsed ? '' : `sh '${path}'`
    case 'sql':
      return `sql '${path}'`
    case 'ts':
      return isUsed ? '' : `node '${path}'`
    case 'python':
      return isUsed ? '' : `python3 '${path}'`
    case 'json':
      JSON.parse(code)
      return ''
    case 'yaml':
      return isUsed ? '' : commandOfYaml(path, code)
    case 'ini':
    case 'mermaid':
    case 'text':
      return ''
    default:
      throw new Error(`line ${line}: no way to run ${language || 'a block without a language'}`)
  }
}

/** Workflows of GitHub run their commands, cues are applied, and anything else is parsed. */
const commandOfYaml = (path: string, code: string): string => {
  const documents = parseAllDocuments(code)
  const [error] = documents.flatMap(({ errors }) => errors)
  if (error) throw error
  const { jobs, cues } = documents.length === 1 ? parse(code) : {}
  if (cues) return `pgcue apply -f '${path}' --dry-run`
  const steps = Object.values((jobs ?? {}) as Record<string, { steps: { run?: string; env?: object }[] }>).flatMap(job => job.steps)
  return steps
    .filter(({ run }) => run && run !== 'npm ci')
    .map(({ run }) => `( ${run} )`)
    .join('\n')
}

/** An environment with the commands that a reader has: `pgcue`, and the client as an installed package. */
const tools = (dir: string): Record<string, string> => {
  const bin = join(dir, 'node_modules/.bin')
  const installed = join(dir, 'node_modules/pgcue')
  for (const folder of [bin, installed]) mkdirSync(folder, { recursive: true })
  const command = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  command('pgcue', `exec '${process.execPath}' '${root}src/cli/main.ts' "$@"`)
  command(
    'jq',
    `exec '${process.execPath}' -e '
  const value = process.argv[2].slice(1).split(/[.[\\]"]+/).filter(Boolean).reduce((value, name) => value[name], JSON.parse(fs.readFileSync(0)))
  console.log(typeof value === "string" ? value : JSON.stringify(value))' -- "$@"`
  )
  command('sql', `exec '${process.execPath}' '${root}test/support/run-sql.ts' "$@"`)
  symlinkSync(join(root, 'src'), join(installed, 'src'))
  writeFileSync(
    join(installed, 'package.json'),
    JSON.stringify({ type: 'module', exports: { './client': './src/client/index.ts', './serve': './src/client/serve.ts' } })
  )
  writeFileSync(join(dir, 'package.json'), '{"type": "module"}')
  writeFileSync(join(dir, '.curlrc'), 'fail-with-body\nsilent\nshow-error\n') // a refusal is an error
  return {
    PATH: [bin, dirname(process.execPath), process.env.PATH].join(':'),
    HOME: dir,
    CURL_HOME: dir,
    XDG_CONFIG_HOME: dir,
    XDG_STATE_HOME: dir,
    PYTHONUNBUFFERED: '1',
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONPATH: join(root, 'src/python'),
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compiled')
  }
}

/** Runs a script in bash, and ends everything that it has started. While it sleeps, programs start and executions end. */
const runShell = (cwd: string, script: string, env: Record<string, string>, settle: () => Promise<unknown>) =>
  new Promise<{ code: number | null; output: string }>(resolve => {
    const shell = spawn('bash', ['-c', script], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'] })
    const [, , , sleeps, wakes] = shell.stdio as unknown as [null, Readable, Readable, Readable, Writable]
    sleeps.on('data', async seconds => {
      await delay(3000 * Number(seconds))
      await settle()
      wakes.write('\n')
    })
    wakes.on('error', () => {}) // the shell has ended
    let output = ''
    for (const stream of [shell.stdout!, shell.stderr!]) stream.on('data', data => (output += data))
    shell.on('exit', code => {
      try {
        process.kill(-shell.pid!, 'SIGKILL')
      } catch {} // nothing is left
      if (process.env.TEST_OUTPUT) console.error(output)
      resolve({ code, output })
    })
  })
