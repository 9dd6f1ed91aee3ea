// Sessions at one tick, from rows of `samples`.

import type { Row } from './api'

export interface Running {
  pid: string
  user: string
  application: string
  client: string
  queryId: string | null
  text: string
  /** Age of the query in ms; null if none runs. */
  runs: number | null
  /** Age of the transaction in ms. */
  transaction: number | null
  /** The wait event, and the session's state if it is not active. */
  wait: string
  blockedBy: string | null
}

const text = (value: unknown) => (value == null ? '' : String(value))
const id = (value: unknown) => (value == null ? null : String(value))

function wait(row: Row): string {
  const event = row.wait_event ? `${row.wait_event_type}:${row.wait_event}` : row.cpu ? `CPU:${row.cpu}` : ''
  return row.state === 'active' || row.state == null ? event : [row.state, event].filter(Boolean).join(', ')
}

/** The sessions of the newest tick, longest at work first. */
export function running(rows: Row[]): { time: number; sessions: Running[] } | null {
  const newest = rows[0]?.sample_time
  if (typeof newest !== 'string') return null
  const time = Date.parse(newest)
  const age = (value: unknown) => (typeof value === 'string' ? Math.max(0, time - Date.parse(value)) : null)
  const sessions = rows
    .filter((row) => row.sample_time === newest && row.pid != null)
    .map((row) => ({
      pid: text(row.pid),
      user: text(row.username),
      application: text(row.application),
      client: text(row.client_addr),
      queryId: id(row.query_id),
      text: text(row.query_text).replace(/\s+/g, ' ').slice(0, 400),
      runs: row.state === 'active' ? age(row.query_start) : null,
      transaction: age(row.xact_start),
      wait: wait(row),
      blockedBy: id(row.blocked_by),
    }))
  const oldest = (one: Running) => Math.max(one.runs ?? 0, one.transaction ?? 0)
  return { time, sessions: sessions.sort((a, b) => oldest(b) - oldest(a) || Number(a.pid) - Number(b.pid)) }
}
