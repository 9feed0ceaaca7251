/** YAML of files for `pgcue apply` and of workers: read as written, or refused with the line. */
import fc from 'fast-check'
import t from 'tap'
import { parseExactly } from '../../src/cli/io.ts'
import { readYaml, writeYaml } from '../../src/cli/yaml.ts'
import { canonicalJson } from '../../src/json/canonical-json.ts'
import { always } from '../support/seed.ts'

const read = (source: string) => JSON.stringify(readYaml(source, 'f.yaml', { number: parseExactly })[0])

t.test('merges merge keys', async t => {
  const base = 'base: &base {a: 1, b: {c: 2}}\nother: &other {a: 3, d: 4}\n'
  const merged = (text: string) => JSON.parse(read(`${base}x: ${text}`)).x
  t.same(merged('{<<: *base, a: 5}'), { a: 5, b: { c: 2 } })
  t.same(merged('{a: 5, <<: *base}'), { a: 5, b: { c: 2 } })
  t.same(merged('{<<: [*other, *base]}'), { a: 3, d: 4, b: { c: 2 } })
  t.same(merged('{<<: {e: 6}}'), { e: 6 })
  t.same(merged('{"<<": *base}'), { '<<': { a: 1, b: { c: 2 } } }, 'a quoted name is one')
})

t.test('keeps names and exact numbers as written', async t => {
  for (const [source, json] of [
    ['{1e3: x}', '{"1e3":"x"}'],
    ['{1.10: v, 1.1: w}', '{"1.10":"v","1.1":"w"}'],
    ['{0x1F: a, 0123: b, 1_000: c}', '{"0x1F":"a","0123":"b","1_000":"c"}'],
    ['{true: 1, Null: 2, ~: 3, .inf: 4}', '{"true":1,"Null":2,"~":3,".inf":4}'],
    ['[1e16, 1.0, -0.0, 12345678901234567890, 1.50, 5e-324]', '[1e16,1.0,-0.0,12345678901234567890,1.5,5e-324]'],
    ['[+1, .5, -.5e3, 1., "0123", !!str 5]', '[1,0.5,-0.5e3,1.0,"0123","5"]'],
    ['[yes, 12:30, 2030-01-01, 2024_01, "*/5 * * * *", <<]', '["yes","12:30","2030-01-01","2024_01","*/5 * * * *","<<"]'],
    ['%YAML 1.1\n---\n[yes, 1:30]', '["yes","1:30"]']
  ] as const)
    t.equal(read(source), json, source)
})

t.test('refuses what JSON cannot represent or would alter, with its line', async t => {
  for (const [source, message] of [
    ...['.inf', '-.INF', '.nan', '0x1F', '0o17', '0123', '-007', '1_000', '1_000_000.5', '1e400', '0.12345678901234567890', '00'].map(
      value => [value, `f.yaml: line 3: ${value} would not be kept as written: write a decimal number, or quote it`] as const
    ),
    ...['!!set {x}', '!!omap [x: 1]', '!!binary aGk=', '!!timestamp 2030-01-01', '!secret x'].map(
      value => [value, /^f\.yaml: Unresolved tag: .* at line 3, column 6/] as const
    ),
    ...['*/5 * * * *', '* * * * *', '[*/5 * * * *]', '*/5'].map(
      value => [value, /quote values that begin with \*.*line 3|line 3.*begin with \*$/s] as const
    ),
    ...['{[1, 2]: x}', '{*k : x}', '{? {a: 1} : x}'].map(value => [value, /all keys must be strings at line 3/] as const),
    ['{1: x, "1": y}', /^f\.yaml: Map keys must be unique at line 3/],
    ['{<<: 5}', 'f.yaml: line 3: << takes a mapping or a list of mappings'],
    ['&a [*a]', 'f.yaml: line 3: *a contains itself'],
    ['@daily', /reserved character @ at line 3/]
  ] as const)
    t.throws(() => read(`# a comment\nlist:\n  a: ${source}`), { name: 'UsageError', message }, source)
  t.throws(() => readYaml('a: 1\n---\nb: 2\nc: 0x1', 'f.yaml'), { message: /^f\.yaml: line 4: 0x1 / }, 'in the second document')
})

t.test('what is written is read as the same JSON, and shows no character that a terminal would act on', async t => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom(
      '<<',
      '1e3',
      '1.10',
      '0123',
      '1_000',
      '.inf',
      '*/5',
      '~',
      'a\n\tb',
      '\u202eevil',
      '\u001b[2J',
      '\u0085\u2028',
      'null',
      '!x',
      '%a'
    )
  )
  const number = fc.oneof(
    fc.double({ noDefaultInfinity: true, noNaN: true }).map(String),
    fc.bigInt().map(String),
    fc.constantFrom('1e16', '1e+16', '10000000000000000', '1.0', '-0.0', '1e-05', '1.5e300', '0.1', '1E2')
  )
  const { json } = fc.letrec<{ json: string }>(tie => ({
    json: fc.oneof(
      { depthSize: 'small' },
      number,
      text.map(value => JSON.stringify(value)),
      fc.constantFrom('null', 'true', 'false'),
      fc.array(tie('json')).map(items => `[${items}]`),
      fc
        .dictionary(text, tie('json'))
        .map(members => `{${Object.entries(members).map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`)
    )
  }))
  const unshown = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/
  const isKept = (json: string, comment?: string) => {
    const yaml = writeYaml(json, [comment])
    return !unshown.test(yaml) && canonicalJson(read(yaml)) === canonicalJson(json)
  }
  always(
    fc.property(json, json => isKept(json)),
    500
  )
  always(
    fc.property(json, text, (json, comment) => isKept(`{"cues":[${json}, 1]}`, comment)),
    500
  )
  t.pass()
})
