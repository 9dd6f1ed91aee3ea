import { expect, test } from 'vitest'
import { lanes } from './lanes'

const row = (pid: number, since: number, until: number, more: object = {}) => ({
  pid,
  backend_start: 'b',
  kind: 'sampled',
  state: 'active',
  application: `app ${pid}`,
  wait_event_type: null,
  blocked_by: null,
  span_start: new Date(since * 1000).toISOString(),
  span_end: new Date(until * 1000).toISOString(),
  ...more,
})
const waits = (blocked_by: number) => ({ wait_event_type: 'Lock', blocked_by })

test('who held up others stands first, by how long they waited; who waited, too, is no head', () => {
  const found = lanes([
    row(1, 0, 100),
    row(2, 0, 3, { state: 'idle in transaction' }),
    row(3, 0, 4, { state: 'idle in transaction' }),
    row(4, 10, 20, waits(3)),
    row(5, 10, 18, waits(4)),
    row(6, 10, 30, waits(2)),
    row(7, 10, 12, waits(3)),
  ])
  expect(found.map(({ pid, held }) => [pid, held])).toEqual([[2, 20_000], [3, 12_000], [1, 0], [6, 0], [4, 0], [5, 0], [7, 0]])
})

test('an idle session has no lane, and one that ran twice has one', () => {
  const found = lanes([row(1, 0, 2, { state: 'idle' }), row(2, 0, 2), row(2, 5, 6, { wait_event_type: 'IO' })])
  expect(found.map(({ pid, busy, pieces }) => [pid, busy, pieces.map(({ kind }) => kind)])).toEqual([[2, 3000, ['CPU', 'IO']]])
})
