/** Generates src/blog/posts.json from Markdown files with front matter, for `npm run generate`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Marked } from 'marked'
import sanitize from 'sanitize-html'
import { parse } from 'yaml'
import type { Post } from '../src/blog/posts.ts'

const postsDir = fileURLToPath(new URL('../src/blog/posts', import.meta.url))
const markdown = new Marked({ gfm: true })

/** Reads all posts of a directory, newest first. A post's slug is its file name. @throws {Error} naming the file and the problem */
export const readPosts = (dir = postsDir): Post[] =>
  readdirSync(dir)
    .filter(name => name.endsWith('.md'))
    .map(name => {
      try {
        return readPost(name.slice(0, -3), readFileSync(join(dir, name), 'utf8'))
      } catch (error) {
        throw new Error(`${name}: ${(error as Error).message}`, { cause: error })
      }
    })
    .sort((a, b) => b.published_at.localeCompare(a.published_at) || a.slug.localeCompare(b.slug))

/** Parses a post: front matter in YAML between two lines of `---`, then Markdown. */
export const readPost = (slug: string, text: string): Post => {
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(slug))
    throw new Error('the name must consist of lower-case letters and digits, separated by hyphens')
  const [, head, content] = /^---\r?\n(.*?)\r?\n---\r?\n(.*)$/s.exec(text) ?? []
  if (head === undefined || content === undefined) throw new Error('front matter between two --- lines is missing')
  const { title, description, author, tags, published_at, ...others } = parse(head) as Record<string, unknown>
  const unknown = Object.keys(others)
  if (unknown.length) throw new Error(`unknown front matter: ${unknown.join(', ')}`)
  const date = new Date(String(published_at))
  if (!/^\d{4}-\d\d-\d\d/.test(String(published_at)) || Number.isNaN(date.getTime())) throw new Error('published_at must be a date')
  if (!Array.isArray(tags)) throw new Error('tags must be a list')
  return {
    slug,
    title: line('title', title),
    description: line('description', description),
    author: line('author', author),
    tags: tags.map(tag => line('tags', tag)),
    published_at: date.toISOString(),
    content: content.trim(),
    html: htmlOf(content)
  }
}

const line = (name: string, value: unknown): string => {
  if (typeof value !== 'string' || !/^\S.*$/.test(value.trim())) throw new Error(`${name} must be a line of text`)
  return value.trim()
}

/** Renders Markdown to sanitised HTML: no scripts, styles, frames or forms, and links only to http, https and mailto. */
export const htmlOf = (content: string): string =>
  sanitize(markdown.parse(content, { async: false }), {
    allowedTags: `h1 h2 h3 h4 h5 h6 p br hr blockquote ul ol li pre code em strong del a img table thead tbody tr th td`.split(' '),
    allowedAttributes: {
      a: ['href', 'title', 'rel'],
      img: ['src', 'alt', 'title'],
      code: ['class'],
      pre: ['tabindex'],
      th: ['align'],
      td: ['align'],
      ol: ['start']
    },
    allowedClasses: { code: ['language-*'] },
    allowedSchemes: ['https', 'http', 'mailto'],
    allowedSchemesByTag: { img: ['https'] },
    allowProtocolRelative: false,
    transformTags: {
      a: sanitize.simpleTransform('a', { rel: 'nofollow noopener' }),
      // Wide code scrolls, which the keyboard can only do if it is focusable.
      pre: sanitize.simpleTransform('pre', { tabindex: '0' })
    }
  }).trim()

/** Returns the content of src/blog/posts.json. */
export const postsFile = (): string => `${JSON.stringify(readPosts(), null, 2)}\n`
