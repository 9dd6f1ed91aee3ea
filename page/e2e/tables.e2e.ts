// Tables and indexes: what was done to them, and what the history does not have.

import type { Page } from '@playwright/test'
import { test as own } from './own'
import { expect, open, settled, test } from './web'

const panel = (page: Page) => page.getByRole('tabpanel')
const indexes = (page: Page) => page.getByRole('region', { name: 'Indexes' })
/** Texts of the first cells of the first rows of a table. */
const rows = async (page: Page, table: number, cells: number) =>
  (await panel(page).locator('table.relations').nth(table).locator('tbody tr').all()).slice(0, 3).reduce<Promise<string[]>>(
    async (all, row) => [...(await all), (await row.getByRole('cell').allInnerTexts()).slice(0, cells).map((text) => text.replace(/\s+/g, ' ').trim()).join(' | ')],
    Promise.resolve([]),
  )

test.use({ viewport: { width: 1440, height: 900 } })

test('tables stand in the order of their work, with what was done to them', async ({ page }) => {
  await open(page, 'shop', { tab: 'tables' })
  const orders = panel(page).getByRole('row', { name: /^public.orders/ }).first()
  const cell = (name: string) => orders.locator(`[data-name="${name}"]`)
  expect((await rows(page, 0, 1))[0]).toBe('public.orders shop')
  await expect(cell('rows read')).toHaveText('4.00 M')
  await expect(cell('rows written')).toHaveText('1,086')
  await expect(cell('scans')).toHaveText('60')
  await expect(cell('dead rows')).toHaveText('41,000')
  await expect(cell('dead rows')).toHaveClass(/bad/)
  await expect(cell('vacuumed')).toHaveText('2 h ago')
  await expect(cell('vacuumed')).toHaveAttribute('title', 'Sun 1 Mar 08:55:00, by autovacuum')
  await expect(cell('size')).toHaveText('313 MB')
  // indexes are below, not among the tables
  await expect(panel(page).locator('table.relations').first()).not.toContainText('orders_pkey')
  await expect(panel(page).getByText('5/16600')).toBeVisible()
  await expect(panel(page)).toContainText('A table has the OIDs of its database and itself')
})

test('the first rows are shown, all of them on request, and all others last', async ({ page }) => {
  await open(page, 'shop', { tab: 'tables' })
  const drawn = panel(page).locator('table.relations').first().locator('tbody tr')
  await expect(drawn).toHaveCount(12)
  await page.getByRole('button', { name: 'All 16 rows' }).click()
  await expect(drawn).toHaveCount(16)
  await expect(drawn.last()).toContainText('all others')
})

test('tables are sorted by a column, and the address says so', async ({ page }) => {
  await open(page, 'shop', { tab: 'tables' })
  await panel(page).getByRole('columnheader', { name: 'dead rows' }).getByRole('button').click()
  await expect(page).toHaveURL(/tables=dead/)
  await settled(page)
  await expect(panel(page).getByRole('columnheader', { name: 'dead rows' })).toHaveAttribute('aria-sort', 'descending')
  expect(await rows(page, 0, 1)).toEqual(['public.orders shop', '5/16600 shop', 'public.event_2026_12 shop'])
  await panel(page).getByRole('columnheader', { name: 'analyzed' }).getByRole('button').click()
  await settled(page)
  expect((await rows(page, 0, 1))[0]).toBe('public.item shop')
  await expect(panel(page).getByRole('row', { name: /^public.item/ }).locator('[data-name="analyzed"]')).toHaveText('never')
})

test('an index without a scan is first, with the time that was counted', async ({ page }) => {
  await open(page, 'shop', { tab: 'tables' })
  expect(await rows(page, 1, 4)).toEqual([
    'public.orders_by_day on public.orders · shop | 0 | 0 | none for 5 min',
    'public.orders_by_customer on public.orders · shop | 300 | 900 | in this window',
    'public.orders_pkey on public.orders · primary key · shop | 300 | 900 | in this window',
  ])
  await expect(indexes(page)).toContainText('One index that is no constraint has no scan in 5 min.')
})

test('the name of a table leads to the queries that name it', async ({ page }) => {
  await open(page, 'shop', { tab: 'tables' })
  await panel(page).getByRole('button', { name: 'public.orders' }).click()
  await expect(page).toHaveURL(/find=orders/)
  await settled(page)
  await expect(panel(page).locator('tbody tr')).toHaveCount(1)
  await expect(panel(page)).toContainText('from orders o join line')
})

own('without readings of the catalog the panel says which setting turns them on', async ({ page, history }) => {
  const begin = Date.parse('2026-04-01T12:00:00Z')
  const then = (second: number) => new Date(begin + second * 1000).toISOString()
  const sessions = Array.from({ length: 300 }, (_, second) => ({ time: then(second), tick: second + 1, pid: 1, backend_start: then(-60), state: 'active', cpu: 'running' }))
  const stats = { time: then(200), elapsed_ms: 100_000 }
  const address = await history(sessions, { table_stats: [{ ...stats, database_oid: 5, database: 'shop', oid: 16400, scans: 3, tuples_returned: 90, live_tuples: 9 }, { ...stats, oid: 0 }] })
  await page.goto(address(`since=${then(0)}&until=${then(300)}&tab=tables`))
  await settled(page)
  expect(await rows(page, 0, 4)).toEqual(['5/16400 shop | 90 | 3 | 90', 'all others | 0 | 0 | 0'])
  await expect(indexes(page)).toContainText('No names, sizes and indexes were read in this window. The setting tacho.catalog_interval turns that on, for example with 1h.')
})

for (const [width, height] of [
  [390, 844],
  [1024, 768],
  [1440, 900],
] as const) {
  test.describe(`${width} pixels`, () => {
    test.use({ viewport: { width, height } })
    test(`tables fit into ${width} pixels`, async ({ page }) => {
      await open(page, 'shop', { tab: 'tables' })
      await expect(panel(page).getByText('public.orders', { exact: true }).first()).toBeVisible()
      expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
    })
  })
}
