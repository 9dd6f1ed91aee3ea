// An answer as comma-separated values (RFC 4180); null becomes empty.

import type { Answer, Value } from './api'

/** Texts that a spreadsheet would take for a formula. Names come from others. A number, such as a
 *  query id, is not a formula. */
const FORMULA = /^(?!-?\d+$)[=+\-@\t\r]/

function cell(value: Value | undefined): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) || text === '' ? `"${text.replaceAll('"', '""')}"` : text
}

export function csv({ columns, rows }: Answer): string {
  const names = columns.map(({ name }) => name)
  const lines = [names, ...rows.map((row) => names.map((name) => row[name]))]
  return lines.map((line) => line.map(cell).join(',') + '\r\n').join('')
}
