/** The blog as JSON, RSS and pages; and redirects from `/` and `/blog`. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { asksForPage } from '../pages/forms.ts'
import { sendPage } from '../pages/page.ts'
import { noPost, postList, postPage } from './page.ts'
import { type Post, posts } from './posts.ts'
import { rss } from './rss.ts'
import * as schemas from './schemas.ts'

const config = { public: true, anyQuery: asksForPage } as const
const cached = 'public, max-age=300'

const routes: FastifyPluginAsyncTypebox = async app => {
  const base = `${app.config.baseUrl}/v1/blog`
  const listUrl = `${base}/posts`
  const feedUrl = `${base}/rss`
  const urlOf = ({ slug }: Post): string => `${listUrl}/${slug}`
  const shown = (post: Post) => ({ ...post, published_at: new Date(post.published_at), url: urlOf(post) })

  app.get(
    '/v1/blog/posts',
    {
      config,
      schema: {
        operationId: 'listPosts',
        summary: 'List posts, newest first',
        description: 'Browsers get an HTML page.',
        querystring: schemas.ListPosts,
        response: { 200: schemas.Posts }
      }
    },
    async (request, reply) => {
      const { limit, offset } = request.query
      if (asksForPage(request)) return sendPage(reply, 200, postList(posts.slice(offset, offset + limit), { urlOf, feedUrl }))
      return { posts: posts.slice(offset, offset + limit).map(shown), total: posts.length, limit, offset }
    }
  )

  const hidden = { config, schema: { hide: true } }
  app.get('/', hidden, async (_, reply) => reply.redirect(`${app.config.baseUrl}/dashboard`))
  app.get('/blog', hidden, async (_, reply) => sendPage(reply, 200, postList(posts, { urlOf, feedUrl })))

  app.get(
    '/v1/blog/posts/:slug',
    {
      config: { ...config, errors: ['post_not_found'] },
      schema: {
        operationId: 'getPost',
        summary: 'Get a post',
        description: 'Browsers get an HTML page.',
        params: schemas.PostParams,
        response: { 200: schemas.Post }
      }
    },
    async (request, reply) => {
      const post = posts.find(({ slug }) => slug === request.params.slug)
      if (asksForPage(request)) return post ? sendPage(reply, 200, postPage(post, { listUrl })) : sendPage(reply, 404, noPost({ listUrl }))
      if (!post) throw new ApiError('post_not_found', 'Post not found. GET /v1/blog/posts lists all posts.')
      return shown(post)
    }
  )

  app.get(
    '/v1/blog/rss',
    {
      config,
      schema: {
        operationId: 'getRss',
        summary: 'Get the posts as RSS 2.0',
        description: 'The same posts as `GET /v1/blog/posts`.',
        response: { 200: { content: { 'application/rss+xml': { schema: Type.String() } } } }
      }
    },
    async (_, reply) =>
      reply
        .type('application/rss+xml; charset=utf-8')
        .header('cache-control', cached)
        .send(
          rss(posts.slice(0, 20), {
            title: 'pgcue',
            description: 'What is new in pgcue, the scheduling service in which Postgres is the scheduler.',
            link: listUrl,
            self: feedUrl,
            linkOf: urlOf
          })
        )
  )
}

export default routes
