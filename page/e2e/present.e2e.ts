// Live shows the present, and for ended things since when.

import type { Page } from '@playwright/test'
import { test } from './shop'
import { cells } from './shown'
import { expect } from './web'

const story = (page: Page) => page.locator('.story')
const panel = (page: Page) => page.getByRole('tabpanel')
const clock = (time: number) => new Date(time).toISOString().slice(11, 19)

/** Ticks of consecutive seconds, as on a server. */
async function seconds(tick: () => number, count: number): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count; i += 1) {
    times.push(tick())
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
  return times
}

test('a queue that is over has its end, and the present queue is the current one', async ({ page, shop }) => {
  await page.keyboard.press('4')
  const queue = await seconds(() => shop.tick(3, 900), 4)
  const title = panel(page).getByRole('heading', { name: /^The queue/ })
  await expect(title).toContainText('The queue now')
  await expect(panel(page).locator('.tree li').first()).toContainText('900')
  const head = async () => (await cells(panel(page).locator('table.heads')))[0]!
  await expect.poll(async () => (await head())[7]).toBe(`since ${clock(queue[0]!)}`)
  await seconds(() => shop.tick(2), 5)
  await expect(panel(page)).toContainText('No session waits for a lock now.')
  await expect.poll(async () => (await head())[7]).toBe(`over since ${clock(queue.at(-1)!)}`)
  expect((await head())[3]).toBe('900')
  const other = await seconds(() => shop.tick(1, 901), 2)
  await expect.poll(async () => [(await head())[3], (await head())[7]]).toEqual(['901', `since ${clock(other[0]!)}`])
  await expect(panel(page).locator('.tree li').first()).toContainText('901')
  await panel(page).getByRole('button', { name: `over since ${clock(queue.at(-1)!)}` }).click()
  await expect(title).toContainText(/^The queue at/)
  await expect(panel(page).locator('.tree li').first()).toContainText('900')
  await panel(page).getByRole('button', { name: 'Now', exact: true }).click()
  await expect(title).toContainText('The queue now')
})

test('the headline says what most wait for now, and since when', async ({ page, shop }) => {
  const queue = await seconds(() => shop.tick(9, 900), 8)
  await expect(story(page).getByRole('button', { name: 'Lock:transactionid' })).toBeVisible()
  await expect(story(page)).toContainText(`100 % of it is Lock:transactionid since ${clock(queue[0]!).slice(0, 7)}`)
  const calm = await seconds(() => shop.tick(1), 8)
  await expect(story(page)).toContainText(`100 % of it is CPU:running since ${clock(calm[0]!).slice(0, 7)}`)
  await page.keyboard.press('l')
  await expect(story(page)).not.toContainText('Now')
  await expect(story(page)).toContainText('of it is')
})

test('a table of heads in a window that is over says from when to when', async ({ page, shop }) => {
  await page.keyboard.press('4')
  const queue = await seconds(() => shop.tick(3, 900), 4)
  await expect(panel(page).locator('.tree li').first()).toContainText('900')
  await page.keyboard.press('l')
  const head = async () => (await cells(panel(page).locator('table.heads')))[0]!
  await expect.poll(async () => (await head())[7]).toBe(`${clock(queue[0]!)} – ${clock(queue.at(-1)!)}`)
  await expect(panel(page).getByRole('heading', { name: /^The queue at/ })).toBeVisible()
})
