// The pictures of the server's measurements in groups, those with alarms first.

import type { Row } from './api'
import { bytes, grouped, ms, scaled } from './units'

/** Values of a metric by object and bucket. */
export interface Measured {
  /** Begins of buckets, ms. */
  starts: number[]
  /** Values by bucket, by metric and object; the object '' is the whole server. Null where nothing
   *  was recorded. */
  values: Map<string, Map<string, (number | null)[]>>
  /** The largest value over all buckets and objects, by metric. */
  most: Map<string, number>
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
  /** True if it is measured less often than the server: a value holds until the next one. */
  seldom?: boolean
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
      { title: 'Free space of the disks that the server uses', metrics: ['disk_free'], colours: ['--hue-10'], format: bytes, apart: true, split: true, seldom: true },
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

export function measured(rows: Row[]): Measured {
  const known = rows.filter((row) => row.avg !== null)
  const starts = [...new Set(known.map((row) => Date.parse(String(row.period_start))))].sort((a, b) => a - b)
  const place = new Map(starts.map((start, i) => [start, i]))
  const values: Measured['values'] = new Map()
  const most: Measured['most'] = new Map()
  for (const row of known) {
    const [metric, object] = [String(row.metric), row.object === null ? '' : String(row.object)]
    most.set(metric, Math.max(most.get(metric) ?? 0, Number(row.max ?? row.avg)))
    const objects = values.get(metric) ?? values.set(metric, new Map()).get(metric)!
    const own = objects.get(object) ?? objects.set(object, starts.map(() => null)).get(object)!
    own[place.get(Date.parse(String(row.period_start)))!] = Number(row.avg)
  }
  return { starts, values, most }
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
}
export interface Picture {
  title: string
  of: Small
  curves: Curve[]
  level: number | null
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

/** Fills the gaps between two values with the earlier one. */
function held(values: (number | null)[]): (number | null)[] {
  const last = values.findLastIndex((value) => value !== null)
  let before: number | null = null
  return values.map((value, i) => (i > last ? value : (before = value ?? before)))
}

/** The pictures of one description: one, or one for each object of several metrics. */
function picturesOf(small: Small, { values, most }: Measured): Picture[] {
  const { metrics, factor = 1, title } = small
  const level = (small.level && most.get(small.level)) || null
  const scaledBy = (own: (number | null)[]) => own.map((value) => (value === null ? null : value * factor))
  const curve = (metric: string, object: string, name: string, colour: string): Curve[] => {
    const own = values.get(metric)?.get(object)
    return own ? [{ metric, object, name, colour, values: scaledBy(small.seldom ? held(own) : own) }] : []
  }
  const objects = [...new Set(metrics.flatMap((metric) => [...(values.get(metric)?.keys() ?? [])]))]
  if (objects.length === 0) return []
  if (!small.split) {
    const whole = metrics.flatMap((metric, i) => {
      const own = values.get(metric)
      return own ? [{ metric, object: '', name: small.names?.[i] ?? '', colour: small.colours[i]!, values: scaledBy(added([...own.values()])) }] : []
    })
    return [{ title, of: small, curves: whole, level }]
  }
  if (metrics.length > 1) {
    const each = (object: string) => metrics.flatMap((metric, i) => curve(metric, object, small.names![i]!, small.colours[i]!))
    return objects.map((object) => ({ title: `${title}: ${object}`, of: small, curves: each(object), level }))
  }
  const [metric] = metrics as [string]
  const largest = objects.toSorted((a, b) => peak(values.get(metric)!.get(b)!) - peak(values.get(metric)!.get(a)!))
  const named = (object: string) => object || 'shared objects'
  const single = largest.length === 1
  const own = largest.slice(0, OBJECTS).flatMap((object, i) => curve(metric, object, named(object), single ? small.colours[0]! : HUES[i]!))
  const rest = largest.slice(OBJECTS)
  const others = rest.length > 0 ? [{ metric, object: '(other)', name: `${rest.length} others`, colour: '--other', values: scaledBy(added(rest.map((object) => values.get(metric)!.get(object)!))) }] : []
  return [{ title, of: small, curves: [...own, ...others], level }]
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
