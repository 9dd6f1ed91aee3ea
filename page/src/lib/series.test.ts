import { expect, test } from 'vitest'
import { bucketAt, began, ceiling, gaps, series, stacked } from './series'

const row = (second: number, key: string | null, load: number | null, ticks = 10) => ({
  bucket_start: `2026-11-22T05:30:0${second}Z`,
  key,
  avg_aas: load,
  peak_sessions: load === null ? null : 3,
  vcpus: 2,
  ticks_observed: ticks,
  coverage_pct: ticks * 10,
})
const at = Date.UTC(2026, 10, 22, 5, 30)
const span = { since: at, until: at + 3000 }
const rows = [row(0, 'Lock', 1.5), row(0, 'CPU', 0.5), row(1, null, null, 0), row(2, 'CPU', 2)]

test('a timeline by class lies in the order of classes, gaps stay gaps', () => {
  const found = series(rows, 'wait_event_type', span, 1000)
  expect(found.keys).toEqual(['CPU', 'Lock'])
  expect(found.loads).toEqual([
    [0.5, null, 2],
    [1.5, null, 0],
  ])
  expect(found.times).toEqual([at, at + 1000, at + 2000, at + 3000])
  expect(found.vcpus).toBe(2)
  expect(gaps(found)).toEqual([{ since: at + 1000, until: at + 2000 }])
  expect(stacked(found.loads)).toEqual([
    [0.5, null, 2],
    [2, null, 2],
  ])
  expect(stacked([[500], [null], [1]])).toEqual([[500], [500], [501]])
})

test('a moment has a bucket, or none', () => {
  const { times } = series(rows, 'wait_event_type', span, 1000)
  expect([at - 1, at, at + 1999, at + 3000].map((time) => bucketAt(times, time))).toEqual([-1, 0, 1, -1])
})

test('the CPUs are in the picture of an idle window and of few of them, not where they press the load down', () => {
  expect(ceiling(0, 0, 64)).toBeCloseTo(64 * 1.08)
  expect(ceiling(0.2, 1, 4)).toBeCloseTo(4 * 1.08)
  expect(ceiling(3, 5, 64)).toBeCloseTo(5 * 1.08)
  expect(ceiling(20, 24, 64)).toBeCloseTo(64 * 1.08)
  expect(ceiling(20, 200, null)).toBeCloseTo(50 * 1.08)
  expect(ceiling(0, 0, null)).toBe(1)
})

test('a load began where it came to half of what it is now, lulls aside', () => {
  const of = (...loads: (number | null)[]) => began({ ...series([], null, span, 1000), times: [...loads.keys(), loads.length], loads: [loads] })
  expect(of(0, 0.2, 4, 8, 9, 9)).toEqual({ time: 3, isEarlier: false })
  expect(of(0, 9, 0, null, 9, 9)).toEqual({ time: 1, isEarlier: false })
  expect(of(9, 0, 0, 0, 9, 9)).toEqual({ time: 4, isEarlier: false })
  expect(of(9, 9, 9, null)).toEqual({ time: 0, isEarlier: true })
  expect(of(5, 0, 0, 0)).toBeNull()
  expect(of(null)).toBeNull()
})
