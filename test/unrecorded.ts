/**
 * Loaded before tap in each test process. tap would record every module that the process loads, with its source map, and have the processes
 * that it starts do the same. Its runner overrides this variable if .taprc sets it.
 */
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./'
delete process.env.NODE_OPTIONS // which .taprc sets to load this file, by a path that others don't find
