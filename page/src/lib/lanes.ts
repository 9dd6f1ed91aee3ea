// Rows of `sessions` as lanes: one for each session, what it did as spans.

import type { Row } from './api'
import type { Span } from './time'

export interface Piece extends Span {
  /** Wait class, CPU, or what else it was: idle in transaction, idle. */
  kind: string
  row: Row
}
export interface Lane {
  id: string
  pid: number
  who: string
  pieces: Piece[]
  /** Time at work or waiting, in ms. */
  busy: number
  /** How long others waited for it, in ms, each for itself; 0 when it waited, too. */
  held: number
}

/** What a span is drawn as; null for what is not drawn. */
export function kindOf(row: Row): string | null {
  if (row.kind !== 'sampled') return null
  const state = row.state as string | null
  if (state?.startsWith('idle in transaction')) return 'idle in transaction'
  if (state === 'idle') return null
  return (row.wait_event_type as string | null) ?? 'CPU'
}

/** Lanes: the heads of queues, then who was busy longest. */
export function lanes(rows: Row[]): Lane[] {
  const found = new Map<string, Lane>()
  for (const row of rows) {
    const id = `${row.pid} ${row.backend_start}`
    const lane = found.get(id) ?? { id, pid: Number(row.pid), who: whoOf(row), pieces: [], busy: 0, held: 0 }
    found.set(id, lane)
    const kind = kindOf(row)
    if (kind === null) continue
    const piece = { since: Date.parse(String(row.span_start)), until: Date.parse(String(row.span_end)), kind, row }
    lane.pieces.push(piece)
    lane.busy += piece.until - piece.since
  }
  const all = [...found.values()].filter((lane) => lane.pieces.length > 0)
  const waits = ({ row }: Piece) => row.blocked_by !== null
  const held = new Map<number, number>()
  for (const { row, since, until } of all.flatMap(({ pieces }) => pieces.filter(waits))) {
    held.set(Number(row.blocked_by), (held.get(Number(row.blocked_by)) ?? 0) + until - since)
  }
  for (const lane of all) if (!lane.pieces.some(waits)) lane.held = held.get(lane.pid) ?? 0
  return all.sort((a, b) => b.held - a.held || b.busy - a.busy || a.pid - b.pid)
}

function whoOf(row: Row): string {
  const application = row.application as string | null
  return application || (row.username as string | null) || String(row.backend_type ?? '')
}

/** What a session did at a moment. */
export function pieceAt(lane: Lane, time: number): Piece | null {
  return lane.pieces.find((piece) => piece.since <= time && time < piece.until) ?? null
}
