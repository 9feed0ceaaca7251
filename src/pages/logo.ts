/** The logo: a cue mark, the dot in the corner of a film frame that announces the change of reels, inside a clock's ring. */
import { fixed } from '../http/fixed.ts'

export const logo = `<svg viewBox="0 0 32 32" aria-hidden="true">
<rect width="32" height="32" rx="8" fill="#3f3fd1"/>
<path d="M16 6.5a9.5 9.5 0 1 0 9.5 9.5" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/>
<path d="M16 11v5l3.2 2.4" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/>
<circle cx="23" cy="9" r="3.4" fill="#ffc53d"/>
</svg>`

export const favicon = fixed(logo.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" '))
