// Sessions as lanes: one for each, what it did as spans.

import type { Asked, Picture, Row } from './api'
import type { Span } from './time'

export interface Piece extends Span {
  /** Wait class, CPU, or what else it was: idle in transaction. */
  kind: string
  /** Share of it at work or waiting. */
  share: number
  /** What it did, most of it. */
  doing: Row
}
export interface Lane {
  id: string
  pid: number
  who: string
  pieces: Piece[]
  /** How long others waited for it, in ms, each for itself; 0 when it waited, too. */
  held: number
}

/** What a session is drawn as. */
export function kindOf(doing: Row): string {
  if ((doing.state as string | null)?.startsWith('idle in transaction')) return 'idle in transaction'
  return (doing.wait_event_type as string | null) ?? 'CPU'
}

/** Lanes of a window that begins then, in the order of the answer. */
export function lanes({ rows, doings }: Picture, begin: number): Lane[] {
  const kinds = doings.map(kindOf)
  return rows.map((row) => ({
    id: `${row.pid} ${row.backend_start}`,
    pid: Number(row.pid),
    who: whoOf(row),
    held: 1000 * Number(row.held_seconds),
    pieces: row.spans.map(([since, length, doing, busy]) => ({
      since: begin + since,
      until: begin + since + length,
      kind: kinds[doing]!,
      share: length > 0 ? busy / length : 1,
      doing: doings[doing]!,
    })),
  }))
}

function whoOf(row: Row): string {
  const application = row.application as string | null
  return application || (row.username as string | null) || String(row.backend_type ?? '')
}

/** What a session did at a moment. */
export function pieceAt(lane: Lane, time: number): Piece | null {
  return lane.pieces.find((piece) => piece.since <= time && time < piece.until) ?? null
}

/** The question of the figures behind lanes, which can be asked elsewhere too. */
export function figures(asked: Asked): Asked {
  const { width: _, ...args } = asked.args
  return { function: 'sessions', args: { ...args, n: String(2 * Number(args.n)) } }
}
