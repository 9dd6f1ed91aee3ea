// Findings of `changes`: causes of a changed load, and the load that changed, from its rows.

import type { Row } from './api'
import { filterText } from './filter'
import { type Dimension, type Tab, type View, isDimension } from './view'

/** True if the earlier window was recorded. If it was not, all load looks like more than before. */
export const isComparable = (rows: Row[]) => Number(rows[0]?.before_coverage_pct ?? 0) > 0

export const isEffect = (row: Row) => row.kind === 'effect'

/** A folded list leaves out queries with less than this percentage of the difference. */
const LITTLE = 1

/** The rows of a folded list, at most `most`: the first causes and notes, then the queries with
 *  most of the difference. */
export function folded(rows: Row[], most: number): Row[] {
  const first = rows.filter((row) => !isEffect(row) && (row.pct !== null || row.kind === 'note'))
  const queries = rows.filter((row) => isEffect(row) && row.dimension === 'query_id' && Math.abs(Number(row.pct ?? 0)) >= LITTLE)
  const causes = first.slice(0, Math.max(1, most - Math.min(queries.length, most - 1)))
  return [...causes, ...queries].slice(0, most)
}

/** The sentence of a row. It lacks the name of its query if the text of the query stands beside it. */
export function sentence(row: Row): string {
  const text = String(row.explanation ?? '')
  const name = `query ${row.key} `
  return row.query_text !== null && isEffect(row) && text.startsWith(name) ? text.slice(name.length) : text
}

/** Maximum number of letters of a query's text in a sentence. */
const SHORT = 60

/** A sentence with the texts of queries instead of their ids, as in the headline. */
export function withTexts(sentence: string, rows: Row[]): string {
  const texts = new Map(rows.filter((row) => isEffect(row) && row.dimension === 'query_id' && row.query_text !== null).map((row) => [row.key, String(row.query_text)]))
  return sentence.replace(/query (-?\d+)/g, (name, id: string) => {
    const text = texts.get(id)?.replace(/\s+/g, ' ').trim()
    return text === undefined ? name : `"${text.length > SHORT ? `${text.slice(0, SHORT)}…` : text}"`
  })
}

/** Ids of the queries that a cause explains. */
export const explained = (row: Row): string[] => String(row.explains ?? '').split(', ').filter((id) => /^-?\d+$/.test(id))

/** Views of causes that are no events. */
const LED = new Map<string, Tab>([['connections', 'server'], ['host', 'server'], ['replica', 'server'], ['table', 'tables']])

/** The view that shows a finding: the queue, the query, the event, or the load of a key. */
export function viewOf(row: Row, view: View): Partial<View> {
  const [dimension, key] = [String(row.dimension ?? ''), String(row.key ?? '')]
  const started = row.started === null ? null : Date.parse(String(row.started))
  const only = (name: Dimension, value = key): Partial<View> => ({ tab: 'queries', filters: { ...view.filters, [name]: filterText({ values: [value], not: false }) } })
  if (dimension === 'blocker' || dimension === 'root_blocker') return { tab: 'locks', at: view.live === null ? middle(row) : null }
  if (dimension === 'clients' || dimension === 'statement') return only('query_id')
  const led = LED.get(dimension)
  if (led) return { tab: led }
  if (dimension === 'snapshot') return { ...only('pid'), tab: 'sessions' }
  const query = explained(row)[0]
  if (dimension === 'planner' && query !== undefined) return only('query_id', query)
  if (row.kind === 'cause') return { tab: 'events', at: started }
  return isDimension(dimension) && !key.startsWith('(') ? only(dimension) : { tab: 'dimensions' }
}

function middle(row: Row): number | null {
  const [from, to] = [row.started, row.ended ?? row.started].map((time) => (time === null ? NaN : Date.parse(String(time))))
  return Number.isNaN(from! + to!) ? null : Math.round((from! + to!) / 2)
}
