// Runs before `npm start`, `npm test` and the like, on whatever Node the machine has: installs what the lock file says unless it is
// there already. What runs after it, runs on the Node that this installs.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = join(root, 'node_modules')
const stamp = join(modules, '.installed')
const node = join(modules, '.bin', 'node')
const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')
const wanted = createHash('sha256').update(`${process.platform} ${process.arch} ${lock}`).digest('hex')

const read = file => (existsSync(file) ? readFileSync(file, 'utf8') : '')

/** Whether somebody's own `npm install` left exactly what the lock file says. */
const matches = () => {
  const there = JSON.parse(read(join(modules, '.package-lock.json')) || '{}').packages ?? {}
  return Object.entries(JSON.parse(lock).packages).every(
    ([path, { version, optional }]) => path === '' || (there[path] ? there[path].version === version : optional)
  )
}

const install = () => {
  console.log('Installing the packages of package-lock.json …')
  // Not the Node and npm in node_modules, which are about to be replaced.
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(dir => !dir.includes('node_modules'))
    .join(delimiter)
  const options = ['--include=dev', '--ignore-scripts=false', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, error } = spawnSync('npm', ['ci', ...options], {
    cwd: root,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32'
  })
  if (status !== 0) fail(`npm ci failed${error ? `: ${error.message}` : ''}; see above`)
}

const fail = message => {
  console.error(message)
  process.exit(1)
}

const upToDate = () => read(stamp) === wanted && existsSync(node)

/** Keeps a second start out while this one installs; what a killed one left behind is removed. */
const takeTurns = () => {
  const turn = join(tmpdir(), `pgcue-install-${createHash('sha256').update(root).digest('hex').slice(0, 8)}`)
  for (;;) {
    try {
      writeFileSync(turn, String(process.pid), { flag: 'wx' })
      process.on('exit', () => rmSync(turn, { force: true }))
      return
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    if (isAlive(Number(read(turn)))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    else rmSync(turn, { force: true })
  }
}

const isAlive = pid => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

if (!upToDate()) takeTurns()
if (!upToDate()) {
  if (!existsSync(node) || !matches()) install()
  const run = args => spawnSync(node, args, { cwd: root, encoding: 'utf8' })
  if (!run(['-v']).stdout?.startsWith('v24.'))
    fail('The package "node" did not install Node 24: its install script did not run, or has no binary for this machine')
  // tap puts its plugins together, as .taprc names them; the first run of the tests would do it too, and fail.
  const { status, stderr } = run([join(modules, 'tap', 'dist', 'esm', 'run.mjs'), 'build'])
  if (status !== 0) fail(`tap build failed: ${stderr}`)
  writeFileSync(stamp, wanted)
}
