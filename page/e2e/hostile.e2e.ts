// Names and texts are the input of others: they stay text, whatever they hold.

import { MARKUP } from './tape'
import { TABS, expect, open, settled, test } from './web'

const LIVE = 'main script, main img, main iframe, main a[href^="javascript"], main [onerror]'

for (const tab of TABS) {
  test(`hostile names and texts stay text in ${tab}`, async ({ page }) => {
    await open(page, 'hostile', { tab, by: tab === 'waits' ? 'application' : 'username' })
    for (const summary of await page.locator('summary').all()) await summary.click()
    // The server is measured in numbers: only the load has names there.
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

test('a text of a million characters is shown and does not stop the page', async ({ page }) => {
  await open(page, 'hostile', { query_id: '99' })
  await expect(page.getByRole('region', { name: 'This query' })).toBeVisible()
  await page.getByRole('tab', { name: 'Waits' }).click()
  await settled(page)
  expect(await page.evaluate(() => document.body.innerText.length)).toBeLessThan(100_000)
})

test('an address of somebody else does nothing but show', async ({ page }) => {
  const evil = encodeURIComponent(MARKUP)
  await page.goto(`?server=shop&since=${evil}&until=zzz&tab=${evil}&by=${evil}&application=${evil}&at=1e99&tz=${evil}&live=9999999d`)
  await settled(page)
  await expect(page.locator('.chip')).toContainText(MARKUP)
  await expect(page.locator(LIVE)).toHaveCount(0)
})
