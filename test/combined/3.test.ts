import { runCombined } from '../combined.ts'

runCombined(3)
