/** The pages that the menu leads to. */
import type { Me } from '../../client/types.ts'
import type { IconName } from './ui/icon.tsx'

export type NavItem = { path: string; name: string; icon: IconName }
const groups: { name: string; items: NavItem[]; isOperators?: true }[] = [
  {
    name: 'Watch',
    items: [
      { path: '/', name: 'Needs attention', icon: 'home' },
      { path: '/cues', name: 'Cues', icon: 'cue' },
      { path: '/executions', name: 'Executions', icon: 'list' },
      { path: '/inbox', name: 'Verification inbox', icon: 'inbox' },
      { path: '/errors', name: 'Errors', icon: 'error' }
    ]
  },
  {
    name: 'Work',
    items: [
      { path: '/workers', name: 'Workers', icon: 'worker' },
      { path: '/destinations', name: 'Destinations', icon: 'webhook' },
      { path: '/alerts', name: 'Alerts', icon: 'alert' },
      { path: '/operations', name: 'Operations', icon: 'replay' },
      { path: '/calendars', name: 'Calendars', icon: 'calendar' }
    ]
  },
  {
    name: 'Account',
    items: [
      { path: '/keys', name: 'Keys', icon: 'key' },
      { path: '/sessions', name: 'Sessions', icon: 'screen' },
      { path: '/usage', name: 'Usage and plan', icon: 'usage' },
      { path: '/audit', name: 'Audit log', icon: 'audit' },
      { path: '/settings', name: 'Settings', icon: 'settings' },
      { path: '/support', name: 'Support', icon: 'help' }
    ]
  },
  { name: 'Service', isOperators: true, items: [{ path: '/operator', name: 'Operator', icon: 'operator' }] }
]
export const groupsFor = ({ is_operator }: Me) => groups.filter(({ isOperators }) => is_operator || !isOperators)
export const itemsFor = (me: Me): NavItem[] => groupsFor(me).flatMap(group => group.items)
