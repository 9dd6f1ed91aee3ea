// The earlier window of a comparison.

import type { Asked, Row } from './api'
import { filteredArgs } from './args'
import { filterText } from './filter'
import { type Series, bucketAt } from './series'
import { type Span, DAY, rfc3339 } from './time'
import { grouped } from './units'
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

/** Arguments in which questions about the same server and filters may differ. */
const OWN = ['since', 'until', 'since_1', 'until_1', 'since_2', 'until_2', 'dimension', 'by', 'n', 'bucket', 'order_by']
/** Share of a live window by which it may move between two answers. */
const LAG = 0.1

/** Whether an answer is about the earlier window of the one on the screen, with the same server and filters. */
export function isEarlier({ args }: Asked, now: Asked | null, view: View): boolean {
  if (!now || !view.compare) return false
  const [begin, end] = [args.since_1 ?? args.since, args.until_1 ?? args.until]
  return isNear({ since: Date.parse(begin!), until: Date.parse(end!) }, earlier(windowOf(now), view.compare), view) && hasSameFilters(args, now.args, args.dimension)
}

/** Whether an answer is about the window of the one on the screen, with the same server and filters. */
export function isBeside(answered: Asked, now: Asked | null, view: View): boolean {
  return now !== null && isNear(windowOf(answered), windowOf(now), view) && hasSameFilters(answered.args, now.args)
}

const windowOf = ({ args }: Asked): Span => ({ since: Date.parse(args.since!), until: Date.parse(args.until!) })

/** Whether two windows are the same; in a live view they may differ a little. */
function isNear(one: Span, other: Span, { live }: View): boolean {
  const apart = Math.max(Math.abs(one.since - other.since), Math.abs(one.until - other.until))
  return apart <= (live === null ? 0 : LAG * (other.until - other.since))
}

/** Whether two answers are about the same server and have the same filters, but for one of them: a
 *  comparison asks for certain keys of its dimension. */
export function hasSameFilters(one: Asked['args'], other: Asked['args'], but?: string): boolean {
  const own = new Set([...OWN, but])
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => !own.has(name))
  return names.every((name) => one[name] === other[name])
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
  const text = grouped(Math.abs(now - before), 2)
  if (Number(text.replaceAll(',', '')) === 0) return text
  return (now > before ? '+' : '−') + text
}

/** A factor such as `× 3.6`, or why there is none: `same`, `new` or `gone`. */
export function factor(now: number, before: number): string {
  if (now === before) return 'same'
  if (before === 0) return 'new'
  if (now === 0) return 'gone'
  const times = now / before
  return `× ${times >= 9.95 ? grouped(Math.round(times)) : times.toFixed(times < 0.995 ? 2 : 1)}`
}
