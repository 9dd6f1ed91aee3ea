// Times as people type them. The server parses each of them, as for a command line: 03:12,
// yesterday 14:00, 2026-11-21 03:12, 1h.

export interface Typed {
  since: string
  until: string
  /** True for one moment, without a length of the window around it. */
  isMoment: boolean
}

const CLOCK = /^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$/
const DAY = /^(today|yesterday|\d{4}-\d{2}-\d{2})(?=[ T]|$)/
/** Separators of two times. A hyphen without spaces counts only if it does not begin an offset. */
const BETWEEN = /\s*(?:–|—|\.\.)\s*|\s+(?:-|to|until)\s+/
const CLOCKS = /^((?:(?:today|yesterday)\s+)?\d{1,2}:\d{2}(?::\d{2})?)-(\d{1,2}:\d{2}(?::\d{2})?)$/

/** The typed window or moment; null for more than two times. */
export function typed(text: string): Typed | null {
  const clocks = CLOCKS.exec(text.trim())
  const [since = '', until, ...more] = clocks ? [clocks[1]!, clocks[2]!] : text.trim().split(BETWEEN)
  if (more.length > 0) return null
  const day = DAY.exec(since)?.[1]
  if (until !== undefined) return { since, until: day && CLOCK.test(until) ? `${day} ${until}` : until, isMoment: false }
  if (day === since) return { since, until: since === 'yesterday' ? 'today' : 'now', isMoment: false }
  return { since, until: 'now', isMoment: day !== undefined || since.includes(':') }
}
