import { expect, test } from 'vitest'
import { commandLine, sql } from './command'
import { idFilter, queries } from './queries'

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

test('questions are quoted for the shell and for SQL', () => {
  const asked = { function: 'top', args: { server: 's', dimension: 'query_id', application: "it's", n: '3' } }
  expect(commandLine(asked)).toBe(`tacho top query_id --application 'it'\\''s' --n 3`)
  expect(sql(asked)).toBe(`select * from tacho.top(dimension => 'query_id', application => 'it''s', n => 3)`)
})
