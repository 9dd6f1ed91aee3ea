// Names and texts come from others: they stay text, whatever they contain.

import type { Page } from '@playwright/test'
import { readFileSync } from 'node:fs'
import { LONG, MARKUP } from './tape'
import { TABS, expect, open, settled, test } from './web'

const LIVE = 'main script, main img, main iframe, main a[href^="javascript"], main [onerror]'

for (const tab of TABS) {
  test(`hostile names and texts stay text in ${tab}`, async ({ page }) => {
    await open(page, 'hostile', { tab, by: tab === 'waits' ? 'application' : 'username' })
    for (const summary of await page.locator('summary').all()) await summary.click()
    // The view of the server has figures only; there, only the load has names.
    await expect(page.locator('main')).toContainText(MARKUP)
    await expect(page.locator(LIVE)).toHaveCount(0)
    expect(await page.evaluate(() => (globalThis as { owned?: number }).owned)).toBeUndefined()
  })
}

test('a hostile name is a filter like any other', async ({ page }) => {
  await open(page, 'hostile', { tab: 'dimensions' })
  const section = page.getByRole('tabpanel').locator('section').first()
  const name = await section.locator('tbody button').first().textContent()
  await section.locator('tbody button').first().click()
  await settled(page)
  await expect(section.locator('tbody tr')).toHaveCount(1)
  await expect(section.locator('tbody button')).toHaveText(name!)
  await page.reload()
  await settled(page)
  await expect(section.locator('tbody button')).toHaveText(name!)
  await expect(page.locator('.chip')).toContainText(MARKUP)
})

test('each name is isolated, so that it turns no writing around it', async ({ page }) => {
  for (const tab of TABS) {
    await open(page, 'hostile', { tab, by: 'application' })
    const turned = await page.evaluate(() => {
      const walker = document.createTreeWalker(document.querySelector('main')!, NodeFilter.SHOW_TEXT)
      const found: string[] = []
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement!
        if (node.textContent!.includes('\u202e') && !parent.closest('.theirs')) found.push(parent.outerHTML.slice(0, 200))
      }
      return found
    })
    expect(turned, tab).toEqual([])
  }
})

/** Bytes of the longest text in each answer, by address. */
function longest(page: Page): Map<string, number> {
  const found = new Map<string, number>()
  const of = (value: unknown): number =>
    typeof value === 'string' ? Buffer.byteLength(value) : Math.max(0, ...Object.values(value ?? {}).map(of))
  page.on('response', async (response) => {
    if (!/api\/v1\/(?!live\?)/.test(response.url())) return
    const body: unknown = await response.json().catch(() => null)
    found.set(response.url(), of(body))
  })
  return found
}

test('no view receives more of a text than it shows', async ({ page }) => {
  const found = longest(page)
  for (const tab of TABS) await open(page, 'hostile', { tab, by: 'application', compare: 'previous', ...(tab === 'queries' ? { query_id: '99' } : {}) })
  expect(found.size).toBeGreaterThan(20)
  // The requested bytes, and the mark.
  for (const [url, bytes] of found) expect(bytes, url).toBeLessThan(2_050)
  const [most] = [...found.values()].sort((a, b) => b - a)
  expect(most).toBeGreaterThan(1_990)
})

test('the text of a query is shown up to its limit, then copied and shown to its end', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(page, 'hostile', { query_id: '99' })
  const query = page.getByRole('region', { name: 'This query' })
  const text = query.locator('pre')
  const length = Buffer.byteLength(LONG)
  await expect(text).toHaveText(new RegExp(`^<script>.*€… \\(${length} bytes, [0-9a-f]{16}\\)$`))
  await query.getByRole('button', { name: 'Copy the text' }).click()
  await expect(query.getByText('copied')).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(LONG)
  expect(await text.evaluate((one) => one.textContent)).toBe(LONG)
  await page.reload()
  await settled(page)
  await query.getByRole('button', { name: `All ${length.toLocaleString('en-US')} bytes` }).click()
  await expect(query.getByRole('button', { name: /^All / })).toHaveCount(0)
  expect(await text.evaluate((one) => one.textContent)).toBe(LONG)
  await page.getByRole('tab', { name: 'Waits' }).click()
  await settled(page)
  expect(await page.evaluate(() => document.body.innerText.length)).toBeLessThan(100_000)
})

test('names that begin alike and are too long stay two, and are no filters', async ({ page }) => {
  await open(page, 'hostile', { tab: 'dimensions', by: 'application' })
  const names = page.getByRole('tabpanel').locator('section').first().getByRole('button', { name: /^€+… / })
  await expect(names).toHaveCount(2)
  await expect(names.first()).toBeDisabled()
  await expect(page.getByRole('region', { name: /^Load/ }).getByRole('button', { name: /€… / }).first()).toBeDisabled()
})

test('a file has texts to their end', async ({ page }) => {
  await open(page, 'hostile', { query_id: '99' })
  const panel = page.getByRole('tabpanel')
  const questions = panel.locator('details', { hasText: 'Save top.csv' }).last()
  await questions.locator('summary').click()
  const downloading = page.waitForEvent('download')
  await questions.getByRole('button', { name: 'Save top.csv' }).click()
  expect(readFileSync(await (await downloading).path(), 'utf8')).toContain(LONG.replaceAll('"', '""'))
})

test('an address of somebody else does nothing but show', async ({ page }) => {
  const evil = encodeURIComponent(MARKUP)
  await page.goto(`?server=shop&since=${evil}&until=zzz&tab=${evil}&by=${evil}&application=${evil}&at=1e99&tz=${evil}&live=9999999d`)
  await settled(page)
  await expect(page.locator('.chip')).toContainText(MARKUP)
  await expect(page.locator(LIVE)).toHaveCount(0)
})
