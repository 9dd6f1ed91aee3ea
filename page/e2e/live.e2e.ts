// Live: ticks appear on the screen without any action.

import type { Page, Request } from '@playwright/test'
import { test } from './shop'
import { expect, settled } from './web'

const now = (page: Page) => page.locator('.story .now strong')
const isLive = (page: Page) => page.getByRole('button', { name: 'Live' })

test('a tick comes to the screen: the figure of now, the load, the window', async ({ page, shop }) => {
  await page.getByRole('region', { name: /^Load/ }).getByText('As a table').click()
  for (const load of [7, 4]) {
    const time = new Date(shop.tick(load)).toISOString().slice(11, 19)
    await expect(now(page)).toHaveText(`${load}.00`)
    const steps = page.getByRole('region', { name: 'Load as a table' }).getByRole('row')
    await expect(steps.last().getByRole('cell').first()).toHaveText(new RegExp(`:${time.slice(3, 4)}\\d:\\d\\d$`))
    await expect(page.locator('.window')).toContainText(new RegExp(`– ${time.slice(0, 4)}`))
  }
})

test('a zoom leaves live, one key returns to it', async ({ page, shop }) => {
  shop.tick(3)
  await expect(now(page)).toHaveText('3.00')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'true')
  await page.keyboard.press('+')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'false')
  await expect(page).toHaveURL(/since=.*&until=/)
  await settled(page)
  await expect(now(page)).toHaveCount(0)
  const window = await page.locator('.window').textContent()
  shop.tick(9)
  await page.keyboard.press('l')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'true')
  await expect(page).toHaveURL(/live=5m/)
  // A tick that arrives while the page connects is in the load, without a figure for now.
  await expect(async () => {
    shop.tick(8)
    await expect(now(page)).toHaveText('8.00', { timeout: 3000 })
  }).toPass()
  await page.goBack()
  await expect(page.locator('.window')).toHaveText(window!)
})

test('samples recorded while the server was away arrive when it is back', async ({ page, shop }) => {
  const told = shop.tick(3)
  await expect(now(page)).toHaveText('3.00')
  const asked: Request[] = []
  page.on('request', (request) => request.url().includes('/live?') && asked.push(request))
  await shop.away(async () => {
    await expect(page.getByText('tacho web does not answer; this page resumes')).toBeVisible()
    shop.tick(5)
  })
  await expect(now(page)).toHaveText('5.00')
  await expect(page.getByRole('alert')).toHaveCount(0)
  // The browser sends the last event itself, or the page does after it began again.
  const last = asked.at(-1)!
  const since = new URL(last.url()).searchParams.get('since') ?? (await last.allHeaders())['last-event-id']
  expect(Date.parse(since!)).toBe(told + 1000)
})

test('ticks that arrive together move the window once', async ({ page, shop }) => {
  const last = shop.tick(3)
  await expect(now(page)).toHaveText('3.00')
  const windows = new Set<string>()
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname.endsWith('/timeline') && searchParams.has('by')) windows.add(searchParams.get('until')!)
  })
  const told = page.waitForResponse((response) => response.url().includes('/live?'))
  await page.route('**/api/v1/live?*', (route) => {
    const url = new URL(route.request().url())
    url.searchParams.set('since', new Date(last - 50_000).toISOString())
    return route.continue({ url: url.href })
  })
  await page.reload()
  await told
  await expect(now(page)).toHaveText('3.00')
  await settled(page)
  expect(windows).toContain(new Date(last + 1000).toISOString().replace('.000Z', 'Z'))
  // The windows of the clock, of the ticks, and of health if it reports that no tick has come since.
  expect(windows.size).toBeLessThan(10)
})

test('without ticks the page says since when', async ({ page, shop }) => {
  shop.tick(3)
  await expect(page.getByRole('alert')).toContainText(/No tick for \d+ s: the server or its recorder is down\./, { timeout: 40_000 })
})

test('a writer that waits for space has a notice with its begin', async ({ page, shop }) => {
  const last = new Date(shop.tick(1)).toISOString().slice(11, 19)
  shop.pause()
  await expect(page.getByRole('alert')).toHaveText(`Recording is paused since ${last}: no space.`, { timeout: 60_000 })
  await expect(page.locator('.story .now')).toHaveCount(0)
})

const length = (page: Page) => {
  const { searchParams } = new URL(page.url())
  return Date.parse(searchParams.get('until')!) - Date.parse(searchParams.get('since')!)
}

test('the wheel over the load leaves live only with Shift or Ctrl', async ({ page, shop }) => {
  shop.tick(3)
  await expect(now(page)).toHaveText('3.00')
  const load = page.getByRole('img', { name: /^Load by/ }).locator('.u-over')
  for (const [x, y] of [[0, 100], [0, -100], [-100, 0]] as const) {
    await load.hover()
    await page.mouse.wheel(x, y)
  }
  await page.evaluate(() => scrollTo(0, 0))
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'true')
  await load.hover()
  await page.keyboard.down('Shift')
  await page.mouse.wheel(0, 100)
  await expect(page).toHaveURL(/live=5m/)
  await page.mouse.wheel(0, -100)
  await page.keyboard.up('Shift')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'false')
  expect(length(page)).toBe(300_000)
})

test('arrows do not run into the future', async ({ page, shop }) => {
  shop.tick(3)
  await expect(now(page)).toHaveText('3.00')
  for (const later of ['ArrowRight', 'Shift+ArrowRight']) await page.keyboard.press(later)
  await page.getByRole('button', { name: 'Later' }).click()
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'true')
  await page.keyboard.press('ArrowLeft')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'false')
  const until = () => Date.parse(new URL(page.url()).searchParams.get('until')!)
  const before = until()
  for (let i = 0; i < 5; i += 1) await page.keyboard.press('ArrowRight')
  expect(until()).toBeGreaterThan(before)
  expect(until()).toBeLessThanOrEqual(Date.now())
  expect(length(page)).toBe(300_000)
  for (let i = 0; i < 5; i += 1) await page.keyboard.press('Shift+ArrowRight')
  expect(until()).toBeLessThanOrEqual(Date.now())
  await page.keyboard.press('-')
  expect(until()).toBeLessThanOrEqual(Date.now())
})

test('a length chosen live is followed, in a fixed window it is fixed', async ({ page, shop }) => {
  shop.tick(3)
  const lengths = page.getByTitle(/^How much is shown/)
  await lengths.selectOption('Last 15 min')
  await expect(page).toHaveURL(/live=15m/)
  await page.keyboard.press('l')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'false')
  await page.keyboard.press('ArrowLeft')
  const middle = () => (Date.parse(new URL(page.url()).searchParams.get('until')!) - length(page) / 2) / 1000
  const before = middle()
  await lengths.selectOption('5 min')
  await expect(isLive(page)).toHaveAttribute('aria-pressed', 'false')
  expect(length(page)).toBe(300_000)
  expect(middle()).toBe(before)
})
