// Places for the flags of events above a chart, so that no flag covers another.

import type { Row } from './api'
import type { Span } from './time'

export interface Flag {
  /** Distance from the left edge of the picture, in pixels. */
  left: number
  /** Width that the flag may take, in pixels: it ends before the next flag. */
  room: number
  text: { is: string; fits: boolean }
  /** The events of this flag, the earliest first. */
  all: Row[]
}

/** Events closer than this many pixels share a flag, so that every flag is wide enough for a
 *  finger. */
const NEAR = 26
/** The text of a flag is left out if the flag has less room than this, in pixels. */
const LEAST = 64
const MOST = 180

// what somebody wrote says more than that somebody did
const what = (row: Row) => String((row.kind === 'mark' ? row.detail : row.kind) ?? '')

/** Events of the span in a picture with this width and the margin behind it, in pixels. */
export function flagsOf(rows: Row[], span: Span, width: number, margin: number): Flag[] {
  const timed = rows.map((row) => ({ row, time: Date.parse(String(row.marker_time)) }))
  const inside = timed.filter(({ time }) => time >= span.since && time <= span.until).sort((a, b) => a.time - b.time)
  const flags: { left: number; all: Row[] }[] = []
  for (const { row, time } of inside) {
    const left = Math.round(((time - span.since) / (span.until - span.since)) * width)
    const last = flags.at(-1)
    if (last && left - last.left < NEAR) last.all.push(row)
    else flags.push({ left, all: [row] })
  }
  return flags.map(({ left, all }, i) => {
    const room = Math.max(NEAR - 2, Math.min(MOST, (flags[i + 1]?.left ?? width + margin) - left - 2))
    const kinds = new Set(all.map(what))
    const is = kinds.size === 1 ? `${all.length > 1 ? `${all.length} × ` : ''}${what(all[0]!)}` : `${all.length} events`
    return { left, room, text: { is, fits: room >= LEAST }, all }
  })
}
