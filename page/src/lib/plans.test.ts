import { expect, test } from 'vitest'
import type { Row } from './api'
import { asText, chosen, cpuPerCall, misestimate, planFlags, planLanes, planQuestion, times, trees, turned, waysBack } from './plans'
import type { Series } from './series'
import { HOUR } from './time'
import { parseView } from './view'

const span = { since: 0, until: 100 }
const empty: Series = { times: [], keys: [], loads: [], coverage: [], peaks: [], vcpus: null }
const at = (time: number) => new Date(time).toISOString()

test('a lane has the time that was counted and the steps with samples', () => {
  const plans = [{ plan_id: '502', first_seen: at(60), last_seen: at(120) }, { plan_id: null, first_seen: at(0), last_seen: at(9) }]
  const course = { ...empty, times: [0, 20, 40, 60, 80, 100], keys: ['501', '502', '(other)'], loads: [[1, 1, 0, 1, 0], [0, 0, null, 2, 2], [1, 0, 0, 0, 0]] }
  expect(planLanes(plans, course, span)).toEqual([
    { id: '502', counted: { left: 60, width: 40 }, seen: [{ left: 60, width: 40 }] },
    { id: '501', counted: null, seen: [{ left: 0, width: 40 }, { left: 60, width: 20 }] },
  ])
  expect(planLanes(plans, empty, span)).toEqual([{ id: '502', counted: { left: 60, width: 40 }, seen: [] }])
})

test('a change of plans has both means and their ratio', () => {
  const row = { changed_at: at(5), query_id: '81', query_text: 'select\n 1', old_mean_exec_time: 0.2, new_mean_exec_time: 210, ratio: 1050 }
  expect(turned(row)).toBe('200 µs → 210 ms, ×1,050')
  expect([times(12.4), times(1.5), times(0.0213), times(null)]).toEqual(['×12', '×1.5', '×0.021', '–'])
  expect(planFlags([row])).toEqual([{ marker_time: at(5), kind: 'plan changed', detail: '200 µs → 210 ms, ×1,050: select 1', query_id: '81' }])
})

test('the rows of two plans are two trees, whose different nodes are marked', () => {
  const row = (node_number: number, plan_id: string, explain: string, differs: string | null, other: string | null = null) => ({ node_number, plan_id, explain, differs, other, recorded_at: at(5), plan_json: node_number === 1 ? `[${plan_id}]` : null, settings: node_number === 1 && plan_id === '41' ? 'jit = off\nwork_mem = 64MB' : null, hint: node_number === 1 && plan_id === '41' ? '/*+ SeqScan(t) */' : null, hint_lacks: node_number === 1 && plan_id === '41' ? 'a\nb' : null, plan_type: node_number === 1 && plan_id === '41' ? 'generic' : null })
  const found = trees([row(1, '41', 'Limit', 'same'), row(2, '41', '  ->  Seq Scan on t', 'node', 'Index Scan'), row(1, '42', 'Limit', 'same'), row(2, '42', '  ->  Sort', 'missing')])
  expect(found.map((tree) => [tree.id, tree.json, asText(tree)])).toEqual([['41', '[41]', 'Limit\n  ->  Seq Scan on t\n'], ['42', '[42]', 'Limit\n  ->  Sort\n']])
  expect(found.map((tree) => tree.nodes.filter((node) => node.isMarked).map((node) => node.other))).toEqual([['Index Scan'], ['nothing like it']])
  const analyzed = (node_number: number, relation: string | null, analyzed_at: string | null) => ({ ...row(node_number, '41', '', 'same'), schema: 'public', relation, analyzed_at })
  expect(trees([analyzed(1, null, null), analyzed(2, 't', at(1)), analyzed(3, 't', at(1)), analyzed(4, 'u', null)])[0]!.analyzed).toEqual([{ table: 'public.t', at: at(1) }])
  expect(found.map((tree) => tree.settings)).toEqual([['jit = off', 'work_mem = 64MB'], []])
  expect(found.map((tree) => tree.ways.map(({ name, text, lacks }) => [name, text, lacks]))).toEqual([[['hint', '/*+ SeqScan(t) */', ['a', 'b']]], []])
  expect(found.map((tree) => tree.type)).toEqual(['generic', null])
  expect(trees([row(1, '41', 'Limit', null)])[0]!.nodes[0]!.isMarked).toBe(false)
  expect(trees([])).toEqual([])
})

test('a plan has the mean CPU time of its executions', () => {
  const rows: Row[] = [{ cpu_time: '12.5', calls: 5 }, { cpu_time: null, calls: 5 }, { calls: 5 }, { cpu_time: '1', calls: 0 }]
  expect(rows.map(cpuPerCall)).toEqual([2.5, null, null, null])
})

test('a way back is a hint, an advice, or what the language of one lacks', () => {
  const row = { old_hint: null, old_hint_lacks: 'Sort: no hint.', old_advice: "SELECT 1;\nSET a = 'b';", old_advice_lacks: null }
  expect(waysBack(row, 'old_').map(({ name, extension, text, lacks }) => [name, extension, text, lacks])).toEqual([
    ['hint', 'pg_hint_plan', null, ['Sort: no hint.']],
    ['advice', 'pg_stash_advice', "SELECT 1;\nSET a = 'b';", []],
  ])
  expect(waysBack(row)).toEqual([])
})

test('rows of ten times the estimate or a tenth of it are a misestimate unless they are a lower bound', () => {
  const rows = (estimated: number, actual: string | null, is_lower_bound = false) => misestimate({ rows: estimated, actual_rows: actual, is_lower_bound })
  expect(rows(100, '5000.00')).toBe('▲ 5,000 rows, ×50 of the estimate')
  expect(rows(5000, '50.00')).toBe('▼ 50 rows, ×0.01 of the estimate')
  expect(rows(100, '1000.00')).toBe('▲ 1,000 rows, ×10 of the estimate')
  expect(rows(100, '999.00')).toBeNull()
  expect(rows(1, '0.00')).toBeNull()
  expect(rows(5000, '50.00', true)).toBeNull()
  expect(rows(5000, null)).toBeNull()
})

test('two plans at most are chosen; a third takes the place of the first', () => {
  expect(chosen([], '1')).toEqual(['1'])
  expect(chosen(['1'], '2')).toEqual(['1', '2'])
  expect(chosen(['1', '2'], '3')).toEqual(['2', '3'])
  expect(chosen(['1', '2'], '1')).toEqual(['2'])
})

test('windows up to the longest of the server have changes of plans', () => {
  const view = parseView('?database=shop&application=web')
  const window = (length: number) => ({ since: 0, until: length })
  const asked = { function: 'plan_changes', args: { since: '1970-01-01T00:00:00Z', until: '1970-01-01T01:00:00Z', database: 'shop' } }
  expect(planQuestion(view, window(HOUR), HOUR)).toMatchObject(asked)
  expect(planQuestion(view, window(HOUR + 1), HOUR)).toBeNull()
  expect(planQuestion(view, window(HOUR), null)).toBeNull()
})
