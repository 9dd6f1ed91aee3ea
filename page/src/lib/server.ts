// The pictures of the server's measurements in groups, and the alarms that they give.

import type { Row } from './api'
import { bytes, count, grouped, ms, scaled } from './units'

/** Values of a metric by object and bucket. */
export interface Measured {
  /** Begins of buckets, ms. */
  starts: number[]
  /** Values by bucket, by metric and object; the object '' is the whole server. Null where nothing
   *  was recorded. */
  values: Map<string, Map<string, (number | null)[]>>
  /** Extremes and sums over all buckets, by metric, then by object. */
  extremes: Map<string, Map<string, Extreme>>
}
interface Extreme {
  max: number
  min: number
  /** Increase of a counter over the window. */
  total: number
}

/** Extremes and sums of a metric in the window, over all its objects. */
export interface Extremes {
  max: (metric: string) => number
  min: (metric: string) => number
  /** Increase of a counter over the window, summed over its objects. */
  total: (metric: string) => number
  /** Extremes of each object (database, replica or slot). */
  each: (metric: string) => Map<string, Extreme>
}
/** An alarm: its level (1 asks for a look, 2 is urgent), and the reason in words. */
export interface Bad {
  level: 1 | 2
  why: string
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
  bad?: (of: Extremes) => Bad | null
}
export interface Group {
  name: string
  pictures: Small[]
}

const plain = (value: number) => scaled(value, [[1, ''], [1000, 'k'], [1e6, 'M'], [1e9, 'G']]).trim()
const share = (value: number) => `${grouped(value, value < 10 && value > 0 ? 1 : 0)} %`
const few = (value: number) => (value > 0 && value < 1 ? String(Number(value.toPrecision(2))) : plain(value))
/** New sessions per second that cost a server more than their queries do. */
const CHURN = 20
const MB = 1024 ** 2
const GB = 1024 ** 3
/** Makes the rule of an alarm: `least` events or more in the window. */
const events = (metric: string, one: string, many: string, level: 1 | 2 = 1, least = 0.5) => (of: Extremes): Bad | null => {
  const total = of.total(metric)
  return total >= least ? { level, why: `${count(total)} ${Math.round(total) === 1 ? one : many}` } : null
}

// Values are per second: a counter of CPU time, in ms a second, has tenths of a percent of one CPU.
export const GROUPS: Group[] = [
  {
    name: 'Host',
    pictures: [
      { title: 'CPU of the host, in CPUs', metrics: ['cpu_user', 'cpu_system', 'cpu_iowait', 'cpu_steal'], names: ['user', 'system', 'waits for I/O', 'steal'], colours: ['--cpu', '--timeout', '--io', '--lock'], format: (v) => grouped(v, 1), factor: 0.001, level: 'vcpus' },
      {
        title: 'Load of the host: tasks that run or wait',
        ...{ metrics: ['load_1'], colours: ['--hue-6'], format: (v) => grouped(v, 1), level: 'vcpus' },
        bad: (of) => (of.max('vcpus') > 0 && of.max('load_1') > 2 * of.max('vcpus') ? { level: 1, why: `load ${grouped(of.max('load_1'), 1)} on ${of.max('vcpus')} CPUs` } : null),
      },
      {
        title: 'Pressure: time in which some task waited',
        ...{ metrics: ['pressure_cpu_some', 'pressure_io_some', 'pressure_memory_some'], names: ['for a CPU', 'for I/O', 'for memory'], colours: ['--cpu', '--io', '--lwlock'], format: share, factor: 0.0001, apart: true },
        bad: (of) => (of.max('pressure_memory_some') > 200_000 ? { level: 2, why: `pressure of memory ${share(of.max('pressure_memory_some') / 10_000)}` } : null),
      },
      {
        title: 'Memory available',
        ...{ metrics: ['memory_available'], colours: ['--buffer'], format: bytes },
        bad: (of) => (of.max('memory_total') > 0 && of.min('memory_available') < 0.05 * of.max('memory_total') ? { level: 2, why: `${bytes(of.min('memory_available'))} of memory left` } : null),
      },
      {
        title: 'Swap space in use',
        ...{ metrics: ['swap_used'], colours: ['--hue-9'], format: bytes, quiet: true },
        bad: (of) => (of.max('swap_used') - of.min('swap_used') > 16 * MB ? { level: 1, why: `swap grew to ${bytes(of.max('swap_used'))}` } : null),
      },
      { title: 'Stopped by the quota of the cgroup', metrics: ['cpu_throttled'], colours: ['--lock'], format: share, factor: 0.0001, quiet: true, bad: events('cpu_throttled', 'µs stopped by the quota', 'µs stopped by the quota', 1, 1_000_000) },
    ],
  },
  {
    name: 'Connections',
    pictures: [
      {
        title: 'Connections, of max_connections',
        ...{ metrics: ['connections'], colours: ['--client'], format: plain, level: 'max_connections' },
        bad: (of) => {
          const [used, most] = [of.max('connections'), of.max('max_connections')]
          return most > 0 && used >= 0.8 * most ? { level: used >= 0.95 * most ? 2 : 1, why: `${count(used)} of ${count(most)} connections` } : null
        },
      },
      { title: 'Connections by state, of max_connections', metrics: ['connections_by_state'], colours: ['--client'], format: few, split: true, level: 'max_connections' },
      {
        title: 'New sessions per second',
        ...{ metrics: ['sessions'], colours: ['--hue-5'], format: few, split: true },
        bad: (of) => (of.max('sessions') >= CHURN ? { level: 1, why: `up to ${count(of.max('sessions'))} new sessions per second` } : null),
      },
      { title: 'Failed logins per second', metrics: ['logins_failed'], colours: ['--lock'], format: few, quiet: true, bad: events('logins_failed', 'failed login', 'failed logins', 1, 4.5) },
      { title: 'Connections refused per second', metrics: ['logins_refused'], colours: ['--hue-9'], format: few, quiet: true, bad: events('logins_refused', 'connection refused', 'connections refused') },
      { title: 'Sessions killed per second', metrics: ['sessions_killed'], colours: ['--hue-9'], format: few, split: true, quiet: true, bad: events('sessions_killed', 'session killed', 'sessions killed') },
      { title: 'Sessions ended by an error per second', metrics: ['sessions_fatal'], colours: ['--lock'], format: few, split: true, quiet: true, bad: events('sessions_fatal', 'session ended by an error', 'sessions ended by an error') },
      { title: 'Sessions whose client went away per second', metrics: ['sessions_abandoned'], colours: ['--hue-4'], format: few, split: true, quiet: true, bad: events('sessions_abandoned', 'client went away', 'clients went away') },
    ],
  },
  {
    name: 'Transactions',
    pictures: [
      { title: 'Commits per second', metrics: ['xact_commit'], colours: ['--cpu'], format: plain, split: true },
      {
        title: 'Rollbacks per second',
        ...{ metrics: ['xact_rollback'], colours: ['--lock'], format: few, split: true, quiet: true },
        bad: (of) => {
          const [bad, all] = [of.total('xact_rollback'), of.total('xact_rollback') + of.total('xact_commit')]
          return bad >= 10 && bad > 0.1 * all ? { level: 1, why: `${count(bad)} rollbacks, ${share((100 * bad) / all)} of all transactions` } : null
        },
      },
      { title: 'Deadlocks per second', metrics: ['deadlocks'], colours: ['--hue-9'], format: few, split: true, quiet: true, bad: events('deadlocks', 'deadlock', 'deadlocks') },
      { title: 'Queries cancelled by recovery per second', metrics: ['conflicts'], colours: ['--hue-3'], format: few, split: true, quiet: true, bad: events('conflicts', 'query cancelled by recovery', 'queries cancelled by recovery') },
      {
        title: 'Age of the oldest transaction id',
        ...{ metrics: ['oldest_xid_age'], colours: ['--other'], format: plain },
        bad: (of) => (of.max('oldest_xid_age') > 1e9 ? { level: of.max('oldest_xid_age') > 1.8e9 ? 2 : 1, why: `oldest transaction id is ${plain(of.max('oldest_xid_age'))} old` } : null),
      },
    ],
  },
  {
    name: 'Reads and temporary files',
    pictures: [
      { title: 'Blocks read per second', metrics: ['blks_read'], colours: ['--io'], format: plain, split: true },
      { title: 'Rows returned per second', metrics: ['tup_returned'], colours: ['--hue-11'], format: plain, split: true },
      { title: 'Temporary files per second', metrics: ['temp_bytes'], colours: ['--hue-10'], format: bytes, split: true, quiet: true, bad: (of) => (of.total('temp_bytes') > 256 * MB ? { level: 1, why: `${bytes(of.total('temp_bytes'))} of temporary files` } : null) },
    ],
  },
  {
    name: 'Write-ahead log and checkpoints',
    pictures: [
      { title: 'Write-ahead log per second', metrics: ['wal_bytes'], colours: ['--extension'], format: bytes },
      { title: 'Checkpoints per second: by time, forced', metrics: ['checkpoints_timed', 'checkpoints_requested'], names: ['by time', 'forced'], colours: ['--hue-7', '--lock'], format: few, bad: events('checkpoints_requested', 'forced checkpoint', 'forced checkpoints', 1, 1.5) },
      { title: 'Checkpoint buffers written per second', metrics: ['checkpoint_buffers'], colours: ['--hue-7'], format: plain },
      { title: 'Time of checkpoints to synchronise per second', metrics: ['checkpoint_sync_time'], colours: ['--timeout'], format: ms, quiet: true },
      { title: 'Failures to archive a segment per second', metrics: ['wal_archive_failed'], colours: ['--lock'], format: few, quiet: true, bad: events('wal_archive_failed', 'failure to archive', 'failures to archive', 2) },
      { title: 'Writes of full WAL buffers per second', metrics: ['wal_buffers_full'], colours: ['--hue-4'], format: few, quiet: true },
    ],
  },
  {
    name: 'Replication and slots',
    pictures: [
      {
        title: 'Log behind',
        ...{ metrics: ['replica_sent_lag', 'replica_write_lag', 'replica_flush_lag', 'replica_replay_lag'], names: ['not sent', 'not written', 'not flushed', 'not replayed'], colours: ['--hue-0', '--hue-4', '--hue-6', '--hue-9'], format: bytes, apart: true, split: true },
        bad: (of) => (of.max('replica_replay_lag') > 16 * MB ? { level: of.max('replica_replay_lag') > GB ? 2 : 1, why: `a replica was ${bytes(of.max('replica_replay_lag'))} behind` } : null),
      },
      { title: 'Time until log was replayed', metrics: ['replica_replay_delay'], colours: ['--hue-8'], format: ms, factor: 0.001, apart: true, split: true, bad: (of) => (of.max('replica_replay_delay') > 10e6 ? { level: 1, why: `a replica replayed ${ms(of.max('replica_replay_delay') / 1000)} late` } : null) },
      {
        title: 'Log kept for slots',
        ...{ metrics: ['slot_retained'], colours: ['--extension'], format: bytes, apart: true, split: true },
        bad: (of) => {
          const isFree = (slot: string) => (of.each('slot_active').get(slot)?.min ?? 1) < 1
          const all = [...of.each('slot_retained')].filter(([slot, { max }]) => max > GB || (max > 64 * MB && isFree(slot)))
          const [slot, kept] = all.toSorted(([, a], [, b]) => b.max - a.max)[0] ?? []
          return slot && kept ? { level: kept.max > 10 * GB ? 2 : 1, why: `slot ${slot}${isFree(slot) ? ', which no process uses,' : ''} keeps ${bytes(kept.max)} of log` } : null
        },
      },
      { title: 'Slots in use: 1 while a process uses it', metrics: ['slot_active'], colours: ['--hue-2'], format: few, apart: true, split: true },
      { title: 'Log received and not replayed', metrics: ['recovery_lag_bytes'], colours: ['--hue-0'], format: bytes, bad: (of) => (of.max('recovery_lag_bytes') > 64 * MB ? { level: 1, why: `${bytes(of.max('recovery_lag_bytes'))} not replayed` } : null) },
      { title: 'Age of the last replayed transaction', metrics: ['recovery_lag'], colours: ['--hue-9'], format: ms },
    ],
  },
]

/** Metrics that older sources do not know, in a list for each version that brought some. */
const NEWER = [
  ['connections', 'max_connections'],
  ['connections_by_state', 'logins_failed', 'logins_refused'],
]
/** Metrics that have no picture of their own and serve as levels or limits. */
const BESIDE = ['vcpus', 'memory_total']
const ALL = new Set([...GROUPS.flatMap(({ pictures }) => pictures.flatMap(({ metrics }) => metrics)), ...BESIDE])
/** All metrics, in a list for each question. A source refuses a question with a metric that it does
 *  not know, so the first list has those that every source knows. */
export const QUESTIONS: string[][] = [[...ALL].filter((metric) => !NEWER.flat().includes(metric)), ...NEWER]

export function measured(rows: Row[]): Measured {
  const known = rows.filter((row) => row.avg !== null)
  const starts = [...new Set(known.map((row) => Date.parse(String(row.period_start))))].sort((a, b) => a - b)
  const place = new Map(starts.map((start, i) => [start, i]))
  const values: Measured['values'] = new Map()
  const extremes: Measured['extremes'] = new Map()
  for (const row of known) {
    const [metric, object] = [String(row.metric), row.object === null ? '' : String(row.object)]
    const seen = extremes.get(metric) ?? extremes.set(metric, new Map()).get(metric)!
    const { max, min, total } = seen.get(object) ?? { max: 0, min: Infinity, total: 0 }
    seen.set(object, { max: Math.max(max, Number(row.max ?? row.avg)), min: Math.min(min, Number(row.min ?? row.avg)), total: total + Number(row.total ?? 0) })
    const objects = values.get(metric) ?? values.set(metric, new Map()).get(metric)!
    const own = objects.get(object) ?? objects.set(object, starts.map(() => null)).get(object)!
    own[place.get(Date.parse(String(row.period_start)))!] = Number(row.avg)
  }
  return { starts, values, extremes }
}

export function extremes({ extremes }: Measured): Extremes {
  const each = (metric: string) => extremes.get(metric) ?? new Map<string, Extreme>()
  const all = (metric: string) => [...each(metric).values()]
  return {
    max: (metric) => Math.max(0, ...all(metric).map(({ max }) => max)),
    min: (metric) => (all(metric).length > 0 ? Math.min(...all(metric).map(({ min }) => min)) : 0),
    total: (metric) => all(metric).reduce((sum, { total }) => sum + total, 0),
    each,
  }
}

/** The alarms of the window with their groups, the most urgent first. A busy host is a consequence more often than a cause. */
export function alarms(rows: Row[]): (Bad & { group: string })[] {
  const all = sections(measured(rows)).flatMap(({ name, bad }) => bad.map((one) => ({ ...one, group: name })))
  const last = ({ group }: { group: string }) => Number(group === 'Host')
  return all.toSorted((a, b) => b.level - a.level || last(a) - last(b))
}

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
  bad: Bad[]
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
function picturesOf(small: Small, { values }: Measured, of: Extremes): Picture[] {
  const { metrics, factor = 1, title } = small
  const level = small.level && of.max(small.level) > 0 ? of.max(small.level) : null
  const scaledBy = (own: (number | null)[]) => own.map((value) => (value === null ? null : value * factor))
  const curve = (metric: string, object: string, name: string, colour: string): Curve[] => {
    const own = values.get(metric)?.get(object)
    return own ? [{ metric, object, name, colour, values: scaledBy(own) }] : []
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
export function sections(known: Measured): Section[] {
  const of = extremes(known)
  const found = GROUPS.map(({ name, pictures }) => {
    const all = pictures.flatMap((small) => picturesOf(small, known, of))
    const isQuiet = (picture: Picture) => picture.of.quiet === true && picture.curves.every(({ values }) => peak(values) === 0)
    const bad = pictures.flatMap((small) => (small.metrics.some((metric) => known.values.has(metric)) ? (small.bad?.(of) ?? []) : []))
    const rank = (picture: Picture) => picture.of.bad?.(of)?.level ?? 0
    return {
      name,
      pictures: all.filter((picture) => !isQuiet(picture)).toSorted((a, b) => rank(b) - rank(a)),
      quiet: all.filter(isQuiet).map(({ title }) => title),
      bad: bad.toSorted((a, b) => b.level - a.level),
    }
  })
  const worst = ({ bad }: Section) => 10 * (bad[0]?.level ?? 0) + Math.min(9, bad.length)
  return found.filter(({ pictures, quiet }) => pictures.length + quiet.length > 0).toSorted((a, b) => worst(b) - worst(a))
}
