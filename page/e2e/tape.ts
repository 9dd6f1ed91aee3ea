// Histories for the tests, made by `tacho import`. The same call makes the same rows, so the
// figures are the same in every run.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The first tick of every history. Files have a group for each hour, so there are two of five minutes each. */
export const BEGIN = Date.parse('2026-03-01T10:55:00Z')
/** Length in seconds. In the gap nothing was recorded; in the storm all sessions wait. */
export const LENGTH = 600
export const GAP = { since: 420, until: 480 }
export const STORM = { since: 200, until: 320 }
/** PID of the session that the others wait for. */
export const HEAD = 200

export const at = (second: number) => new Date(BEGIN + second * 1000).toISOString().replace('.000Z', 'Z')

/** A text of an attacker: markup, escape sequences, changes of the writing direction, zero bytes of
 *  other systems, and many of them. */
export const MARKUP = '<script>window.owned=1</script><img src=x onerror="window.owned=2">'
export const HOSTILE = `${MARKUP}\u202eevil\u2066\x1b]0;owned\x07\x1b[31m'"\`&amp;{{7*7}}\${7*7}javascript:owned`
/** A text and a name longer than anyone reads. */
export const LONG = `${MARKUP}${'€'.repeat(333_000)}`
const NAME = '€'.repeat(2_000)

export type Cell = string | number
const cell = (value: Cell) => {
  const text = String(value)
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
const csv = (rows: Record<string, Cell>[]) => {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  return [names.join(','), ...rows.map((row) => names.map((name) => cell(row[name] ?? '')).join(','))].join('\n') + '\n'
}

/** Names and texts of a history, usual or hostile. */
interface Words {
  text: (text: string) => string
}
const USUAL: Words = { text: (text) => text }
const HURTS: Words = { text: (text) => `${text}${HOSTILE}` }

const QUERIES = [
  'update item set qty = qty - $1 where id = $2',
  'select o.id, sum(l.price)\n  from orders o join line l on l.order_id = o.id\n group by o.id',
  'insert into event (kind, body) values ($1, $2)',
  'select * from customer where lower(email) = $1',
]
/** A deployment's statement, and the plans of the last query before and after it. */
export const DEPLOYED = { second: 130, id: 5, text: 'drop index customer_email' }
export const PLANS = ['41', '42'] as const
const START = at(-3600)
const DONE = ['', 'DataFileRead', 'WALSync', '']

interface Session {
  pid: number
  row: Record<string, Cell>
}

/** The active sessions in a second. */
function active(second: number, words: Words): Session[] {
  const storm = second >= STORM.since && second < STORM.until
  const found: Session[] = []
  const session = (pid: number, row: Record<string, Cell>) =>
    found.push({
      pid,
      row: {
        pid,
        backend_start: START,
        backend_type: 'client backend',
        database: words.text(pid % 2 ? 'shop' : 'crm'),
        username: words.text(pid % 3 ? 'app' : 'report'),
        application: words.text(pid < 110 ? 'web' : 'worker'),
        client_addr: words.text(`10.0.0.${pid % 4}`),
        state: 'active',
        ...row,
      },
    })
  const query = (n: number) => ({ query_id: n + 1, query_text: words.text(QUERIES[n]!) })
  for (let pid = 100; pid < 116; pid += 1) {
    const turn = (second * 7 + pid * 3) % 11
    if (storm && pid < 112) {
      const waits = { wait_event_type: 'Lock', wait_event: pid === 100 ? 'transactionid' : 'tuple' }
      session(pid, { ...waits, ...query(0), query_start: at(STORM.since), blocked_by: HEAD, blocked_by_start: START })
    } else if (turn < 3) {
      const n = (pid + turn) % QUERIES.length
      const event = DONE[n]!
      const wait: Record<string, Cell> = event ? { wait_event_type: 'IO', wait_event: event } : { cpu: turn === 0 ? 'runnable' : 'running' }
      const plan: Record<string, Cell> = n === 3 ? { plan_id: PLANS[second < DEPLOYED.second ? 0 : 1] } : {}
      session(pid, { ...wait, ...query(n), ...plan, query_start: at(second) })
    }
  }
  if (second === DEPLOYED.second) session(190, { cpu: 'running', query_id: DEPLOYED.id, query_text: words.text(DEPLOYED.text), application: words.text('deployment') })
  if (second >= STORM.since - 20 && second < STORM.until) {
    const idle = { state: 'idle in transaction', wait_event_type: 'Client', wait_event: 'ClientRead', category: 'foreground' }
    session(HEAD, { ...idle, ...query(1), application: words.text('job'), xact_start: at(STORM.since - 20) })
  }
  return found
}

function sessions(words: Words): Record<string, Cell>[] {
  const rows: Record<string, Cell>[] = []
  for (let second = 0; second < LENGTH; second += 1) {
    if (second >= GAP.since && second < GAP.until) continue
    const tick = { time: at(second), tick: second + 1, vcpus: 4, connections: 30, max_connections: 100 }
    const all = active(second, words)
    for (const { row } of all) rows.push({ ...tick, ...row })
    if (all.length === 0) rows.push(tick)
  }
  return rows
}

function locks(): Record<string, Cell>[] {
  const rows: Record<string, Cell>[] = []
  for (let second = STORM.since; second < STORM.until; second += 1) {
    for (let waiter = 100; waiter < 112; waiter += 1) {
      const [blocker, locktype] = waiter === 100 ? [HEAD, 'transactionid'] : [100, 'tuple']
      rows.push({
        ...{ time: at(second), tick: second + 1, waiter, waiter_start: START, blocker, blocker_start: START },
        ...{ hard: 1, locktype, lock_database: 5, field1: 16400, field2: 777, modes_held: 128, mode_requested: 7 },
        wait_start: at(STORM.since),
      })
    }
  }
  return rows
}

function statements(words: Words): Record<string, Cell>[] {
  const rows: Record<string, Cell>[] = []
  for (let second = 60; second <= LENGTH; second += 60) {
    QUERIES.forEach((_, n) => {
      const calls = 60 * (n + 1) + (second % 7)
      rows.push({
        ...{ time: at(second), elapsed_ms: 60_000, username: words.text('app'), database: words.text('shop'), query_id: n + 1, toplevel: 1 },
        ...{ calls, total_exec_time_ms: calls * (n * 3.5 + 0.25), rows: calls * 2, shared_blks_read: n * 17, user_time_ms: calls / 4, system_time_ms: calls / 8 },
        ...{ n_sampled: calls, errors: n === 3 ? 2 : 0, since_call_ms: 1 + 1000 * n, [`histogram_${9 + n}`]: calls - 10, histogram_14: 10 },
      })
    })
    if (second === 180) {
      const by = { time: at(second), elapsed_ms: 60_000, username: words.text('app'), database: words.text('shop'), toplevel: 1 }
      rows.push({ ...by, query_id: DEPLOYED.id, calls: 1, total_exec_time_ms: 12.5, n_sampled: 1, histogram_14: 1 })
    }
    // The row without a statement means that statements were counted.
    rows.push({ time: at(second), elapsed_ms: 60_000 })
  }
  return rows
}

function server(): Record<string, Cell>[] {
  const rows: Record<string, Cell>[] = []
  for (let second = 0; second < LENGTH; second += 10) {
    const by = (second / 10) % 6
    rows.push({
      ...{ time: at(second), elapsed_ms: second ? 10_000 : '', vcpus_x100: 400, load_1_x100: by * 100 + 50 },
      ...{ cpu_user_ms: 9000 + by * 500, cpu_system_ms: 3000, cpu_iowait_ms: 700 * by, memory_available_bytes: 3 * 2 ** 30 + by * 2 ** 20 },
      ...{ pressure_cpu_some_us: 8_000_000, pressure_io_some_us: 6_000_000, pressure_memory_some_us: 100_000, wal_bytes: 1_000_000 * (by + 1) },
    })
  }
  return rows
}

function databases(words: Words): Record<string, Cell>[] {
  const rows: Record<string, Cell>[] = []
  for (let second = 10; second < LENGTH; second += 10) {
    rows.push({ time: at(second), object: words.text('shop'), xact_commit: 500 + second, deadlocks: second === 300 ? 1 : 0, blks_read: 40 })
    rows.push({ time: at(second), object: words.text('crm'), xact_commit: 20, deadlocks: 0, blks_read: 2 })
  }
  return rows
}

/** Relations of database 5: OID, table of an index, kind, name, and pages of 8 kB. Names of the last two
 *  are not recorded. */
const RELATIONS: [number, number, string, string, number][] = [
  [16400, 0, 'table', 'orders', 40_000],
  [16401, 16400, 'primary key', 'orders_pkey', 6_000],
  [16402, 16400, 'index', 'orders_by_day', 9_000],
  [16403, 16400, 'index', 'orders_by_customer', 8_000],
  [16410, 0, 'table', 'item', 300],
  ...Array.from({ length: 12 }, (_, n): [number, number, string, string, number] => [16500 + n, 0, 'table', `event_2026_${String(n + 1).padStart(2, '0')}`, 100 + n]),
  [16600, 0, '', '', 0],
]

/** Counters of tables and indexes every five minutes, names, and readings of the catalog. */
function tables(words: Words): Record<string, Record<string, Cell>[]> {
  const shop = { database_oid: 5, database: words.text('shop') }
  const [stats, states]: Record<string, Cell>[][] = [[], []]
  for (const second of [200, 500]) {
    const by = { time: at(second), elapsed_ms: 300_000 }
    RELATIONS.forEach(([oid, , kind], n) => {
      const isTable = !kind.includes('index') && !kind.includes('key')
      const written: Record<string, Cell> = isTable ? { tuples_inserted: 40, tuples_updated: 500 - n, tuples_deleted: 3, live_tuples: 90_000 - n, dead_tuples: n === 0 ? 41_000 : n, last_autovacuum: at(-7200 + n), last_analyze: n === 4 ? '' : at(-600) } : {}
      if (oid !== 16402) stats!.push({ ...by, ...shop, oid, scans: 30 - n, tuples_returned: n === 0 ? 2_000_000 : 1000 - n, blks_read: 70 * n, blks_hit: 900, ...written })
    })
    stats!.push({ ...by, oid: 0, others: 40, tuples_returned: 77 })
  }
  for (const second of [60, 360]) {
    RELATIONS.filter(([, , kind]) => kind).forEach(([oid, table_oid, kind, , pages], n) => {
      const scans = oid === 16402 ? 12 : 100 * n + second
      states!.push({ time: at(second), ...shop, oid, kind, table_oid, bytes: 8192 * (pages + (second > 60 ? 25 : 0)) + 1, rows: 50_001, scans, tuples_returned: scans * 3 })
    })
    states!.push({ time: at(second), oid: 0, known_since: at(60) })
  }
  const relation = RELATIONS.filter(([, , , name]) => name).map(([oid, , , name]) => ({ time: at(60), database_oid: 5, oid, schema: 'public', name: words.text(name) }))
  return { table_stats: stats!, relation_state: states!, relation }
}

const markers = (words: Words): Record<string, Cell>[] => [
  { time: at(0), kind: 'start', detail: words.text('server started') },
  { time: at(180), kind: 'settings changed', detail: words.text('work_mem: 4MB -> 64MB') },
  { time: at(GAP.until), kind: 'gap', since: at(GAP.since), until: at(GAP.until), detail: words.text('writer was slow') },
]

/** Appends ticks that end at a moment, with `load` sessions at work. With `head` they wait for that
 *  process, which is idle in a transaction. */
export function record(directory: string, tape: string, until: number, ticks: number, load: number, head?: number) {
  const rows: Record<string, Cell>[] = []
  const waits: Record<string, Cell>[] = []
  const backend = { backend_type: 'client backend', backend_start: START }
  for (let tick = 0; tick < ticks; tick += 1) {
    const time = new Date(until - (ticks - 1 - tick) * 1000).toISOString()
    const doing: Record<string, Cell> = head ? { wait_event_type: 'Lock', wait_event: 'transactionid', blocked_by: head, blocked_by_start: START } : { cpu: 'running' }
    for (let pid = 1; pid <= load; pid += 1) {
      rows.push({ time, pid, state: 'active', ...backend, ...doing })
      if (head) waits.push({ time, waiter: pid, waiter_start: START, blocker: head, blocker_start: START, hard: 1, locktype: 'transactionid', mode_requested: 7, wait_start: time })
    }
    if (head) rows.push({ time, pid: head, state: 'idle in transaction', wait_event_type: 'Client', wait_event: 'ClientRead', application: 'job', ...backend })
  }
  const file = (name: string, all: Record<string, Cell>[]) => {
    writeFileSync(join(directory, name), csv(all))
    return join(directory, name)
  }
  const locks = head ? [`--with=locks=${file('waits.csv', waits)}`] : []
  tacho(['import', 'sessions', file('ticks.csv', rows), ...locks, ...(existsSync(tape) ? ['--append'] : [])], tape)
}

export const program = (name: string) => join(process.env.TACHO_PROGRAMS ?? join(process.cwd(), '../target/release'), name)

export function tacho(args: string[], tape: string): string {
  return execFileSync(program('tacho'), [...args, '--tape', tape], { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** A history of rows: of sessions, and of others by kind. */
export function imported(directory: string, name: string, rows: Record<string, Cell>[], others: Record<string, Record<string, Cell>[]>): string {
  const [tape, source] = [join(directory, name), join(directory, `${name}.csv`)]
  mkdirSync(source)
  const file = (kind: string, all: Record<string, Cell>[]) => {
    writeFileSync(join(source, kind), csv(all))
    return join(source, kind)
  }
  const kinds = Object.entries(others).map(([kind, all]) => `--with=${kind}=${file(kind, all)}`)
  tacho(['import', 'sessions', file('sessions', rows), ...kinds], tape)
  return tape
}

function made(directory: string, name: string, words: Words, rows = sessions(words)): string {
  const others = { locks: locks(), statements: statements(words), server: server(), server_database: databases(words), markers: markers(words), ...tables(words) }
  return imported(directory, name, rows, others)
}

/** Flips a bit in the column with the sessions of the second hour's samples. By docs/format.md it
 *  is a chunk of kind 3, table 22, column 2, group 2. */
const CHUNK = Buffer.from([0xf1, 0x54, 0x43, 0x4b, 3])
const COLUMN = Buffer.from([22, 2, 2])
function damage(tape: string) {
  for (const name of readdirSync(tape).filter((file) => file.endsWith('.tape'))) {
    const bytes = readFileSync(join(tape, name))
    for (let found = -1; (found = bytes.indexOf(CHUNK, found + 1)) >= 0; ) {
      if (bytes.subarray(found + 6, found + 9).equals(COLUMN)) bytes[found + 24]! ^= 1
    }
    writeFileSync(join(tape, name), bytes)
  }
}

/** All histories, by the names on the page. */
export function tapes(directory: string): Record<string, string> {
  mkdirSync(directory, { recursive: true })
  const usual = sessions(USUAL)
  const hostile = sessions(HURTS)
  hostile.push({ ...hostile.at(-1)!, pid: 999, query_id: 99, query_text: LONG })
  for (const end of ['one', 'other']) hostile.push({ ...hostile.at(-1)!, pid: 1000 + end.length, application: NAME + end })
  const damaged = made(directory, 'damaged', USUAL, usual)
  damage(damaged)
  const empty = join(directory, 'empty')
  mkdirSync(empty)
  return {
    shop: made(directory, 'shop', USUAL, usual),
    hostile: made(directory, 'hostile', HURTS, hostile),
    damaged,
    empty,
    missing: join(directory, 'missing'),
  }
}
