import { expect, test } from 'vitest'
import { flagsOf } from './flags'

const at = (second: number, kind: string, detail = '') => ({ marker_time: new Date(second * 1000).toISOString(), kind, detail })
const span = { since: 0, until: 100_000 }

test('flags that would stand on each other are one, and each ends before the next', () => {
  const rows = [at(50, 'gap'), at(10, 'mark', 'deploy 7'), at(11, 'start'), at(10.5, 'start'), at(101, 'stop')]
  const flags = flagsOf(rows, span, 1000, 30)
  expect(flags.map(({ left, text, all }) => [left, text.is, all.length])).toEqual([
    [100, '3 events', 3],
    [500, 'gap', 1],
  ])
  for (const [i, { left, room }] of flags.entries()) expect(left + room).toBeLessThanOrEqual(flags[i + 1]?.left ?? 1030)
})

test('a text that has no room is left to the title; a mark says what was written', () => {
  const flags = flagsOf([at(10, 'mark', 'deploy 7'), at(14, 'start'), at(14, 'start')], span, 1000, 30)
  expect(flags.map(({ text }) => text)).toEqual([
    { is: 'deploy 7', fits: false },
    { is: '2 × start', fits: true },
  ])
})
