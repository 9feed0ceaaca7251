/** Blog pages for browsers. */

import { Html, html } from '../pages/html.ts'
import type { Page } from '../pages/page.ts'
import type { Post } from './posts.ts'

const day = (date: string): string => new Date(date).toLocaleDateString('en-GB', { timeZone: 'UTC', dateStyle: 'long' })

export const postPage = ({ title, author, published_at, html: text }: Post, { listUrl }: { listUrl: string }): Page => ({
  title,
  isText: true,
  body: html`<p class="soft">${author}, <time datetime="${published_at}">${day(published_at)}</time></p>
<article>
${new Html(text)}
</article>
<p><a href="${listUrl}">All posts</a></p>`
})

export const postList = (posts: readonly Post[], { urlOf, feedUrl }: { urlOf: (post: Post) => string; feedUrl: string }): Page => ({
  title: 'What is new',
  isText: true,
  body: html`${posts.map(
    post => html`<h2><a href="${urlOf(post)}">${post.title}</a></h2>
<p>${post.description}</p>
<p class="soft"><time datetime="${post.published_at}">${day(post.published_at)}</time></p>
`
  )}<p><a href="${feedUrl}" type="application/rss+xml">Feed</a></p>`
})

export const noPost = ({ listUrl }: { listUrl: string }): Page => ({
  title: 'Post not found',
  body: html`<p><a href="${listUrl}">All posts</a></p>`
})
