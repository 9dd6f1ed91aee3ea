import { expect, test } from 'vitest'
import { codesOf, kinds, statementOf } from './errors'

const row = (minute: number, sqlstate: string | null, errors: number, more = {}) => ({
  ...{ period_start: `2026-04-01T12:0${minute}:00Z`, sqlstate, key: '7', query_id: '7', username: 'ana', database: 'shop', toplevel: true },
  ...{ condition: null, class_name: null, errors, errors_per_second: errors / 60, ...more },
})
const start = (minute: number) => Date.parse(`2026-04-01T12:0${minute}:00Z`)

test('a query has its codes, the most frequent first', () => {
  const rows = [
    row(0, '40P01', 3, { condition: 'deadlock_detected' }),
    row(0, '23505', 90, { condition: 'unique_violation' }),
    row(0, '23999', 1, { class_name: 'integrity constraint violation' }),
    row(0, '57014', 5, { key: '(other)', query_id: null, username: null, database: null, toplevel: null }),
  ]
  const codes = codesOf(rows)
  expect([...codes.keys()]).toEqual(['7 ana shop true'])
  expect(codes.get(statementOf(rows[0]!))!.map(({ sqlstate, name, errors }) => `${errors} ${sqlstate} ${name}`)).toEqual([
    '90 23505 unique_violation',
    '3 40P01 deadlock_detected',
    '1 23999 integrity constraint violation',
  ])
})

test('codes of a class add up in each bucket', () => {
  const rows = [row(0, '23505', 60, { class_name: 'integrity constraint violation' }), row(0, '23503', 30), row(1, '40P01', 120), row(1, null, 6), row(2, '23505', 6)]
  const found = kinds(rows, [start(0), start(1)])
  expect(found.map(({ code, name, errors, values }) => [code, name, errors, values])).toEqual([
    ['40', '', 120, [0, 2]],
    ['23', 'integrity constraint violation', 90, [1.5, 0]],
    ['', 'SQLSTATE not known', 6, [0, 0.1]],
  ])
})
