// Runs in the page: what a person with poor sight, a keyboard or a small screen would miss on it, as a list.
;(() => {
  const faults = []
  const say = (isFault, fault) => isFault && faults.push(fault)
  const root = document.documentElement
  const visible = [...document.querySelectorAll('body *')].filter(element => element.checkVisibility())
  const name = element => `<${element.tagName.toLowerCase()}> ${element.textContent.trim().slice(0, 40)}`

  say(!root.lang, 'no language')
  say(!document.title, 'no title')
  say(document.querySelectorAll('h1').length !== 1, 'not one heading')
  say(!document.querySelector('main'), 'no main part')
  say(root.scrollWidth > innerWidth, `scrolls sideways: ${root.scrollWidth} of ${innerWidth}`)
  for (const input of document.querySelectorAll('input:not([type=hidden])')) say(!input.labels.length, 'a field without label')
  for (const element of document.querySelectorAll('[aria-describedby]')) {
    for (const id of element.getAttribute('aria-describedby').split(' ')) say(!document.getElementById(id), `nothing is called ${id}`)
  }
  for (const element of visible.filter(element => element.matches('button, input'))) {
    const { width, height } = element.getBoundingClientRect()
    say(Math.min(width, height) < 44, `too small to touch: ${name(element)} ${width} × ${height}`)
    element.focus()
    const { outlineStyle, outlineWidth } = getComputedStyle(element)
    say(element.matches(':focus-visible') && (outlineStyle === 'none' || outlineWidth === '0px'), `focus cannot be seen: ${name(element)}`)
    element.blur()
  }

  // Contrast by the formula of WCAG 2. The background is the first one that is painted behind the text.
  const channels = color => (color.match(/[\d.]+/g) ?? []).map(Number)
  const luminance = color => {
    const [r, g, b] = channels(color)
      .map(value => value / 255)
      .map(value => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const background = element => {
    if (!element) return 'rgb(255, 255, 255)'
    const { backgroundColor } = getComputedStyle(element)
    return channels(backgroundColor)[3] === 0 ? background(element.parentElement) : backgroundColor
  }
  for (const element of visible) {
    if (![...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim())) continue
    const [light, dark] = [luminance(getComputedStyle(element).color), luminance(background(element))].sort((a, b) => b - a)
    const contrast = (light + 0.05) / (dark + 0.05)
    say(contrast < 4.5, `contrast of ${contrast.toFixed(1)}: ${name(element)}`)
  }
  return faults
})()
