/**
 * What `npm pack` runs before it, and with --restore after it. What is packed is the client and the command line, compiled for any Node from
 * 20 on, with a package.json that asks for what those need: the service runs from a clone or an image, and its many packages are not theirs.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clientTypes } from './client-types.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const manifest = join(root, 'package.json')
/** The whole package.json, while the packed one is in its place. */
const kept = join(dist, '.package.json')

const entries = ['client/index.js', 'cli/main.js']
const needed = ['yaml']

const restore = () => {
  if (existsSync(kept)) renameSync(kept, manifest)
}

const build = async () => {
  rmSync(dist, { recursive: true, force: true })
  const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'scripts/tsconfig.dist.json')]
  const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' })
  if (status !== 0) throw new Error('tsc failed; see above')
  const wanted = new Set(entries.map(entry => join(dist, entry)))
  for (const file of wanted) for (const found of importsOf(file)) wanted.add(found)
  for (const file of [...wanted]) if (file.startsWith(join(dist, 'client'))) wanted.add(file.replace(/js$/, 'd.ts'))
  for (const file of filesIn(dist)) if (!wanted.has(file)) rmSync(file)
  writeFileSync(join(dist, 'client/types.d.ts'), await clientTypes())
  for (const file of wanted) if (file.endsWith('.d.ts')) pointAtScripts(file)
}

/** The files that a module imports, by their paths. */
const importsOf = (file: string): string[] => {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/^(?:import|export) .*?from '(\.[^']+)'/gm)].map(([, path]) => resolve(dirname(file), path!))
}

const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map(name => join(dir, name))
    .filter(file => statSync(file).isFile())

/** Declarations keep the names of their sources, which are not there. */
const pointAtScripts = (file: string) => writeFileSync(file, readFileSync(file, 'utf8').replace(/(from '\.[^']*)\.ts'/g, "$1.js'"))

const packedManifest = () => {
  const { name, version, description, license, type, engines, bin, exports, files, dependencies } = JSON.parse(
    readFileSync(manifest, 'utf8')
  )
  const own = Object.fromEntries(needed.map(one => [one, dependencies[one]]))
  return { name, version, description, license, type, engines, bin, exports, files, dependencies: own }
}

restore() // what an interrupted run left
if (!process.argv.includes('--restore')) {
  await build()
  const packed = `${JSON.stringify(packedManifest(), null, 2)}\n`
  mkdirSync(dirname(kept), { recursive: true })
  renameSync(manifest, kept)
  writeFileSync(manifest, packed)
  console.error(`Created ${relative(root, dist)}; postpack restores package.json`)
}
