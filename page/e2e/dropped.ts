// An index is dropped: one query runs by another plan, and takes a thousand times as long.

import type { Cell } from './tape'

type Rows = Record<string, Cell>[]

export const BEGIN = Date.parse('2026-04-01T03:00:00Z')
export const at = (second: number) => new Date(BEGIN + second * 1000).toISOString().replace('.000Z', 'Z')
/** The second of the change, and the end of the history. */
export const DROPPED = 720
export const END = 1200
export const SLOW = { id: 81, text: 'select * from app.orders where customer = $1' }
export const PLANS = { old: '501', new: '502' }
/** `DROP INDEX …` as the marker tells it. */
export const CAUSE = 'DROP INDEX app.orders_customer on app.orders, role deploy, database shop, application migrate'

/** A node of a recorded tree (docs/format.md): level, kind, relation to the node above, and texts by kind. */
type Node = [depth: number, kind: number, role: number, texts: [number, string][]]
const bytes = (...numbers: number[]) => String.fromCharCode(...numbers)
const node = ([depth, kind, role, texts]: Node) =>
  bytes(depth, kind, role, 0, 0, 7, 8, 0, 100) + texts.map(([of, text]) => bytes(of, text.length) + text).join('') + bytes(0)
/** Flags of trees: with planner settings, generic, custom, with all names for advice. */
const [INPUTS, GENERIC, CUSTOM, ADVISABLE] = [2, 4, 8, 16 + 32]
const tree = (flags: number, nodes: Node[]) => bytes(1, flags) + nodes.map(node).join('')
const ORDERS: [number, string][] = [[1, 'orders'], [2, 'app'], [3, 'orders']]

/** The trees of both plans: a group above a bitmap scan, custom, and above a sequential scan, generic.
 *  Their server takes advice. */
export function trees(): Rows {
  const row = (second: number, plan_id: string, plan: string) => ({ time: at(second), plan_id, query_id: SLOW.id, database: 'shop', username: 'app', tree: plan })
  const group: Node = [0, 33, 0, [[10, 'ordered_at']]]
  return [
    row(1, PLANS.old, tree(INPUTS + CUSTOM + ADVISABLE, [group, [1, 14, 1, [...ORDERS, [15, 'customer = ?']]], [2, 13, 1, [[4, 'orders_customer'], [14, 'customer = ?']]]])),
    row(DROPPED, PLANS.new, tree(INPUTS + GENERIC + ADVISABLE, [group, [1, 9, 1, [...ORDERS, [21, 'customer = ?']]]])),
  ]
}

/** Twenty minutes; the change and two innocent ones are after twelve. */
export function dropped(): { sessions: Rows; others: Record<string, Rows> } {
  const sessions: Rows = []
  const backend = { backend_start: at(-60), backend_type: 'client backend', state: 'active', cpu: 'running', database: 'shop', username: 'app', application: 'web' }
  for (let second = 0; second < END; second += 1) {
    const tick = { time: at(second), tick: second + 1, vcpus: 4 }
    const isSlow = second >= DROPPED
    const busy = isSlow ? 4 : second % 5 === 0 ? 1 : 0
    for (let i = 0; i < busy; i += 1) {
      sessions.push({ ...tick, pid: 200 + i, ...backend, query_id: SLOW.id, query_text: SLOW.text, plan_id: isSlow ? PLANS.new : PLANS.old })
    }
    sessions.push({ ...tick, pid: 300, ...backend, application: 'batch', query_id: 82, query_text: 'select * from app.item' })
  }
  const statements: Rows = []
  for (let second = 60; second <= END; second += 60) {
    const row = { time: at(second), elapsed_ms: 60_000 }
    const by = { ...row, username: 'app', database: 'shop', toplevel: 1 }
    const [calls, ms, bucket] = second > DROPPED ? [600, 210, 'histogram_17'] : [600, 0.2, 'histogram_7']
    statements.push(row, { ...by, query_id: SLOW.id, calls, total_exec_time_ms: calls * ms, user_time_ms: (calls * ms) / 2, rows: calls * 3, [bucket]: calls })
    statements.push({ ...by, query_id: 82, calls: 60, total_exec_time_ms: 60_000, rows: 60 })
  }
  const dropping = { command: 'DROP INDEX', object_class: 'index', object_oid: 16500, object_name: 'app.orders_customer', detail: 'on app.orders', database: 'shop', username: 'deploy', application: 'migrate' }
  const markers: Rows = [
    { time: at(DROPPED - 300), kind: 'settings changed', detail: 'log_min_duration_statement: 1s -> 2s' },
    { time: at(DROPPED), since: at(DROPPED), until: at(DROPPED), kind: 'schema changed', ...dropping },
    { time: at(DROPPED + 1), kind: 'mark', detail: 'deploy 1.4' },
  ]
  return { sessions, others: { statements, markers } }
}
