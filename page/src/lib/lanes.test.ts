import { expect, test } from 'vitest'
import { figures, lanes, pieceAt } from './lanes'

const picture = {
  rows: [
    { pid: 7, backend_start: 'b', backend_type: 'client backend', application: 'web', held_seconds: 2.5, spans: [[0, 1000, 0, 1000], [2000, 10_000, 1, 2500]] },
    { pid: 8, backend_start: 'c', backend_type: 'walwriter', application: null, held_seconds: 0, spans: [[5000, 1000, 2, 1000]] },
  ],
  doings: [
    { state: 'active', wait_event_type: null },
    { state: 'active', wait_event_type: 'IO' },
    { state: 'idle in transaction', wait_event_type: 'Client' },
  ],
  step_ms: 0,
  sessions: 2,
} as unknown as Parameters<typeof lanes>[0]

test('lanes have who it is, how long others waited, and what was done from when to when', () => {
  const found = lanes(picture, 1_000_000)
  expect(found.map(({ pid, who, held }) => [pid, who, held])).toEqual([[7, 'web', 2500], [8, 'walwriter', 0]])
  expect(found.map(({ pieces }) => pieces.map(({ since, until, kind, share }) => [since, until, kind, share]))).toEqual([
    [[1_000_000, 1_001_000, 'CPU', 1], [1_002_000, 1_012_000, 'IO', 0.25]],
    [[1_005_000, 1_006_000, 'idle in transaction', 1]],
  ])
  expect(pieceAt(found[0]!, 1_002_000)?.kind).toBe('IO')
  expect(pieceAt(found[0]!, 1_001_000)).toBeNull()
})

test('the table behind lanes has the figures of sessions', () => {
  const asked = { function: 'lanes', args: { server: 'shop', scope: 'foreground', n: '30', width: '900' } }
  expect(figures(asked)).toEqual({ function: 'sessions', args: { server: 'shop', scope: 'foreground', n: '60' } })
})
