/**
 * Bundles the dashboard's pages into src/dashboard/bundle/, which is not committed: a bundle in the history would differ with every change
 * and hide it. `npm start` runs this file; it does nothing if the bundle was made from these sources. The image gets the bundle from its build.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const app = join(folder, 'app')
export const bundleFolder = join(folder, 'bundle')
const manifestFile = join(bundleFolder, 'manifest.json')

/** Names of files in the bundle, with a hash of their content. */
export type Manifest = {
  madeFrom: string
  style: string
  /** Asks for data while the others load. */
  early: string
  script: string
  /** What the script imports. */
  imports: string[]
  files: string[]
}

export const readManifest = (): Manifest | undefined =>
  existsSync(manifestFile) ? JSON.parse(readFileSync(manifestFile, 'utf8')) : undefined

/** A hash of the sources and of the versions of their packages. */
const sourcesHash = (): string => {
  const hash = createHash('sha256')
  const files = readdirSync(app, { recursive: true, encoding: 'utf8' }).filter(name => /\.\w+$/.test(name))
  for (const name of files.sort()) hash.update(`${name}\n`).update(readFileSync(join(app, name)))
  const { optionalDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  hash.update(JSON.stringify(optionalDependencies))
  return hash.digest('hex')
}

export const isBundled = (): boolean => readManifest()?.madeFrom === sourcesHash()

/** Makes the bundle. Several processes may do so at once: files have the hash of their content as names, and the manifest comes last. */
export const bundle = async (): Promise<void> => {
  const madeFrom = sourcesHash()
  const { build, stop } = await import('esbuild')
  const { outputFiles, metafile } = await build({
    entryPoints: { early: join(app, 'early.ts'), app: join(app, 'main.tsx'), style: join(app, 'style/main.css') },
    outdir: bundleFolder,
    entryNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    loader: { '.woff2': 'file' },
    chunkNames: 'part-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    write: false,
    metafile: true
  })
  await stop()
  mkdirSync(bundleFolder, { recursive: true })
  const files = outputFiles.map(({ path }) => basename(path))
  for (const { path, contents } of outputFiles) put(path, contents)
  const named = (pattern: RegExp) => files.find(name => pattern.test(name))!
  const script = named(/^app-.*\.js$/)
  const output = Object.entries(metafile.outputs).find(([path]) => basename(path) === script)![1]
  const imports = output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => basename(path))
  const manifest: Manifest = { madeFrom, style: named(/^style-.*\.css$/), early: named(/^early-.*\.js$/), script, imports, files }
  put(manifestFile, JSON.stringify(manifest))
  for (const name of readdirSync(bundleFolder))
    if (![...files, 'manifest.json'].includes(name)) rmSync(join(bundleFolder, name), { force: true })
}

const put = (path: string, content: string | Uint8Array): void => {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, content)
  renameSync(draft, path)
}

if (import.meta.main && !isBundled()) await bundle()
