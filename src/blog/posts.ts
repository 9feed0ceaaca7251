/** What is written here: src/blog/posts/*.md, made into posts.json by scripts/posts.ts. */
import all from './posts.json' with { type: 'json' }

export type Post = {
  slug: string
  title: string
  description: string
  author: string
  tags: string[]
  /** ISO 8601. */
  published_at: string
  /** Markdown. */
  content: string
  /** The same, sanitised. */
  html: string
}

/** Newest first. */
export const posts: readonly Post[] = all
