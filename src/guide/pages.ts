/** The pages of the guide: Markdown files in this folder, and their HTML. */
import { readFileSync } from 'node:fs'
import { Marked, type Token, type Tokens } from 'marked'
import { posts } from '../blog/posts.ts'
import { escapeHtml } from '../pages/html.ts'

/** Slugs in reading order, by the headings of the list of contents. */
export const contents = {
  'Get started': ['quickstart', 'concepts', 'agents', 'recipes', 'coming-from'],
  'Use it': [
    'schedules',
    'delivery',
    'workers',
    'outcomes',
    'chains',
    'approvals',
    'templates',
    'gates',
    'alerts',
    'events',
    'files',
    'bulk'
  ],
  'Run it': ['self-hosting', 'scaling', 'limits', 'benchmarks'],
  'Look it up': ['errors', 'changes']
}

export type GuidePage = {
  slug: string
  title: string
  /** The first paragraph, as plain text. */
  summary: string
  markdown: string
  html: string
  /** The text before the first heading has the page's title, and no id. */
  sections: { id: string; heading: string; text: string }[]
}

/** Reads and renders all pages, in reading order. */
export const readPages = (): GuidePage[] =>
  Object.values(contents)
    .flat()
    .map(slug => {
      const text = readFileSync(new URL(`${slug}.md`, import.meta.url), 'utf8')
      return readPage(slug, slug === 'changes' ? text + changes() : text)
    })

const readPage = (slug: string, markdown: string): GuidePage => {
  const tokens = renderer.lexer(markdown)
  const [title, summary] = tokens.filter(({ type }) => type === 'heading' || type === 'paragraph').map(token => plain(token.raw))
  return { slug, title: title!, summary: summary!, markdown, html: renderer.parser(tokens), sections: sectionsOf(title!, tokens) }
}

/** A post with one of these tags is a change that users notice. */
const kinds = ['added', 'changed', 'fixed', 'security']

const changes = (): string =>
  posts
    .flatMap(({ slug, title, description, tags, published_at }) =>
      tags
        .filter(tag => kinds.includes(tag))
        .map(
          tag =>
            `\n## ${published_at.slice(0, 10)}: ${title}\n\n**${tag[0]!.toUpperCase()}${tag.slice(1)}.** ${description} [Read more](../../v1/blog/posts/${slug}).\n`
        )
    )
    .join('')

const sectionsOf = (title: string, tokens: Token[]): GuidePage['sections'] => {
  const sections = [{ id: '', heading: title, text: '' }]
  for (const token of tokens) {
    if (token.type === 'heading' && token.depth === 2) {
      const heading = plain(token.raw)
      sections.push({ id: idOf(heading), heading, text: '' })
    } else if (token.type !== 'html' && !(token.type === 'heading' && token.depth === 1)) sections.at(-1)!.text += `${plain(token.raw)} `
  }
  return sections
}

/** Removes Markdown's marks and the targets of links. */
const plain = (markdown: string): string =>
  markdown
    .replace(/\]\([^)]*\)/g, '')
    .replace(/^```.*$|^\|[-| ]*\|$|^ *[#>-]+ |[`*|[]/gm, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ (?=[.,:;)])/g, '')
    .trim()

/** The id of a heading, as GitHub makes it. */
const idOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

/** Comments of code, by language. */
const comments: Record<string, RegExp> = { ts: /(^|\s)\/\/ .*$/gm, sql: /(^|\s)-- .*$/gm }
const hashComment = /(^|\s)# .*$/gm

const renderer = new Marked({
  renderer: {
    heading({ tokens, text, depth }) {
      const content = this.parser.parseInline(tokens)
      const id = idOf(plain(text))
      return depth === 1 ? `<h1>${content}</h1>\n` : `<h${depth} id="${id}"><a href="#${id}">${content}</a></h${depth}>\n`
    },
    link({ href, tokens }) {
      return `<a href="${escapeHtml(href.replace(/^([\w-]+)\.md(?=#|$)/, '$1'))}">${this.parser.parseInline(tokens)}</a>`
    },
    code({ text, lang = '' }) {
      const [language = '', file] = lang.split(' ')
      const isPlain = language === 'text' || language === 'json'
      const code = escapeHtml(text)
      const shown = isPlain ? code : code.replace(comments[language] ?? hashComment, comment => `<i>${comment}</i>`)
      // Wide code scrolls, which the keyboard can only do if it is focusable.
      const block = `<pre tabindex="0"><code>${shown}</code></pre>\n`
      return file ? `<figure><figcaption>${escapeHtml(file)}</figcaption>${block}</figure>\n` : block
    },
    table({ header, rows }) {
      const labels = header.map(({ text }) => escapeHtml(plain(text)))
      const row = (cells: Tokens.TableCell[], name: 'th' | 'td') =>
        `<tr>${cells.map(({ tokens }, n) => `<${name} data-label="${labels[n]}">${this.parser.parseInline(tokens)}</${name}>`).join('')}</tr>\n`
      // On a phone, the cells of a row of several columns are below each other, with their labels.
      const table = header.length > 2 ? '<table class="stacked">' : '<table>'
      return `${table}<thead>${row(header, 'th')}</thead><tbody>${rows.map(cells => row(cells, 'td')).join('')}</tbody></table>\n`
    },
    html: ({ text }) => (text.startsWith('<!--') ? '' : text)
  }
})
