// From a telephone to a wall display: nothing is wider than the window.

import { TABS, expect, open, test } from './web'

for (const width of [1250, 1400, 1600]) {
  test.describe(`${width} pixels`, () => {
    test.use({ viewport: { width, height: 700 } })
    test(`the head is one line at ${width} pixels, also for a window of days`, async ({ page }) => {
      await open(page, 'shop', { since: '2026-02-27T10:30:30Z' })
      const header = page.locator('header')
      const box = await header.boundingBox()
      expect(box!.height).toBeLessThan(50)
      expect(await header.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0)
    })
  })
}

for (const [width, height] of [
  [360, 740],
  [1280, 800],
  [3840, 2160],
] as const) {
  test.describe(`${width} pixels`, () => {
    test.use({ viewport: { width, height } })
    for (const server of ['shop', 'hostile']) {
      test(`no view of ${server} is wider than ${width} pixels`, async ({ page }) => {
        for (const tab of TABS) {
          await open(page, server, { tab, compare: 'previous', fleet: 'all', ...(tab === 'queries' ? { query_id: '2' } : {}) })
          const wide = await page.evaluate(() => {
            const root = document.documentElement
            const inside = (one: Element) => one.closest('.scroll, [role="region"], pre, .cut') !== null
            const out = [...document.querySelectorAll('main *, header *')].filter((one) => {
              const box = one.getBoundingClientRect()
              return box.width > 0 && box.right > root.clientWidth + 1 && !inside(one)
            })
            return { over: root.scrollWidth - root.clientWidth, out: out.slice(0, 5).map((one) => one.outerHTML.slice(0, 120)) }
          })
          expect(wide, tab).toEqual({ over: 0, out: [] })
        }
      })
    }
  })
}
