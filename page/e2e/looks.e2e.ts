// Compares each view with the pictures in looks/. To accept an intended change, run
// `tools/test-page.sh looks --update-snapshots changed`; then look at the pictures.

import type { Page } from '@playwright/test'
import { TABS, expect, open, test } from './web'
import { LENGTH, STORM, at } from './tape'

test.use({ viewport: { width: 1280, height: 1000 } })

// Days of other years are shown with the year.
test.beforeEach(({ page }) => page.clock.setFixedTime(at(LENGTH)))

async function looks(page: Page, name: string) {
  await page.mouse.move(0, 0)
  await expect(page).toHaveScreenshot(`${name}.png`)
}

for (const tab of TABS) {
  test(`what ${tab} looks like`, async ({ page }) => {
    await open(page, 'shop', { tab })
    await looks(page, tab)
  })
}

test('what a query looks like', async ({ page }) => {
  await open(page, 'shop', { query_id: '2' })
  await looks(page, 'query')
})

test.describe('dark', () => {
  test.use({ colorScheme: 'dark' })
  test('what the storm looks like in the dark, beside what was before', async ({ page }) => {
    await open(page, 'shop', { since: at(STORM.since), until: at(STORM.until), compare: 'previous', tab: 'locks' })
    await looks(page, 'storm-dark')
  })
})

test.describe('narrow', () => {
  test.use({ viewport: { width: 360, height: 1400 } })
  test('what a telephone shows', async ({ page }) => {
    await open(page, 'shop', { fleet: 'all' })
    await looks(page, 'telephone')
  })
})
