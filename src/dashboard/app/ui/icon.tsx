/** Icons of 24 units, drawn with lines. */

const paths = {
  home: 'M4 11.5 12 5l8 6.5M6.5 10v9h11v-9',
  cue: 'M12 4a8 8 0 1 0 8 8M12 8v4l3 2M19 5.5h.01',
  list: 'M4 7h16M4 12h16M4 17h10',
  inbox: 'M4 13l2.5-7h11L20 13v5.5H4zM4 13h5l1 2.5h4l1-2.5h5',
  approve: 'M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M8.5 12.2l2.5 2.5 4.5-5',
  worker: 'M9 9h6v6H9zM6 6h12v12H6zM9 3v3M15 3v3M9 18v3M15 18v3M3 9h3M3 15h3M18 9h3M18 15h3',
  error: 'M8.5 4h7L20 8.5v7L15.5 20h-7L4 15.5v-7zM9.5 9.5l5 5M14.5 9.5l-5 5',
  operator: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
  alert: 'M12 4 3.5 19h17zM12 10v4M12 16.8h.01',
  bell: 'M6 17h12l-1.5-2.5v-4a4.5 4.5 0 0 0-9 0v4zM10.5 19.5h3',
  gate: 'M5 4v16M19 4v16M5 8h5M14 8h5M5 16h5M14 16h5',
  calendar: 'M5 6.5h14v13H5zM5 10.5h14M8.5 4v4M15.5 4v4M8.5 14h.01M12 14h.01M15.5 14h.01',
  screen: 'M4 5.5h16v10.5H4zM9 19.5h6M12 16v3.5',
  key: 'M14.5 9.5m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0M11.3 12.7 4 20M6.5 17.5 9 20',
  usage: 'M5 19V11M12 19V5M19 19v-6',
  audit: 'M6 4h9l3 3v13H6zM9 10h6M9 13.5h6M9 17h3',
  settings: 'M12 9a3 3 0 1 0 0 6a3 3 0 0 0 0-6M12 3.5v3M12 17.5v3M3.5 12h3M17.5 12h3M6 6l2 2M16 16l2 2M18 6l-2 2M8 16l-2 2',
  search: 'M11 5a6 6 0 1 0 0 12a6 6 0 0 0 0-12M15.5 15.5 20 20',
  plus: 'M12 5v14M5 12h14',
  play: 'M8 5.5v13l10.5-6.5z',
  pause: 'M8.5 6v12M15.5 6v12',
  edit: 'M5 19h3.5L19 8.5 15.5 5 5 15.5zM13.5 7l3.5 3.5',
  trash: 'M5 7h14M9.5 7V5h5v2M7 7l1 12.5h8L17 7M10.5 10.5v6M13.5 10.5v6',
  replay: 'M6 12a6.5 6.5 0 1 1 2 4.7M6 17v-3.5h3.5',
  copy: 'M9 9h10v10H9zM15 9V5H5v10h4',
  check: 'M5.5 12.5 10 17l8.5-9.5',
  close: 'M6.5 6.5l11 11M17.5 6.5l-11 11',
  right: 'M9.5 5.5 16 12l-6.5 6.5',
  back: 'M14.5 5.5 8 12l6.5 6.5',
  menu: 'M4 7h16M4 12h16M4 17h16',
  out: 'M14 5h5v14h-5M14 12H4M7.5 8.5 4 12l3.5 3.5',
  external: 'M10 5H5v14h14v-5M14 4.5h5.5V10M19 5l-8.5 8.5',
  sun: 'M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1 1M17.4 17.4l1 1M18.4 5.6l-1 1M6.6 17.4l-1 1',
  moon: 'M19 14.5A7.5 7.5 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5',
  user: 'M12 5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 0 0 0-7M5 20c.6-4 3.4-5.5 7-5.5s6.4 1.5 7 5.5',
  book: 'M5 5h5.5q1.5 0 1.5 1.5V19q0-1.5-1.5-1.5H5zM19 5h-5.5Q12 5 12 6.5V19q0-1.5 1.5-1.5H19z',
  webhook: 'M5 12h12M13 7.5 17.5 12 13 16.5M20 6v12',
  stop: 'M7 7h10v10H7z',
  help: 'M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M9.8 9.8a2.3 2.3 0 1 1 3.2 2.3c-.7.3-1 .8-1 1.6M12 16.4h.01'
} as const
export type IconName = keyof typeof paths

export const Icon = ({ name, size = 20 }: { name: IconName; size?: number }) => (
  <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={paths[name]} />
  </svg>
)

const line = { fill: 'none', stroke: '#fff', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' } as const
/** The logo, as in /favicon.svg. */
export const Logo = ({ size = 28 }: { size?: number }) => (
  <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <rect width={32} height={32} rx={8} fill="#3f3fd1" />
    <path d="M16 6.5a9.5 9.5 0 1 0 9.5 9.5" {...line} stroke-width={3} />
    <path d="M16 11v5l3.2 2.4" {...line} stroke-width={2.6} />
    <circle cx={23} cy={9} r={3.4} fill="#ffc53d" />
  </svg>
)
