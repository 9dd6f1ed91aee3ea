// The incidents of the demo in histories made by hand: ten quiet minutes, then eight of the incident.

import type { Cell } from './tape'

type Row = Record<string, Cell>
type Rows = Row[]

const BEGIN = Date.parse('2026-04-01T03:00:00Z')
export const at = (second: number) => new Date(BEGIN + second * 1000).toISOString().replace('.000Z', 'Z')
/** The seconds in which the incident begins and the history ends. */
export const [BAD, END] = [720, 1200]
/** The window of the page. */
export const WINDOW = `since=${at(600)}&until=${at(END)}`

/** Sessions of one application that do the same from the incident on. */
export interface Doing {
  /** Process id of the first. */
  pid: number
  count?: number
  application: string
  query: [id: number, text: string]
  /** Wait class and event; none: on a CPU. */
  wait?: [string, string]
  /** Process that holds what they wait for, and the lock on table 16400 that they ask for. */
  behind?: { pid: number; locktype: string; mode: number; table?: boolean }
  /** Idle in a transaction instead of active. */
  idle?: true
}
export interface Staged {
  sessions: Rows
  others: Record<string, Rows>
}

const START = at(-600)
const by = { backend_start: START, backend_type: 'client backend', database: 'shop' }

function row(tick: Row, { application, query, wait, behind, idle }: Doing, pid: number): Row {
  const waits: Row = wait ? { wait_event_type: wait[0], wait_event: wait[1] } : { cpu: 'running' }
  const state: Row = idle ? { state: 'idle in transaction', category: 'foreground', wait_event_type: 'Client', wait_event: 'ClientRead', xact_start: at(BAD) } : { state: 'active', ...waits }
  const held: Row = behind ? { blocked_by: behind.pid, blocked_by_start: START } : {}
  return { ...tick, ...by, pid, username: 'app', application, query_id: query[0], query_text: query[1], query_start: at(BAD), ...state, ...held }
}

/** A history of the incident, with rows of other kinds. */
export function staged(incident: Doing[], others: Record<string, Rows> = {}): Staged {
  const sessions: Rows = []
  const locks: Rows = []
  for (let second = 0; second < END; second += 1) {
    const tick = { time: at(second), tick: second + 1, vcpus: 4 }
    sessions.push({ ...tick, ...by, pid: 300, username: 'app', application: 'batch', state: 'active', cpu: 'running', query_id: 82, query_text: 'select * from item' })
    if (second < BAD) continue
    for (const doing of incident) {
      for (let i = 0; i < (doing.count ?? 1); i += 1) {
        const waiter = doing.pid + i
        sessions.push(row(tick, doing, waiter))
        if (!doing.behind) continue
        const { pid: blocker, locktype, mode, table } = doing.behind
        const field: Row = table ? { lock_database: 5, field1: 16400 } : { field1: 777 }
        locks.push({ time: at(second), tick: second + 1, waiter, waiter_start: START, blocker, blocker_start: START, hard: 1, locktype, ...field, modes_held: 128, mode_requested: mode, wait_start: at(BAD) })
      }
    }
  }
  const relation = [{ time: at(1), database_oid: 5, oid: 16400, schema: 'public', name: 'orders' }]
  return { sessions, others: { ...(locks.length > 0 ? { locks } : {}), relation, ...others } }
}

/** Readings of the server every ten seconds. In the incident they have the values of `bad`, too. The first has no interval. */
export const readings = (usual: Row, bad: Row = {}): Rows =>
  Array.from({ length: END / 10 }, (_, i) => {
    const first: Row = i === 0 && 'elapsed_ms' in usual ? { elapsed_ms: '' } : {}
    return { time: at(10 * i), ...usual, ...(10 * i >= BAD ? bad : {}), ...first }
  })
