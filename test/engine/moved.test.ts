import t from 'tap'
import { currentUrl, noteMove } from '../../src/cells/moved.ts'

const moved = (detail?: string) => ({ code: '57M01', detail })

t.test('leads on from server to server', async t => {
  t.equal(currentUrl('a'), 'a')
  t.equal(noteMove('a', moved('b')), true)
  t.equal(noteMove('b', moved('c')), true)
  t.equal(currentUrl('a'), 'c')
  t.equal(currentUrl('b'), 'c')
})

t.test('a cell that has moved back is where it was', async t => {
  noteMove('x', moved('y'))
  noteMove('y', moved('x'))
  t.equal(currentUrl('x'), 'x')
  t.equal(currentUrl('y'), 'x')
  noteMove('x', moved('x'))
  t.equal(currentUrl('x'), 'x')
})

t.test('other errors, and copies that are not complete, lead nowhere', async t => {
  for (const error of [moved(), { code: '57P01', detail: 'z' }, new Error('z'), null]) t.equal(noteMove('o', error), false)
  t.equal(currentUrl('o'), 'o')
})
