// The pictures of the server's measurements in groups, those with alarms first.

import type { Row } from './api'
import type { Span } from './time'
import { bytes, grouped, ms, scaled } from './units'

/** Values of a metric by object and bucket. */
export interface Measured {
  /** Begins of all buckets of the window, ms. */
  starts: number[]
  /** Values by bucket, by metric and object; the object '' is the whole server. Null where nothing
   *  was recorded. */
  values: Map<string, Map<string, (number | null)[]>>
  /** The largest reading over all objects, by metric. */
  most: Map<string, number>
  /** The largest reading, by metric and object. */
  peaks: Map<string, Map<string, number>>
  /** Number of buckets from one reading to the next, by metric. */
  every: Map<string, number>
}

/** A measurement that is bad, as `/api/v1/alarms` has it. */
export interface Alarm {
  isUrgent: boolean
  metric: string
  /** The sentence, with the figure. */
  text: string
}

export interface Small {
  title: string
  metrics: string[]
  colours: string[]
  names?: string[]
  format: (value: number) => string
  factor?: number
  /** True if the values do not add up, such as shares of the same time: they are drawn as lines,
   *  not as stacked areas. */
  apart?: boolean
  /** True if each object (database, slot) is drawn by itself. If there are several metrics, each
   *  object has a picture of its own. */
  split?: boolean
  /** Metric whose largest value is drawn as a horizontal line, such as a limit. */
  level?: string
  /** True if the picture is left out while all values are 0, as they should be. */
  quiet?: boolean
}
export interface Group {
  name: string
  pictures: Small[]
}

const plain = (value: number) => scaled(value, [[1, ''], [1000, 'k'], [1e6, 'M'], [1e9, 'G']]).trim()
const share = (value: number) => `${grouped(value, value < 10 && value > 0 ? 1 : 0)} %`
const few = (value: number) => (value > 0 && value < 1 ? String(Number(value.toPrecision(2))) : plain(value))

// Values are per second: a counter of CPU time, in ms a second, has tenths of a percent of one CPU.
export const GROUPS: Group[] = [
  {
    name: 'Host',
    pictures: [
      { title: 'CPU of the host, in CPUs', metrics: ['cpu_user', 'cpu_system', 'cpu_iowait', 'cpu_steal'], names: ['user', 'system', 'waits for I/O', 'steal'], colours: ['--cpu', '--timeout', '--io', '--lock'], format: (v) => grouped(v, 1), factor: 0.001, level: 'vcpus' },
      { title: 'Load of the host: tasks that run or wait', metrics: ['load_1'], colours: ['--hue-6'], format: (v) => grouped(v, 1), level: 'vcpus' },
      { title: 'Pressure: time in which some task waited', metrics: ['pressure_cpu_some', 'pressure_io_some', 'pressure_memory_some'], names: ['for a CPU', 'for I/O', 'for memory'], colours: ['--cpu', '--io', '--lwlock'], format: share, factor: 0.0001, apart: true },
      { title: 'Memory available', metrics: ['memory_available'], colours: ['--buffer'], format: bytes },
      { title: 'Swap space in use', metrics: ['swap_used'], colours: ['--hue-9'], format: bytes, quiet: true },
      { title: 'Free space of the disks that the server uses', metrics: ['disk_free'], colours: ['--hue-10'], format: bytes, apart: true, split: true },
      { title: 'Stopped by the quota of the cgroup', metrics: ['cpu_throttled'], colours: ['--lock'], format: share, factor: 0.0001, quiet: true },
    ],
  },
  {
    name: 'Connections',
    pictures: [
      { title: 'Connections, of max_connections', metrics: ['connections'], colours: ['--client'], format: plain, level: 'max_connections' },
      { title: 'Connections by state, of max_connections', metrics: ['connections_by_state'], colours: ['--client'], format: few, split: true, level: 'max_connections' },
      { title: 'New sessions per second', metrics: ['sessions'], colours: ['--hue-5'], format: few, split: true },
      { title: 'Failed logins per second', metrics: ['logins_failed'], colours: ['--lock'], format: few, quiet: true },
      { title: 'Connections refused per second', metrics: ['logins_refused'], colours: ['--hue-9'], format: few, quiet: true },
      { title: 'Sessions killed per second', metrics: ['sessions_killed'], colours: ['--hue-9'], format: few, split: true, quiet: true },
      { title: 'Sessions ended by an error per second', metrics: ['sessions_fatal'], colours: ['--lock'], format: few, split: true, quiet: true },
      { title: 'Sessions whose client went away per second', metrics: ['sessions_abandoned'], colours: ['--hue-4'], format: few, split: true, quiet: true },
    ],
  },
  {
    name: 'Transactions',
    pictures: [
      { title: 'Commits per second', metrics: ['xact_commit'], colours: ['--cpu'], format: plain, split: true },
      { title: 'Rollbacks per second', metrics: ['xact_rollback'], colours: ['--lock'], format: few, split: true, quiet: true },
      { title: 'Deadlocks per second', metrics: ['deadlocks'], colours: ['--hue-9'], format: few, split: true, quiet: true },
      { title: 'Queries cancelled by recovery per second', metrics: ['conflicts'], colours: ['--hue-3'], format: few, split: true, quiet: true },
      { title: 'Age of the oldest transaction id', metrics: ['oldest_xid_age'], colours: ['--other'], format: plain },
    ],
  },
  {
    name: 'Reads and temporary files',
    pictures: [
      { title: 'Blocks read per second', metrics: ['blks_read'], colours: ['--io'], format: plain, split: true },
      { title: 'Rows returned per second', metrics: ['tup_returned'], colours: ['--hue-11'], format: plain, split: true },
      { title: 'Temporary files per second', metrics: ['temp_bytes'], colours: ['--hue-10'], format: bytes, split: true, quiet: true },
    ],
  },
  {
    name: 'Write-ahead log and checkpoints',
    pictures: [
      { title: 'Write-ahead log per second', metrics: ['wal_bytes'], colours: ['--extension'], format: bytes },
      { title: 'Checkpoints per second: by time, forced', metrics: ['checkpoints_timed', 'checkpoints_requested'], names: ['by time', 'forced'], colours: ['--hue-7', '--lock'], format: few },
      { title: 'Checkpoint buffers written per second', metrics: ['checkpoint_buffers'], colours: ['--hue-7'], format: plain },
      { title: 'Time of checkpoints to synchronise per second', metrics: ['checkpoint_sync_time'], colours: ['--timeout'], format: ms, quiet: true },
      { title: 'Failures to archive a segment per second', metrics: ['wal_archive_failed'], colours: ['--lock'], format: few, quiet: true },
      { title: 'Writes of full WAL buffers per second', metrics: ['wal_buffers_full'], colours: ['--hue-4'], format: few, quiet: true },
    ],
  },
  {
    name: 'Replication and slots',
    pictures: [
      { title: 'Log behind', metrics: ['replica_sent_lag', 'replica_write_lag', 'replica_flush_lag', 'replica_replay_lag'], names: ['not sent', 'not written', 'not flushed', 'not replayed'], colours: ['--hue-0', '--hue-4', '--hue-6', '--hue-9'], format: bytes, apart: true, split: true },
      { title: 'Time until log was replayed', metrics: ['replica_replay_delay'], colours: ['--hue-8'], format: ms, factor: 0.001, apart: true, split: true },
      { title: 'Log kept for slots', metrics: ['slot_retained'], colours: ['--extension'], format: bytes, apart: true, split: true },
      { title: 'Slots in use: 1 while a process uses it', metrics: ['slot_active'], colours: ['--hue-2'], format: few, apart: true, split: true },
      { title: 'Log received and not replayed', metrics: ['recovery_lag_bytes'], colours: ['--hue-0'], format: bytes },
      { title: 'Age of the last replayed transaction', metrics: ['recovery_lag'], colours: ['--hue-9'], format: ms },
    ],
  },
]

/** Metrics that older sources do not know, in a list for each version that brought some. */
const NEWER = [
  ['connections', 'max_connections'],
  ['connections_by_state', 'logins_failed', 'logins_refused'],
  ['disk_free'],
]
/** Metrics that have no picture of their own and serve as levels. */
const BESIDE = ['vcpus']
const ALL = new Set([...GROUPS.flatMap(({ pictures }) => pictures.flatMap(({ metrics }) => metrics)), ...BESIDE])
/** All metrics, in a list for each question. A source refuses a question with a metric that it does
 *  not know, so the first list has those that every source knows. */
export const QUESTIONS: string[][] = [[...ALL].filter((metric) => !NEWER.flat().includes(metric)), ...NEWER]

/** Groups of rows by a name, in the order of their first rows. */
function groupedBy(rows: Row[], nameOf: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const name = nameOf(row)
    const own = groups.get(name)
    if (own) own.push(row)
    else groups.set(name, [row])
  }
  return groups
}

/** The begins of all buckets of a window, also of those without a reading. */
function bucketsOf(known: number[], { since, until }: Span, step: number): number[] {
  const all: number[] = []
  let next = known.length > 0 ? known[0]! - Math.ceil((known[0]! - since) / step) * step : until
  for (const start of [...known, until]) {
    for (; start - next >= step / 2; next += step) all.push(next)
    if (start < until) all.push(start)
    next = start + step
  }
  return all
}

/** Number of buckets from one reading to the next. */
function distance(places: number[]): number {
  const sorted = [...new Set(places)].sort((a, b) => a - b)
  return Math.max(1, Math.min(...sorted.slice(1).map((place, i) => place - sorted[i]!).filter((one) => one > 0), sorted.length > 1 ? Infinity : 1))
}

/** A reading stands for the buckets until the next one. If the next one is missing too, nothing was recorded. */
function held(values: (number | null)[], every: number): (number | null)[] {
  const found = [...values]
  for (let i = 0; i < values.length; i += 1) {
    if (values[i] === null) continue
    const next = values.findIndex((value, place) => place > i && value !== null)
    const end = next < 0 ? values.length : next
    found.fill(values[i]!, i, end - i <= 2 * every ? end : Math.min(end, i + every))
  }
  return found
}

/** Readings of a window by metric, object and bucket. A counter has no row where nothing was counted:
 *  it is 0 in each bucket that has a reading of any counter. */
export function measured(rows: Row[], span: Span, step: number): Measured {
  const known = rows.filter((row) => row.avg !== null)
  const startOf = (row: Row) => Date.parse(String(row.period_start))
  const starts = bucketsOf([...new Set(known.map(startOf))].sort((a, b) => a - b), span, step)
  const place = new Map(starts.map((start, i) => [start, i]))
  const placeOf = (row: Row) => place.get(startOf(row))!
  const isCounter = (row: Row) => row.total !== null
  const counted = [...new Set(known.filter(isCounter).map(placeOf))]
  const values: Measured['values'] = new Map()
  const [most, peaks, every]: [Measured['most'], Measured['peaks'], Measured['every']] = [new Map(), new Map(), new Map()]
  for (const [metric, own] of groupedBy(known, (row) => String(row.metric))) {
    const readAt = isCounter(own[0]!) ? counted : own.map(placeOf)
    every.set(metric, distance(readAt))
    most.set(metric, Math.max(0, ...own.map((row) => Number(row.max ?? row.avg))))
    const objects = groupedBy(own, (row) => (row.object === null ? '' : String(row.object)))
    peaks.set(metric, new Map([...objects].map(([object, all]) => [object, Math.max(...all.map((row) => Number(row.max ?? row.avg)))])))
    const read = ([object, all]: [string, Row[]]): [string, (number | null)[]] => {
      const found: (number | null)[] = starts.map(() => null)
      if (isCounter(own[0]!)) for (const i of counted) found[i] = 0
      for (const row of all) found[placeOf(row)] = Number(row.avg)
      return [object, held(found, every.get(metric)!)]
    }
    values.set(metric, new Map([...objects].map(read)))
  }
  return { starts, values, most, peaks, every }
}

/** The stretches of a picture in which nothing was recorded. `times` are the begins of the buckets and the
 *  end of the last one. */
export function unrecorded({ curves, every }: Picture, times: number[]): Span[] {
  const isKnown = times.slice(0, -1).map((_, i) => curves.some(({ values }) => values[i] !== null))
  const found: Span[] = []
  for (let i = 0; i < isKnown.length; i += 1) {
    if (isKnown[i]) continue
    const next = isKnown.indexOf(true, i)
    const end = next < 0 ? isKnown.length : next
    if (end - i > every) found.push({ since: times[i]!, until: times[end]! })
    i = end
  }
  return found
}

export const alarmsOf = (rows: Row[]): Alarm[] =>
  rows.map(({ severity, metric, text }) => ({ isUrgent: severity === 'critical', metric: String(metric), text: String(text) }))

/** The name of the group with the pictures of a metric. */
export const groupOf = (metric: string) => GROUPS.find(({ pictures }) => pictures.some(({ metrics }) => metrics.includes(metric)))?.name ?? null

/** One line or area of a picture. */
export interface Curve {
  metric: string
  object: string
  name: string
  colour: string
  values: (number | null)[]
  /** The largest reading; null for the sum of several objects. */
  peak: number | null
}
export interface Picture {
  title: string
  of: Small
  curves: Curve[]
  level: number | null
  /** Number of buckets from one reading to the next. */
  every: number
}
export interface Section {
  name: string
  pictures: Picture[]
  /** Titles of the pictures that were left out because all values are 0. */
  quiet: string[]
  /** The alarms of its pictures. */
  bad: Alarm[]
}

/** Number of objects of a picture that have a colour of their own. */
const OBJECTS = 5
const HUES = ['--hue-0', '--hue-4', '--hue-2', '--hue-9', '--hue-6', '--hue-8']

const peak = (values: (number | null)[]) => Math.max(0, ...values.map((value) => value ?? 0))
function added(all: (number | null)[][]): (number | null)[] {
  return (all[0] ?? []).map((_, i) => {
    const known = all.map((values) => values[i] ?? null).filter((value) => value !== null)
    return known.length > 0 ? known.reduce((a, b) => a + b, 0) : null
  })
}

/** The pictures of one description: one, or one for each object of several metrics. */
function picturesOf(small: Small, { values, most, peaks, every: all }: Measured): Picture[] {
  const { metrics, factor = 1, title } = small
  const level = (small.level && most.get(small.level)) || null
  const scaledBy = (own: (number | null)[]) => own.map((value) => (value === null ? null : value * factor))
  const every = Math.max(1, ...metrics.map((metric) => all.get(metric) ?? 1))
  const peakOf = (metric: string, object: string) => peaks.get(metric)!.get(object)! * factor
  const curve = (metric: string, object: string, name: string, colour: string): Curve[] => {
    const own = values.get(metric)?.get(object)
    return own ? [{ metric, object, name, colour, values: scaledBy(own), peak: peakOf(metric, object) }] : []
  }
  const objects = [...new Set(metrics.flatMap((metric) => [...(values.get(metric)?.keys() ?? [])]))]
  if (objects.length === 0) return []
  if (!small.split) {
    const whole = metrics.flatMap((metric, i) => {
      const own = values.get(metric)
      return own ? [{ metric, object: '', name: small.names?.[i] ?? '', colour: small.colours[i]!, values: scaledBy(added([...own.values()])), peak: own.size === 1 ? peakOf(metric, [...own.keys()][0]!) : null }] : []
    })
    return [{ title, of: small, curves: whole, level, every }]
  }
  if (metrics.length > 1) {
    const each = (object: string) => metrics.flatMap((metric, i) => curve(metric, object, small.names![i]!, small.colours[i]!))
    return objects.map((object) => ({ title: `${title}: ${object}`, of: small, curves: each(object), level, every }))
  }
  const [metric] = metrics as [string]
  const largest = objects.toSorted((a, b) => peak(values.get(metric)!.get(b)!) - peak(values.get(metric)!.get(a)!))
  const named = (object: string) => object || 'shared objects'
  const single = largest.length === 1
  const own = largest.slice(0, OBJECTS).flatMap((object, i) => curve(metric, object, named(object), single ? small.colours[0]! : HUES[i]!))
  const rest = largest.slice(OBJECTS)
  const others = rest.length > 0 ? [{ metric, object: '(other)', name: `${rest.length} others`, colour: '--other', values: scaledBy(added(rest.map((object) => values.get(metric)!.get(object)!))), peak: null }] : []
  return [{ title, of: small, curves: [...own, ...others], level, every }]
}

/** Groups of pictures that have at least one curve, the worst first. */
export function sections(known: Measured, alarms: Alarm[]): Section[] {
  const found = GROUPS.map(({ name, pictures }) => {
    const all = pictures.flatMap((small) => picturesOf(small, known))
    const isQuiet = (picture: Picture) => picture.of.quiet === true && picture.curves.every(({ values }) => peak(values) === 0)
    const rank = ({ of }: Picture) => Math.max(0, ...alarms.filter(({ metric }) => of.metrics.includes(metric)).map(({ isUrgent }) => (isUrgent ? 2 : 1)))
    return {
      name,
      pictures: all.filter((picture) => !isQuiet(picture)).toSorted((a, b) => rank(b) - rank(a)),
      quiet: all.filter(isQuiet).map(({ title }) => title),
      bad: alarms.filter(({ metric }) => groupOf(metric) === name),
    }
  })
  const worst = ({ bad }: Section) => (bad[0] ? (bad[0].isUrgent ? 20 : 10) : 0) + Math.min(9, bad.length)
  return found.filter(({ pictures, quiet }) => pictures.length + quiet.length > 0).toSorted((a, b) => worst(b) - worst(a))
}
