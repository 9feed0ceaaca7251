/** Blog posts. scripts/posts.ts generates posts.json from src/blog/posts/*.md. */
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
  /** `content` as sanitised HTML. */
  html: string
}

/** Newest first. */
export const posts: readonly Post[] = all
