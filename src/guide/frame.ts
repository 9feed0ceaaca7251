/** The frame of the guide's pages, in the dashboard's design. */
import { Html, html } from '../pages/html.ts'
import { logo } from '../pages/logo.ts'
import { contents, type GuidePage } from './pages.ts'

/** The pages load only what is in this folder, and have no inline scripts or styles. */
export const headers = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join('; ')
}

/** Links between pages are relative; `root` is the path of BASE_URL. */
export const frame = (page: GuidePage, pages: readonly GuidePage[], root: string): string => {
  const n = pages.indexOf(page)
  const [before, after] = [pages[n - 1], pages[n + 1]]
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${page.summary}">
<title>${page.title} – pgcue guide</title>
<link rel="icon" href="${root}/favicon.svg" type="image/svg+xml">
<link rel="alternate" href="${page.slug}.md" type="text/markdown">
<link rel="stylesheet" href="style.css">
<script src="guide.js"></script>
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header class="top">
<a class="brand" href="${root}/dashboard">${new Html(logo)}pgcue</a>
<nav aria-label="Site"><a href="${root}/dashboard">Dashboard</a><a href="quickstart" aria-current="true">Guide</a><a href="${root}/docs">API reference</a></nav>
<search hidden><input type="search" aria-label="Search the guide" placeholder="Search the guide" autocomplete="off" spellcheck="false"><div class="found" aria-live="polite"></div></search>
</header>
<div class="columns">
<main id="text">
<a class="to-contents" href="#contents">Contents</a>
<article>
${new Html(page.html)}</article>
<footer>
<p class="turn">${before && html`<a href="${before.slug}">← ${before.title}</a>`}${after && html`<a class="after" href="${after.slug}">${after.title} →</a>`}</p>
<p class="soft"><a href="${page.slug}.md">This page as Markdown</a>. For agents: <a href="${root}/llms.txt">llms.txt</a>, <a href="${root}/llms-full.txt">llms-full.txt</a>.</p>
</footer>
</main>
<nav id="contents" aria-label="Guide">
${Object.entries(contents).map(
  ([group, slugs]) => html`<h2>${group}</h2>
<ul>
${slugs.map(slug => entry(pages.find(other => other.slug === slug)!, page))}</ul>
`
)}</nav>
</div>
</body>
</html>
`.text
}

/** A page in the list of contents; the current one with its headings. */
const entry = ({ slug, title, sections }: GuidePage, current: GuidePage): Html =>
  slug === current.slug
    ? html`<li><a href="${slug}" aria-current="page">${title}</a><ul>${sections
        .slice(1)
        .map(({ id, heading }) => html`<li><a href="#${id}">${heading}</a></li>`)}</ul></li>
`
    : html`<li><a href="${slug}">${title}</a></li>
`
