import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { version } from '../../src/config.ts'
import { exactly } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Not the Node of node_modules: whoever installs the package has their own. */
const path = (process.env.PATH ?? '')
  .split(delimiter)
  .filter(dir => !dir.includes('node_modules'))
  .join(delimiter)

type Ran = { code: number; stdout: string; stderr: string }
const run = (command: string, args: string[], cwd: string, env: Record<string, string | undefined> = {}) =>
  new Promise<Ran>(resolve => {
    execFile(command, args, { cwd, env: { ...process.env, NODE_COMPILE_CACHE: undefined, PATH: path, ...env } }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
    )
  })

t.test('npm pack includes the client and the command line, but not the service', async t => {
  // Packing puts another package.json in place for a moment: in a copy, nobody sees it.
  const dir = t.testdir({ copy: {}, project: { 'package.json': '{"name": "somebody", "version": "1.0.0", "type": "module"}' } })
  const [copy, project] = [join(dir, 'copy'), join(dir, 'project')]
  for (const name of ['package.json', 'tsconfig.json', 'README.md', 'LICENSE', 'src', 'scripts']) {
    cpSync(join(root, name), join(copy, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const { scripts, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  exactly(t, scripts, { prepack: 'node scripts/install.mjs scripts/pack.ts', postpack: 'node scripts/pack.ts --restore' })
  const npm = (args: string[], cwd: string) => run('npm', [...args, '--ignore-scripts', '--no-audit', '--no-fund', '--offline'], cwd)

  exactly(t, await run(process.execPath, ['scripts/pack.ts'], copy), { code: 0 })
  const others = ['commander', 'cron-parser', 'luxon', 'yaml']
  exactly(t, await npm(['pack', copy, ...others.map(name => join(root, 'node_modules', name))], project), { code: 0 })
  exactly(t, await run(process.execPath, ['scripts/pack.ts', '--restore'], copy), { code: 0 })
  t.equal(readFileSync(join(copy, 'package.json'), 'utf8'), readFileSync(join(root, 'package.json'), 'utf8'), 'package.json is back')

  const tarballs = readdirSync(project).filter(name => name.endsWith('.tgz'))
  exactly(t, await npm(['install', ...tarballs.map(name => `./${name}`)], project), { code: 0 })
  const installed = readdirSync(join(project, 'node_modules')).filter(name => !name.startsWith('.'))
  t.same(installed.sort(), ['pgcue', ...others].sort())
  const manifest = JSON.parse(readFileSync(join(project, 'node_modules/pgcue/package.json'), 'utf8'))
  t.same(manifest.dependencies, {
    commander: dependencies.commander,
    'cron-parser': dependencies['cron-parser'],
    yaml: dependencies.yaml
  })
  t.same(readdirSync(join(project, 'node_modules/pgcue')).sort(), ['LICENSE', 'README.md', 'dist', 'package.json'])

  await t.test('the command runs on the installed Node version', async t => {
    const { app, account, post } = await build(t)
    const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
    const { id } = await post('/v1/cues', { name: 'report', cron: '@daily', worker: true })
    const env = { PGCUE_BASE_URL: baseUrl, PGCUE_API_KEY: account.api_key, XDG_CONFIG_HOME: dir, XDG_STATE_HOME: dir }
    const pgcue = (...args: string[]) => run(join(project, 'node_modules/.bin/pgcue'), args, project, env)
    t.same(await pgcue('--version'), { code: 0, stdout: `${version}\n`, stderr: '' })
    exactly(t, await pgcue('cues', 'list'), { code: 0, stdout: new RegExp(`${id} +report +active`) })
    exactly(t, await pgcue('cues', 'get', 'cue_000000000000'), { code: 3, stderr: /^pgcue: Cue not found in this account\.\n$/ })
    exactly(t, await pgcue('worker', '--config', 'none.yaml'), { code: 2, stderr: /none\.yaml/ })
    writeFileSync(join(project, 'crontab'), '0 3 * * * /srv/backup.sh\n')
    exactly(t, await pgcue('import', 'crontab', 'crontab', '--timezone', 'UTC'), { code: 0, stdout: /cron: 0 3 \* \* \*/, stderr: '' })
    const script = `import { createClient, verifyWebhook } from 'pgcue/client'
      import { serve } from 'pgcue/serve'
      const hook = serve({ secret: 'whsec_eHh4', tasks: { report: () => ({ success: true }) } })
      const client = createClient({ baseUrl: process.env.PGCUE_BASE_URL, apiKey: process.env.PGCUE_API_KEY })
      console.log((await client.cues.list()).cues[0].id, typeof verifyWebhook, (await hook(new Request('http://x'))).status)`
    exactly(t, await run('node', ['--input-type=module', '-e', script], project, env), { code: 0, stdout: `${id} function 401\n` })
  })

  await t.test('its types match the schemas', async t => {
    const source = readFileSync(join(root, 'src/client/types.ts'), 'utf8')
    const names = [...source.matchAll(/^export (?:type|interface) (\w+)/gm)].map(([, name]) => name)
    const same = 'type Fits<A, B> = [A] extends [B] ? true : false; type Same<A, B> = Fits<A, B> & Fits<B, A>'
    // An answer's schedule has cron or at; a schema can only say that it may have both.
    const wider = ['Cue', 'CueSummary', 'UpsertedCue', 'CueDetail', 'Cues', 'Preview']
    // A declared schedule has no offset from now, which only its schema says.
    const narrower = ['DeclaredCue', 'Apply']
    const fits = (name: string) =>
      narrower.includes(name)
        ? `Fits<Packed.${name}, Ours.${name}>`
        : `${wider.includes(name) ? 'Fits' : 'Same'}<Ours.${name}, Packed.${name}>`
    const lines = names.map(name => `export const is${name}: ${fits(name!)} = true`)
    const check = `import type * as Packed from 'pgcue/client'\nimport type * as Ours from '${join(copy, 'src/client/index.ts')}'\n${same}\n`
    writeFileSync(join(project, 'check.ts'), check + lines.join('\n'))
    writeFileSync(
      join(project, 'use.ts'),
      `import { createClient } from 'pgcue/client'
      const client = createClient({ baseUrl: 'http://localhost:8080' })
      export const created = client.cues.create({ name: 'report', cron: '@daily', worker: true }).then(cue => cue.next_run?.length)
      // @ts-expect-error: there is no such status
      export const updated = client.cues.update('cue_1', { status: 'gone' })\n`
    )
    const [, example] = /```ts [\w.]+\n([^`]*)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))!
    writeFileSync(join(project, 'example.ts'), example!)
    const compile = (files: string[], ...options: string[]) => {
      const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--ignoreConfig', '--types', 'node']
      const args = [...strict, '--typeRoots', join(root, 'node_modules/@types'), ...options, ...files.map(file => join(project, file))]
      return run(process.execPath, [join(root, 'node_modules/.bin/tsc'), ...args], project)
    }
    t.ok(names.length > 30)
    exactly(t, await compile(['check.ts'], '--allowImportingTsExtensions', '--skipLibCheck'), { code: 0, stdout: '' })
    t.same(await compile(['use.ts', 'example.ts']), { code: 0, stdout: '', stderr: '' }, "complete by themselves, as is README's example")
  })
})

t.test('what follows the installation runs on the Node that it installs', t => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
  const chained = Object.values(scripts).filter(script => script.includes('install.mjs') && script.includes('&&'))
  // A shell that has looked up `node` uses the same one again.
  t.strictSame(chained, [])
  t.end()
})

t.test('starts install one after the other, and nobody else can stop them', async t => {
  const dir = realpathSync(
    t.testdir({
      'package-lock.json': '{"packages": {"": {}}}',
      temporary: {},
      scripts: { 'install.mjs': readFileSync(join(root, 'scripts/install.mjs'), 'utf8') },
      node_modules: { '.bin': { node: t.fixture('symlink', process.execPath) }, tap: { dist: { esm: { 'run.mjs': '' } } } }
    })
  )
  const [lock, stamp] = [join(dir, '.installing'), join(dir, 'node_modules/.installed')]
  const install = (...args: string[]) => run(process.execPath, ['scripts/install.mjs', ...args], dir, { TMPDIR: join(dir, 'temporary') })
  const name = `pgcue-install-${createHash('sha256').update(`${dir}/`).digest('hex').slice(0, 8)}`
  writeFileSync(join(dir, 'temporary', name), String(process.pid)) // as anybody could
  writeFileSync(lock, String(process.pid))
  const waiting = Promise.all([install(), install()])
  await Promise.race([waiting, setTimeout(1500)])
  t.notOk(existsSync(stamp), 'waits for the process that installs')
  rmSync(lock)
  exactly(t, await waiting, [{ code: 0 }, { code: 0 }])
  t.ok(existsSync(stamp))
  for (const [pid, age] of [
    [2 ** 30, 0],
    [process.pid, 3601]
  ] as const) {
    rmSync(stamp)
    writeFileSync(lock, String(pid))
    utimesSync(lock, Date.now() / 1000 - age, Date.now() / 1000 - age)
    exactly(t, await install(), { code: 0 })
    t.same([existsSync(stamp), existsSync(lock)], [true, false])
  }
  const all = readFileSync(stamp, 'utf8')
  exactly(t, await install('--to-run'), { code: 0 })
  t.equal(readFileSync(stamp, 'utf8'), all, 'what is installed for tests is enough to run')
  rmSync(stamp)
  exactly(t, await install('--to-run'), { code: 0 })
  t.equal(`${readFileSync(stamp, 'utf8')} all`, all)
  exactly(t, await install(), { code: 0, stdout: '' })
  t.equal(readFileSync(stamp, 'utf8'), all, 'the tests add the rest')
})

t.test('npm checks every package of the lock file by its hash', t => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string }>
  }
  t.strictSame(
    Object.entries(packages).filter(([path, { integrity }]) => path !== '' && !integrity?.startsWith('sha512-')),
    []
  )
  t.end()
})
