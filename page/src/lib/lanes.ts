// Sessions as lanes, one each, with pieces of time.

import type { Asked, Picture, Row } from './api'
import type { Span } from './time'

export interface Piece extends Span {
  /** Wait class, CPU, or idle in transaction. */
  kind: string
  /** Share of the piece at work or waiting: 0 to 1. */
  share: number
  /** The session's main activity in the piece. */
  doing: Row
}
export interface Lane {
  id: string
  pid: number
  who: string
  pieces: Piece[]
  /** Time that others waited for the session, ms; 0 if it waited itself. */
  held: number
}

/** The kind of an activity, which decides its colour. */
export function kindOf(doing: Row): string {
  if ((doing.state as string | null)?.startsWith('idle in transaction')) return 'idle in transaction'
  return (doing.wait_event_type as string | null) ?? 'CPU'
}

/** Lanes of a window that begins at `begin`, in the order of the answer. */
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

/** The piece of a lane at a moment. */
export function pieceAt(lane: Lane, time: number): Piece | null {
  return lane.pieces.find((piece) => piece.since <= time && time < piece.until) ?? null
}

/** The question for the figures behind the lanes, which the command line knows as well. */
export function figures(asked: Asked): Asked {
  const { width: _, ...args } = asked.args
  return { function: 'sessions', args: { ...args, n: String(2 * Number(args.n)) } }
}
