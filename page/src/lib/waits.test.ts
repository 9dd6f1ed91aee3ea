import { expect, test } from 'vitest'
import { dictionary, explained, meaning, named } from './waits'

test('the next look is a view with words', () => {
  expect(named(meaning('Lock:tuple')!.next)).toEqual({ tab: 'locks', rest: ': the root blocker; end it, or wait' })
  expect(named(meaning('IPC:BgWorkerShutdown')!.next)).toEqual({ tab: 'sessions', rest: '' })
  expect(named('nothing, unless it never ends')).toEqual({ tab: null, rest: 'nothing, unless it never ends' })
})

test('work on a CPU has a meaning, whether its kind is known or not', () => {
  for (const event of ['CPU*', 'CPU:running', 'CPU:anything']) expect(meaning(event)?.is).toBeTruthy()
})

test('the name of an event has a meaning as each major spells it', () => {
  expect(meaning('IO:WalSync')).toEqual(meaning('IO:WALSync'))
  expect(meaning('IO:WalSync')?.is).toBe('making a commit durable')
  expect(meaning('Buffer:BufferShared')?.is).toBeTruthy()
})

test('the dictionary explains events, and an unknown one by its class', async () => {
  const all = await dictionary()
  expect(explained(all, 'IPC:HashBuildElect')).toBe(
    'Processes of a parallel hash join meet to decide which one sets up the hash table.\n' +
      'Normal: For moments in parallel hash joins.\nNo further step is known.',
  )
  expect(explained(all, 'LWLock:CubeCache')).toBe(explained(all, 'LWLock'))
  expect(explained(all, 'CPU*')).toMatch(/^The session is active without a wait event\./)
  expect(explained(all, 'Cube:Join')).toBeUndefined()
})
