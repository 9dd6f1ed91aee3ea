import { expect, test } from 'vitest'
import { running } from './running'

const at = '2026-11-22T05:30:07Z'
const row = (pid: number, more: object) => ({ sample_time: at, pid, state: 'active', ...more })

test('sessions of the newest tick stand by age, with what they wait for', () => {
  const found = running([
    row(1, { query_start: '2026-11-22T05:30:05Z', cpu: 'running', query_id: '7', query_text: 'select\n  1' }),
    row(2, { query_start: '2026-11-22T05:10:07Z', wait_event_type: 'Lock', wait_event: 'tuple', blocked_by: 3 }),
    row(3, { state: 'idle in transaction', query_start: '2026-11-22T04:00:00Z', xact_start: '2026-11-22T05:00:07Z' }),
    { ...row(4, {}), sample_time: '2026-11-22T05:30:06Z' },
  ])!
  expect(found.time).toBe(Date.parse(at))
  expect(found.sessions.map(({ pid, runs, transaction, wait, blockedBy }) => [pid, runs, transaction, wait, blockedBy])).toEqual([
    ['3', null, 1_800_000, 'idle in transaction', null],
    ['2', 1_200_000, null, 'Lock:tuple', '3'],
    ['1', 2000, null, 'CPU:running', null],
  ])
  expect(found.sessions[2]!.text).toBe('select 1')
  expect(running([])).toBeNull()
})
