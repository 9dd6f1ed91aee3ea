// From the sentence above the load to the culprit: the clicks of somebody on call at night.

import { type Page } from '@playwright/test'
import { cells } from './shown'
import { DEPLOYED, GAP, HEAD, PLANS, STORM, at } from './tape'
import { expect, open, settled, test } from './web'

const panel = (page: Page) => page.getByRole('tabpanel')
const over = (page: Page) => page.getByRole('img', { name: /^Load by/ }).locator('.u-over')

test('one click leads from the sentence to the head of the queue', async ({ page }) => {
  await open(page, 'shop')
  await page.locator('.story').getByRole('button', { name: 'Locks' }).click()
  await settled(page)
  const [head] = await cells(panel(page).locator('table.heads'))
  expect(head!.slice(3, 7)).toEqual([String(HEAD), 'job', 'idle in transaction', '12'])
  expect(page.url()).not.toContain('wait_event=')
})

test('a wait leads to the queries that wait for it', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits' })
  const row = panel(page).getByRole('row', { name: /IO:WALSync/ })
  await row.getByRole('button', { name: 'Queries' }).click()
  await settled(page)
  expect(new URL(page.url()).searchParams.get('wait_event')).toBe('IO:WALSync')
  expect((await cells(panel(page))).map((row) => row[3])).toEqual(['insert into event (kind, body) values ($1, $2)'])
})

test('the queue follows the pointer, a click keeps its moment', async ({ page }) => {
  await open(page, 'shop', { tab: 'locks', since: at(0), until: at(400) })
  const title = panel(page).getByRole('heading', { name: /^The queue at/ })
  const chosen = await title.innerText()
  const box = (await over(page).boundingBox())!
  const rest = (second: number) => page.mouse.move(box.x + (box.width * second) / 400, box.y + 40)
  await rest((STORM.since + STORM.until) / 2)
  await expect(title).toContainText(/The queue at 10:59:(19|20)/)
  await expect(panel(page).locator('.tree li').first()).toContainText(`${HEAD}`)
  await rest(100)
  await expect(panel(page)).toContainText('No session waited for a lock at this moment.')
  await page.mouse.move(5, 5)
  await expect(title).toHaveText(chosen)
  await rest(250)
  await page.mouse.down()
  await page.mouse.up()
  await page.mouse.move(5, 5)
  await expect(title).toContainText(/The queue at 10:59:(09|10)/)
  await expect(page).toHaveURL(/at=2026-03-01T10:59:(09|10)/)
})

test('the lane of who held up the others stands first', async ({ page }) => {
  await open(page, 'shop', { tab: 'sessions' })
  const first = panel(page).locator('.names li').first()
  await expect(first).toContainText(`${HEAD}`)
  await expect(first.getByTitle('Others waited 24 min for it')).toBeVisible()
})

test('a query of another plan: its load by plan, and what was deployed between them', async ({ page }) => {
  await open(page, 'shop', { query_id: '4' })
  const plans = page.getByRole('region', { name: 'Plans' })
  await plans.getByRole('button', { name: 'Load by plan, above' }).click()
  await settled(page)
  const legend = page.getByRole('list', { name: 'Parts of the load' }).getByRole('button')
  expect((await legend.allInnerTexts()).map((text) => text.trim()).sort()).toEqual([...PLANS])
  await page.getByRole('tab', { name: 'Events' }).click()
  await expect(panel(page).getByRole('row', { name: new RegExp(DEPLOYED.text) })).toBeVisible()
})

test('a server without plans has a notice', async ({ page }) => {
  await open(page, 'shop', { query_id: '2' })
  await expect(page.getByRole('region', { name: 'Plans' })).toContainText('Not recorded here: no sample has a plan.')
})

test('the last step before a gap is as wide as the others', async ({ page }) => {
  const [since, until] = [GAP.since - 20, GAP.since + 20]
  await open(page, 'shop', { since: at(since), until: at(until) })
  const filled = (second: number) =>
    page.getByRole('img', { name: /^Load by/ }).evaluate((chart, share) => {
      const [over, canvas] = [chart.querySelector('.u-over')!.getBoundingClientRect(), chart.querySelector('canvas')!]
      const box = canvas.getBoundingClientRect()
      const pixel = (x: number, y: number) => [...canvas.getContext('2d')!.getImageData(((x - box.x) * canvas.width) / box.width, ((y - box.y) * canvas.height) / box.height, 1, 1).data]
      return pixel(over.x + share * over.width, over.bottom - 4)[3] === 255
    }, (second - since) / (until - since))
  expect(await filled(GAP.since - 1.5)).toBe(true)
  expect(await filled(GAP.since - 0.5)).toBe(true)
  expect(await filled(GAP.since - 0.1)).toBe(true)
})
