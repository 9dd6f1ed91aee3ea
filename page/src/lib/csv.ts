// An answer as comma-separated values (RFC 4180); null is empty.

import type { Answer, Value } from './api'

/** What a spreadsheet would take for a formula. Names are input of others; a
 *  number, such as a query id, is none. */
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
