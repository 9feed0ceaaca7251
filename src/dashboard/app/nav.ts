/** The pages that the menu leads to. */
import type { IconName } from './ui/icon.ts'

export type NavItem = { path: string; name: string; icon: IconName; key: string }
export const groups: { name: string; items: NavItem[] }[] = [
  {
    name: 'Watch',
    items: [
      { path: '/', name: 'Needs attention', icon: 'home', key: 'n' },
      { path: '/cues', name: 'Cues', icon: 'cue', key: 'c' },
      { path: '/executions', name: 'Executions', icon: 'list', key: 'e' },
      { path: '/inbox', name: 'Verification inbox', icon: 'inbox', key: 'v' }
    ]
  },
  {
    name: 'Work',
    items: [
      { path: '/workers', name: 'Workers', icon: 'worker', key: 'w' },
      { path: '/alerts', name: 'Alerts', icon: 'alert', key: 'a' }
    ]
  },
  {
    name: 'Account',
    items: [
      { path: '/keys', name: 'Keys', icon: 'key', key: 'y' },
      { path: '/usage', name: 'Usage and plan', icon: 'usage', key: 'u' },
      { path: '/audit', name: 'Audit log', icon: 'audit', key: 'l' },
      { path: '/settings', name: 'Settings', icon: 'settings', key: 's' }
    ]
  }
]
export const items: NavItem[] = groups.flatMap(group => group.items)
