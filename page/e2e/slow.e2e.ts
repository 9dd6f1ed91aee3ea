// A slow link: the page lags behind, but stays readable and keeps moving.

import type { Page } from '@playwright/test'
import { test } from './shop'
import { asTable, cells } from './shown'
import { expect } from './web'

const LATENCY_MS = 1200
const isAnswer = (url: URL) => url.pathname.includes('/api/v1/') && !url.pathname.endsWith('/live')

/** Delays answers. */
async function slow(page: Page) {
  await page.route(isAnswer, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, LATENCY_MS))
    // A closed page takes no answer.
    await route.continue().catch(() => undefined)
  })
}

/** Adds a second per second, until the returned function is called. */
function ticking(tick: () => void): () => void {
  const ticks = setInterval(tick, 1000)
  return () => clearInterval(ticks)
}

declare global {
  interface Window {
    dimmed: number
  }
}

test('at 1,200 ms of latency every panel shows what comes, and none is dimmed', async ({ page, shop }) => {
  await page.getByRole('tab', { name: 'Waits' }).click()
  const load = page.getByRole('region', { name: /^Load/ })
  await asTable(load)
  await slow(page)
  await page.evaluate(() => {
    window.dimmed = 0
    const look = () => (window.dimmed += document.querySelectorAll('.stale').length)
    new MutationObserver(look).observe(document.body, { subtree: true, attributes: true, attributeFilter: ['class'] })
  })
  const stop = ticking(() => shop.tick(9))
  const steps = async () => (await cells(load.getByRole('region', { name: 'Load as a table' }))).map((row) => row.at(-3))
  await expect.poll(async () => (await steps()).filter((all) => all === '9.00').length, { timeout: 30_000 }).toBeGreaterThan(3)
  await expect(page.locator('.story')).toContainText(', peak 9.')
  const waits = async () => Number((await cells(page.getByRole('tabpanel')))[0]![0])
  const before = await waits()
  await expect.poll(waits, { timeout: 30_000 }).toBeGreaterThan(before)
  stop()
  expect(await page.evaluate(() => window.dimmed)).toBe(0)
})

test('a panel that waits for another window stays as it is, and is dimmed after a second', async ({ page, shop }) => {
  shop.tick(9)
  await page.keyboard.press('2')
  await expect(page.getByRole('tabpanel').locator('tbody tr').first()).toBeVisible()
  await page.keyboard.press('l')
  let answer = () => {}
  const held = new Promise<void>((resolve) => (answer = resolve))
  await page.route(isAnswer, async (route) => (await held, route.continue()))
  const panel = page.getByRole('tabpanel').locator('.fades').first()
  await page.keyboard.press('ArrowLeft')
  await expect(panel).not.toHaveClass(/stale/)
  await expect(panel).toHaveClass(/stale/)
  answer()
  await expect(panel).not.toHaveClass(/stale/)
})

test('a key that runs through windows before an answer asks only the last one', async ({ page, shop }) => {
  shop.tick(9)
  await page.keyboard.press('l')
  let answer = () => {}
  const held = new Promise<void>((resolve) => (answer = resolve))
  const asked: string[] = []
  await page.route((url) => url.pathname.endsWith('/aas'), async (route) => {
    asked.push(new URL(route.request().url()).searchParams.get('since')!)
    await held
    await route.continue()
  })
  for (let i = 0; i < 5; i += 1) await page.keyboard.press('ArrowLeft')
  await expect.poll(() => asked.length).toBe(1)
  const last = new URL(page.url()).searchParams.get('since')
  answer()
  await expect.poll(() => asked.length).toBe(2)
  await expect(page.locator('main .story')).toBeVisible()
  expect(asked[1]).toBe(last)
})

test('a question about something else is given up', async ({ page, shop }) => {
  shop.tick(9)
  await page.keyboard.press('l')
  const gone = page.waitForEvent('requestfailed', (request) => request.url().includes('/aas?'))
  await page.route((url) => url.pathname.endsWith('/aas') && !url.searchParams.has('application'), () => undefined)
  await page.keyboard.press('ArrowLeft')
  const address = new URL(page.url())
  address.searchParams.set('application', 'web')
  await page.evaluate((url) => (history.pushState(null, '', url), dispatchEvent(new PopStateEvent('popstate'))), address.href)
  expect((await gone).failure()!.errorText).toBe('net::ERR_ABORTED')
  await expect(page.locator('.story')).toContainText(/Idle|Not recorded/)
})
