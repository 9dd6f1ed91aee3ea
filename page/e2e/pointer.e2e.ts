// Effects of the pointer in the pictures of a window.

import type { Locator, Page } from '@playwright/test'
import { at } from './tape'
import { expect, open, test } from './web'

const SPAN = { since: at(100), until: at(300) }
const load = (page: Page) => page.getByRole('img', { name: /^Load by/ }).locator('.u-over')
const shown = (page: Page) => page.locator('.window')

/** Position of a field's crosshair, as a share of its width; null without a crosshair. */
async function cross(field: Locator, line: string): Promise<number | null> {
  const [box, own] = [(await field.boundingBox())!, await field.locator(line).boundingBox()]
  const share = own ? (own.x - box.x) / box.width : -1
  return share >= 0 && share <= 1 ? Math.round(share * 100) / 100 : null
}
const rest = async (field: Locator, share: number) => {
  const { width, height } = (await field.boundingBox())!
  await field.hover({ position: { x: share * width, y: height / 2 } })
}

test('the crosshair is in step in charts, lanes and the map of latencies', async ({ page }) => {
  await open(page, 'shop', { ...SPAN, tab: 'sessions' })
  const lanes = page.locator('.field', { has: page.locator('canvas[aria-label^="Lanes"]') })
  await rest(load(page), 0.4)
  await expect.poll(() => cross(lanes, '> i')).toBeCloseTo(0.4, 1)
  await rest(lanes.locator('canvas'), 0.7)
  await expect.poll(() => cross(load(page), '.u-cursor-x')).toBeCloseTo(0.7, 1)
  await page.mouse.move(2, 2)
  await expect.poll(() => cross(load(page), '.u-cursor-x')).toBeNull()

  await open(page, 'shop', { ...SPAN, query_id: '2' })
  const map = page.locator('.field', { has: page.locator('canvas[aria-label^="Executions"]') })
  const calls = page.getByRole('img', { name: /^Calls per second/ }).locator('.u-over')
  await rest(map.locator('canvas'), 0.3)
  for (const chart of [load(page), calls]) await expect.poll(() => cross(chart, '.u-cursor-x')).toBeCloseTo(0.3, 1)
})

test('the wheel moves the window with Shift, and zooms with Ctrl where the pointer rests', async ({ page }) => {
  await open(page, 'shop', SPAN)
  await rest(load(page), 0.5)
  await page.keyboard.down('Shift')
  await page.mouse.wheel(0, 100)
  await expect(shown(page)).toHaveText('Sun 1 Mar, 10:57:00 – 11:00:20')
  await page.mouse.wheel(-100, 0)
  await expect(shown(page)).toHaveText('Sun 1 Mar, 10:56:40 – 11:00:00')
  await page.keyboard.up('Shift')
  await page.keyboard.down('Control')
  await page.mouse.wheel(0, -100)
  await page.keyboard.up('Control')
  const time = (name: string) => Date.parse(new URL(page.url()).searchParams.get(name)!)
  await expect.poll(() => time('until') - time('since')).toBe(160_000)
  // Around the pointer, within a pixel.
  expect(Math.abs(time('since') - Date.parse(at(120)))).toBeLessThan(2_000)
  expect(await page.evaluate(() => scrollY)).toBe(0)
})

test('a turn of the wheel without a key scrolls the page, also over the load', async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 420 })
  await open(page, 'shop', SPAN)
  const before = await shown(page).textContent()
  await load(page).hover()
  const scrolled = await page.evaluate(() => scrollY)
  await page.mouse.wheel(0, 100)
  await expect.poll(() => page.evaluate(() => scrollY)).toBe(scrolled + 100)
  await expect(shown(page)).toHaveText(before!)
})

test('turns of the wheel add up while the answer to the first one is under way', async ({ page }) => {
  await open(page, 'shop', SPAN)
  let answer = () => {}
  const held = new Promise<void>((resolve) => (answer = resolve))
  await page.route('**/api/v1/timeline?*', async (route) => (await held, route.continue()))
  await rest(load(page), 0.5)
  await page.keyboard.down('Shift')
  await page.mouse.wheel(0, 100)
  await expect(shown(page)).toHaveText('Sun 1 Mar, 10:57:00 – 11:00:20')
  await page.mouse.wheel(0, 100)
  await expect(shown(page)).toHaveText('Sun 1 Mar, 10:57:20 – 11:00:40')
  await page.keyboard.up('Shift')
  answer()
})
