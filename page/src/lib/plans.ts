// Plans of a query: when each of them ran, and when the query turned from one to another.

import type { Asked, Row } from './api'
import { statementArgs } from './args'
import type { Series } from './series'
import { SECOND, type Span, steady } from './time'
import { DASH, grouped, ms } from './units'
import type { View } from './view'

/** A piece of a lane, in percent of the window. */
export interface Piece {
  left: number
  width: number
}
export interface PlanLane {
  id: string
  /** The time from the first to the last counted execution; null if none was counted. */
  counted: Piece | null
  /** The times in which samples show the plan. */
  seen: Piece[]
}

const within = (span: Span, since: number, until: number): Piece => {
  const at = (time: number) => (100 * (Math.min(Math.max(time, span.since), span.until) - span.since)) / (span.until - span.since)
  return { left: at(since), width: Math.max(0, at(until) - at(since)) }
}

/** A lane for each plan: the plans of `plans` first, then plans that only samples know. */
export function planLanes(plans: Row[], { times, keys, loads }: Series, span: Span): PlanLane[] {
  const known = plans.filter((row) => row.plan_id !== null)
  const sampled = keys.filter((key) => /^-?\d+$/.test(key))
  const ids = [...new Set([...known.map((row) => String(row.plan_id)), ...sampled])]
  return ids.map((id) => {
    const own = known.filter((row) => row.plan_id === id)
    const [first, last] = [own.map((row) => Date.parse(String(row.first_seen))), own.map((row) => Date.parse(String(row.last_seen)))]
    const seen: Piece[] = []
    for (const [i, load] of (loads[keys.indexOf(id)] ?? []).entries()) {
      if (!load) continue
      const piece = within(span, times[i]!, times[i + 1]!)
      const before = seen.at(-1)
      if (before && Math.abs(before.left + before.width - piece.left) < 1e-6) before.width += piece.width
      else seen.push(piece)
    }
    return { id, counted: own.length > 0 ? within(span, Math.min(...first), Math.max(...last)) : null, seen }
  })
}

/** The ratio of two durations: `×1,050`, or `×0.02`. */
export function times(ratio: unknown): string {
  if (ratio === null || ratio === undefined) return DASH
  const value = Number(ratio)
  return `×${value >= 9.995 ? grouped(Math.round(value)) : String(Number(value.toPrecision(2)))}`
}

/** Mean execution times by the old and the new plan, and their ratio: `200 µs → 210 ms, ×1,050`. */
export const turned = (row: Row) => `${ms(row.old_mean_exec_time as number | null)} → ${ms(row.new_mean_exec_time as number | null)}, ${times(row.ratio)}`

/** The question for changes of plans, which several panels ask in the same words: for windows of at
 *  most `longest` ms, because all statistics of the window are read. Null: not known yet. */
export function planQuestion(view: View, window: Span, longest: number | null): Asked | null {
  if (longest === null || window.until - window.since > longest) return null
  const span = steady(window, view.live, 30 * SECOND)
  return { function: 'plan_changes', args: statementArgs(view, span) }
}

/** Changes of plans as events of the load. */
export const planFlags = (changes: Row[]): Row[] =>
  changes.map((row) => ({
    marker_time: row.changed_at!,
    kind: 'plan changed',
    detail: `${turned(row)}: ${String(row.query_text ?? `query ${row.query_id}`).replace(/\s+/g, ' ').slice(0, 200)}`,
    query_id: row.query_id!,
  }))

/** Mean CPU time of an execution by the plan in a row of `plans`, in ms; null if it is not known. */
export const cpuPerCall = ({ cpu_time, calls }: Row) => (cpu_time === null || cpu_time === undefined || !calls ? null : Number(cpu_time) / Number(calls))

/** A node of a plan: its lines of EXPLAIN, and what the other plan has in its place. */
export interface PlanNode {
  text: string
  isMarked: boolean
  other: string
  /** The counted rows, if the estimate is wrong: "▲ 5,000 rows, ×50 of the estimate". */
  misestimate: string | null
}
/** A way back to a plan. */
export interface Way {
  name: 'hint' | 'advice'
  extension: string
  /** The place for the text. */
  where: string
  /** The text; null if there is none that brings the plan back. */
  text: string | null
  /** Sentences about choices of the plan that the text lacks. */
  lacks: string[]
}
export interface PlanTree {
  id: string
  /** "generic" or "custom"; null if it is not known. */
  type: string | null
  /** When it was recorded. */
  recorded: string
  /** When its rows were counted; null if they were not. */
  measured: string | null
  ways: Way[]
  /** Settings of the planner that were not the default, such as "work_mem = 64MB". */
  settings: string[]
  /** When each table was analyzed last before the plan was recorded, if it is known. */
  analyzed: { table: string; at: string }[]
  nodes: PlanNode[]
  json: string
}

/** Ratio of rows to estimated rows from which an estimate is wrong. Smaller ratios rarely change a plan. */
const WRONG = 10

/** The counted rows of a node as words, if they are a misestimate. A lower bound is no misestimate. */
export function misestimate({ rows, actual_rows, is_lower_bound }: Row): string | null {
  if (actual_rows === null || actual_rows === undefined || is_lower_bound === true) return null
  const ratio = Math.max(Number(actual_rows), 1) / Math.max(Number(rows), 1)
  if (ratio < WRONG && ratio > 1 / WRONG) return null
  return `${ratio > 1 ? '▲' : '▼'} ${grouped(Math.round(Number(actual_rows)))} rows, ${times(ratio)} of the estimate`
}

/** A text that may be missing. */
const textOf = (value: unknown) => (value === null || value === undefined ? null : String(value))
/** The lines of a text that may be missing. */
export const lines = (text: unknown) => String(text ?? '').split('\n').filter(Boolean)

/** The ways back in a row of `plan` or `plan_changes`. `of` stands before the names of the columns. */
export function waysBack(row: Row, of = ''): Way[] {
  const way = (name: Way['name'], extension: string, where: string): Way => ({ name, extension, where, text: textOf(row[`${of}${name}`]), lacks: lines(row[`${of}${name}_lacks`]) })
  const all = [
    way('hint', 'pg_hint_plan', 'in front of the query where pg_hint_plan is loaded'),
    way('advice', 'pg_stash_advice', 'as commands where pg_stash_advice is loaded (PostgreSQL 19); the query stays as it is'),
  ]
  return all.filter(({ text, lacks }) => text !== null || lacks.length > 0)
}

/** The meaning of a plan's type. */
export const TYPES: Record<string, string> = {
  custom: 'Planned for given values of the parameters',
  generic: 'Planned for any values of the parameters',
}

/** The trees in the rows of `plan`, which has one plan after the other. */
export function trees(rows: Row[]): PlanTree[] {
  const found: PlanTree[] = []
  for (const row of rows) {
    if (row.node_number === 1) found.push({ id: String(row.plan_id), recorded: String(row.recorded_at), measured: textOf(row.measured_at), type: textOf(row.plan_type), settings: lines(row.settings), analyzed: [], ways: waysBack(row), nodes: [], json: String(row.plan_json) })
    const tables = found.at(-1)?.analyzed
    const table = [textOf(row.schema), row.relation].filter(Boolean).join('.')
    if (row.analyzed_at != null && !tables?.some((known) => known.table === table)) tables?.push({ table, at: String(row.analyzed_at) })
    const isMarked = row.differs !== null && row.differs !== 'same'
    found.at(-1)?.nodes.push({ text: String(row.explain), isMarked, other: row.differs === 'missing' ? 'nothing like it' : String(row.other), misestimate: misestimate(row) })
  }
  return found
}

/** The tree as EXPLAIN prints it. */
export const asText = (tree: PlanTree) => tree.nodes.map((node) => node.text).join('\n') + '\n'

/** The plans whose trees are shown, after a click on one: two at most, the older choice goes. */
export const chosen = (shown: string[], id: string) => (shown.includes(id) ? shown.filter((other) => other !== id) : [...shown, id].slice(-2))
