/** Reads YAML and JSON, with the lines of their parts. */
import { type Document, isAlias, isCollection, isDocument, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml'

export type Part = { value: unknown; line: number }

/** A file that can't be read at all. */
export class FormatError extends Error {
  readonly line: number
  constructor(line: number, reason: string) {
    super(reason)
    this.line = line
  }
}

/**
 * The parts at a path in each document of a file; the items, where it is a list. JSON is read as YAML, which it is part of.
 * @throws FormatError
 */
export const readParts = (text: string, ...path: string[]): Part[] => {
  const lineCounter = new LineCounter()
  const lineAt = (offset: number | undefined) => lineCounter.linePos(offset ?? 0).line
  const parsed = parseAllDocuments(text.replace(/^\ufeff/, ''), { lineCounter, prettyErrors: false, schema: 'core', merge: true })
  return [...parsed].filter(isDocument).flatMap((document: Document.Parsed) => {
    const [error] = document.errors
    if (error) throw new FormatError(lineAt(error.pos[0]), error.message)
    let node: unknown = target(document.contents, document)
    for (const name of path) node = isCollection(node) ? target(node.get(name, true), document) : undefined
    return (isSeq(node) ? node.items : node ? [node] : []).map(item => {
      try {
        return { value: (item as Node).toJS(document), line: lineAt((item as Node).range?.[0]) }
      } catch (error) {
        throw new FormatError(lineAt((item as Node).range?.[0]), (error as Error).message)
      }
    })
  })
}

const target = (node: unknown, document: Document) => (isAlias(node) ? node.resolve(document) : node)
