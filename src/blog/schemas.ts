/** The blog on the wire. */
import { Type } from 'typebox'
import { Listed, Page, Timestamp } from '../schemas.ts'

const post = {
  slug: Type.String(),
  title: Type.String(),
  description: Type.String(),
  author: Type.String(),
  tags: Type.Array(Type.String()),
  published_at: Timestamp,
  url: Type.String()
}

export const ListPosts = Type.Object(Page())
export const Posts = Type.Object({
  posts: Type.Array(Type.Object(post)),
  ...Listed
})
export const PostParams = Type.Object({ slug: Type.String() })
export const Post = Type.Object({
  ...post,
  content: Type.String({ description: 'Markdown.' }),
  html: Type.String({ description: '`content` as sanitised HTML.' })
})
