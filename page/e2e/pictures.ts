// Pictures for the documentation (tools/screenshots.sh): the demo's storm, and the guide's
// incidents after the clicks that lead to their causes.

import type { Locator, Page } from '@playwright/test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, settled, start, test as base } from './web'

const demo = process.env.TACHO_DEMO!
const [since, until] = readFileSync(join(demo, 'load'), 'utf8').trim().split(' ')

const test = base.extend<object, { address: string }>({
  address: [
    async ({}, use) => {
      const web = await start(['--tape', `shop=${join(demo, 'data/tacho')}`, '--token-file', join(demo, 'token')])
      await use(web.address)
      await web.stop()
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ address }, use) => use(address),
  known: async ({ context, address }, use) => {
    const token = readFileSync(join(demo, 'token'), 'utf8').trim()
    await context.request.get(`${address}?token=${token}`)
    await use()
  },
})

const PICTURES = { queries: { height: 900 }, locks: { height: 900 }, sessions: { height: 1000 } } as const

for (const colorScheme of ['light', 'dark'] as const) {
  for (const [tab, { height }] of Object.entries(PICTURES)) {
    test.describe(`${tab}, ${colorScheme}`, () => {
      test.use({ colorScheme, viewport: { width: 1280, height } })
      test(`picture of ${tab}, ${colorScheme}`, async ({ page }) => {
        await page.goto(`?server=shop&since=${since}&until=${until}&tab=${tab}`)
        await settled(page)
        await page.screenshot({ path: `../docs/pictures/${tab}-${colorScheme}.png`, animations: 'disabled' })
      })
    })
  }
}

type Click = (target: Locator) => Promise<void>
const panel = (page: Page) => page.getByRole('tabpanel')

/** From the page that a pager opens to the cause; the number of clicks is the guide's. */
const INCIDENTS: Record<string, { clicks: number; height: number; solve: (page: Page, click: Click, shoot: () => Promise<unknown>) => Promise<void> }> = {
  'lock-storm': {
    clicks: 1,
    height: 1000,
    solve: async (page, click, shoot) => {
      await click(page.locator('.story').getByRole('button', { name: 'Locks' }))
      await expect(panel(page).locator('table.heads tbody tr').first()).toContainText(/stock import.*idle in transaction/)
      await shoot()
    },
  },
  'plan-change': {
    clicks: 2,
    height: 1380,
    solve: async (page, click, shoot) => {
      await click(panel(page).locator('tbody button').first())
      await expect(panel(page).locator('pre')).toContainText('where customer = $1')
      await shoot()
      await click(page.getByRole('tab', { name: 'Events' }))
      await expect(panel(page).getByRole('row', { name: /drop index orders_customer/ })).toBeVisible()
    },
  },
  'io-saturation': {
    clicks: 2,
    height: 1000,
    solve: async (page, click, shoot) => {
      await click(panel(page).locator('tbody button').first())
      await expect(panel(page).getByRole('button', { name: 'export', exact: true })).toBeVisible()
      await click(page.getByRole('tab', { name: 'Server' }))
      await expect(panel(page).getByText('Blocks read a second')).toBeVisible()
      await shoot()
    },
  },
}
const played = join(demo, 'incidents')
const times = existsSync(played) ? readFileSync(played, 'utf8').trim().split('\n').map((line) => line.split(' ') as [string, string, string]) : []

for (const [name, { clicks, height, solve }] of Object.entries(INCIDENTS)) {
  const [, from, to] = times.findLast(([of]) => of === name) ?? []
  if (!from || !to) continue
  test.describe(name, () => {
    test.use({ viewport: { width: 1280, height } })
    test(`picture of ${name}`, async ({ page }) => {
      let done = 0
      await page.goto(`?server=shop&since=${from}&until=${to}`)
      await settled(page)
      const click = async (target: Locator) => {
        done += 1
        await target.click()
        await settled(page)
      }
      await solve(page, click, () => page.screenshot({ path: `../docs/pictures/${name}.png`, animations: 'disabled' }))
      expect(done).toBe(clicks)
    })
  })
}
