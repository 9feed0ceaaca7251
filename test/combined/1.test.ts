import { runCombined } from '../combined.ts'

runCombined(1)
