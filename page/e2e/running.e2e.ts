// The table of sessions at one second, and the ages of their work.

import type { Page } from '@playwright/test'
import { test as live } from './shop'
import { cells, said } from './shown'
import { HEAD, STORM, at } from './tape'
import { expect, open, settled, test } from './web'

const table = (page: Page) => page.getByRole('tabpanel').locator('table.running')
const title = (page: Page) => page.getByRole('tabpanel').getByRole('heading', { name: /^Running/ })

test('sessions at a second stand by age: who they are, what they wait for, who blocks them', async ({ page }) => {
  await open(page, 'shop', { tab: 'sessions', at: at(STORM.since + 60) })
  await expect(title(page)).toContainText('Running at 10:59:20')
  await page.getByRole('button', { name: /^All \d+/ }).click()
  const shown = await cells(table(page))
  const [first, second] = shown
  expect(first!.slice(0, 5)).toEqual([String(HEAD), '–', '1 min 20 s', 'idle in transaction, Client:ClientRead', ''])
  expect(first!.slice(6)).toEqual(['app', 'job', '10.0.0.0'])
  expect(second!.slice(0, 6)).toEqual(['100', '1 min', '–', 'Lock:transactionid', String(HEAD), 'update item set qty = qty - $1 where id = $2'])
  const samples = said(`tacho samples --since ${at(STORM.since + 60)} --until ${at(STORM.since + 61)} --scope foreground --n all`)
  expect(shown.map((row) => row[0]).sort()).toEqual(samples.map((row) => String(row.pid)).sort())
})

test('without a moment it is the end of the window; whoever blocks leads to the queue', async ({ page }) => {
  await open(page, 'shop', { tab: 'sessions', since: at(0), until: at(STORM.until) })
  await expect(title(page)).toContainText('Running at 11:00:19')
  await page.getByRole('button', { name: 'A second earlier' }).click()
  await expect(title(page)).toContainText('Running at 11:00:18')
  await settled(page)
  await table(page).getByRole('button', { name: String(HEAD) }).last().click()
  await expect(page.getByRole('heading', { name: 'The queue at 11:00:18' })).toBeVisible()
})

live('live it is the newest tick', async ({ page, shop }) => {
  await page.keyboard.press('3')
  for (const head of [900, 901]) {
    const time = new Date(shop.tick(2, head)).toISOString().slice(11, 19)
    await expect(title(page)).toContainText(`Running now, ${time}`)
    expect((await cells(table(page))).map((row) => row[4]).sort()).toEqual(['', String(head), String(head)])
  }
})

test('the page of a query says since when it runs, where no execution has ended', async ({ page }) => {
  await open(page, 'shop', { query_id: '1', since: at(STORM.since + 41), until: at(STORM.since + 59) })
  await expect(page.getByRole('region', { name: 'This query' })).toContainText('Running since 10:58:20, for 58 s: process 100, and 11 more.')
  await open(page, 'shop', { query_id: '1' })
  await expect(page.getByRole('region', { name: 'This query' })).not.toContainText('Running since')
})
