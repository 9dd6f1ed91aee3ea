// The table of queries: sorted by any column, searched, all of them, and those that err.

import type { Page } from '@playwright/test'
import { test as own } from './own'
import { cells, said, same } from './shown'
import { WHOLE, expect, open, settled, test } from './web'

/** The text of a query, without the flag of a changed plan. */
const textOf = (row: string[]) => row[3]!.replace(/^plan changed\s*/, '')
const table = (page: Page) => page.getByRole('tabpanel').locator('table.queries')
const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const at = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const WINDOW = `since=${at(0)}&until=${at(120)}`
const QUERIES = 150
/** Id of a query that fails so fast that no sample has it. */
const FAILING = 777

/** Queries, 40 of them seen at work, and one that fails 1968 times. */
function many(queries = QUERIES) {
  const backend = { pid: 1, backend_start: at(-60), backend_type: 'client backend', state: 'active', cpu: 'running', database: 'shop', username: 'app' }
  const sessions = Array.from({ length: 120 }, (_, second) => {
    const id = 1 + (second % 40)
    return { time: at(second), tick: second + 1, ...backend, query_id: id, query_text: `select ${id} from item` }
  })
  const minutes = [60, 120]
  const statements = minutes.flatMap((second) => {
    const row = { time: at(second), elapsed_ms: 60_000 }
    const by = { ...row, username: 'app', database: 'shop', toplevel: 1 }
    const counted = Array.from({ length: queries }, (_, i) => ({ ...by, query_id: i < FAILING - 1 ? i + 1 : i + 2, calls: 2000 - i, total_exec_time_ms: 10 + i, rows: i, histogram_3: 2000 - i }))
    const failing = { ...by, username: 'batch', query_id: FAILING, calls: 4, total_exec_time_ms: 0.4, errors: 984, histogram_6: 4 }
    return [row, ...counted, failing]
  })
  return { sessions, others: { statements } }
}

test('a query has the columns of its statistics', async ({ page }) => {
  await open(page, 'shop')
  const rows = said(`tacho statements-history --since ${WHOLE.since} --until ${WHOLE.until} --n all`)
  const shown = await cells(table(page))
  const known = shown.filter((row) => row[4] !== '–')
  expect(known.length).toBeGreaterThan(3)
  for (const row of known) {
    const statement = rows.find((one) => String(one.query_text ?? '').replace(/\s+/g, ' ') === textOf(row))!
    expect(statement, row[3]).toBeDefined()
    same(row[7]!, Number(statement.total_exec_time) / 1000, 'total time')
    same(row[8]!, statement.rows, 'rows')
    same(row[9]!, statement.shared_blks_read, 'reads')
    same(row[10]!, statement.temp_blks_written, 'temp')
    same(row[11]!, statement.errors, 'errors')
    expect(row.slice(13)).toEqual([statement.username, statement.database])
  }
})

own('load without a query says what it waited for', async ({ page, history }) => {
  const tick = (second: number) => ({ time: at(second), tick: second + 1 })
  const sessions = Array.from({ length: 120 }, (_, second) => [
    { ...tick(second), pid: 1, backend_start: at(-60), backend_type: 'client backend', state: 'active', cpu: 'running', query_id: 7, query_text: 'select 1' },
    { ...tick(second), pid: 2, backend_start: at(-60), backend_type: 'client backend', state: 'active', wait_event_type: 'LWLock', wait_event: 'WALWrite' },
    { ...tick(second), pid: 3, backend_start: at(-60), backend_type: 'client backend', state: 'active', wait_event_type: 'IO', wait_event: 'WALSync' },
  ]).flat()
  const address = await history(sessions, {})
  await page.goto(address(`${WINDOW}&tab=queries`))
  await settled(page)
  const none = page.getByRole('region', { name: 'Load without a query', exact: true })
  await expect(none).toHaveCount(0)
  await table(page).getByRole('button', { name: 'no query', exact: true }).click()
  await settled(page)
  await expect(none).toContainText('The server had no query identifier for this work')
  const types = none.locator('section', { has: page.getByRole('heading', { name: 'process type' }) })
  expect((await cells(types.locator('table'))).map((row) => [row[0], row[3]])).toEqual([['2.00', 'client backend']])
  const waits = none.locator('section', { has: page.getByRole('heading', { name: 'wait event' }) })
  expect((await cells(waits.locator('table'))).map((row) => row[3]).toSorted()).toEqual(['IO:WALSync', 'LWLock:WALWrite'])
})

for (const [name, column] of [
  ['errors', 'errors'],
  ['calls', 'calls'],
  ['total time', 'total_exec_time'],
  ['reads', 'shared_blks_read'],
] as const) {
  test(`a click on "${name}" sorts all queries by it, and the address says so`, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height: 900 })
    await open(page, 'shop')
    await table(page).getByRole('button', { name, exact: true }).click()
    await settled(page)
    await expect(table(page).getByRole('columnheader', { name })).toHaveAttribute('aria-sort', 'descending')
    const rows = said(`tacho statements-history --since ${WHOLE.since} --until ${WHOLE.until} --n all`)
    const order = rows.filter((row) => row.query_id !== null).sort((a, b) => Number(b[column]) - Number(a[column]))
    const shown = (await cells(table(page))).map(textOf)
    expect(shown[0]).toBe(String(order[0]!.query_text).replace(/\s+/g, ' '))
    const [url, before] = [page.url(), shown.join()]
    await page.goto(url)
    await settled(page)
    expect((await cells(table(page))).map(textOf).join()).toBe(before)
  })
}

own('a query that only errs stands above the fold, and first by errors', async ({ page, history }) => {
  const { sessions, others } = many()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  const errors = page.getByRole('region', { name: 'Errors' })
  await expect(errors.locator('li').first()).toContainText(/1,968\s*16\.4\/s, 99\.6 % of its executions/)
  expect((await cells(table(page))).map((row) => row[3])).not.toContain(`query ${FAILING}, text unknown`)
  await table(page).getByRole('button', { name: 'errors', exact: true }).click()
  await settled(page)
  const [first] = await cells(table(page))
  expect([first![0], first![3], first![11], first![13]]).toEqual(['0', `query ${FAILING}, text unknown`, '1,968', 'batch'])
})

own('errors have a chart by class of SQLSTATE, and each query its codes', async ({ page, history }) => {
  const { sessions, others } = many()
  const of = { elapsed_ms: 60_000, username: 'batch', database: 'shop', toplevel: 1, query_id: FAILING }
  const [unique, deadlock] = [83906754, 16908292]
  const errors = [60, 120].flatMap((second) => [
    { ...of, time: at(second), sqlstate: unique, errors: 981 },
    { ...of, time: at(second), sqlstate: deadlock, errors: 3 },
  ])
  const address = await history(sessions, { ...others, error_stats: errors })
  await page.goto(address(WINDOW))
  await settled(page)
  const panel = page.getByRole('region', { name: 'Errors' })
  await expect(panel.locator('li').first()).toContainText(/23505 unique_violation 1,962\s+40P01 deadlock_detected 6/)
  await expect(panel.locator('.legend')).toContainText(/23 integrity constraint violation 1,962\s+40 transaction rollback 6/)
  await expect(panel.getByText('not recorded')).toHaveCount(0)
})

own('all other queries opens, and the list grows to its end', async ({ page, history }) => {
  const { sessions, others } = many()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  await expect(table(page).locator('tbody tr')).toHaveCount(13)
  await table(page).getByRole('button', { name: 'all other queries' }).click()
  await settled(page)
  await expect(page.getByText(`${QUERIES + 1} of ${QUERIES + 1}`)).toBeVisible()
  await expect(async () => {
    await table(page).locator('tbody tr').last().scrollIntoViewIfNeeded()
    await page.mouse.wheel(0, 4000)
    await expect(table(page).locator('tbody tr')).toHaveCount(QUERIES + 1, { timeout: 500 })
  }).toPass()
})

own('more than a thousand queries are read on', async ({ page, history }) => {
  const { sessions, others } = many(1100)
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&queries=all`))
  await settled(page)
  const end = async (button: string) =>
    expect(async () => {
      await page.mouse.wheel(0, 8000)
      await expect(page.getByRole('button', { name: button })).toBeInViewport({ timeout: 500 })
    }).toPass()
  await end('There are more than 1,000: read on')
  await page.getByRole('button', { name: 'read on' }).click()
  await expect(page.getByText('1,101 of 1,101')).toBeVisible()
})

own('a search finds a query among all of them', async ({ page, history }) => {
  const { sessions, others } = many()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  await page.getByRole('searchbox', { name: 'Search queries' }).fill('ITEM 39')
  await settled(page)
  await expect(page).toHaveURL(/find=ITEM\+39/)
  await expect.poll(async () => (await cells(table(page))).map((row) => row[3])).toEqual(['select 39 from item'])
  await page.getByRole('searchbox', { name: 'Search queries' }).fill('nothing like it')
  await expect(page.getByRole('tabpanel')).toContainText('No query has these words.')
})

test.describe('390 pixels', () => {
  test.use({ viewport: { width: 390, height: 844 } })
  test('at 390 pixels each cell has the name of its column, and nothing scrolls or is cut off', async ({ page }) => {
    await open(page, 'shop')
    const scroll = page.getByRole('tabpanel').locator('.scroll').first()
    expect(await scroll.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0)
    const row = table(page).locator('tbody tr').first()
    const names = await row.locator('td').evaluateAll((all) => all.map((one) => getComputedStyle(one, '::before').content.replaceAll('"', '')))
    expect(names).toEqual(['AAS', 'share', 'waits', 'query', 'calls', 'mean', 'p95', 'total time', 'rows', 'reads', 'temp', 'errors', 'last call', 'user', 'database'])
    const cut = await row.locator('td, td *').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).display !== 'inline').map((one) => one.outerHTML.slice(0, 120)))
    expect(cut).toEqual([])
    await page.getByLabel('sort by').selectOption('errors')
    await expect(page).toHaveURL(/sort=errors/)
  })
})
