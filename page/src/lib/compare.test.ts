import { expect, test } from 'vitest'
import { comparison, difference, earlier, factor, isEarlier, loadsBefore, noteOf, valuesBefore } from './compare'
import { series } from './series'
import { DAY } from './time'
import { parseView } from './view'

const span = { since: Date.parse('2026-03-01T11:00:00Z'), until: Date.parse('2026-03-01T11:20:00Z') }
const MINUTES = 60_000

test('the earlier window is as long', () => {
  expect(earlier(span, 'previous')).toEqual({ since: span.since - 20 * MINUTES, until: span.since })
  expect(earlier(span, 'day')).toEqual({ since: span.since - DAY, until: span.until - DAY })
  expect(earlier(span, 'week')).toEqual({ since: span.since - 7 * DAY, until: span.until - 7 * DAY })
})

test('keys are compared with what they were, under the filters of the view', () => {
  const view = parseView('?server=shop&compare=day&application=web&wait_event=!x')
  expect(comparison(view, span, 'wait_event', ['Lock:tuple', '(null)'])).toEqual({
    function: 'compare',
    args: {
      ...{ dimension: 'wait_event', server: 'shop', application: 'web', wait_event: 'Lock:tuple,(null)', n: 'all' },
      ...{ since_1: '2026-02-28T11:00:00Z', until_1: '2026-02-28T11:20:00Z' },
      ...{ since_2: '2026-03-01T11:00:00Z', until_2: '2026-03-01T11:20:00Z' },
    },
  })
  expect(comparison(view, span, 'wait_event', [])).toBeNull()
  expect(comparison(parseView('?server=shop'), span, 'wait_event', ['x'])).toBeNull()
})

test('an answer is of the earlier window when windows, server and filters say so', () => {
  const view = parseView('?server=shop&compare=day&application=web')
  const asked = (search: string, more = {}) => {
    const [since, until] = search.split(' ').map((time) => `2026-${time}:00Z`)
    return { function: 'aas', args: { server: 'shop', application: 'web', since: since!, until: until!, ...more } }
  }
  const now = asked('03-01T11:00 03-01T11:20', { dimension: 'query_id', by: 'wait_event', n: '12', query_id: '7' })
  const before = asked('02-28T11:00 02-28T11:20', { bucket: '5s' })
  const windows = { since_1: before.args.since, until_1: before.args.until, since_2: now.args.since, until_2: now.args.until }
  const { since: _since, until: _until, ...others } = now.args
  expect(isEarlier(before, asked('03-01T11:00 03-01T11:20'), view)).toBe(true)
  expect(isEarlier({ function: 'compare', args: { ...others, ...windows, query_id: '1,2' } }, now, view)).toBe(true)
  const wrong = [
    asked('02-22T11:00 02-22T11:20'),
    asked('02-28T11:01 02-28T11:21'),
    asked('02-28T11:00 02-28T11:10'),
    asked('02-28T11:00 02-28T11:20', { server: 'other' }),
    asked('02-28T11:00 02-28T11:20', { application: 'job' }),
    asked('02-28T11:00 02-28T11:20', { wait_event: 'x' }),
  ]
  expect(wrong.map((one) => isEarlier(one, asked('03-01T11:00 03-01T11:20'), view))).toEqual(wrong.map(() => false))
  expect(isEarlier(before, null, view)).toBe(false)
  expect(isEarlier(before, now, { ...view, compare: null })).toBe(false)
  const live = { ...view, live: 20 * MINUTES }
  expect([1, 2, 3].map((m) => isEarlier(asked(`02-28T11:0${m} 02-28T11:2${m}`), asked('03-01T11:00 03-01T11:20'), live))).toEqual([true, true, false])
})

test('a time that was not observed before is not known', () => {
  expect(loadsBefore([{ key: 'a', avg_aas_1: 0 }, { key: 'b', avg_aas_1: null }, { key: null, avg_aas_1: 2 }])).toEqual(
    new Map([['a', 0], ['(null)', 2]]),
  )
})

test('a note names the windows as the page does', () => {
  const rows = [{ note: 'unequal coverage: window 1 was observed for 50.0000 %, window 2 for 90.0000 %' }]
  expect(noteOf(rows, 'day')).toBe('unequal coverage: the day before was observed for 50.0000 %, this window for 90.0000 %')
  expect([noteOf([{ note: null }], 'day'), noteOf([], 'day'), noteOf(rows, null)]).toEqual([null, null, null])
})

test('a step has the load of the earlier step that covers its middle', () => {
  const row = (minute: number, load: number | null) => ({
    ...{ bucket_start: new Date(span.since + minute * MINUTES).toISOString(), avg_aas: load },
    ...{ ticks_observed: load === null ? 0 : 60, coverage_pct: load === null ? 0 : 100 },
  })
  // The earlier window begins within a step, 10.5 minutes before.
  const before = series([row(-11, 1), row(-10, 2), row(-9, null)], null, { since: span.since - 10.5 * MINUTES, until: span.since }, MINUTES)
  const times = [0, 1, 2, 3].map((minute) => span.since + minute * MINUTES)
  expect(valuesBefore(times, before, 10.5 * MINUTES)).toEqual([2, null, null])
  expect(valuesBefore(times, before, 11 * MINUTES)).toEqual([1, 2, null])
})

test('differences have a sign, and a factor where there is one', () => {
  expect([difference(3.6, 1), difference(1, 1.35), difference(1, 1.001)]).toEqual(['+2.60', '−0.35', '0.00'])
  expect([factor(3.6, 1), factor(1, 2), factor(7200, 20), factor(1, 0), factor(0, 1), factor(0, 0)]).toEqual(['× 3.6', '× 0.50', '× 360', 'new', 'gone', 'same'])
})
