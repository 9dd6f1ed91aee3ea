// A panel without an answer says why.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { at } from './tape'
import { TABS, TOKEN, expect, open, settled, start, test } from './web'

test('no history yet', async ({ page }) => {
  await page.goto('?server=empty')
  await expect(page.getByRole('heading', { name: 'No history yet.' })).toBeVisible()
})

test('a directory that is not there', async ({ page }) => {
  await page.goto('?server=missing')
  await expect(page.getByRole('heading', { name: 'The directory of this history does not exist.' })).toBeVisible()
})

test('a server that does not exist is named, and those that do are offered', async ({ page }) => {
  for (const window of ['', `&since=${at(0)}&until=${at(600)}`]) {
    await page.goto(`?server=shopp${window}`)
    await expect(page.getByRole('heading', { name: 'There is no server “shopp” here.' })).toBeVisible()
    await page.getByRole('button', { name: 'shop', exact: true }).click()
    await expect(page).toHaveURL(/server=shop(&|$)/)
    await settled(page)
  }
})

test('a browser without a cookie is sent where it gets one', async ({ page, context }) => {
  await context.clearCookies()
  await page.goto('?')
  await expect(page.locator('body')).toContainText('authentication required')
  await expect(page.locator('body')).toContainText('Open the address that tacho web printed')
})

const EMPTY: Record<(typeof TABS)[number], string> = {
  queries: 'No query was active in this window.',
  waits: 'No session was active in this window.',
  sessions: 'No session was active in this window.',
  locks: 'No session waited for a lock in this window.',
  dimensions: 'No session was active.',
  tables: 'No activity of tables was recorded in this window.',
  server: 'The server was not measured in this window.',
  events: 'No start, gap or mark is recorded in this window.',
}
for (const tab of TABS) {
  test(`a window without history says so in ${tab}`, async ({ page }) => {
    await open(page, 'shop', { tab, since: '2026-02-01T00:00:00Z', until: '2026-02-01T01:00:00Z' })
    await expect(page.locator('.story')).toContainText('Not recorded.')
    await expect(page.getByRole('tabpanel')).toContainText(EMPTY[tab])
  })
}

test('a gap is not idle: its steps have no load and are not observed', async ({ page }) => {
  await open(page, 'shop', { since: at(390), until: at(510) })
  await expect(page.locator('.story')).toContainText('Observed: 50.0 % of the window.')
  const load = page.getByRole('region', { name: /^Load/ })
  await load.getByText('As a table').click()
  const row = (time: string) => load.getByRole('row', { name: new RegExp(`${time} `) })
  await expect(row('11:02:30').getByRole('cell').nth(-3)).toHaveText('–')
  await expect(row('11:02:30').getByRole('cell').last()).toHaveText('0 %')
  await expect(row('11:01:40').getByRole('cell').last()).toHaveText('100 %')
})

for (const tab of ['queries', 'waits', 'sessions', 'dimensions'] as const) {
  test(`damage is told in ${tab}, and what can be read is shown`, async ({ page }) => {
    await open(page, 'damaged', { tab, application: 'web' })
    const told = page.getByRole('tabpanel').getByText('skipped a damaged group of the history').first()
    await expect(told).toBeVisible()
    await expect(page.locator('.story')).toContainText('Observed: 50.0 % of the window.')
    await expect(page.getByRole('alert')).toHaveCount(0)
    await expect(page.getByRole('tabpanel')).toContainText('web')
  })
}

test('a window too long for an answer in time leads to one that is not', async ({ page }) => {
  const days = (count: number) => ({ since: at(-86_400 * count), until: at(600) })
  await open(page, 'shop', { tab: 'locks', ...days(40) })
  await expect(page.getByRole('tabpanel')).toContainText('Root blockers are shown for windows of at most 31 d.')
  await page.getByRole('button', { name: 'The middle 31 d' }).click()
  await settled(page)
  await expect(page.getByRole('tabpanel')).not.toContainText('at most')
  await open(page, 'shop', { tab: 'sessions', ...days(2) })
  await expect(page.getByRole('tabpanel')).toContainText('Lanes are shown for windows of at most 1 d.')
  await open(page, 'shop', { tab: 'queries', ...days(8) })
  await expect(page.getByRole('tabpanel')).toContainText('Bars are split by wait in windows of at most 7 d.')
  await expect(page.getByRole('tabpanel').locator('tbody tr').first()).toContainText('update item set')
  await open(page, 'shop', { tab: 'queries', ...days(1) })
  await expect(page.getByRole('tabpanel')).not.toContainText('Bars are cut')
})

test('tacho web goes and comes back: the page says so and goes on', async ({ page, context }) => {
  const directory = mkdtempSync(join(tmpdir(), 'tacho-page-gone-'))
  const token = join(directory, 'token')
  writeFileSync(token, `${TOKEN}\n`, { mode: 0o600 })
  const args = ['--tape', `shop=${process.env.TACHO_TAPES}/shop`, '--token-file', token]
  let web = await start(args)
  try {
    const address = web.address
    await context.request.get(`${address}?token=${TOKEN}`)
    await page.goto(`${address}?server=shop&since=${at(0)}&until=${at(600)}`)
    await settled(page)
    await web.stop()
    await page.getByRole('tab', { name: 'Waits' }).click()
    await expect(page.getByRole('tabpanel').getByRole('alert')).toContainText('tacho web does not answer')
    web = await start(args, new URL(address).host)
    await context.request.get(`${address}?token=${TOKEN}`)
    await page.getByRole('tabpanel').getByRole('button', { name: 'Try again' }).click()
    await settled(page)
    await expect(page.getByRole('tabpanel').getByRole('button', { name: 'Lock:tuple' })).toBeVisible()
    await expect(page.getByRole('alert')).toHaveCount(0)
  } finally {
    await web.stop()
    rmSync(directory, { recursive: true })
  }
})
