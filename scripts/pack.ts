/**
 * Runs before `npm pack`, and after it with --restore. The package contains the client and the command line, compiled for Node 20 and
 * later, with a package.json that has only their dependencies. The service itself runs from a clone or an image.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clientTypes } from './client-types.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const manifest = join(root, 'package.json')
/** Keeps the complete package.json while the packed one replaces it. */
const complete = join(dist, '.package.json')

const entries = ['client/index.js', 'client/serve.js', 'cli/main.js']
const packages = ['commander', 'cron-parser', 'yaml']

const restore = () => {
  if (existsSync(complete)) renameSync(complete, manifest)
}

const build = async () => {
  rmSync(dist, { recursive: true, force: true })
  const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'scripts/tsconfig.dist.json')]
  const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' })
  if (status !== 0) throw new Error('tsc failed; see above')
  const modules = new Set(entries.map(entry => join(dist, entry)))
  for (const file of modules) for (const path of importsOf(file)) modules.add(path)
  const types = new Set([...modules].filter(isOfClient).map(file => file.replace(/js$/, 'd.ts')))
  // Modules of types have no script that imports them.
  for (const file of types) for (const path of importsOf(file).filter(isOfClient)) types.add(path.replace(/ts$/, 'd.ts'))
  for (const file of types) modules.add(file)
  for (const file of filesIn(dist)) if (!modules.has(file)) rmSync(file)
  writeFileSync(join(dist, 'client/types.d.ts'), await clientTypes())
  for (const file of modules) if (file.endsWith('.d.ts')) pointAtScripts(file)
}

const isOfClient = (file: string) => file.startsWith(join(dist, 'client'))

/** Returns the paths of the files that a module imports. */
const importsOf = (file: string): string[] => {
  const text = readFileSync(file, 'utf8')
  const paths = [...text.matchAll(/^(?:import|export) .*?from '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm)]
  return paths.map(([, fixed, lazy]) => resolve(dirname(file), (fixed ?? lazy)!))
}

const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map(name => join(dir, name))
    .filter(file => statSync(file).isFile())

/** Declarations import `.ts` files, which the package doesn't contain; point them at the compiled ones. */
const pointAtScripts = (file: string) => writeFileSync(file, readFileSync(file, 'utf8').replace(/(from '\.[^']*)\.ts'/g, "$1.js'"))

const packedManifest = () => {
  const { name, version, description, license, type, engines, bin, exports, files, dependencies } = JSON.parse(
    readFileSync(manifest, 'utf8')
  )
  const packed = Object.fromEntries(packages.map(name => [name, dependencies[name]]))
  return { name, version, description, license, type, engines, bin, exports, files, dependencies: packed }
}

restore() // in case an earlier run was interrupted
if (!process.argv.includes('--restore')) {
  await build()
  const packed = `${JSON.stringify(packedManifest(), null, 2)}\n`
  mkdirSync(dirname(complete), { recursive: true })
  renameSync(manifest, complete)
  writeFileSync(manifest, packed)
  console.error(`Created ${relative(root, dist)}; postpack restores package.json`)
}
