import { expect, test } from 'vitest'
import { HOUR, bucketOf, clock, duration, interval, lengthText, moved, parseLength, rfc3339, scaled, ticks, timeIn, windowText, widened } from './time'

const at = Date.UTC(2026, 10, 22, 5, 30)

test('buckets have widths that people read, and no more than asked for', () => {
  expect(bucketOf({ since: at, until: at + 240_000 }, 240)).toBe(1000)
  expect(bucketOf({ since: at, until: at + 240_001 }, 240)).toBe(2000)
  expect(bucketOf({ since: at, until: at + 86_400_000 }, 240)).toBe(600_000)
  expect(bucketOf({ since: at, until: at + 86_400_000 * 365 }, 240)).toBe(2 * 86_400_000)
})

test('times are written as arguments take them', () => {
  expect(rfc3339(at)).toBe('2026-11-22T05:30:00Z')
  expect(rfc3339(at + 250)).toBe('2026-11-22T05:30:00.250Z')
  expect(interval(60_000)).toBe('60s')
  expect(interval(500)).toBe('500ms')
})

test('a window is named with the days that it needs', () => {
  expect(windowText({ since: at, until: at + 1_200_000 }, 'UTC')).toMatch(/^Sun 22 Nov.*, 05:30 – 05:50$/)
  expect(windowText({ since: at, until: at + 86_400_000 }, 'UTC')).toMatch(/^Sun 22 Nov.*, 05:30 – Mon 23 Nov.*, 05:30$/)
  expect(clock(at + 7000, 'UTC')).toBe('05:30:07')
})

test('durations name the two largest units', () => {
  expect(duration(250)).toBe('250 ms')
  expect(duration(90_000)).toBe('1 min 30 s')
  expect(duration(86_400_000 * 30)).toBe('30 d')
  expect(duration(3_600_000 + 5000)).toBe('1 h')
})

test('windows move and widen around a moment, or at one end', () => {
  expect(widened({ since: 1000, until: 5000 }, 0.25, 'begin')).toEqual({ since: 0, until: 5000 })
  expect(widened({ since: 1000, until: 5000 }, 0.25, 'end')).toEqual({ since: 1000, until: 6000 })
  expect(moved({ since: 1000, until: 5000 }, -0.25)).toEqual({ since: 0, until: 4000 })
  expect(scaled({ since: 0, until: 100_000 }, 0.5, 25_000)).toEqual({ since: 12_500, until: 62_500 })
})

test('lengths are read as they are written', () => {
  for (const text of ['15m', '1h', '30d', '45s']) expect(lengthText(parseLength(text)!)).toBe(text)
  expect(parseLength('15 minutes')).toBeNull()
  expect(parseLength('0m')).toBeNull()
})

test('ticks stand at round times of the zone, no more than asked for', () => {
  expect(ticks({ since: at + 7000, until: at + 60_000 }, 6, 'UTC').map(({ text }) => text)).toEqual(['05:30:10', '05:30:20', '05:30:30', '05:30:40', '05:30:50'])
  expect(ticks({ since: at, until: at + 3_600_000 }, 3, 'UTC').map(({ time, text }) => [time - at, text])).toEqual([[0, '05:30'], [1_800_000, '06:00']])
  expect(ticks({ since: at, until: at + 86_400_000 * 2 }, 3, 'UTC').map(({ text }) => text)).toEqual(['Mon 23 Nov', 'Tue 24 Nov'])
})

test('a time has its day where the clock alone could mean another one', () => {
  const until = Date.parse('2026-11-22T05:30:00Z')
  const hour = { since: until - HOUR, until }
  expect(timeIn(until - 2 * HOUR, hour, 'UTC')).toBe('03:30:00')
  expect(timeIn(until - 24 * HOUR, hour, 'UTC')).toMatch(/^Sat 21 Nov.* 05:30:00$/)
  expect(timeIn(until + HOUR, hour, 'UTC')).toMatch(/^Sun 22 Nov.* 06:30:00$/)
  expect(timeIn(until - HOUR, { since: until - 48 * HOUR, until }, 'UTC')).toMatch(/^Sun 22 Nov.* 04:30:00$/)
})
