/** The pages that the menus lead to. */
import type { Me } from '../../client/types.ts'
import type { IconName } from './ui/icon.tsx'

export type NavItem = { path: string; name: string; icon: IconName }
export const groups: { name: string; items: NavItem[] }[] = [
  {
    name: 'Watch',
    items: [
      { path: '/', name: 'Needs attention', icon: 'home' },
      { path: '/cues', name: 'Cues', icon: 'cue' },
      { path: '/executions', name: 'Executions', icon: 'list' },
      { path: '/inbox', name: 'Verification inbox', icon: 'inbox' },
      { path: '/approvals', name: 'Approvals', icon: 'approve' },
      { path: '/errors', name: 'Errors', icon: 'error' }
    ]
  },
  {
    name: 'Work',
    items: [
      { path: '/workers', name: 'Workers', icon: 'worker' },
      { path: '/destinations', name: 'Destinations', icon: 'webhook' },
      { path: '/alerts', name: 'Alerts', icon: 'alert' },
      { path: '/channels', name: 'Channels', icon: 'bell' },
      { path: '/operations', name: 'Operations', icon: 'replay' },
      { path: '/calendars', name: 'Calendars', icon: 'calendar' },
      { path: '/gates', name: 'Gates', icon: 'gate' }
    ]
  }
]
export const accountItems: NavItem[] = [
  { path: '/keys', name: 'Keys and secrets', icon: 'key' },
  { path: '/sessions', name: 'Sessions', icon: 'screen' },
  { path: '/usage', name: 'Usage and plan', icon: 'usage' },
  { path: '/audit', name: 'Audit log', icon: 'audit' },
  { path: '/settings', name: 'Settings', icon: 'settings' },
  { path: '/support', name: 'Support', icon: 'help' }
]
const operator: NavItem = { path: '/operator', name: 'Operator', icon: 'operator' }
export const groupsFor = ({ is_operator }: Me) => [...groups, ...(is_operator ? [{ name: 'Service', items: [operator] }] : [])]
export const itemsFor = (me: Me): NavItem[] => [...groupsFor(me).flatMap(({ items }) => items), ...accountItems]
