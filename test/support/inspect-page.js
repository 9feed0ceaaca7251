// Runs in the page: what axe doesn't check. `least` is the size of what can be touched.
globalThis.inspectPage = least => {
  const faults = []
  const say = (isFault, fault) => isFault && faults.push(fault)
  const root = document.documentElement
  const name = element => `<${element.tagName.toLowerCase()}> ${element.textContent.trim().slice(0, 40)}`

  say(root.scrollWidth > innerWidth, `scrolls sideways: ${root.scrollWidth} of ${innerWidth}`)
  for (const element of document.querySelectorAll('button, input:not([type=hidden])')) {
    if (element.checkVisibility({ visibilityProperty: true }) === false) continue
    const target = element.matches('[type=checkbox], [type=radio]') ? element.labels[0] : element
    const { width, height } = target.getBoundingClientRect()
    say(Math.min(width, height) < least, `too small to touch: ${name(element)} ${width} × ${height}`)
    element.focus()
    const { outlineStyle, outlineWidth } = getComputedStyle(element)
    say(element.matches(':focus-visible') && (outlineStyle === 'none' || outlineWidth === '0px'), `focus cannot be seen: ${name(element)}`)
    element.blur()
  }
  return faults
}
