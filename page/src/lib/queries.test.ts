import { expect, test } from 'vitest'
import { commandLine, sql } from './command'
import { allQueries, idFilter, matching, queries, sorted } from './queries'

const top = [
  { key: '7', by_key: 'Lock', query_text: 'select 1', avg_aas: 4, pct: 50 },
  { key: '7', by_key: 'CPU', query_text: 'select 1', avg_aas: 1, pct: 12.5 },
  { key: '(other)', by_key: 'CPU', query_text: null, avg_aas: 3, pct: 37.5 },
]
const statements = [
  { query_id: '7', calls: 30, total_exec_time: 60, calls_per_second: 3, p95_exec_time: 5, errors: 0 },
  { query_id: '7', calls: 10, total_exec_time: 60, calls_per_second: 1, p95_exec_time: 9, errors: 2 },
]

test('a query is one row, whoever sends it', () => {
  const [first, other] = queries(top, statements)
  expect(first).toMatchObject({ id: '7', load: 5, pct: 62.5, cost: { callsPerSecond: 4, meanMs: 3, p95Ms: 9, errors: 2 } })
  expect(other).toMatchObject({ id: '(other)', load: 3, cost: null })
  expect(idFilter(queries(top, []))).toBe('7')
})

test('a query that is not cut by waits has one part', () => {
  const [first] = queries([{ key: '7', query_text: null, avg_aas: 4, pct: 50 }], [])
  expect(first!.parts).toEqual([{ key: 'all waits', value: 4 }])
})

test('all queries are those with load and those that were only counted', () => {
  const counted = [...statements, { query_id: '8', query_text: 'insert into log values ($1)', calls: 8, errors: 1968, username: 'app', database: 'shop' }]
  const plain = [{ key: '7', query_text: 'select 1', avg_aas: 5, pct: 62.5 }, { key: '(other)', query_text: null, avg_aas: 3, pct: 37.5 }]
  const all = allQueries(plain, counted, top)
  expect(all.map(({ id, load }) => [id, load])).toEqual([['7', 5], ['(other)', 3], ['8', 0]])
  expect(all[0]!.parts.map(({ key }) => key)).toEqual(['Lock', 'CPU'])
  expect(all[2]).toMatchObject({ text: 'insert into log values ($1)', cost: { errors: 1968, users: ['app'], databases: ['shop'] } })
  expect(sorted(all, 'errors').map(({ id }) => id)).toEqual(['8', '7', '(other)'])
  expect(sorted(all, 'query').map(({ id }) => id)).toEqual(['8', '7', '(other)'])
  expect(matching(all, 'LOG insert').map(({ id }) => id)).toEqual(['8'])
  expect(matching(all, '7').map(({ id }) => id)).toEqual(['7'])
})

test('questions are quoted for the shell and for SQL', () => {
  const asked = { function: 'top', args: { server: 's', dimension: 'query_id', application: "it's", n: '3' } }
  expect(commandLine(asked)).toBe(`tacho top query_id --application 'it'\\''s' --n 3`)
  expect(sql(asked)).toBe(`select * from tacho.top(dimension => 'query_id', application => 'it''s', n => 3)`)
})
