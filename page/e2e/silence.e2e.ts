// A silent source is shown as silent, and heard when it is back.

import type { Page } from '@playwright/test'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import { test } from './shop'
import { expect, settled } from './web'

const now = (page: Page) => page.locator('.story .now strong')
const alarm = (page: Page) => page.getByRole('alert')
const age = async (page: Page) => Number(/ for (\d+) s/.exec((await alarm(page).textContent()) ?? '')?.[1] ?? NaN)

test('a program that is stopped is an alarm after 15 s, whose age is counted up', async ({ page, shop }) => {
  shop.tick(3)
  await expect(now(page)).toHaveText('3.00')
  shop.web.process.kill('SIGSTOP')
  await expect(alarm(page)).toContainText(/^No response for 1[5-9] s: /, { timeout: 40_000 })
  await expect(now(page)).toHaveCount(0)
  const first = await age(page)
  await expect.poll(() => age(page)).toBeGreaterThan(first + 2)
  shop.web.process.kill('SIGCONT')
  shop.tick(4)
  await expect(now(page)).toHaveText('4.00')
  await expect(alarm(page)).toHaveCount(0)
})

test('a connection that hangs is replaced, and its questions are repeated', async ({ page, shop }) => {
  const { host, hostname, port } = new URL(shop.web.address)
  const open = new Set<Socket>()
  /** A broken tunnel: open connections are neither closed nor answered. */
  const tunnel = createServer((near) => {
    const far = connect(Number(port), hostname)
    open.add(near.on('error', () => far.destroy()))
    near.on('data', (bytes) => open.has(near) && far.write(bytes)).on('close', () => far.destroy())
    far.on('data', (bytes) => open.has(near) && near.write(bytes)).on('error', () => near.destroy())
  }).listen(0, '127.0.0.1')
  try {
    await new Promise((resolve) => tunnel.once('listening', resolve))
    await page.goto(page.url().replace(host, `127.0.0.1:${(tunnel.address() as AddressInfo).port}`))
    await settled(page)
    shop.tick(3)
    await expect(now(page)).toHaveText('3.00')
    const panel = page.getByRole('tabpanel')
    open.clear()
    await page.getByRole('tab', { name: 'Waits' }).click()
    // On a slow machine the page may already have reconnected: then only ticks are missing.
    await expect(alarm(page)).toContainText(/No (response|tick) for/, { timeout: 40_000 })
    await expect(panel.locator('tbody tr').first()).toBeVisible({ timeout: 40_000 })
    shop.tick(5)
    await expect(now(page)).toHaveText('5.00')
    await expect(alarm(page)).toHaveCount(0)
  } finally {
    tunnel.close()
  }
})

test('without ticks the age of the last one is counted up', async ({ page, shop }) => {
  shop.tick(3)
  await expect(alarm(page)).toContainText(/^No tick for \d+ s: /, { timeout: 40_000 })
  const ages = new Set<number>()
  await expect.poll(async () => ages.add(await age(page)).size).toBeGreaterThan(3)
})
