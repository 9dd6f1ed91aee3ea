// The headline says who, what and since when, as the report does.

import type { Page } from '@playwright/test'
import { test as own } from './own'
import { test as live } from './shop'
import { printed } from './shown'
import { HEAD, STORM, at } from './tape'
import { WHOLE, expect, open, settled, test } from './web'

const headline = (page: Page) => page.locator('.headline')
const TEXT = `From 10:58:20 to 11:00:19 process ${HEAD} (job, idle in transaction) blocked up to 12 sessions, 1440 s in all`

test('the headline of a window is the sentence of the report, and a click shows the queue', async ({ page }) => {
  await open(page, 'shop')
  await expect(headline(page)).toHaveText(TEXT)
  expect(printed(`tacho report --since ${WHOLE.since} --until ${WHOLE.until} --format markdown`)).toContain(TEXT)
  await headline(page).getByRole('button').click()
  await settled(page)
  await expect(page.getByRole('heading', { name: /^The queue at 10:59:/ })).toBeVisible()
  await expect(page.getByRole('tabpanel').locator('.tree li').first()).toContainText(String(HEAD))
})

test('a queue that goes on at the end of the window has its begin', async ({ page }) => {
  await open(page, 'shop', { since: at(0), until: at(STORM.until) })
  await expect(headline(page)).toHaveText(`Since 10:58:20 process ${HEAD} (job, idle in transaction) blocks 12 sessions`)
})

test('a window without a queue has no headline', async ({ page }) => {
  await open(page, 'shop', { since: at(0), until: at(100) })
  await expect(headline(page)).toHaveCount(0)
})

own('a crash comes first', async ({ page, history }) => {
  const begin = Date.parse('2026-04-01T12:00:00Z')
  const time = (second: number) => new Date(begin + second * 1000).toISOString()
  const sessions = Array.from({ length: 60 }, (_, second) => ({ time: time(second), tick: second + 1, pid: 1, backend_start: time(-60), state: 'active', cpu: 'running' }))
  const markers = [{ time: time(30), kind: 'crash recovery', detail: 'the server crashed and recovered' }]
  const address = await history(sessions, { markers })
  await page.goto(address(`since=${time(0)}&until=${time(60)}`))
  await settled(page)
  await expect(headline(page)).toHaveText('PostgreSQL crashed and recovered at 12:00:30')
  await headline(page).getByRole('button').click()
  await expect(page).toHaveURL(/tab=events/)
})

live('live the headline says since when a queue goes on', async ({ page, shop }) => {
  const first = shop.tick(9, 900)
  for (let i = 0; i < 12; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1000))
    shop.tick(9, 900)
  }
  const since = new Date(first).toISOString().slice(11, 19)
  await expect(headline(page)).toHaveText(new RegExp(`^(Since ${since}|From ${since}.*) process 900 \\(job, idle in transaction\\) block`))
})
