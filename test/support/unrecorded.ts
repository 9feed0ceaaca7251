/**
 * Loaded before tap in each test process. tap would record every module that the process loads, with its source map, look whether a test
 * replaces it, which none does, and have the processes that it starts do the same. Its runner overrides the variable if .taprc sets it.
 */
import module, { syncBuiltinESMExports } from 'node:module'
import './bundled.ts'

const domain = new URL('domain.ts', import.meta.url).href
module.registerHooks({ resolve: (specifier, context, next) => next(specifier === 'async-hook-domain' ? domain : specifier, context) })

process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./'
module.registerHooks = () => ({ deregister: () => {} })
syncBuiltinESMExports()
delete process.env.NODE_OPTIONS // which .taprc sets to load this file, by a path that others don't find
