import { expect, test } from 'vitest'
import type { Row } from './api'
import { explained, folded, isComparable, sentence, viewOf, withTexts } from './found'
import type { View } from './view'

const view = { filters: { application: 'web' }, live: null } as unknown as View
const row = (more: Row): Row => ({ kind: 'effect', dimension: 'query_id', key: '81', pct: 50, query_text: null, explains: null, started: null, ended: null, ...more })
const cause = row({ kind: 'cause', dimension: 'schema changed', key: 'app.orders_customer', pct: 97, explains: '81, (null), -5', started: '2026-04-01T03:12:07Z' })

test('a folded list begins with the cause, and the queries with most of the difference follow', () => {
  const worse = row({ kind: 'cause', dimension: 'mark', pct: null })
  const second = row({ kind: 'cause', dimension: 'clients', pct: 3 })
  const [large, small, wait] = [row({ pct: 97 }), row({ pct: 0.4 }), row({ dimension: 'wait_event', pct: 100 })]
  expect(folded([cause, second, worse, large, small, wait], 3)).toEqual([cause, second, large])
  expect(folded([cause, second, large, row({ pct: -20 })], 3)).toEqual([cause, large, row({ pct: -20 })])
  expect(folded([cause], 3)).toEqual([cause])
})

test('beside a window that was not recorded nothing is compared', () => {
  expect(isComparable([row({ before_coverage_pct: 12 })])).toBe(true)
  expect(isComparable([row({ before_coverage_pct: null })])).toBe(false)
  expect(isComparable([])).toBe(false)
})

test('the text of a query stands for its number', () => {
  expect(sentence(row({ explanation: 'query 81 got slower', query_text: 'select 1' }))).toBe('got slower')
  expect(sentence(row({ explanation: 'query 81 got slower' }))).toBe('query 81 got slower')
  expect(explained(cause)).toEqual(['81', '-5'])
})

test('a cause names its queries by text', () => {
  const rows = [row({ query_text: 'select  1' }), row({ key: '812' }), row({ dimension: 'wait_event', key: '5', query_text: 'no' })]
  expect(withTexts('when query 81 got slower, query 812 and query 5 too', rows)).toBe('when "select 1" got slower, query 812 and query 5 too')
  expect(withTexts('query -5 ran', [row({ key: '-5', query_text: 'x'.repeat(61) })])).toBe(`"${'x'.repeat(60)}…" ran`)
})

test('a finding leads to the event, the queue, the query or the key', () => {
  expect(viewOf(cause, view)).toEqual({ tab: 'events', at: Date.parse('2026-04-01T03:12:07Z') })
  expect(viewOf(row({}), view)).toEqual({ tab: 'queries', filters: { application: 'web', query_id: '81' } })
  expect(viewOf(row({ dimension: 'username', key: 'app' }), view)).toEqual({ tab: 'queries', filters: { application: 'web', username: 'app' } })
  expect(viewOf(row({ dimension: 'username', key: '(other)' }), view)).toEqual({ tab: 'dimensions' })
  expect(viewOf(row({ dimension: 'application', key: 'a,b' }), view)).toEqual({ tab: 'queries', filters: { application: '"a,b"' } })
  expect(viewOf(row({ dimension: 'application', key: '' }), view)).toEqual({ tab: 'queries', filters: { application: '""' } })
  for (const [dimension, tab] of [['connections', 'server'], ['host', 'server'], ['replica', 'server'], ['table', 'tables']] as const) {
    expect(viewOf(row({ kind: 'cause', dimension }), view)).toEqual({ tab })
  }
  expect(viewOf(row({ kind: 'cause', dimension: 'planner', explains: '-5, 7' }), view)).toEqual({ tab: 'queries', filters: { application: 'web', query_id: '-5' } })
  expect(viewOf(row({ kind: 'cause', dimension: 'snapshot', key: '90' }), view)).toEqual({ tab: 'sessions', filters: { application: 'web', pid: '90' } })
  const holder = row({ kind: 'cause', dimension: 'blocker', key: '900', started: '2026-04-01T03:00:00Z', ended: '2026-04-01T03:00:10Z' })
  expect(viewOf(holder, view)).toEqual({ tab: 'locks', at: Date.parse('2026-04-01T03:00:05Z') })
})
