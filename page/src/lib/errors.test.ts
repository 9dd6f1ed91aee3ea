import { expect, test } from 'vitest'
import { codesOf, failures, kinds, statementOf, unnamed } from './errors'

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
  const found = kinds(rows, new Map([[start(0), 90], [start(1), 126]]))
  expect(found.map(({ code, name, errors, values }) => [code, name, errors, values])).toEqual([
    ['40', '', 120, [0, 2]],
    ['23', 'integrity constraint violation', 90, [1.5, 0]],
    ['', 'SQLSTATE not known', 6, [0, 0.1]],
  ])
})

test('a bucket without a recording has no value, one without an error has 0', () => {
  const failed = failures([row(2, null, 0), row(0, null, 60), row(0, null, 30), { ...row(1, null, 0), errors: null }])
  expect([...failed]).toEqual([[start(0), 90], [start(1), null], [start(2), 0]])
  expect(kinds([row(0, '23505', 60), row(0, '40P01', 30)], failed).map(({ values }) => values)).toEqual([[1, null, 0], [0.5, null, 0]])
})

test('a part of the window that was recorded without SQLSTATEs has no value, and its errors are counted', () => {
  const failed = failures([row(0, null, 60), row(1, null, 0), row(2, null, 90)])
  const rows = [row(2, '23505', 60), row(2, null, 30)]
  expect(kinds(rows, failed).map(({ code, values }) => [code, values])).toEqual([['23', [null, 0, 1]], ['', [null, 0, 0.5]]])
  expect(unnamed(rows, failed)).toBe(60)
})

test('an error that the next bucket has in the other table is no part without SQLSTATEs', () => {
  const failed = failures([row(0, null, 60), row(1, null, 1), row(2, null, 60)])
  expect(unnamed([row(0, '23505', 61), row(2, '23505', 60)], failed)).toBe(0)
  expect(unnamed([row(0, '23505', 60), row(1, '23505', 1), row(2, '23505', 58)], failed)).toBe(0)
})
