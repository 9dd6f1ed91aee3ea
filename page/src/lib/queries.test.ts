import { expect, test } from 'vitest'
import type { Row } from './api'
import { commandLine, sql } from './command'
import { allQueries, cut, isCut, matching, sorted, withCosts } from './queries'

const top: Row[] = [
  { key: '7', by_key: 'Lock', query_text: 'select 1', avg_aas: 4, pct: 50 },
  { key: '7', by_key: 'CPU', query_text: 'select 1', avg_aas: 1, pct: 12.5 },
  { key: '(other)', by_key: 'CPU', query_text: null, avg_aas: 3, pct: 37.5 },
]
const queries: Row[] = [
  { key: '7', query_text: 'select 1', avg_aas: 5, pct: 62.5, calls: 40, calls_per_second: 4, mean_exec_time: 3, p95_exec_time: 9, errors: 2, last_call: '2026-11-22T05:50:00.250Z', usernames: 'app, job' },
  { key: '9', query_text: 'select 9', avg_aas: 2, pct: 25, calls: 0, errors: 0 },
  { key: '8', query_text: 'insert into log values ($1)', avg_aas: 0, pct: 0, calls: 8, errors: 1968, usernames: 'app', databases: 'shop' },
  { key: '5', query_text: 'select 5', avg_aas: 0, pct: 0, calls: 0, errors: 0, running: 1 },
  { key: '(other)', query_text: null, avg_aas: 1, pct: 12.5, calls: 10, errors: 0 },
]

test('a query is one row with its waits and its cost', () => {
  const [first, other] = withCosts(cut(top), queries)
  expect(first).toMatchObject({ id: '7', load: 5, pct: 62.5, cost: { callsPerSecond: 4, meanMs: 3, p95Ms: 9, errors: 2, lastCall: Date.UTC(2026, 10, 22, 5, 50, 0, 250), users: 'app, job' } })
  expect(first!.parts.map(({ key }) => key)).toEqual(['Lock', 'CPU'])
  expect(other).toMatchObject({ id: '(other)', load: 3, cost: null })
})

test('a query that is not cut by waits has one part', () => {
  const [first] = cut([{ key: '7', query_text: null, avg_aas: 4, pct: 50 }])
  expect(first!.parts).toEqual([{ key: 'all waits', value: 4 }])
})

test('all queries are the queries with load and the queries that were only counted', () => {
  const all = allQueries(queries, cut(top))
  expect(all.map(({ id, load }) => [id, load])).toEqual([['7', 5], ['9', 2], ['8', 0], ['(other)', 1]])
  expect(all[0]!.parts.map(({ key }) => key)).toEqual(['Lock', 'CPU'])
  expect(all[1]).toMatchObject({ parts: [{ key: 'all waits', value: 2 }], cost: null })
  expect(all[2]).toMatchObject({ text: 'insert into log values ($1)', parts: [], cost: { errors: 1968, lastCall: null, users: 'app', databases: 'shop' } })
  expect(sorted(all, 'errors').map(({ id }) => id)).toEqual(['8', '7', '9', '(other)'])
  expect(sorted(all, 'query').map(({ id }) => id)).toEqual(['8', '7', '9', '(other)'])
  expect(sorted(all, 'last').map(({ id }) => id)).toEqual(['7', '9', '8', '(other)'])
  expect(matching(all, 'LOG insert').map(({ id }) => id)).toEqual(['8'])
  expect(matching(all, '7').map(({ id }) => id)).toEqual(['7'])
  expect([isCut(queries), isCut(queries.slice(0, 4))]).toEqual([true, false])
})

test('questions are quoted for the shell and for SQL', () => {
  const asked = { function: 'top', args: { server: 's', dimension: 'query_id', application: "it's", n: '3' } }
  expect(commandLine(asked)).toBe(`tacho top query_id --application 'it'\\''s' --n 3`)
  expect(sql(asked)).toBe(`select * from tacho.top(dimension => 'query_id', application => 'it''s', n => 3)`)
})
