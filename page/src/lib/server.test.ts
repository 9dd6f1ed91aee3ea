import { expect, test } from 'vitest'
import { GROUPS, QUESTIONS, alarmsOf, groupOf, measured, sections, unrecorded } from './server'

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const MINUTE = 60_000
const at = (minute: number) => new Date(BEGIN + minute * MINUTE).toISOString()
const row = (metric: string, value: number, minute = 0, more = {}) => ({ period_start: at(minute), metric, object: null, avg: value, min: value, max: value, total: null, ...more })
const span = { since: BEGIN, until: BEGIN + 10 * MINUTE }
const starts = Array.from({ length: 10 }, (_, minute) => BEGIN + minute * MINUTE)

test('every metric of a picture is in one question', () => {
  const drawn = new Set(GROUPS.flatMap(({ pictures }) => pictures.flatMap(({ metrics, level }) => [...metrics, ...(level ? [level] : [])])))
  for (const metric of drawn) expect([metric, QUESTIONS.filter((metrics) => metrics.includes(metric)).length]).toEqual([metric, 1])
})

test('groups and pictures with alarms come first, the urgent ones before others', () => {
  const known = measured([row('load_1', 9), row('memory_available', 5), row('connections', 97), row('xact_commit', 1), row('deadlocks', 1)], span, MINUTE)
  const alarms = alarmsOf([
    { severity: 'critical', metric: 'connections', text: '97 of 100 connections' },
    { severity: 'warning', metric: 'deadlocks', text: '1 deadlock' },
    { severity: 'warning', metric: 'unknown here', text: 'a newer alarm' },
  ])
  const found = sections(known, alarms)
  expect(found.map(({ name, bad }) => [name, ...bad.map(({ text }) => text)])).toEqual([['Connections', '97 of 100 connections'], ['Transactions', '1 deadlock'], ['Host']])
  expect(found[1]!.pictures.map(({ title }) => title)).toEqual(['Deadlocks per second', 'Commits per second'])
  expect(groupOf('unknown here')).toBeNull()
})

test('where nothing was recorded there is no value, and the picture says so', () => {
  const known = measured([0, 1, 2, 6, 7, 8, 9].map((minute) => row('load_1', minute, minute)), span, MINUTE)
  expect(known.starts).toEqual(starts)
  expect(known.values.get('load_1')!.get('')).toEqual([0, 1, 2, null, null, null, 6, 7, 8, 9])
  const [host] = sections(known, [])
  expect(unrecorded(host!.pictures[0]!, [...starts, span.until])).toEqual([{ since: BEGIN + 3 * MINUTE, until: BEGIN + 6 * MINUTE }])
})

test('a value holds until the next reading, and one reading may be missing', () => {
  const of = (minutes: number[]) => measured(minutes.map((minute) => row('load_1', minute, minute)), span, MINUTE).values.get('load_1')!.get('')
  expect(of([0, 2, 4, 8])).toEqual([0, 0, 2, 2, 4, 4, 4, 4, 8, 8])
  expect(of([1, 3, 8])).toEqual([null, 1, 1, 3, 3, null, null, null, 8, 8])
  expect(of([5])).toEqual([null, null, null, null, null, 5, null, null, null, null])
})

test('a database at rest counts nothing, and the others stay in sight', () => {
  const counted = (object: string, value: number, minute: number) => row('xact_commit', value, minute, { object, total: value })
  const rows = [...starts.map((_, minute) => counted('shop', 500, minute)), counted('crm', 20, 3), row('connections', 40)]
  const { values } = measured(rows, span, MINUTE)
  expect(values.get('xact_commit')!.get('crm')).toEqual([0, 0, 0, 20, 0, 0, 0, 0, 0, 0])
})

test('the peak is the largest reading, not the largest mean', () => {
  const known = measured([row('connections', 45, 0, { max: 97 }), row('max_connections', 100)], span, MINUTE)
  const [connections] = sections(known, [])
  expect(connections!.pictures[0]!.curves[0]!.peak).toBe(97)
})
