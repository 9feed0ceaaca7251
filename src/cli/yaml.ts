/** YAML that is read as written: what JSON would not represent exactly is an error, with its line. */
import type { Alias, Node, Pair, Scalar } from 'yaml'
import { Document, isMap, isPair, isScalar, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml'
import { isRawJSON } from '../json/canonical-json.ts'
import { UsageError } from './exit-codes.ts'
import { parseExactly } from './io.ts'
import { printable } from './printable.ts'

type Reading = {
  /** Changes strings, and names. */
  text?: (text: string) => string
  /** Reads a number as JSON writes it. */
  number?: (literal: string) => unknown
  /** Whether the value at these names is text, whatever it looks like. */
  isText?: (names: readonly string[]) => boolean
}

/** The documents of a file. Merge keys are merged. @throws UsageError naming the file, the line and what to do */
export const readYaml = (source: string, file: string, reading: Reading = {}): unknown[] => {
  const lines = new LineCounter()
  const refuse = (node: Node | null, what: string): never => {
    throw new UsageError(`${file}: line ${lines.linePos(node?.range?.[0] ?? 0).line}: ${what}`)
  }
  // Other tags than those of JSON, and the directive %YAML 1.1, would change values.
  const options = { schema: 'core', merge: true, resolveKnownTags: false, stringKeys: true, lineCounter: lines } as const
  return [...parseAllDocuments(source, options)].map(document => {
    const [error] = [...document.errors, ...document.warnings]
    const isOfAlias = document.errors.some(({ message }) => /alias/i.test(message))
    if (error) throw new UsageError(`${file}: ${isOfAlias ? `${quoteStars}: ` : ''}${error.message}`)
    visit(document, visitors(document as Document, refuse, reading))
    try {
      return document.toJS()
    } catch (error) {
      throw new UsageError(`${file}: ${(error as Error).message}`)
    }
  })
}

const quoteStars = 'quote values that begin with *'

type Refuse = (node: Node | null, what: string) => never
type Path = readonly unknown[]

const visitors = (document: Document, refuse: Refuse, { text = String, number = Number, isText = () => false }: Reading) => ({
  Alias: (_: unknown, node: Alias, path: Path) => {
    const anchored = node.resolve(document)
    if (!anchored) refuse(node, `no anchor &${node.source}; ${quoteStars}`)
    if (path.includes(anchored)) refuse(node, `*${node.source} contains itself`)
  },
  Pair: (_: unknown, { key, value }: Pair) => {
    if (!isScalar(key) || key.value !== '<<' || key.type !== 'PLAIN') return
    const sources = isSeq(value) ? value.items : [value]
    if (!sources.every(source => isMap(source) || isMap((source as Alias | null)?.resolve?.(document))))
      refuse(key, '<< takes a mapping or a list of mappings')
  },
  Scalar: (key: unknown, node: Scalar, path: Path) => {
    const names = path.flatMap(parent => (isPair(parent) ? [String((parent.key as Scalar).value)] : []))
    if (key !== 'key' && isText(names)) node.value = node.source
    else if (typeof node.value === 'string') {
      if (key !== 'key' && node.type === 'PLAIN' && grouped.test(node.value)) refuse(node, inexact(node.value))
      node.value = text(node.value)
    } else if (typeof node.value === 'number') node.value = number(literalOf(node.source!) ?? refuse(node, inexact(node.source!)))
  }
})

const inexact = (source: string) => `${source} would not be kept as written: write a decimal number, or quote it`

/** Numbers with separators, which are text in YAML 1.2. */
const grouped = /^[-+]?\d{1,3}(_\d{3})+(\.\d*)?$/

/** A number of YAML as JSON writes it; undefined if that is another number. */
const literalOf = (source: string): string | undefined => {
  const literal = source
    .replace(/^\+/, '')
    .replace(/^-?(?=\.)/, sign => `${sign}0`)
    .replace(/\.(?=$|e)/i, '.0')
  const isExact = /^-?\d+$/.test(literal) || significant(literal) === significant(String(Number(literal)))
  return isExact && /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(literal) ? literal : undefined
}

const significant = (number: string) => number.replace(/e.*|\D/gi, '').replace(/^0+|0+$/g, '')

/** Numbers whose digits JavaScript would change. */
const rawTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: (value: unknown) => isRawJSON?.(value) === true,
  stringify: ({ value }: { value: unknown }) => (value as { rawJSON: string }).rawJSON
}

/** Writes JSON as YAML that `readYaml` reads as the same JSON. Comments go above the cues, in order. */
export const writeYaml = (json: string, comments: readonly (string | undefined)[] = []): string => {
  const document = new Document(parseExactly(json), { customTags: [rawTag as never] })
  visit(document, {
    Scalar: (_, node) => {
      const { value } = node
      if (typeof value === 'string' && (value === '<<' || grouped.test(value) || value !== printableYaml(value))) node.type = 'QUOTE_DOUBLE'
    }
  })
  for (const [i, text] of comments.entries()) {
    const cue = document.getIn(['cues', i], true) as Node
    if (text !== undefined) cue.commentBefore = text.trim().replace(/^/gm, ' ')
  }
  // Quoted strings may have escapes.
  return printableYaml(document.toString({ lineWidth: 0 }))
}

const printableYaml = (text: string) => printable(text, '\t\n')
