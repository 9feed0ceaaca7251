import { runCombined } from '../combined.ts'

runCombined(2)
