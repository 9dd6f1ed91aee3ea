import { expect, test } from 'vitest'
import type { Row } from './api'
import { INDEX_COLUMNS, TABLE_COLUMNS, hasCatalog, indexesOf, ordered, tablesOf } from './tables'

const rows: Row[] = [
  { key: 'public.orders', database: 'shop', database_oid: 5, oid: 16400, kind: 'table', work: 90, dead_tuples: 1000, live_tuples: 3999, last_vacuum: '2026-03-01T10:00:00Z', last_autovacuum: '2026-03-01T09:00:00Z' },
  { key: 'public.orders_pkey', database: 'shop', database_oid: 5, oid: 16401, kind: 'primary key', work: 80 },
  { key: '5/16402', database: 'shop', database_oid: 5, oid: 16402, kind: null, work: 70, dead_tuples: 999, live_tuples: 0, last_autoanalyze: '2026-03-01T10:00:00Z' },
  { key: '(other)', work: 500 },
]

test('an index is no table, and a relation without a kind may be one', () => {
  const tables = tablesOf(rows)
  expect(tables.map(({ name, isNamed }) => [name, isNamed])).toEqual([['public.orders', true], ['5/16402', false], ['(other)', false]])
  expect([hasCatalog(tables), hasCatalog(tables.slice(1))]).toEqual([true, false])
})

test('the last vacuum counts, and who ran it', () => {
  const [orders, unknown, others] = tablesOf(rows)
  const shown = { zone: 'UTC', until: Date.parse('2026-03-01T11:30:00Z') } as const
  const { vacuumed, analyzed, dead } = TABLE_COLUMNS
  expect([orders, unknown, others].map((row) => [vacuumed.text(row!, shown), analyzed.text(row!, shown)])).toEqual([['1 h ago', 'never'], ['never', '1 h ago'], ['–', '–']])
  expect([vacuumed.more!(orders!, shown), analyzed.more!(unknown!, shown)].map((text) => text.includes('autovacuum'))).toEqual([false, true])
  expect([orders, unknown].map((row) => dead.isBad!(row!))).toEqual([true, false])
})

test('all others are last in any order', () => {
  const names = (sort: keyof typeof TABLE_COLUMNS) => ordered(tablesOf(rows), TABLE_COLUMNS[sort]).map(({ name }) => name)
  expect(names('work')).toEqual(['public.orders', '5/16402', '(other)'])
  expect(names('vacuumed')).toEqual(['5/16402', 'public.orders', '(other)'])
  expect(names('table')).toEqual(['5/16402', 'public.orders', '(other)'])
})

test('an index that was not counted is not called unused, nor are indexes of the system shown', () => {
  const index = (name: string, more: object) => ({ key: name, database: 'shop', database_oid: 5, oid: 1, kind: 'index', table_name: 'public.orders', ...more })
  const counted = { known_from: '2026-03-01T10:00:00Z', known_until: '2026-03-01T11:00:00Z' }
  const all = indexesOf([index('public.a', { scans: 0, known_from: counted.known_from }), index('public.b', { scans: 4, ...counted }), index('public.c', { scans: 0, ...counted }), index('pg_catalog.d', { scans: 0, ...counted })])
  const shown = { zone: 'UTC', until: Date.parse('2026-03-01T11:30:00Z') } as const
  const { scans, used } = INDEX_COLUMNS
  expect(ordered(all, scans).map((row) => [row.name, scans.text(row, shown), scans.isBad!(row), used.text(row, shown)])).toEqual([
    ['public.c', '0', true, 'none for 1 h'],
    ['public.b', '4', false, 'in this window'],
    ['public.a', '–', false, '–'],
  ])
})
