// Statements that may change how others run: DDL, GRANT, VACUUM, ANALYZE, DO and LOCK.

import type { Row } from './api'

const CHANGES = /^(?:\s|--[^\n]*\n|\/\*[^]*?\*\/)*(create|alter|drop|reindex|cluster|truncate|refresh|vacuum|analyze|grant|revoke|comment|reassign|security|import|do|lock)\b/i

export const changes = (text: unknown): boolean => typeof text === 'string' && CHANGES.test(text)

/** Ids of such statements, as a filter. */
export function changing(rows: Row[]): string {
  return [...new Set(rows.filter((row) => changes(row.query_text)).map((row) => String(row.query_id)))].join(',')
}
