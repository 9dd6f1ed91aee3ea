import { expect, test } from 'vitest'
import { meaning, named } from './waits'

test('what to look at next is a view, and words', () => {
  expect(named(meaning('Lock:tuple')!.next)).toEqual({ tab: 'locks', rest: ': the head of the queue, then end it or wait' })
  expect(named(meaning('IPC:BgWorkerShutdown')!.next)).toEqual({ tab: 'sessions', rest: '' })
  expect(named('nothing, unless it never ends')).toEqual({ tab: null, rest: 'nothing, unless it never ends' })
})

test('work on a CPU has a meaning, whether its kind is known or not', () => {
  for (const event of ['CPU*', 'CPU:running', 'CPU:anything']) expect(meaning(event)?.is).toBeTruthy()
})
