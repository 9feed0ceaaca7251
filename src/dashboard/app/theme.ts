/** Light or dark: as the system has it, unless chosen. */
import { createStore } from './store.ts'
import { store, stored } from './time.ts'

export type Theme = 'light' | 'dark' | 'system'
const theme = createStore<Theme>((['light', 'dark'] as const).find(one => one === stored('pgcue-theme')) ?? 'system')

const apply = () => {
  const { dataset } = document.documentElement
  if (theme.get() === 'system') delete dataset.theme
  else dataset.theme = theme.get()
}
apply()

export const useTheme = (): Theme => theme.use()
export const setTheme = (next: Theme): void => {
  store('pgcue-theme', next)
  theme.set(next)
  apply()
}
const isDark = (chosen: Theme): boolean => (chosen === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : chosen === 'dark')
/** Whether it is dark now. */
export const useDark = (): boolean => isDark(useTheme())
/** Changes to the other of what is shown now. */
export const toggleTheme = (): void => setTheme(isDark(theme.get()) ? 'light' : 'dark')
