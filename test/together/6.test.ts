import { runTogether } from '../together.ts'

runTogether(6)
