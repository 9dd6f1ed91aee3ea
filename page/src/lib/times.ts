// Times as people type them. The server reads each of them, as it does for a command line:
// 03:12, yesterday 14:00, 2026-11-21 03:12, 1h.

export interface Typed {
  since: string
  until: string
  /** One moment: how much is shown around it is not said. */
  isMoment: boolean
}

const CLOCK = /^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$/
const DAY = /^(today|yesterday|\d{4}-\d{2}-\d{2})(?=[ T]|$)/
/** Between two times; a hyphen without spaces only where it begins no offset. */
const BETWEEN = /\s*(?:–|—|\.\.)\s*|\s+(?:-|to|until)\s+/
const CLOCKS = /^((?:(?:today|yesterday)\s+)?\d{1,2}:\d{2}(?::\d{2})?)-(\d{1,2}:\d{2}(?::\d{2})?)$/

/** What was typed; null where it is more than two times. */
export function typed(text: string): Typed | null {
  const clocks = CLOCKS.exec(text.trim())
  const [since = '', until, ...more] = clocks ? [clocks[1]!, clocks[2]!] : text.trim().split(BETWEEN)
  if (more.length > 0) return null
  const day = DAY.exec(since)?.[1]
  if (until !== undefined) return { since, until: day && CLOCK.test(until) ? `${day} ${until}` : until, isMoment: false }
  if (day === since) return { since, until: since === 'yesterday' ? 'today' : 'now', isMoment: false }
  return { since, until: 'now', isMoment: day !== undefined || since.includes(':') }
}
