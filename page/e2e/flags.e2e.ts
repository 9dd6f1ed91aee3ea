// Flags of events above the load: none stands on another.

import type { Page } from '@playwright/test'
import { planFlags } from '../src/lib/plans'
import { type Row, said } from './shown'
import { at } from './tape'
import { expect, open, test } from './web'

const flags = (page: Page) => page.locator('.flags button')

/** Pairs of flags, or of what is written in them, that share pixels. */
const overprinted = (page: Page) =>
  flags(page).evaluateAll((all) => {
    const boxes = all.map((one) => ({ own: one.getBoundingClientRect(), text: one.querySelector('.cut')?.getBoundingClientRect() }))
    const ends = boxes.map(({ own, text }) => ({ left: own.left, right: Math.max(own.right, text?.right ?? 0) }))
    return ends.flatMap((a, i) => ends.slice(i + 1).filter((b) => a.left < b.right - 0.5 && b.left < a.right - 0.5)).length
  })

for (const width of [390, 1440]) {
  test.describe(`${width} pixels`, () => {
    test.use({ viewport: { width, height: 900 } })
    for (const [name, since, until] of [
      ['ten minutes', at(0), at(600)],
      ['three hours', at(-5000), at(5800)],
      ['a day', at(-43_200), at(43_200)],
    ] as const) {
      test(`flags in ${name} do not overprint each other at ${width} pixels`, async ({ page }) => {
        await open(page, 'shop', { since, until })
        const [markers, changes] = ['markers', 'plan-changes'].map((name) => said(`tacho ${name} --since ${since} --until ${until}`))
        const time = (row: Row) => Date.parse(String(row.marker_time))
        const events = [...markers!, ...planFlags(changes!)].sort((a, b) => time(a) - time(b))
        expect(changes).toHaveLength(1)
        await expect(flags(page).first()).toBeVisible()
        expect(await overprinted(page)).toBe(0)
        const titles = await flags(page).evaluateAll((all) => all.flatMap((one) => (one as HTMLElement).title.split('\n')))
        expect(titles.map((title) => title.replace(/^.*?  /, ''))).toEqual(events.map(({ kind, detail }) => `${kind}: ${detail}`))
      })
    }
  })
}

test('"no rows" does not stand above rows', async ({ page }) => {
  // nothing was recorded of the window before: that answer has no rows
  await open(page, 'shop', { compare: 'previous', tab: 'queries' })
  const panel = page.getByRole('tabpanel')
  expect(await panel.locator('tbody tr').count()).toBeGreaterThan(0)
  await expect(panel.getByText(/no rows/)).toHaveCount(0)
  // statements end at 11:05; none is counted in these seconds
  await open(page, 'shop', { since: at(61), until: at(100), tab: 'queries' })
  expect(await panel.locator('tbody tr').count()).toBeGreaterThan(0)
  await expect(panel.getByText(/no rows/)).toHaveCount(0)
})
