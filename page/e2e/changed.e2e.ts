// What changed: the cause is the headline and the first finding, and a click shows it.

import type { Page } from '@playwright/test'
import { CAUSE, SLOW, at, dropped } from './dropped'
import { test as own } from './own'
import { test as live } from './shop'
import { expect, open, settled, test } from './web'

const panel = (page: Page) => page.getByRole('region', { name: 'What changed' })
const lines = (page: Page) => panel(page).getByRole('listitem')
const WINDOW = `since=${at(600)}&until=${at(1200)}`

own('the cause is the headline, and stands before its effect', async ({ page, history }) => {
  const { sessions, others } = dropped()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  await expect(page.locator('.headline')).toContainText(`At 03:12:00 ${CAUSE}, when "${SLOW.text}" got another plan and slower, from 0.20 to`)
  await expect(lines(page)).toHaveCount(2)
  await expect(lines(page).nth(0)).toContainText(`03:12:00 ● ${CAUSE}`)
  await expect(lines(page).nth(1)).toContainText(`03:12:00 ▲ ${SLOW.text} got another plan and slower, 168 ms a call instead of 0.20: from 0.20 to`)
  await expect(panel(page)).toContainText('normal: 03:00 – 03:10')
  await lines(page).nth(0).getByRole('button').click()
  await settled(page)
  await expect(page.getByRole('row', { name: new RegExp(CAUSE) })).toHaveClass(/chosen/)
  await page.goBack()
  await lines(page).nth(1).getByRole('button').click()
  await expect(page).toHaveURL(/query_id=81/)
  await page.goBack()
  await settled(page)
  await page.locator('.headline').getByRole('button').click()
  await expect(page).toHaveURL(/query_id=81/)
  await expect(panel(page)).toHaveCount(0)
})

own('all findings are the rows of changes, to the last share', async ({ page, history, context }) => {
  const { sessions, others } = dropped()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  await panel(page).getByRole('button', { name: /^All/ }).click()
  const answer = await context.request.get(address(WINDOW).replace('?', 'api/v1/changes?'))
  const { rows } = (await answer.json()) as { rows: { kind: string; pct: number | null; started: string | null }[] }
  await expect(lines(page)).toHaveCount(rows.length)
  const shown = await lines(page).evaluateAll((all) => all.map((one) => [one.className.split(' ')[0], one.querySelector('.at')!.textContent]))
  expect(shown).toEqual(rows.map(({ kind, started }) => [kind, started ? started.slice(11, 19) : '']))
})

test('a window with nothing recorded before it is compared with nothing', async ({ page }) => {
  await open(page, 'shop')
  await expect(panel(page)).toContainText('Nothing to compare with')
  await expect(lines(page)).toHaveCount(0)
  await open(page, 'shop', { application: 'web' })
  await expect(panel(page)).toHaveCount(0)
})

for (const [width, height] of [
  [1440, 900],
] as const) {
  test.describe(`${width} × ${height}`, () => {
    own.use({ viewport: { width, height } })
    own(`the first query is within 500 pixels at ${width} × ${height}, below the cause`, async ({ page, history }) => {
      const { sessions, others } = dropped()
      const address = await history(sessions, others)
      await page.goto(address(WINDOW))
      await settled(page)
      await expect(lines(page).first()).toBeVisible()
      const row = page.locator('table.queries tbody tr').first()
      expect((await row.boundingBox())!.y).toBeLessThan(500)
      expect((await panel(page).boundingBox())!.y).toBeLessThan(200)
    })
  })
}

live('live, one question answers the headline and the panels', async ({ page, shop, context }) => {
  const count = async () => {
    const text = await (await context.request.get(new URL('/metrics', shop.web.address).href)).text()
    const of = (name: string) => Number(new RegExp(`web_questions_total\\{function="${name}",outcome="answered"\\} (\\d+)`).exec(text)?.[1] ?? 0)
    return { blocking: of('blocking'), changes: of('changes') }
  }
  await page.keyboard.press('4')
  await settled(page)
  const asked = { findings: 0, blocking: 0, changes: 0 }
  page.on('requestfinished', (request) => {
    const name = /\/api\/v1\/(\w+)\?/.exec(request.url())?.[1]
    if (name && name in asked) asked[name as keyof typeof asked] += 1
  })
  const before = await count()
  for (let i = 0; i < 120 && asked.findings < 4; i += 1) {
    shop.tick(2)
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
  await page.keyboard.press('l')
  await settled(page)
  const after = await count()
  expect(asked.findings).toBeGreaterThanOrEqual(4)
  // Without sharing, each answer of the headline would ask both once more.
  expect(after.changes - before.changes).toBeLessThan(asked.findings + asked.changes)
  expect(after.blocking - before.blocking).toBeLessThan(asked.findings + asked.blocking)
})
