// The plans of a query: lanes, costs, and the moment when it turned to another one.

import { PLANS, at, dropped } from './dropped'
import { test as own } from './own'
import { cells, same } from './shown'
import { expect, settled } from './web'

const WINDOW = `since=${at(600)}&until=${at(1200)}`

own('a changed plan is a flag on the load and at its query, and a click leads to its plans', async ({ page, history }) => {
  const { sessions, others } = dropped()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  const row = page.locator('table.queries tbody tr').first()
  await expect(row.getByText('plan changed')).toHaveAttribute('title', /Plan changed at .*03:12:00: 200 µs → 210 ms, ×1,050/)
  await expect(page.locator('table.queries').getByText('plan changed')).toHaveCount(1)
  await expect(page.locator('.flags button[title*="plan changed: 200 µs → 210 ms"]')).toHaveCount(1)
  await row.getByRole('button').first().click()
  await settled(page)
  const plans = page.getByRole('region', { name: 'Plans' })
  await expect(plans.locator('.turn')).toHaveText(/Plan changed at .*03:12:00: 200 µs → 210 ms, ×1,050\./)
  await expect(plans.getByRole('img', { name: /^Plan \d+, when it ran/ })).toHaveCount(2)
})

own('the table of plans has the figures of plans, and a lane begins where its plan did', async ({ page, history, context }) => {
  const { sessions, others } = dropped()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&query_id=81`))
  await settled(page)
  const answer = await context.request.get(address(`${WINDOW}&query_id=81`).replace('?', 'api/v1/plans?'))
  const { rows } = (await answer.json()) as { rows: Record<string, string | number>[] }
  expect(rows.map((row) => row.plan_id)).toEqual([PLANS.new, PLANS.old])
  const plans = page.getByRole('region', { name: 'Plans' })
  const shown = await cells(plans.locator('table.cards'))
  expect(shown.map((row) => row.slice(0, 3))).toEqual([
    [PLANS.new, '03:12:00', '03:20:00'],
    [PLANS.old, '03:10:00', '03:12:00'],
  ])
  rows.forEach((row, i) => {
    same(shown[i]![3]!, row.calls, 'calls')
    same(shown[i]![4]!, Number(row.mean_exec_time) / 1000, 'mean')
    same(shown[i]![5]!, row.rows_per_call, 'rows per call')
    same(shown[i]![6]!, row.pct, 'share')
  })
  const lane = plans.getByRole('img', { name: `Plan ${PLANS.new}, when it ran` })
  const [whole, piece] = [(await lane.boundingBox())!, (await lane.locator('.piece').boundingBox())!]
  expect(Math.abs((piece.x - whole.x) / whole.width - 0.2)).toBeLessThan(0.01)
})

own('plans without recorded trees say why', async ({ page, history }) => {
  const { sessions, others } = dropped()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&query_id=81`))
  await settled(page)
  const plans = page.getByRole('region', { name: 'Plans' })
  await plans.getByRole('button', { name: 'Compare the two plans' }).click()
  await settled(page)
  for (const plan of [PLANS.old, PLANS.new]) {
    await expect(plans.locator('table.cards').getByRole('button', { name: plan })).toHaveAttribute('aria-pressed', 'true')
    await expect(plans.locator('.notice').filter({ hasText: `plan ${plan} has no tree in the history` })).toContainText('not recorded for an unknown reason')
  }
  await expect(plans.getByText('No tree of this plan is recorded.')).toHaveCount(1)
})
