// Turns rows of `timeline` into the data of a chart.

import type { Row } from './api'
import { inOrder } from './colour'
import type { Span } from './time'

export interface Series {
  /** Begin of each bucket, in ms, followed by the end of the last one. */
  times: number[]
  keys: string[]
  /** Load (average active sessions) by key and bucket; null where nothing was observed. */
  loads: (number | null)[][]
  /** Observed share of each bucket, 0 to 1. */
  coverage: number[]
  /** Most sessions at one instant, by bucket. */
  peaks: (number | null)[]
  vcpus: number | null
}

const number = (value: unknown) => (typeof value === 'number' ? value : null)

/** A timeline by a dimension, or without one; then its only key is "". */
export function series(rows: Row[], dimension: string | null, span: Span, width: number): Series {
  const buckets = new Map<number, Map<string, number | null>>()
  const heads = new Map<number, Row>()
  const sums = new Map<string, number>()
  for (const row of rows) {
    const start = Date.parse(String(row.bucket_start))
    if (!heads.has(start)) {
      heads.set(start, row)
      buckets.set(start, new Map())
    }
    if (dimension !== null && row.key === null && row.avg_aas === null) continue
    const key = dimension === null ? '' : (row.key as string | null) ?? '(null)'
    const load = number(row.avg_aas)
    buckets.get(start)!.set(key, load)
    sums.set(key, (sums.get(key) ?? 0) + (load ?? 0))
  }
  const times = [...heads.keys()].sort((a, b) => a - b)
  const present = [...sums].filter(([, sum]) => sum > 0 || dimension === null).map(([key]) => key)
  const keys = inOrder(dimension ?? '', present)
  const seen = (time: number) => Number(heads.get(time)!.ticks_observed ?? 0) > 0
  const end = times.length > 0 ? Math.min(times.at(-1)! + width, Math.max(span.until, times.at(-1)! + 1)) : 0
  return {
    times: times.length > 0 ? [...times, end] : [],
    keys,
    loads: keys.map((key) => times.map((t) => (seen(t) ? (buckets.get(t)!.get(key) ?? 0) : null))),
    coverage: times.map((t) => Number(heads.get(t)!.coverage_pct ?? 0) / 100),
    peaks: times.map((t) => number(heads.get(t)!.peak_sessions)),
    vcpus: times.map((t) => number(heads.get(t)!.vcpus)).findLast((v) => v !== null) ?? null,
  }
}

/** Load counts as going on if at most this many consecutive steps are low or without a tick. */
const LULL = 2

/** Begin of the present load: since then it has been at least half as high, except for lulls. It
 *  may lie before the series. Null without load. */
export function began({ times, loads }: Series): { time: number; isEarlier: boolean } | null {
  const load = loads[0] ?? []
  const last = load.findLastIndex((value) => value !== null)
  const recent = load.slice(Math.max(0, last - LULL), last + 1).map((value) => value ?? 0)
  const half = Math.max(0, ...recent) / 2
  if (half === 0) return null
  let first = last
  for (let i = last; i >= 0 && first - i <= LULL + 1; i -= 1) if ((load[i] ?? 0) >= half) first = i
  return { time: times[first]!, isEarlier: first === 0 }
}

/** Adds each series to the previous ones, for areas that are drawn from the last to the first. A series
 *  without a value adds nothing. */
export function stacked(loads: (number | null)[][]): (number | null)[][] {
  const sums: (number | null)[][] = []
  for (const load of loads) {
    const below = sums.at(-1)
    sums.push(load.map((value, i) => (value === null ? (below?.[i] ?? null) : value + (below?.[i] ?? 0))))
  }
  return sums
}

/** This number of CPUs is always shown, however low the load is. */
const FEW_CPUS = 8

/** The upper end of a chart's axis, in sessions. It includes the stacked areas. It includes
 *  peaks up to 2.5 times the areas, and the line of CPUs up to 4 times (or up to FEW_CPUS): a
 *  line further up would make the areas too flat to read. */
export function ceiling(ground: number, peaks: number, cpus: number | null): number {
  const high = Math.max(ground, Math.min(peaks, ground * 2.5))
  const near = cpus !== null && (high === 0 || cpus <= Math.max(4 * high, FEW_CPUS))
  const lifted = near ? Math.max(high, cpus) : high
  return lifted > 0 ? lifted * 1.08 : 1
}

/** Spans of buckets that were hardly observed. */
export function gaps({ times, coverage }: Series, least = 0.5): Span[] {
  const found: Span[] = []
  coverage.forEach((share, i) => {
    if (share >= least) return
    const [since, until] = [times[i]!, times[i + 1]!]
    const last = found.at(-1)
    if (last && last.until === since) last.until = until
    else found.push({ since, until })
  })
  return found
}

/** The index of the bucket at a time, or -1. */
export function bucketAt(times: number[], time: number): number {
  if (times.length < 2 || time < times[0]! || time >= times.at(-1)!) return -1
  return times.findLastIndex((start) => start <= time)
}
