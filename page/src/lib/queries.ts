// Rows of `queries`, and the waits of the largest of them by rows of `top`.

import type { Row } from './api'
import type { Part } from '../parts/Bar.svelte'
import type { Sort } from './view'

export interface Cost {
  callsPerSecond: number
  meanMs: number | null
  p95Ms: number | null
  totalMs: number
  rows: number
  /** Blocks that were not in shared buffers. */
  reads: number
  /** Blocks of temporary files that were written. */
  temp: number
  errors: number
  /** Time of the last call in ms; null if it is not known. */
  lastCall: number | null
  users: string
  databases: string
}
export interface Query {
  id: string
  text: string | null
  load: number
  pct: number
  parts: Part[]
  cost: Cost | null
}

/** The key of all queries that an answer does not show. */
const REST = '(other)'

const number = (value: unknown) => (typeof value === 'number' ? value : 0)
const known = (value: unknown) => (typeof value === 'number' ? value : null)
const text = (value: unknown) => (typeof value === 'string' ? value : null)
const idOf = (row: Row) => text(row.key) ?? '(null)'

/** The cost in a row of `queries`; null without executions that ended. */
function costOf(row: Row): Cost | null {
  if (number(row.calls) + number(row.errors) === 0) return null
  return {
    callsPerSecond: number(row.calls_per_second),
    meanMs: known(row.mean_exec_time),
    p95Ms: known(row.p95_exec_time),
    totalMs: number(row.total_exec_time),
    rows: number(row.rows),
    reads: number(row.shared_blks_read),
    temp: number(row.temp_blks_written),
    errors: number(row.errors),
    lastCall: typeof row.last_call === 'string' ? Date.parse(row.last_call) : null,
    users: text(row.usernames) ?? '',
    databases: text(row.databases) ?? '',
  }
}

/** Rows of `top` by query and wait class as one row for each query, in the order of the answer. */
export function cut(rows: Row[]): Query[] {
  const found = new Map<string, Query>()
  for (const row of rows) {
    if (row.avg_aas === null) continue
    const id = idOf(row)
    const query = found.get(id) ?? { id, text: text(row.query_text), load: 0, pct: 0, parts: [], cost: null }
    query.load += number(row.avg_aas)
    query.pct += number(row.pct)
    // If `top` has no argument "by", each query has one row for all its activity.
    const part = row.by_key === undefined ? 'all waits' : (text(row.by_key) ?? '(null)')
    query.parts.push({ key: part, value: number(row.avg_aas) })
    found.set(id, query)
  }
  return [...found.values()].filter((query) => query.load > 0)
}

/** Queries with their costs in rows of `queries`, which may be more queries than these. */
export function withCosts(all: Query[], rows: Row[]): Query[] {
  const costs = new Map(rows.map((row) => [idOf(row), costOf(row)]))
  // The rest of one answer has other queries than the rest of another.
  costs.delete(REST)
  return all.map((query) => ({ ...query, cost: costs.get(query.id) ?? null }))
}

/** Rows of `queries`, with the parts of the queries that were cut by wait. */
export function allQueries(rows: Row[], largest: Query[]): Query[] {
  const parts = new Map(largest.map((query) => [query.id, query.parts]))
  const query = (row: Row): Query => {
    const [id, load] = [idOf(row), number(row.avg_aas)]
    const whole = load > 0 ? [{ key: 'all waits', value: load }] : []
    return { id, text: text(row.query_text), load, pct: number(row.pct), parts: parts.get(id) ?? whole, cost: costOf(row) }
  }
  return rows.map(query).filter(({ load, cost }) => load > 0 || cost !== null)
}

/** Whether the answer lacks queries. */
export const isCut = (rows: Row[]) => rows.some((row) => row.key === REST)

/** A column: its title, the value that it sorts by, and the order that the reader takes. */
interface Column {
  title: string
  value: (query: Query) => number | string
  order: string
}
export const COLUMNS: Record<Sort, Column> = {
  load: { title: 'AAS', value: ({ load }) => load, order: 'load' },
  calls: { title: 'calls', value: ({ cost }) => cost?.callsPerSecond ?? -1, order: 'calls' },
  mean: { title: 'mean', value: ({ cost }) => cost?.meanMs ?? -1, order: 'mean' },
  p95: { title: 'p95', value: ({ cost }) => cost?.p95Ms ?? -1, order: 'p95' },
  total: { title: 'total time', value: ({ cost }) => cost?.totalMs ?? -1, order: 'time' },
  rows: { title: 'rows', value: ({ cost }) => cost?.rows ?? -1, order: 'rows' },
  reads: { title: 'reads', value: ({ cost }) => cost?.reads ?? -1, order: 'reads' },
  temp: { title: 'temp', value: ({ cost }) => cost?.temp ?? -1, order: 'temp' },
  errors: { title: 'errors', value: ({ cost }) => cost?.errors ?? -1, order: 'errors' },
  last: { title: 'last call', value: ({ cost }) => cost?.lastCall ?? -1, order: 'last_call' },
  query: { title: 'query', value: ({ text, id }) => (text ?? id).toLowerCase(), order: 'load' },
  user: { title: 'user', value: ({ cost }) => cost?.users ?? '', order: 'load' },
  database: { title: 'database', value: ({ cost }) => cost?.databases ?? '', order: 'load' },
}

/** Numbers with the largest first, texts by the alphabet; all other queries are last. */
export function sorted(all: Query[], sort: Sort): Query[] {
  const { value } = COLUMNS[sort]
  const compared = (a: Query, b: Query) => {
    const [x, y] = [value(a), value(b)]
    return typeof x === 'number' && typeof y === 'number' ? y - x : String(x).localeCompare(String(y))
  }
  const rest = (query: Query) => Number(query.id === REST)
  return all.toSorted((a, b) => rest(a) - rest(b) || compared(a, b) || b.load - a.load)
}

/** Queries whose text or number has all the words. */
export function matching(all: Query[], find: string | null): Query[] {
  const wanted = (find ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  if (wanted.length === 0) return all
  const has = ({ id, text }: Query) => wanted.every((word) => `${id} ${text ?? ''}`.toLowerCase().includes(word))
  return all.filter((query) => query.id !== REST && has(query))
}
