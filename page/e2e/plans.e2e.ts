// The plans of a query: lanes, costs, and the moment when it turned to another one.

import { PLANS, SLOW, at, dropped, trees } from './dropped'
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
    same(shown[i]![5]!, Number(row.p95_exec_time) / 1000, 'p95')
    same(shown[i]![6]!, Number(row.cpu_time) / Number(row.calls) / 1000, 'CPU per call')
    same(shown[i]![7]!, row.rows_per_call, 'rows per call')
    same(shown[i]![8]!, row.pct, 'share')
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

/** The commands of the advice for a plan. */
const commands = (advice: string) =>
  `SELECT pg_create_advice_stash('tacho') WHERE 'tacho' NOT IN (SELECT stash_name FROM pg_get_advice_stashes());\nSELECT pg_set_stashed_advice('tacho', ${SLOW.id}, '${advice}');\nSET pg_stash_advice.stash_name = 'tacho';`

for (const width of [1440, 390]) {
  own.describe(`${width} pixels`, () => {
    own.use({ viewport: { width, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] })
    own(`recorded plans are generic or custom, and have a hint and an advice to copy, at ${width} pixels`, async ({ page, history }) => {
      const { sessions, others } = dropped()
      const address = await history(sessions, { ...others, plan_tree: trees() })
      await page.goto(address(`${WINDOW}&query_id=81`))
      await settled(page)
      const plans = page.getByRole('region', { name: 'Plans', exact: true })
      await expect(plans.locator('td[data-name="type"]')).toHaveText(['generic', 'custom'])
      await expect(plans.locator('td[data-name="type"]').first()).toHaveAttribute('title', 'Planned for any values of the parameters')
      await expect(plans.locator('.turn')).toContainText('other inputs: plan: custom -> generic.')
      const back = plans.locator('.back').first()
      await expect(back.locator('p')).toHaveText([
        'Way back to the old plan, in front of the query where pg_hint_plan is loaded: Copy hint ',
        '/*+ BitmapScan(orders orders_customer) Set(enable_hashagg off) Set(max_parallel_workers_per_gather 0) */',
        'Way back to the old plan, as commands where pg_stash_advice is loaded (PostgreSQL 19); the query stays as it is: Copy advice ',
        commands('BITMAP_HEAP_SCAN(orders) NO_GATHER(orders)'),
      ])
      await expect(back.locator('li')).toHaveText(['Bitmap Heap Scan: no advice names its indexes.', 'Group: no advice chooses this.'])
      await back.getByRole('button', { name: 'Copy advice' }).click()
      await expect(back.getByRole('status')).toHaveText(['', 'copied'])
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(commands('BITMAP_HEAP_SCAN(orders) NO_GATHER(orders)'))
      await plans.getByRole('button', { name: 'Compare the two plans' }).click()
      await settled(page)
      const [old, now] = [PLANS.old, PLANS.new].map((plan) => plans.getByRole('region', { name: `Tree of plan ${plan}` }))
      await expect(old!.locator('p').first()).toContainText(`${PLANS.old}, custom recorded`)
      await expect(now!.locator('p').first()).toContainText(`${PLANS.new}, generic recorded`)
      await now!.getByRole('button', { name: 'Copy advice' }).click()
      await expect(now!.locator('.back').getByRole('status')).toHaveText(['', 'copied'])
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(commands('SEQ_SCAN(orders) NO_GATHER(orders)'))
      await now!.getByRole('button', { name: 'Copy hint' }).click()
      await expect(now!.locator('.back').getByRole('status')).toHaveText(['copied', ''])
      expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
    })
  })
}
