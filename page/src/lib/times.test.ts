import { expect, test } from 'vitest'
import { typed } from './times'

test('two times are a window, one is a moment, a length ends now', () => {
  const of = (text: string) => Object.values(typed(text) ?? {})
  for (const text of ['23:10–23:30', '23:10 - 23:30', '23:10-23:30', ' 23:10 to 23:30', '23:10..23:30']) expect(of(text)).toEqual(['23:10', '23:30', false])
  expect(of('yesterday 14:00–15:00')).toEqual(['yesterday 14:00', 'yesterday 15:00', false])
  expect(of('2026-11-21 23:50 – 2026-11-22 00:10')).toEqual(['2026-11-21 23:50', '2026-11-22 00:10', false])
  expect(of('2026-11-21T03:12:00-05:00')).toEqual(['2026-11-21T03:12:00-05:00', 'now', true])
  expect(of('03:12')).toEqual(['03:12', 'now', true])
  expect(of('yesterday 14:00')).toEqual(['yesterday 14:00', 'now', true])
  expect(of('1h')).toEqual(['1h', 'now', false])
  expect(of('yesterday')).toEqual(['yesterday', 'today', false])
  expect(of('today')).toEqual(['today', 'now', false])
  expect(typed('1 – 2 – 3')).toBeNull()
})
