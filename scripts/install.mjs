// Runs before `npm start`, `npm test` and other scripts, on any Node version: installs the packages of the lock file unless they are
// installed; with --to-run, without those for tests and development, which a later call adds. The script itself then runs on the Node version
// installed here, and so does a module named in the arguments. After `&&`, it would not: a shell remembers where it has found `node`.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = join(root, 'node_modules')
const stamp = join(modules, '.installed')
const node = join(modules, '.bin', 'node')
const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')
const expected = createHash('sha256').update(`${process.platform} ${process.arch} ${lock}`).digest('hex')
const toRun = process.argv[2] === '--to-run'

const read = file => (existsSync(file) ? readFileSync(file, 'utf8') : '')

/** The packages to install, by path, without those of other platforms. */
const packages = Object.entries(JSON.parse(lock).packages).filter(
  ([path, { dev, os, cpu }]) =>
    path !== '' && !(dev && toRun) && (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true)
)

/** Whether a manual `npm install` has installed exactly what the lock file says. */
const matches = () => {
  const there = JSON.parse(read(join(modules, '.package-lock.json')) || '{}').packages ?? {}
  return packages.every(([path, { version, optional }]) => (there[path] ? there[path].version === version : optional))
}

const install = async () => {
  console.log('Installing the packages of package-lock.json …')
  // Excludes Node and npm in node_modules, which are about to be replaced.
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(dir => !dir.includes('node_modules'))
    .join(delimiter)
  // After `npm start`, whose service may be running, only what is missing is added.
  const command = read(stamp).startsWith(expected) ? ['install', '--no-save'] : ['ci']
  const options = [toRun ? '--omit=dev' : '--include=dev', '--include=optional', '--ignore-scripts=false', '--no-audit', '--no-fund']
  const npm = spawn('npm', [...command, ...options, '--loglevel=error'], {
    cwd: root,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32'
  })
  const progress = process.stdout.isTTY ? setInterval(count, 250) : undefined
  const problem = await new Promise(resolve => npm.on('error', resolve).on('exit', status => resolve(status === 0 ? null : {})))
  clearInterval(progress)
  if (progress) process.stdout.write('\r\x1b[K')
  if (problem) fail(`npm ${command[0]} failed${problem.message ? `: ${problem.message}` : ''}; see above`)
  // C headers, a third of the package: nothing is compiled here.
  const platforms = join(modules, 'node', 'node_modules')
  for (const name of existsSync(platforms) ? readdirSync(platforms).filter(name => name.startsWith('node-')) : [])
    rmSync(join(platforms, name, 'include'), { recursive: true, force: true })
}

const count = () => {
  const installed = packages.filter(([path]) => existsSync(join(root, path, 'package.json'))).length
  process.stdout.write(`\r${installed} of ${packages.length} packages`)
}

const fail = message => {
  console.error(message)
  process.exit(1)
}

const upToDate = () => (read(stamp) === `${expected} all` || (toRun && read(stamp) === expected)) && existsSync(node)

/**
 * Makes concurrent starts wait until this one has installed. The lock of a killed process is removed, and one that is an hour old, whose id another
 * process may have by now. It isn't in the folder for temporary files, where anybody could put one.
 */
const takeTurns = () => {
  const turn = join(root, '.installing')
  for (;;) {
    try {
      writeFileSync(turn, String(process.pid), { flag: 'wx' })
      process.on('exit', () => rmSync(turn, { force: true }))
      return
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    if (isAlive(Number(read(turn))) && !isOld(turn)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    else rmSync(turn, { force: true })
  }
}

const isOld = file => Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > 3_600_000

const isAlive = pid => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

if (!upToDate()) takeTurns()
if (!upToDate()) {
  if (!existsSync(node) || !matches()) await install()
  const run = args => spawnSync(node, args, { cwd: root, encoding: 'utf8' })
  if (!run(['-v']).stdout?.startsWith('v24.'))
    fail('The package "node" did not install Node 24: its install script did not run, or has no binary for this machine')
  if (!toRun) {
    // tap builds itself with the plugins in .taprc. Otherwise the first run of the tests would do that, and fail.
    const { status, stderr } = run([join(modules, 'tap', 'dist', 'esm', 'run.mjs'), 'build'])
    if (status !== 0) fail(`tap build failed: ${stderr}`)
  }
  writeFileSync(stamp, toRun ? expected : `${expected} all`)
}

// npm doesn't link a package's own command: this is `npx pgcue` in a clone.
const windows = process.platform === 'win32'
const command = join(modules, '.bin', windows ? 'pgcue.cmd' : 'pgcue')
if (!existsSync(command)) {
  const text = windows
    ? '@"%~dp0node" "%~dp0..\\..\\src\\cli\\main.ts" %*\r\n'
    : '#!/bin/sh\nbin=$(dirname "$0")\nexec "$bin/node" "$bin/../../src/cli/main.ts" "$@"\n'
  writeFileSync(command, text, { mode: 0o755 })
}

const [module, ...args] = process.argv.slice(toRun ? 3 : 2)
if (module) process.exitCode = spawnSync(node, [module, ...args], { cwd: root, stdio: 'inherit' }).status ?? 1
