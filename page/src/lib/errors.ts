// Errors by SQLSTATE: a line for each class over time, and the codes of each query.

import type { Row } from './api'

/** Errors with one SQLSTATE. */
export interface Code {
  sqlstate: string
  /** `unique_violation`, or the name of the class if the code has none. */
  name: string
  errors: number
}

/** A class of SQLSTATEs, such as 23. */
export interface Kind {
  code: string
  name: string
  errors: number
  /** Errors a second by bucket. */
  values: (number | null)[]
}

const NOT_KNOWN = 'SQLSTATE not known'
const textOf = (value: unknown) => (typeof value === 'string' ? value : null)

/** The key of a statement in the answers of statements_history and errors_history. */
export const statementOf = (row: Row) => `${row.query_id ?? ''} ${row.username ?? ''} ${row.database ?? ''} ${row.toplevel ?? ''}`

/** The codes of each statement, the most frequent first. */
export function codesOf(rows: Row[]): Map<string, Code[]> {
  const codes = new Map<string, Code[]>()
  for (const row of rows) {
    const [sqlstate, of] = [textOf(row.sqlstate), statementOf(row)]
    if (sqlstate === null || row.key === '(other)') continue
    const code = { sqlstate, name: textOf(row.condition) ?? textOf(row.class_name) ?? '', errors: Number(row.errors) }
    codes.set(of, [...(codes.get(of) ?? []), code].toSorted((a, b) => b.errors - a.errors))
  }
  return codes
}

const startOf = (row: Row) => Date.parse(String(row.period_start))

/** Errors of all statements by begin of bucket, in the order of time; null where nothing was recorded. */
export function failures(rows: Row[]): Map<number, number | null> {
  const all = new Map<number, number | null>()
  for (const row of rows.toSorted((a, b) => startOf(a) - startOf(b))) {
    const known = all.get(startOf(row)) ?? null
    all.set(startOf(row), row.errors === null ? known : (known ?? 0) + Number(row.errors))
  }
  return all
}

/** Number of errors without an SQLSTATE, if a part of the window was recorded without SQLSTATEs. The
 *  two tables are read one after the other, so that a few errors are in neighbouring buckets. */
export function unnamed(rows: Row[], failed: Map<number, number | null>): number {
  const named = new Set(rows.map(startOf))
  const isWhole = [...failed].every(([start, errors]) => !errors || named.has(start))
  const sum = (all: (number | null)[]) => all.reduce<number>((a, b) => a + (b ?? 0), 0)
  return isWhole ? 0 : Math.max(0, sum([...failed.values()]) - sum(rows.map(({ errors }) => Number(errors))))
}

/** Errors a second by class and bucket of `failed`, the most frequent class first. A bucket has
 *  null where nothing was recorded, or errors without SQLSTATEs. Rows of other buckets are left
 *  out. */
export function kinds(rows: Row[], failed: Map<number, number | null>): Kind[] {
  const found = new Map<string, Kind>()
  const places = new Map([...failed.keys()].map((start, i) => [start, i]))
  const named = new Set(rows.map(startOf))
  const none = [...failed].map(([start, errors]) => (errors === 0 || named.has(start) ? 0 : null))
  for (const row of rows) {
    const place = places.get(startOf(row))
    if (place === undefined) continue
    const code = textOf(row.sqlstate)?.slice(0, 2) ?? ''
    const kind = found.get(code) ?? { code, name: textOf(row.class_name) ?? (code === '' ? NOT_KNOWN : ''), errors: 0, values: [...none] }
    found.set(code, kind)
    kind.errors += Number(row.errors)
    kind.values[place] = (kind.values[place] ?? 0) + Number(row.errors_per_second ?? 0)
  }
  return [...found.values()].toSorted((a, b) => b.errors - a.errors)
}
