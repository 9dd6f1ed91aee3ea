// Joins rows of `top` by query and wait class, and rows of `statements_history`, to one row per query.

import type { Row } from './api'
import type { Part } from '../parts/Bar.svelte'
import type { Sort } from './view'

export interface Cost {
  callsPerSecond: number
  meanMs: number | null
  /** The largest p95 among its users and databases. */
  p95Ms: number | null
  totalMs: number
  rows: number
  /** Blocks that were not in shared buffers. */
  reads: number
  /** Blocks of temporary files that were written. */
  temp: number
  errors: number
  users: string[]
  databases: string[]
}
export interface Query {
  id: string
  text: string | null
  load: number
  pct: number
  parts: Part[]
  cost: Cost | null
}

const number = (value: unknown) => (typeof value === 'number' ? value : 0)
const isId = (id: string) => /^-?\d+$/.test(id) && id !== '0'

/** Adds up the rows of a query: of several users, databases, nested or not. */
export function costs(rows: Row[]): Map<string, Cost> {
  const all = new Map<string, Row[]>()
  for (const row of rows) {
    const id = String(row.query_id)
    all.set(id, [...(all.get(id) ?? []), row])
  }
  return new Map([...all].map(([id, own]) => [id, costOf(own)]))
}

function costOf(rows: Row[]): Cost {
  const sum = (name: string) => rows.reduce((total, row) => total + number(row[name]), 0)
  // a row without executions is of one that only runs
  const ended = rows.filter((row) => number(row.calls) + number(row.errors) > 0)
  const names = (name: string) => [...new Set((ended.length > 0 ? ended : rows).map((row) => row[name]).filter((value) => typeof value === 'string'))]
  const p95s = rows.map((row) => row.p95_exec_time).filter((value) => typeof value === 'number')
  const [calls, totalMs] = [sum('calls'), sum('total_exec_time')]
  return {
    callsPerSecond: sum('calls_per_second'),
    meanMs: calls > 0 ? totalMs / calls : null,
    p95Ms: p95s.length > 0 ? Math.max(...p95s) : null,
    totalMs,
    rows: sum('rows'),
    reads: sum('shared_blks_read'),
    temp: sum('temp_blks_written'),
    errors: sum('errors'),
    users: names('username'),
    databases: names('database'),
  }
}

/** One row per query, in the order of the answer. */
export function queries(rows: Row[], statements: Row[]): Query[] {
  const cost = costs(statements)
  const found = new Map<string, Query>()
  for (const row of rows) {
    if (row.avg_aas === null) continue
    const id = (row.key as string | null) ?? '(null)'
    const text = (row.query_text as string | null) ?? null
    const query = found.get(id) ?? { id, text, load: 0, pct: 0, parts: [], cost: cost.get(id) ?? null }
    query.load += number(row.avg_aas)
    query.pct += number(row.pct)
    // Without "by" each query has one row for all its activity.
    const part = row.by_key === undefined ? 'all waits' : ((row.by_key as string | null) ?? '(null)')
    query.parts.push({ key: part, value: number(row.avg_aas) })
    found.set(id, query)
  }
  return [...found.values()].filter((query) => query.load > 0)
}

/** All queries: those with load, with the parts of those that are known by part, and those
 *  that were counted and never seen at work. */
export function allQueries(rows: Row[], statements: Row[], cut: Row[]): Query[] {
  const parts = new Map(queries(cut, []).map((query) => [query.id, query.parts]))
  const seen = queries(rows, statements).map((query) => ({ ...query, parts: parts.get(query.id) ?? query.parts }))
  const known = new Set(seen.map((query) => query.id))
  const cost = costs(statements)
  const texts = new Map(statements.map((row) => [String(row.query_id), row.query_text as string | null]))
  const quiet = [...cost].filter(([id]) => isId(id) && !known.has(id))
  return [...seen, ...quiet.map(([id, own]) => ({ id, text: texts.get(id) ?? null, load: 0, pct: 0, parts: [], cost: own }))]
}

/** A column: its title, the value that it sorts by, and the order that the reader takes. */
interface Column {
  title: string
  value: (query: Query) => number | string
  order: string
}
const words = (all: string[] | undefined) => (all ?? []).join(', ')
export const COLUMNS: Record<Sort, Column> = {
  load: { title: 'AAS', value: ({ load }) => load, order: 'time' },
  calls: { title: 'calls', value: ({ cost }) => cost?.callsPerSecond ?? -1, order: 'calls' },
  mean: { title: 'mean', value: ({ cost }) => cost?.meanMs ?? -1, order: 'mean' },
  p95: { title: 'p95', value: ({ cost }) => cost?.p95Ms ?? -1, order: 'p95' },
  total: { title: 'total time', value: ({ cost }) => cost?.totalMs ?? -1, order: 'time' },
  rows: { title: 'rows', value: ({ cost }) => cost?.rows ?? -1, order: 'rows' },
  reads: { title: 'reads', value: ({ cost }) => cost?.reads ?? -1, order: 'shared_blks_read' },
  temp: { title: 'temp', value: ({ cost }) => cost?.temp ?? -1, order: 'temp_blks_written' },
  errors: { title: 'errors', value: ({ cost }) => cost?.errors ?? -1, order: 'errors' },
  query: { title: 'query', value: ({ text, id }) => (text ?? id).toLowerCase(), order: 'time' },
  user: { title: 'user', value: ({ cost }) => words(cost?.users), order: 'time' },
  database: { title: 'database', value: ({ cost }) => words(cost?.databases), order: 'time' },
}

/** Numbers with the largest first, texts by the alphabet; all other queries are last. */
export function sorted(all: Query[], sort: Sort): Query[] {
  const { value } = COLUMNS[sort]
  const compared = (a: Query, b: Query) => {
    const [x, y] = [value(a), value(b)]
    return typeof x === 'number' && typeof y === 'number' ? y - x : String(x).localeCompare(String(y))
  }
  const rest = (query: Query) => Number(query.id === '(other)')
  return all.toSorted((a, b) => rest(a) - rest(b) || compared(a, b) || b.load - a.load)
}

/** Queries whose text or number has all the words. */
export function matching(all: Query[], find: string | null): Query[] {
  const wanted = (find ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  if (wanted.length === 0) return all
  const has = ({ id, text }: Query) => wanted.every((word) => `${id} ${text ?? ''}`.toLowerCase().includes(word))
  return all.filter((query) => query.id !== '(other)' && has(query))
}

/** A filter of the query ids that are numbers and not 0. */
export function idFilter(all: Query[]): string {
  return all
    .map((query) => query.id)
    .filter(isId)
    .join(',')
}
