/** A test of the tests: none compares statuses, lists or numbers with tap's lax match, which lets substrings and extra items pass. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'

/** What this file shows as wrong is not looked at. */
const files = readdirSync(import.meta.dirname).filter(name => name.endsWith('.ts') && name !== 'assertions.test.ts')

const closing: Record<string, string> = { '(': ')', '[': ']', '{': '}' }

/** Where a string, a template, a RegExp or a comment that begins here ends: after it. Anything else is one character long. */
const skip = (source: string, at: number): number => {
  const rest = source.slice(at)
  const before = source.slice(0, at).trimEnd().at(-1) ?? ''
  if (rest[0] === '`') {
    let end = at + 1
    while (source[end] !== '`') end = source[end] === '\\' ? end + 2 : source.startsWith('${', end) ? after(source, end + 1) : end + 1
    return end + 1
  }
  const whole =
    /^(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\/\/.*|\/\*[\s\S]*?\*\/)/.exec(rest) ??
    ('(,=:[!&|?{};>'.includes(before) ? /^\/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\[\n])+\/[a-z]*/.exec(rest) : null)
  if (whole) return at + whole[0].length
  return rest[0]! in closing ? after(source, at) : at + 1
}

/** After the bracket that closes the one here. */
const after = (source: string, open: number): number => {
  const close = closing[source[open]!]
  let at = open + 1
  while (at < source.length && source[at] !== close) at = skip(source, at)
  return at + 1
}

const argumentsAt = (source: string, open: number): string[] => {
  const found: string[] = []
  let from = open + 1
  for (let at = from; at < source.length; ) {
    if (source[at] === ',' || source[at] === ')') {
      found.push(source.slice(from, at).trim())
      if (source[at] === ')') break
      from = at + 1
    }
    at = skip(source, at)
  }
  return found.filter(Boolean)
}

/** The assertions of a source that are lax, as the lines they stand on. */
const laxIn = (source: string): string[] => {
  const lax: number[] = []
  for (const call of source.matchAll(/\bt\.(?:match|notMatch)\(/g)) {
    const [actual = '', pattern = ''] = argumentsAt(source, call.index + call[0].length - 1)
    const isPattern = /^(?:\/|new RegExp\()/.test(pattern)
    const isLoose = /\bstatus(?:Code)?\b(?!\()/.test(actual.replace(/'[^']*'/g, '')) && !/^\/\^.*\$\/[a-z]*$/.test(pattern)
    if (!isPattern || isLoose) lax.push(call.index)
  }
  for (const other of [
    /\bt\.(?:matchOnly|matchStrict|has|hasStrict|matches)\(/g,
    /\bstatus(?:Code)?\??\.(?:includes|startsWith|endsWith|match|search)\(/g,
    /\bstatus: \/(?!\^.*\$\/)/g
  ])
    for (const { index } of source.matchAll(other)) lax.push(index)
  return lax.map(index => source.slice(source.lastIndexOf('\n', index) + 1, `${source}\n`.indexOf('\n', index)).trim())
}

t.test('allows lax assertions only of regular expressions, and no partial one of a status', t => {
  for (const file of files) t.same(laxIn(readFileSync(`${import.meta.dirname}/${file}`, 'utf8')), [], file)
  t.end()
})

t.test('randomness comes from a printed seed and can be repeated', t => {
  for (const file of files.filter(name => name !== 'seed.ts'))
    t.same(readFileSync(`${import.meta.dirname}/${file}`, 'utf8').match(/.*(Math\.random|fc\.assert)\(.*/g), null, file)
  t.end()
})

t.test('finds lax assertions and accepts exact ones', t => {
  const match = (args: string) => `t.match(${args})`
  for (const lax of [
    match(`text, 'part'`),
    match(`body, { status: 'x' }`),
    match('list, []'),
    match('text, pattern'),
    match(`\n  f('a, b', \`\${x(')')}\`),\n  'part'`),
    `t.notMatch(text.replace(/[,/(]/g, ','), 'part')`,
    match('answer.status, /success/'),
    `t.has(body, {})`,
    `t.ok(execution.status.includes('pending'))`,
    `exactly(t, body, { status: /pending/ })`
  ])
    t.equal(laxIn(lax).length, 1, lax)
  for (const exact of [
    match('text, /part/'),
    match(`text, new RegExp('part')`),
    match(`\n  f('a, b', { c: 1 }),\n  /part/,\n  'why'\n`),
    match(`text.replace(/[,/(]/g, ','), /part/`),
    match(`\`\${status} \${code}\`, /^(401 a|409 b)$/`),
    match(`await get('/status'), /up/`),
    `exactly(t, body, { status: /^(success|failed)$/ })`,
    `t.ok(['success', 'failed'].includes(status))`
  ])
    t.same(laxIn(exact), [], exact)
  t.end()
})
