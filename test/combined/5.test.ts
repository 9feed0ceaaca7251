import { runCombined } from '../support/combined.ts'

runCombined(5)
