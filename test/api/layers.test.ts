/** The structure of src/, as in .github/CONTRIBUTING.md: each folder imports only from those below it, without cycles. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const src = join(root, 'src')

/** From the top down. Folders on one line do not import from each other. */
const layers = readFileSync(join(root, '.github/CONTRIBUTING.md'), 'utf8')
  .match(/```layers\n([\s\S]+?)\n```/)![1]!
  .trim()
  .split('\n')
  .map(line =>
    line
      .replace(/ {2,}.*/, '')
      .trim()
      .split(/\s+/)
  )

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))

/** Files of this project that a file imports, types included, by their paths in src/. */
const importsOf = (file: string): string[] => {
  const text = readFileSync(join(src, file), 'utf8')
  const found = text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^'"`;]*?['"](\.{1,2}\/[^'"]+)['"]|import\(\s*['"](\.{1,2}\/[^'"]+)['"]/g)
  return [...found].map(match => relative(src, resolve(src, dirname(file), (match[1] ?? match[2])!)))
}
const imports = new Map(files.map(file => [file, importsOf(file).filter(name => name.endsWith('.ts'))]))
const placeOf = (file: string) => (file.includes('/') ? file.slice(0, file.indexOf('/')) : file)

t.test('lists every folder and file of src/ in a layer', async t => {
  t.same(new Set(layers.flat()), new Set(files.map(placeOf)))
})

t.test('imports only files that exist in src/', async t => {
  for (const [file, names] of imports) {
    t.same(
      names.filter(name => name.startsWith('..') || !existsSync(join(src, name))),
      [],
      file
    )
  }
})

t.test('a folder imports only from folders below it', async t => {
  const levelOf = (file: string) => layers.findIndex(layer => layer.includes(placeOf(file)))
  const upward = [...imports].flatMap(([file, names]) =>
    names.filter(name => placeOf(name) !== placeOf(file) && levelOf(name) <= levelOf(file)).map(name => `${file} imports ${name}`)
  )
  t.same(upward, [])
})

t.test('there are no import cycles', async t => {
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) return void cycles.push([...path.slice(path.indexOf(file)), file].join(' > '))
    if (done.has(file)) return
    for (const name of imports.get(file) ?? []) visit(name, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  t.same(cycles, [])
})

t.test('few files are at the top of src/', async t => {
  const generated = ['db.types.ts', 'catalog.ts', 'openapi.json']
  const top = readdirSync(src, { withFileTypes: true }).flatMap(entry => (entry.isFile() ? [entry.name] : []))
  const allowed = ['server.ts', 'app.ts', 'config.ts', 'directories.ts', 'errors.ts', 'schemas.ts', ...generated]
  t.same(
    top.filter(name => !allowed.includes(name)),
    []
  )
})
