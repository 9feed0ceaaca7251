/**
 * Loaded first in test processes, and in the replicas that tests start with test/replica.ts: serves three packages of a thousand small modules
 * from a few files, which saves 0.4 s of a CPU each time. The replicas of npm-start, package, chaos and admin-move load the packages themselves.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const names = ['typebox', 'typebox/compile', 'typebox/error', 'typebox/system', 'typebox/value', 'kysely', 'jose']
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))
const versions = ['typebox', 'kysely', 'jose'].map(name => JSON.parse(readFileSync(`${modules}/${name}/package.json`, 'utf8')).version)
const parent = `${modules}/.cache/bundled`
const dir = `${parent}/${versions.join('-')}`
const fileOf = (name: string) => name.replace('/', '-')

if (!existsSync(dir)) {
  const { build } = await import('esbuild')
  mkdirSync(parent, { recursive: true })
  const draft = mkdtempSync(`${parent}/draft-`)
  const entryPoints = Object.fromEntries(names.map(name => [fileOf(name), name]))
  const options = { bundle: true, splitting: true, format: 'esm', platform: 'node', outExtension: { '.js': '.mjs' } } as const
  await build({ entryPoints, outdir: draft, absWorkingDir: fileURLToPath(new URL('../..', import.meta.url)), ...options })
  try {
    renameSync(draft, dir)
  } catch {
    rmSync(draft, { recursive: true }) // another process was first
  }
}

const urls = new Map(names.map(name => [name, pathToFileURL(`${dir}/${fileOf(name)}.mjs`).href]))
registerHooks({
  resolve: (specifier, context, next) => {
    const url = urls.get(specifier)
    return url ? { url, format: 'module', shortCircuit: true } : next(specifier, context)
  }
})
