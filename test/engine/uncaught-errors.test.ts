/** Errors that nothing catches fail the test that they belong to, whatever has called back; see test/support/domain.ts. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const script = `
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'

const ended = Promise.withResolvers()
t.test('timer', () => {
  setTimeout(() => { throw new Error('late') }, 5)
  return delay(5000)
})
t.test('outer', async t => {
  t.test('rejection', () => {
    void delay(5).then(() => { throw new Error('rejected') })
    return delay(5000)
  })
  t.test('socket', () => {
    connect(1, '127.0.0.1')
    return delay(5000)
  })
  t.test('fine', async t => t.pass('fine'))
  t.teardown(ended.resolve)
})
void ended.promise.then(() => { throw new Error('outside of all') })
`

t.test('fails the innermost test of an error, or all', async t => {
  const args = ['--import=./test/support/unrecorded.ts', '--input-type=module']
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, args, { cwd, input: script, encoding: 'utf8' })
  const results = stdout.split('\n').filter(line => /^ *(not )?ok/.test(line))
  t.same(
    results.map(line => line.replace(/ # time.*/, '')),
    [
      '    not ok 1 - late',
      'not ok 1 - timer',
      '        not ok 1 - rejected',
      '    not ok 1 - rejection',
      '        not ok 1 - connect ECONNREFUSED 127.0.0.1:1',
      '    not ok 2 - socket',
      '        ok 1 - fine',
      '    ok 3 - fine',
      'not ok 2 - outer',
      'not ok 3 - outside of all'
    ]
  )
  t.equal(status, 1)
})
