// The earlier window of a comparison.

import type { Asked, Row } from './api'
import { filteredArgs } from './args'
import { filterText } from './filter'
import { type Series, bucketAt } from './series'
import { type Span, DAY, rfc3339 } from './time'
import type { Dimension, View } from './view'

export const COMPARED = ['previous', 'day', 'week'] as const
export type Compared = (typeof COMPARED)[number]

/** Names for people. */
export const EARLIER: Record<Compared, string> = {
  previous: 'previous window',
  day: 'the day before',
  week: 'a week before',
}

/** How much earlier the compared window begins, in ms. */
export function shiftOf({ since, until }: Span, compared: Compared): number {
  return { previous: until - since, day: DAY, week: 7 * DAY }[compared]
}

/** A window of the same length, and earlier. */
export function earlier(span: Span, compared: Compared): Span {
  const shift = shiftOf(span, compared)
  return { since: span.since - shift, until: span.until - shift }
}

/** The earlier window of a view; null without a comparison. */
export function earlierOf(view: View, window: Span | null): Span | null {
  return window && view.compare && earlier(window, view.compare)
}

/** Asks for the load of keys of a dimension in both windows. Null without keys. */
export function comparison(view: View, window: Span | null, dimension: Dimension, keys: string[]): Asked | null {
  const before = earlierOf(view, window)
  if (!window || !before || keys.length === 0) return null
  const { since, until, ...others } = filteredArgs(view, window)
  const windows = { since_1: rfc3339(before.since), until_1: rfc3339(before.until), since_2: since!, until_2: until! }
  return {
    function: 'compare',
    args: { dimension, ...others, ...windows, [dimension]: filterText({ values: keys, not: false }), n: 'all' },
  }
}

/** Arguments in which questions about two windows may differ, besides the dimension's own. */
const OWN = ['since', 'until', 'since_1', 'until_1', 'since_2', 'until_2', 'dimension', 'by', 'n', 'bucket']
/** Share of a live window by which it may move between two answers. */
const LAG = 0.1

/** Whether an answer is about the earlier window of the one on the screen, with the same server and filters. */
export function isEarlier({ args }: Asked, now: Asked | null, { compare, live }: View): boolean {
  if (!now || !compare) return false
  const window = { since: Date.parse(now.args.since!), until: Date.parse(now.args.until!) }
  const [then, begin, end] = [earlier(window, compare), args.since_1 ?? args.since, args.until_1 ?? args.until]
  const apart = Math.max(Math.abs(Date.parse(begin!) - then.since), Math.abs(Date.parse(end!) - then.until))
  const own = new Set([...OWN, args.dimension])
  const others = [...new Set([...Object.keys(args), ...Object.keys(now.args)])].filter((name) => !own.has(name))
  return apart <= (live === null ? 0 : LAG * (window.until - window.since)) && others.every((name) => args[name] === now.args[name])
}

/** Earlier load, by key. */
export function loadsBefore(rows: Row[]): Map<string, number> {
  const known = rows.filter((row) => row.avg_aas_1 !== null)
  return new Map(known.map((row) => [(row.key as string | null) ?? '(null)', Number(row.avg_aas_1)]))
}

/** Why the two windows cannot simply be compared, in the page's words. */
export function noteOf(rows: Row[], compared: Compared | null): string | null {
  const note = rows[0]?.note
  if (typeof note !== 'string' || !compared) return null
  return note.replace('window 1', EARLIER[compared]).replace('window 2', 'this window')
}

/** Values of an earlier series at the middle of steps; null where it has none. */
export function valuesBefore(times: number[], before: Series, shift: number): (number | null)[] {
  return times.slice(0, -1).map((time, i) => {
    const found = bucketAt(before.times, (time + times[i + 1]!) / 2 - shift)
    return found < 0 ? null : (before.loads[0]?.[found] ?? null)
  })
}

/** Writes the difference to the earlier load: +1.20, −0.35 or 0.00. */
export function difference(now: number, before: number): string {
  const text = Math.abs(now - before).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
  if (Number(text.replaceAll(',', '')) === 0) return text
  return (now > before ? '+' : '−') + text
}

/** A factor such as `× 3.6`, or why there is none: `same`, `new` or `gone`. */
export function factor(now: number, before: number): string {
  if (now === before) return 'same'
  if (before === 0) return 'new'
  if (now === 0) return 'gone'
  const times = now / before
  return `× ${times >= 9.95 ? Math.round(times).toLocaleString('en-US') : times.toFixed(times < 0.995 ? 2 : 1)}`
}
