// Times are milliseconds since 1970. The page's time zone is UTC or the browser's.

export type Zone = 'UTC' | 'local'
export interface Span {
  since: number
  until: number
}

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** In longer windows queries are not split by wait: the history stores sums by one dimension only,
 *  so a split would read all samples. */
export const SPLIT = 7 * DAY

/** The narrowest window of the page. */
export const NARROWEST = 2 * SECOND

/** Widths of buckets that people understand at once. */
const WIDTHS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7].map((n) => n * DAY),
]

/** The smallest of these widths with which a window has at most `most` buckets. */
export function bucketOf(span: Span, most: number): number {
  const least = (span.until - span.since) / most
  return WIDTHS.find((width) => width >= least) ?? Math.ceil(least / (7 * DAY)) * 7 * DAY
}

/** Step in ms with which a live window moves for questions that need not follow each tick. */
const STEADY = 5 * SECOND
/** The window for such a question: if live, it ends at a multiple of the step, so that panels
 *  with the same question share its answer. */
export function steady(window: Span, live: number | null, step = STEADY): Span {
  if (live === null) return window
  const until = Math.floor(window.until / step) * step
  return { since: until - live, until }
}

/** Writes a time as RFC 3339 in UTC, as in arguments and the address; as short as possible without
 *  loss. */
export function rfc3339(time: number): string {
  return new Date(Math.round(time)).toISOString().replace(/\.000Z$/, 'Z')
}

/** A width in an argument's form. */
export function interval(width: number): string {
  return width % SECOND === 0 ? `${width / SECOND}s` : `${width}ms`
}

/** The server's name of a zone. */
export function zoneName(zone: Zone): string {
  return zone === 'UTC' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone
}

const formats = new Map<string, Intl.DateTimeFormat>()

function parts(time: number, zone: Zone): Record<string, string> {
  const timeZone = zoneName(zone)
  let format = formats.get(timeZone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'short',
      weekday: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    })
    formats.set(timeZone, format)
  }
  return Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]))
}

/** 05:30, or 05:30:07 with seconds. */
export function clock(time: number, zone: Zone, seconds = true): string {
  const p = parts(time, zone)
  return `${p.hour}:${p.minute}` + (seconds ? `:${p.second}` : '')
}

/** Writes a day as "Sun 1 Nov", with the year if it is not the current one. */
export function day(time: number, zone: Zone, now = Date.now()): string {
  const p = parts(time, zone)
  const year = p.year === parts(now, zone).year ? '' : ` ${p.year}`
  return `${p.weekday} ${p.day} ${p.month}${year}`
}

/** Sun 1 Nov 05:30:07 */
export function moment(time: number, zone: Zone): string {
  return `${day(time, zone)} ${clock(time, zone)}`
}

/** A time beside a window: with its day if the clock alone could mean another day. */
export function timeIn(time: number, { since, until }: Span, zone: Zone): string {
  const isOfDay = until - since <= DAY && time <= until && time > until - DAY
  return isOfDay ? clock(time, zone) : moment(time, zone)
}

/** Writes a window as "Mon 23 Nov, 05:30 – 05:50", with both days if they differ. */
export function windowText({ since, until }: Span, zone: Zone): string {
  const seconds = since % MINUTE !== 0 || until % MINUTE !== 0
  const [from, to] = [day(since, zone), day(until, zone)]
  const head = `${from}, ${clock(since, zone, seconds)} – `
  return head + (from === to ? '' : `${to}, `) + clock(until, zone, seconds)
}

const UNITS: [number, string][] = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
]

/** Writes a length with its two largest units that are not zero: 90 s as "1 min 30 s". */
export function duration(length: number): string {
  if (length < SECOND) return `${Math.round(length)} ms`
  let rest = length < MINUTE ? length : Math.round(length / SECOND) * SECOND
  const said: string[] = []
  for (const [unit, name] of UNITS) {
    if (said.length === 2) break
    const tenths = unit === SECOND && said.length === 0
    const count = tenths ? Math.round((rest / unit) * 10) / 10 : Math.floor(rest / unit)
    if (count > 0) said.push(`${count} ${name}`)
    else if (said.length > 0) break
    rest -= count * unit
  }
  return said.join(' ')
}

/** At most `most` round times of a window, and their texts. */
export function ticks(span: Span, most: number, zone: Zone): { time: number; text: string }[] {
  const step = bucketOf(span, most)
  const ahead = zone === 'UTC' ? 0 : -new Date(span.since).getTimezoneOffset() * MINUTE
  const first = Math.ceil((span.since + ahead) / step) * step - ahead
  const count = Math.max(0, Math.ceil((span.until - first) / step))
  return Array.from({ length: count }, (_, i) => first + i * step).map((time) => ({
    time,
    text: step < DAY ? clock(time, zone, step < MINUTE) : day(time, zone),
  }))
}

/** A window, moved by a share of its length. */
export function moved({ since, until }: Span, share: number): Span {
  const by = Math.round((until - since) * share)
  return { since: since + by, until: until + by }
}

/** A window of the same length that ends at `end` at the latest. */
export function endingBy(span: Span, end: number): Span {
  const by = Math.max(0, span.until - end)
  return { since: span.since - by, until: span.until - by }
}

/** A window, extended by a share of its length at its begin or its end. */
export function widened({ since, until }: Span, share: number, at: 'begin' | 'end'): Span {
  const by = Math.round((until - since) * share)
  return at === 'begin' ? { since: since - by, until } : { since, until: until + by }
}

/** A window, scaled around one of its moments. */
export function scaled({ since, until }: Span, factor: number, around = (since + until) / 2): Span {
  const length = Math.max((until - since) * factor, NARROWEST)
  const share = until > since ? (around - since) / (until - since) : 0.5
  const begin = Math.round(around - share * length)
  return { since: begin, until: begin + Math.round(length) }
}

const STEPS: Record<string, number> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

/** Parses 15m, 2h and the like; null for other texts. */
export function parseLength(text: string): number | null {
  const found = /^(\d{1,6})([smhd])$/.exec(text)
  const length = found ? Number(found[1]) * (STEPS[found[2] ?? ''] ?? 0) : 0
  return length > 0 ? length : null
}

/** The shortest text that parseLength reads. */
export function lengthText(length: number): string {
  const unit = Object.entries(STEPS).findLast(([, step]) => length % step === 0)
  return unit ? `${length / unit[1]}${unit[0]}` : `${Math.round(length / SECOND)}s`
}
