/** `src/python`: its tests in Python, against a real service with an engine, and its wheel. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { signHeaders } from '../../src/deliveries/signature.ts'
import { startEngine } from '../support/engine.ts'
import { noPython } from '../support/examples.ts'
import { build } from '../support/setup.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const skip = noPython && 'python3 is not installed'

const python = (args: string[], env: Record<string, string> = {}) =>
  promisify(execFile)('python3', args, { cwd: root, env: { PATH: process.env.PATH, ...env } }).catch(error => error)

t.test('the tests in Python pass', { skip }, async t => {
  const plan = { cues: 1000, executions_per_month: 100_000, fires_per_hour: 10_000 }
  const service = await build(t, undefined, { env: { PLANS: JSON.stringify({ free: plan }) } })
  const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
  await startEngine(t, service.config)
  const secrets = ['whsec_bmV3ZXI=', 'whsec_b2xkZXI=']
  const message = { executionId: '01a21dce-31db-7050-ad2f-000000000001', timestamp: 1_900_000_000, body: '{"name": "caf\u00e9"}' }
  const { stderr } = await python(['-W', 'error', '-m', 'unittest', 'discover', '-s', 'test/cli/python', '-v'], {
    PYTHONPATH: `${root}src/python`,
    PYTHONDONTWRITEBYTECODE: '1',
    PGCUE_BASE_URL: address,
    PGCUE_API_KEY: service.account.api_key,
    SIGNED: JSON.stringify({ secrets, ...message, headers: signHeaders({ secrets, ...message }) })
  })
  const results = [...stderr.matchAll(/^test_\w+ \(([\w.]+)\)(?:\n.*)? \.\.\. (.*)$/gm)].map(([, name, result]) => [name, result])
  t.ok(results.length > 0 && stderr.endsWith('\nOK\n'), 'all tests pass', { stderr })
  for (const [name, result] of results) t.equal(result, 'ok', name)
})

t.test('the wheel has the package, with the version of npm', { skip }, async t => {
  const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  const script = `
import os, sys, zipfile
sys.path[:] = ["src/python", *sys.path]
sys.dont_write_bytecode = True
import build_backend
wheel = build_backend.build_wheel(sys.argv[1])
sys.path[0] = os.path.join(sys.argv[1], wheel)
print(wheel, len(zipfile.ZipFile(sys.path[0]).namelist()))
import pgcue
print(os.path.dirname(pgcue.__file__) == os.path.join(sys.path[0], "pgcue"), "pgcue/py.typed" in zipfile.ZipFile(sys.path[0]).namelist())`
  const { stdout, stderr } = await python(['-c', script, t.testdir({})])
  t.equal(stderr, '')
  t.equal(stdout, `pgcue-${version}-py3-none-any.whl 11\nTrue True\n`)
})
