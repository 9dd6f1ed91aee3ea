// Rows of `latency_history` as a map: steps of time, classes of execution times, and the number of
// executions in each.

import type { Row } from './api'
import { ms } from './units'

export interface Heat {
  /** Begins of steps in ms since 1970, and the end of the last. */
  times: number[]
  /** Classes with executions and all classes between them, shortest first, in ms. */
  classes: { from: number; to: number | null }[]
  /** Number of executions by class and step; null where nothing was recorded. */
  calls: (number | null)[][]
  /** The largest number of executions in a class and step. */
  most: number
  /** Number of executions whose time was not counted. */
  untimed: number
}

/** Custom properties of app.css, for few executions first. */
export const LEVELS = ['--heat-1', '--heat-2', '--heat-3', '--heat-4', '--heat-5'] as const
/** Each level has up to three times the executions of the previous one. */
const STEP = 3

/** The number of a class: 2^n µs to twice as much; class 0 begins at 0. */
const classOf = (from: number) => (from === 0 ? 0 : Math.round(Math.log2(from * 1000)))
const bound = (n: number) => (n === 0 ? 0 : 2 ** n / 1000)

export function heat(rows: Row[]): Heat {
  const steps = new Map<number, Map<number, number> | null>()
  let [end, untimed, endless] = [0, 0, -1]
  for (const row of rows) {
    const start = Date.parse(String(row.period_start))
    end = Math.max(end, Date.parse(String(row.period_end)))
    if (typeof row.calls !== 'number') {
      steps.set(start, null)
      continue
    }
    const step = steps.get(start) ?? new Map<number, number>()
    steps.set(start, step)
    if (typeof row.exec_time_from !== 'number') {
      untimed += row.calls
      continue
    }
    const found = classOf(row.exec_time_from)
    if (row.exec_time_to === null) endless = found
    step.set(found, row.calls)
  }
  const sorted = [...steps].sort(([a], [b]) => a - b)
  const present = sorted.flatMap(([, step]) => [...(step?.keys() ?? [])])
  const [low, high] = [Math.min(...present), Math.max(...present)]
  const numbers = present.length > 0 ? Array.from({ length: high - low + 1 }, (_, i) => low + i) : []
  return {
    times: sorted.length > 0 ? [...sorted.map(([start]) => start), end] : [],
    classes: numbers.map((n) => ({ from: bound(n), to: n === endless ? null : bound(n + 1) })),
    calls: numbers.map((n) => sorted.map(([, step]) => step && (step.get(n) ?? 0))),
    most: Math.max(0, ...sorted.flatMap(([, step]) => [...(step?.values() ?? [])])),
    untimed,
  }
}

/** Upper bounds of the levels; a level may be empty. */
export function bounds(most: number): number[] {
  return LEVELS.map((_, level) => Math.floor(most / STEP ** (LEVELS.length - 1 - level)))
}

/** The level of a number of executions; -1 for none. */
export function levelOf(calls: number, most: number): number {
  return calls > 0 ? bounds(most).findIndex((bound) => calls <= bound) : -1
}

export const classText = ({ from, to }: Heat['classes'][number]) => (to === null ? `${ms(from)} and more` : `${ms(from)} – ${ms(to)}`)
