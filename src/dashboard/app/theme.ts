/** Light or dark: as the system has it, unless chosen. */
import { effect, signal } from '@preact/signals'
import { store, stored } from './time.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]
const system = matchMedia('(prefers-color-scheme: dark)')
export const theme = signal<Theme>(themes.find(name => name === stored('pgcue-theme')) ?? 'system')

effect(() => {
  const { dataset } = document.documentElement
  if (theme.value === 'system') delete dataset.theme
  else dataset.theme = theme.value
})
export const setTheme = (next: Theme): void => {
  store('pgcue-theme', next)
  theme.value = next
}
/** Whether it is dark now. */
export const isDark = (): boolean => (theme.value === 'system' ? system.matches : theme.value === 'dark')
/** Changes to the other of what is shown now. */
export const toggleTheme = (): void => setTheme(isDark() ? 'light' : 'dark')
