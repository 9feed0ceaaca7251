// Runs in the guide's pages: the theme chosen in the dashboard, and the search.
try {
  const theme = localStorage.getItem('pgcue-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {} // private windows may refuse

addEventListener('DOMContentLoaded', () => {
  const search = document.querySelector('search')
  const [input, found] = search.children
  search.hidden = false

  /** The sections of all pages, read when the search is first used. */
  let sections
  const load = () => {
    sections ??= fetch('search.json').then(response => response.json())
    return sections
  }

  const show = async () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    const matches = words.length > 0 ? rank(await load(), words) : []
    const isEmpty = words.length > 0 && matches.length === 0
    found.replaceChildren(
      ...matches.slice(0, 12).map(section => resultOf(section, words)),
      ...(isEmpty ? [element('p', 'Nothing found')] : [])
    )
  }

  const close = () => {
    input.value = ''
    found.replaceChildren()
  }
  input.addEventListener('focus', load, { once: true })
  input.addEventListener('input', show)
  found.addEventListener('click', close)
  addEventListener('click', ({ target }) => search.contains(target) || found.replaceChildren())
  addEventListener('keydown', event => {
    const { key, target } = event
    if (key === '/' && target !== input) input.focus()
    else if (key === 'Escape' && search.contains(target)) close()
    else if (key === 'Enter' && target === input) found.querySelector('a')?.click()
    else if (key === 'ArrowDown' && search.contains(target)) (target === input ? found.firstChild : target.nextSibling)?.focus()
    else if (key === 'ArrowUp' && found.contains(target)) (target.previousSibling ?? input).focus()
    else return
    event.preventDefault()
  })
})

/** Sections that contain all words, those with words in their heading first. */
const rank = (sections, words) => {
  const scored = sections.map(section => {
    const heading = `${section.title} ${section.heading}`.toLowerCase()
    const text = section.text.toLowerCase()
    const scores = words.map(word => (heading.includes(word) ? 10 : text.includes(word) ? 1 : 0))
    return { ...section, score: scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score) }
  })
  return scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
}

const resultOf = ({ slug, title, id, heading, text }, words) => {
  const link = element('a')
  link.href = id ? `${slug}#${id}` : slug
  const at = Math.max(0, ...words.map(word => text.toLowerCase().indexOf(word)))
  const start = at < 50 ? 0 : text.indexOf(' ', at - 50) + 1
  const excerpt = text.slice(start, text.lastIndexOf(' ', start + 150))
  link.append(element('b', heading), ...(id ? [element('span', title)] : []), element('p', `${start > 0 ? '…' : ''}${excerpt}…`))
  return link
}

const element = (name, text = '') => Object.assign(document.createElement(name), { textContent: text })
