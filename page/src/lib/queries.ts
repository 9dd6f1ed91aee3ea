// Joins rows of `top` by query and wait class, and rows of `statements_history`, to one row per query.

import type { Row } from './api'
import type { Part } from '../parts/Bar.svelte'

export interface Cost {
  callsPerSecond: number
  meanMs: number | null
  /** The largest p95 among its users and databases. */
  p95Ms: number | null
  errors: number
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

/** Adds up the rows of a query: of several users, databases, nested or not. */
export function costs(rows: Row[]): Map<string, Cost> {
  const sums = new Map<string, { calls: number; time: number; rate: number; p95: number | null; errors: number }>()
  for (const row of rows) {
    const id = String(row.query_id)
    const sum = sums.get(id) ?? { calls: 0, time: 0, rate: 0, p95: null, errors: 0 }
    sum.calls += number(row.calls)
    sum.time += number(row.total_exec_time)
    sum.rate += number(row.calls_per_second)
    sum.errors += number(row.errors)
    if (typeof row.p95_exec_time === 'number') sum.p95 = Math.max(sum.p95 ?? 0, row.p95_exec_time)
    sums.set(id, sum)
  }
  const cost = ({ calls, time, rate, p95, errors }: { calls: number; time: number; rate: number; p95: number | null; errors: number }): Cost => ({
    callsPerSecond: rate,
    meanMs: calls > 0 ? time / calls : null,
    p95Ms: p95,
    errors,
  })
  return new Map([...sums].map(([id, sum]) => [id, cost(sum)]))
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

/** A filter of the query ids that are numbers and not 0. */
export function idFilter(all: Query[]): string {
  return all
    .map((query) => query.id)
    .filter((id) => /^-?\d+$/.test(id) && id !== '0')
    .join(',')
}
