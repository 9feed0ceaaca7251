/** The blog: posts as JSON and RSS, and the sanitising of Markdown. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SaxesParser, type SaxesTagNS } from 'saxes'
import t from 'tap'
import { htmlOf, readPost, readPosts } from '../../scripts/posts.ts'
import { posts } from '../../src/blog/posts.ts'
import { rss } from '../../src/blog/rss.ts'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const front = (fields: Record<string, string> = {}) => {
  const members = { title: 'A title', description: 'What it is about', author: 'Ada', tags: '[one]', published_at: '2030-01-02', ...fields }
  return `---\n${Object.entries(members)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')}---\n`
}

// Routes ------------------------------------------------------------------------------------------------------------------------------

t.test('lists posts publicly, newest first, in pages', async t => {
  const { as } = await build(t, undefined, { env: { BASE_URL: 'https://cue.example.com' } })
  const { get } = as(null)
  const { posts, ...page } = await get('/v1/blog/posts')
  t.same(page, { total: readPosts().length, limit: 20, offset: 0 })
  t.ok(posts.length >= 2)
  for (const post of posts) {
    t.same(Object.keys(post).sort(), ['author', 'description', 'published_at', 'slug', 'tags', 'title', 'url'])
    t.equal(post.url, `https://cue.example.com/v1/blog/posts/${post.slug}`)
  }
  const times = posts.map((post: { published_at: string }) => Date.parse(post.published_at))
  t.same(
    times,
    times.toSorted((a: number, b: number) => b - a)
  )
  exactly(t, await get('/v1/blog/posts?limit=1&offset=1'), { posts: [posts[1]], total: posts.length, limit: 1, offset: 1 })
  t.same((await get('/v1/blog/posts?offset=100')).posts, [])
})

t.test('returns a post as Markdown and HTML', async t => {
  const { as } = await build(t)
  const post = await as(null).get('/v1/blog/posts/what-pgcue-is')
  exactly(t, post, {
    slug: 'what-pgcue-is',
    title: 'What pgcue is',
    tags: ['added', 'release', 'overview'],
    content: /^pgcue runs things later/
  })
  t.match(post.html, /<h2>One database, no broker<\/h2>/)
  t.match(post.html, /<code class="language-sql">/)
})

t.test('returns pages to browsers only', async t => {
  const { as } = await build(t)
  const { call } = as(null)
  const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  for (const path of ['/v1/blog/posts', '/v1/blog/posts/what-pgcue-is']) {
    const shown = await call('GET', path, undefined, browser)
    exactly(t, shown, { status: 200, headers: { 'content-type': /^text\/html/ }, body: /<h1>/ }, path)
    for (const accept of ['*/*', 'application/json'])
      exactly(t, await call('GET', path, undefined, { accept }), { headers: { 'content-type': /^application\/json/ } }, path)
  }
  exactly(t, await call('GET', '/v1/blog/posts/none', undefined, browser), { status: 404, headers: { 'content-type': /^text\/html/ } })
})

t.test('responds with 404 to an unknown post', async t => {
  const { as } = await build(t)
  for (const slug of [
    'nothing',
    '__proto__',
    'constructor',
    '..%2Fposts.json',
    'WHAT-PGCUE-IS',
    'what-pgcue-is.md',
    '%3Cscript%3E',
    'x'.repeat(5000)
  ]) {
    exactly(t, await as(null).call('GET', `/v1/blog/posts/${slug}`), error('post_not_found', 404), slug.slice(0, 30))
  }
})

t.test('the RSS feed contains all posts with their metadata', async t => {
  const { as } = await build(t, undefined, { env: { BASE_URL: 'https://cue.example.com' } })
  const { status, headers, body } = await as(null).call('GET', '/v1/blog/rss')
  exactly(t, { status, headers }, { status: 200, headers: { 'content-type': 'application/rss+xml; charset=utf-8' } })
  const { channel, items } = parse(body)
  exactly(t, channel, {
    title: 'pgcue',
    link: 'https://cue.example.com/v1/blog/posts',
    description: /\w/,
    'atom:link': { href: 'https://cue.example.com/v1/blog/rss', rel: 'self', type: 'application/rss+xml' }
  })
  t.equal(items.length, readPosts().length)
  for (const item of items) {
    t.equal(item.link, item.guid)
    t.ok(URL.canParse(item.link!))
    t.match(
      item.pubDate,
      /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/
    )
  }
})

// RSS ---------------------------------------------------------------------------------------------------------------------------------

/** The feed, read strictly: XML with namespaces, and only elements that RSS 2.0 and the three known namespaces have, in their places. */
const parse = (xml: string) => {
  const allowed: Record<string, string[]> = {
    '': ['rss'],
    rss: ['channel'],
    channel: ['title', 'link', 'description', 'language', 'atom:link', 'item'],
    item: ['title', 'link', 'guid', 'pubDate', 'dc:creator', 'category', 'description', 'content:encoded']
  }
  const spaces: Record<string, string> = {
    atom: 'http://www.w3.org/2005/Atom',
    content: 'http://purl.org/rss/1.0/modules/content/',
    dc: 'http://purl.org/dc/elements/1.1/'
  }
  const path: string[] = []
  const channel: Record<string, unknown> = {}
  const items: Record<string, string>[] = []
  let text = ''
  const parser = new SaxesParser({ xmlns: true })
  parser.on('error', error => {
    throw error
  })
  parser.on('opentag', ({ name, prefix, uri, attributes }: SaxesTagNS) => {
    const parent = path.at(-1) ?? ''
    if (!allowed[parent]?.includes(name)) throw new Error(`<${name}> within <${parent}>`)
    if (prefix && spaces[prefix] !== uri) throw new Error(`${prefix} is ${uri}`)
    if (name === 'rss' && attributes.version?.value !== '2.0') throw new Error('no RSS 2.0')
    if (name === 'item') items.push({})
    if (name === 'atom:link') channel[name] = Object.fromEntries(Object.values(attributes).map(({ name, value }) => [name, value]))
    path.push(name)
    text = ''
  })
  parser.on('text', value => {
    text += value
  })
  parser.on('closetag', ({ name }: SaxesTagNS) => {
    path.pop()
    if (path.at(-1) === 'item') items.at(-1)![name] = text
    else if (path.at(-1) === 'channel' && name !== 'item' && name !== 'atom:link') channel[name] = text
    text = ''
  })
  parser.write(xml).close()
  return { channel, items }
}

t.test('the feed remains valid XML whatever a post contains', async t => {
  const nasty = `<&>"' ]]> </item> &lt; <![CDATA[ 💥 \u2028 ${'\0\x08\x0b\x1f\uffff\ud800'} --> <?xml?>`
  const clean = nasty.toWellFormed().replace(/[\0-\x1f\uffff]/g, '')
  const post = {
    slug: 'x',
    title: nasty,
    description: nasty,
    author: nasty,
    tags: [nasty],
    published_at: '2030-01-02T00:00:00Z',
    content: '',
    html: nasty
  }
  const link = 'https://cue.example.com/?a=1&b="2"'
  const { channel, items } = parse(rss([post, post], { title: nasty, description: nasty, link, self: link, linkOf: () => link }))
  exactly(t, channel, { title: clean, description: clean, link, 'atom:link': { href: link } })
  t.equal(items.length, 2)
  t.same(items[0], {
    title: clean,
    link,
    guid: link,
    pubDate: 'Wed, 02 Jan 2030 00:00:00 GMT',
    'dc:creator': clean,
    category: clean,
    description: clean,
    'content:encoded': clean
  })
})

// Files -------------------------------------------------------------------------------------------------------------------------------

t.test('converts front matter and Markdown to a post', async t => {
  t.same(readPost('a-post-2', `${front()}\n# Hello\n\n*world*\n`), {
    slug: 'a-post-2',
    title: 'A title',
    description: 'What it is about',
    author: 'Ada',
    tags: ['one'],
    published_at: '2030-01-02T00:00:00.000Z',
    content: '# Hello\n\n*world*',
    html: '<h1>Hello</h1>\n<p><em>world</em></p>'
  })
  exactly(t, readPost('x', front({ published_at: '2030-01-02T10:00:00+02:00' }).replaceAll('\n', '\r\n')), {
    published_at: '2030-01-02T08:00:00.000Z',
    html: ''
  })
})

t.test('names an invalid file and what is wrong with it', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'pgcue-posts-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'a-post.md')
  for (const [text, message] of [
    ['# no front matter', /a-post\.md: .*front matter/],
    [front({ title: '""' }), /title/],
    [front({ title: '"two\\nlines"' }), /title/],
    [front({ description: '5' }), /description/],
    [front({ author: '[a]' }), /author/],
    [front({ tags: 'one' }), /tags/],
    [front({ tags: '[1]' }), /tags/],
    [front({ published_at: 'soon' }), /published_at/],
    [front({ published_at: '2030-13-45' }), /published_at/],
    [front({ layout: 'wide' }), /layout/],
    [front({ title: '"open' }), /a-post\.md/]
  ] as const) {
    writeFileSync(file, text)
    t.throws(() => readPosts(dir), { message }, text.slice(0, 40))
  }
  rmSync(file)
  writeFileSync(join(dir, 'Bad_Name.md'), front())
  t.throws(() => readPosts(dir), { message: /Bad_Name\.md/ })
})

t.test('removes scripts, styles, frames, forms and event handlers from posts', async t => {
  for (const [given, expected] of [
    ['<script>alert(1)</script>ok', 'ok'],
    ['<img src=x onerror=alert(1)>', '<img src="x" />'],
    ['<img src="http://x/y.png" alt="a">', '<img alt="a" />'],
    ['![a](https://x/y.png)', '<p><img src="https://x/y.png" alt="a" /></p>'],
    ['[a](javascript:alert(1))', '<p><a rel="nofollow noopener">a</a></p>'],
    ['[a](JaVaScRiPt:alert(1))', '<p><a rel="nofollow noopener">a</a></p>'],
    ['[a](&#x6A;avascript&colon;alert(1))', '<p><a rel="nofollow noopener">a</a></p>'],
    ['[a](data:text/html,<script>)', '<p><a rel="nofollow noopener">a</a></p>'],
    ['[a](//evil.example)', '<p><a rel="nofollow noopener">a</a></p>'],
    ['[a](https://x "t")', '<p><a href="https://x" title="t" rel="nofollow noopener">a</a></p>'],
    ['<iframe src="https://x"></iframe>', ''],
    ['<form action="/"><input name=a></form>', ''],
    ['<style>body{}</style>', ''],
    ['<p style="position:fixed" onclick="x()" class="y" id="z">a</p>', '<p>a</p>'],
    ['<svg><a xlink:href="javascript:alert(1)">a</a></svg>', '<p><a rel="nofollow noopener">a</a></p>'],
    ['<a href="https://x" target="_top">a</a>', '<p><a href="https://x" rel="nofollow noopener">a</a></p>'],
    ['`<b>`', '<p><code>&lt;b&gt;</code></p>']
  ] as const) {
    t.equal(htmlOf(given), expected, given)
  }
})

t.test('/ redirects to the dashboard, and /blog shows the posts', async t => {
  const { as, config } = await build(t)
  const { call } = as(null)
  const { status, headers } = await call('GET', '/', undefined, { accept: 'text/html' })
  t.same([status, headers.location], [302, `${config.baseUrl}/dashboard`])
  const blog = await call('GET', '/blog', undefined, { accept: 'text/html' })
  t.equal(blog.status, 200)
  t.match(blog.headers['content-type'], /^text\/html/)
  for (const { title, slug } of posts) t.ok(blog.body.includes(`/v1/blog/posts/${slug}`), title)
})
