/** Posts as RSS 2.0. */
import type { Post } from './posts.ts'

type Channel = { title: string; description: string; link: string; self: string; linkOf: (post: Post) => string }

export const rss = (posts: readonly Post[], { title, description, link, self, linkOf }: Channel): string =>
  `<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel>
<title>${text(title)}</title>
<link>${text(link)}</link>
<description>${text(description)}</description>
<language>en</language>
<atom:link href="${text(self)}" rel="self" type="application/rss+xml"/>
${posts.map(post => item(post, linkOf(post))).join('\n')}
</channel>
</rss>
`

const item = (post: Post, link: string): string =>
  `<item>
<title>${text(post.title)}</title>
<link>${text(link)}</link>
<guid isPermaLink="true">${text(link)}</guid>
<pubDate>${new Date(post.published_at).toUTCString()}</pubDate>
<dc:creator>${text(post.author)}</dc:creator>
${post.tags.map(tag => `<category>${text(tag)}</category>\n`).join('')}<description>${text(post.description)}</description>
<content:encoded>${text(post.html)}</content:encoded>
</item>`

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for XML and removes characters that XML cannot contain. */
const text = (value: string): string =>
  value
    .toWellFormed()
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '')
    .replace(/[&<>"]/g, character => entities[character]!)
