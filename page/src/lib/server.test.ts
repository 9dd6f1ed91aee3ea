import { expect, test } from 'vitest'
import { GROUPS, QUESTIONS, alarmsOf, groupOf, measured, sections } from './server'

const row = (metric: string, value: number) => ({ period_start: '2026-04-01T12:00:00Z', metric, object: null, avg: value, min: value, max: value, total: null })

test('every metric of a picture is in one question', () => {
  const drawn = new Set(GROUPS.flatMap(({ pictures }) => pictures.flatMap(({ metrics, level }) => [...metrics, ...(level ? [level] : [])])))
  for (const metric of drawn) expect([metric, QUESTIONS.filter((metrics) => metrics.includes(metric)).length]).toEqual([metric, 1])
})

test('groups and pictures with alarms come first, the urgent ones before others', () => {
  const known = measured([row('load_1', 9), row('memory_available', 5), row('connections', 97), row('xact_commit', 1), row('deadlocks', 1)])
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
