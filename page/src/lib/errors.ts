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

/** Errors a second by class and bucket, the most frequent class first. Buckets that are not in
 *  `starts` are left out. */
export function kinds(rows: Row[], starts: number[]): Kind[] {
  const found = new Map<string, Kind>()
  const places = new Map(starts.map((start, i) => [start, i]))
  for (const row of rows) {
    const place = places.get(Date.parse(String(row.period_start)))
    if (place === undefined) continue
    const code = textOf(row.sqlstate)?.slice(0, 2) ?? ''
    const kind = found.get(code) ?? { code, name: textOf(row.class_name) ?? (code === '' ? NOT_KNOWN : ''), errors: 0, values: starts.map(() => 0) }
    found.set(code, kind)
    kind.errors += Number(row.errors)
    kind.values[place] = (kind.values[place] ?? 0) + Number(row.errors_per_second ?? 0)
  }
  return [...found.values()].toSorted((a, b) => b.errors - a.errors)
}
