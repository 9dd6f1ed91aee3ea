// The input box for times.

import type { Page } from '@playwright/test'
import { test as live } from './shop'
import { at } from './tape'
import { expect, open, test } from './web'

const given = (page: Page) => {
  const { searchParams } = new URL(page.url())
  return ['since', 'until', 'at'].map((name) => searchParams.get(name))
}
async function type(page: Page, text: string) {
  await page.keyboard.press('g')
  await page.getByLabel('Time', { exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

test('the box takes what the command line takes: two times, one, and a length', async ({ page }) => {
  await open(page, 'shop', { since: at(0), until: at(300) })
  await type(page, '2026-03-01 10:57 – 11:01:30')
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 10:57:00 – 11:01:30')
  await type(page, '2026-03-01 10:59:20')
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 10:57:05 – 11:01:35')
  expect(given(page)[2]).toBe('2026-03-01T10:59:20Z')
  await page.keyboard.press('t')
  await type(page, '2026-03-01 05:57 to 06:00')
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 05:57 – 06:00')
  await page.keyboard.press('t')
  const day = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
  const yesterday = day(1)
  await type(page, 'yesterday 14:00–15:00')
  await expect.poll(() => given(page).slice(0, 2)).toEqual([`${yesterday}T14:00:00Z`, `${yesterday}T15:00:00Z`])
  await type(page, '2h')
  await expect.poll(() => given(page).slice(0, 2).map((time) => Math.round((Date.now() - Date.parse(time!)) / 60_000))).toEqual([120, 0])
  await type(page, 'now')
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('aria-pressed', 'true')
})

test('a senseless time gets a message with an example, and Escape leaves', async ({ page }) => {
  await open(page, 'shop')
  await page.locator('.window').click()
  await page.keyboard.type('25:61')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('alert')).toContainText('invalid time "25:61"')
  await expect(page.getByRole('alert')).toContainText('03:12')
  await page.keyboard.press('Escape')
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 10:55 – 11:05')
  await expect(page.getByRole('button', { name: 'Sun 1 Mar' })).toBeFocused()
})

live('live, a moment just now is gone to', async ({ page, shop }) => {
  const time = new Date(shop.tick(2)).toISOString()
  await type(page, time.slice(11, 19))
  await expect.poll(() => given(page)[2]).toBe(`${time.slice(0, 19)}Z`)
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('aria-pressed', 'false')
})
