import { expect, test } from 'vitest'
import { dimensionName, parseView, viewSearch } from './view'

test('an address shows what it was copied from', () => {
  for (const search of [
    '?server=shop&since=2026-11-22T05:30:00Z&until=2026-11-22T05:50:00Z&tz=local&by=application&tab=locks&fleet=all&compare=week&wait_event_type=Lock&at=2026-11-22T05:31:00Z',
    '?server=shop&live=15m&sort=errors&find=order+by&queries=all',
    '?server=shop&live=15m&tab=tables&tables=dead&indexes=size',
    '?server=shop&live=15m&query_id=81&plans=41,-42',
    '?server=a+b%26c&live=15m&application=!web,!%22a,b%22',
    '?server=shop&live=15m&by=tag:action&tag:controller=orders,(null)&tag:a.b-c=!%22x,y%22',
  ]) {
    expect(viewSearch(parseView(viewSearch(parseView(search))))).toBe(viewSearch(parseView(search)))
    expect(parseView(viewSearch(parseView(search)))).toEqual(parseView(search))
  }
})

test('unknown parts of an address get their defaults', () => {
  const view = parseView('?by=color&compare=x&tab=<script>&tz=Mars&since=yesterday&until=2026-11-22T05:50:00Z&live=x&sort=size&tables=x&indexes=work')
  expect(view).toMatchObject({ by: 'wait_event_type', tab: 'queries', compare: null, sort: 'load', tables: 'work', indexes: 'scans', find: null, all: false, zone: 'UTC', since: null, until: null, live: null })
})

test('a tag is a dimension if its key may be one', () => {
  const view = parseView('?by=tag:a b&tag:=x&tag:a%2Cb=x&tag:route=/orders')
  expect(view).toMatchObject({ by: 'wait_event_type', filters: { 'tag:route': '/orders' } })
  expect(view.filters).toEqual({ 'tag:route': '/orders' })
  expect(dimensionName('tag:route')).toBe('tag route')
})

test('plans are of one query, and two at most', () => {
  expect(viewSearch(parseView('?plans=41,42'))).toBe('?')
  expect(parseView('?query_id=81&plans=41,x,42,43').plans).toEqual(['41', '42'])
})

test('a window that ends before it begins is none', () => {
  expect(parseView('?since=2026-11-22T05:50:00Z&until=2026-11-22T05:30:00Z').since).toBeNull()
})
