/**
 * Replaces the package by which tap finds the test of an error that nothing catches. That package follows every promise, timer and socket of the
 * process with hooks, which takes a tenth of the time of all tests; Node itself passes on what runs in a scope.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'

type OnError = (error: unknown, type: string) => void
type Test = { parent?: Test; hookDomain?: Domain }

const tests = new AsyncLocalStorage<Test>()
let root: Domain | undefined

export class Domain {
  readonly onerror: OnError
  isDestroyed = false

  constructor(onerror: OnError) {
    this.onerror = onerror
    root ??= this // that of tap itself
  }

  destroy(): void {
    this.isDestroyed = true
  }
}

// tap's scopes have their test as a member.
const { runInAsyncScope } = AsyncResource.prototype
AsyncResource.prototype.runInAsyncScope = function (
  this: AsyncResource & { test?: Test },
  run: () => unknown,
  self?: unknown,
  ...args: never[]
) {
  const { test } = this
  const apply = () => Reflect.apply(run, self, args)
  return runInAsyncScope.call(this, test?.hookDomain ? () => tests.run(test, apply) : apply)
} as typeof runInAsyncScope

/** Passes an error on to the innermost test that has not ended; false if there is none. */
const isHandled: (...error: Parameters<OnError>) => boolean = (error, type) => {
  if (process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0) return false
  let test = tests.getStore()
  while (test?.hookDomain?.isDestroyed) test = test.parent
  const domain = test?.hookDomain ?? root
  if (!domain || domain.isDestroyed) return false
  domain.onerror(error, type)
  return true
}

process.on('uncaughtExceptionMonitor', (error, type) => {
  const { setUncaughtExceptionCaptureCallback: capture } = process
  if (isHandled(error, type)) capture(() => capture(null))
})

// A listener would make Node take all rejections for handled.
const emit = process.emit.bind(process) as (event: string, ...args: unknown[]) => boolean
const emitOrHandle = (event: string, ...args: unknown[]) =>
  event === 'unhandledRejection' && process.listenerCount(event) === 0 ? isHandled(args[0], event) : emit(event, ...args)
process.emit = emitOrHandle as typeof process.emit
