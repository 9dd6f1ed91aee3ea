// Heads of queues: what they are called, and what they did themselves, from rows of
// `blocking` and `samples`.

import type { Row } from './api'

/** Why a holder has no name, by its kind. */
export const REASONS: Record<string, string> = {
  unknown: 'holders that were not looked up: the wait was shorter than a tick, or the 2 ms that a tick may take for it were used up',
  lost: 'holders that ended before the sampler could look them up',
}

/** The name of a row of `blocking` that is no session. */
export const nameOf = (row: Row) => String(row.prepared_gid ?? row.tree ?? '').trim()

/** A cycle: its sessions wait for each other, so none of them is a head. */
export const isCycle = (row: Row) => row.kind === 'cycle'

export interface Own {
  /** Wait event of the head, or its kind of CPU activity. */
  wait: string
  client: string
  blockedBy: string | null
}

const idOf = (row: Row) => `${row.pid} ${row.backend_start}`

/** The own work of each head, at the tick at which it was last seen as a head. `samples` come
 *  newest first. */
export function ownOf(heads: Row[], samples: Row[]): Map<Row, Own> {
  const found = new Map<Row, Own>()
  for (const head of heads) {
    const last = Date.parse(String(head.last_seen))
    const own = samples.find((row) => idOf(row) === idOf(head) && Date.parse(String(row.sample_time)) <= last)
    if (!own) continue
    const wait = own.wait_event ? `${own.wait_event_type}:${own.wait_event}` : own.cpu ? `CPU:${own.cpu}` : own.state === 'active' ? 'CPU*' : ''
    found.set(head, { wait, client: String(own.client_addr ?? ''), blockedBy: own.blocked_by == null ? null : String(own.blocked_by) })
  }
  return found
}

/** For each cycle of a tree: the row of the session that the cycle's head waits for, and the head.
 *  The cycle closes after that row. */
export function closings(nodes: Row[], own: Map<Row, Own>): Map<Row, Row> {
  const found = new Map<Row, Row>()
  let head: Row | null = null
  for (const row of nodes) {
    if (row.level === 0) head = row
    const waitsFor = head && isCycle(head) ? own.get(head)?.blockedBy : null
    if (head && waitsFor === String(row.pid) && (row !== head || nodes.length === 1)) found.set(row, head)
  }
  return found
}
