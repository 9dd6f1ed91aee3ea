// axe finds nothing, in either theme, in any view, with everything open that can be opened.

import type { Page } from '@playwright/test'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { TABS, expect, open, test } from './web'

// Without @axe-core/playwright: it wants a newer Node than Debian has, and for one frame it does
// nothing more.
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')

async function findings(page: Page, within = 'html'): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async (root) => {
    const { axe } = globalThis as unknown as { axe: typeof import('axe-core') }
    const { violations } = await axe.run(root, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary?.split('\n')[1] ?? ''}`))
  }, within)
}

for (const colorScheme of ['light', 'dark'] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme, contextOptions: { reducedMotion: 'reduce' } })
    for (const tab of TABS) {
      test(`axe finds nothing in ${tab}, ${colorScheme}`, async ({ page }) => {
        await open(page, 'shop', { tab, compare: 'previous', fleet: 'all', application: 'web', ...(tab === 'queries' ? { query_id: '2' } : {}) })
        for (const summary of await page.locator('summary').all()) await summary.click()
        expect(await findings(page)).toEqual([])
      })
    }
    test(`axe finds nothing in what opens, ${colorScheme}`, async ({ page }) => {
      await open(page, 'shop')
      await page.getByRole('button', { name: /^by wait class/ }).click()
      expect(await findings(page, '.slice')).toEqual([])
      await page.keyboard.press('/')
      await expect(page.locator('.adder').getByRole('button').first()).toBeVisible()
      expect(await findings(page, '.chips')).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Keys' }).click()
      expect(await findings(page, 'dialog[open]')).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Mark' }).click()
      expect(await findings(page, 'dialog[open]')).toEqual([])
    })
    for (const server of ['empty', 'missing']) {
      test(`axe finds nothing where a history is ${server}, ${colorScheme}`, async ({ page }) => {
        await page.goto(`?server=${server}`)
        await expect(page.locator('.nothing h2')).toBeVisible()
        expect(await findings(page)).toEqual([])
      })
    }
  })
}
