// The address contains everything that is shown; back and forward undo.

import type { Page } from '@playwright/test'
import { at } from './tape'
import { TABS, TOKEN, WHOLE, expect, open, settled, start, test, view } from './web'

const shown = async (page: Page) => {
  await settled(page)
  // The address does not contain the pointer's position.
  return (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ')
}
const given = (page: Page) => new URL(page.url()).searchParams

test('an address without anything leads to the last hour of the first server that has a history', async ({ page }) => {
  await page.goto('?')
  await settled(page)
  expect(given(page).get('server')).toBe('damaged')
  expect(given(page).get('since')).toBe(at(0))
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('aria-pressed', 'false')
})

test('a link with a token leads to its view, and the token is in no address after it', async ({ page, context }) => {
  await context.clearCookies()
  await page.goto(`${view('shop', { tab: 'locks' })}&token=${TOKEN}`)
  await settled(page)
  await expect(page.getByRole('tab', { selected: true })).toHaveText('Locks')
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 10:55 – 11:05')
  expect(page.url()).not.toContain(TOKEN)
})

test('under a path of a proxy the page finds all that it asks for', async ({ page }) => {
  const { TACHO_TAPES: tapes } = process.env
  const web = await start(['--tape', `shop=${tapes}/shop`, '--base-path', '/tools/tacho'])
  await page.goto(`${web.address}&tab=waits`)
  await settled(page)
  expect(new URL(page.url()).pathname).toBe('/tools/tacho/')
  await expect(page.getByRole('tabpanel').locator('tbody tr').first()).toBeVisible()
  await web.stop()
})

for (const tab of TABS) {
  test(`a copied address of ${tab} shows the same to somebody else`, async ({ page, context }) => {
    await open(page, 'shop', { tab, application: 'web', by: 'wait_event', tz: 'local', compare: 'day' })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy link' }).click()
    await expect(page.getByRole('button', { name: 'Copied' })).toBeVisible()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toBe(page.url())
    const other = await context.newPage()
    await other.goto(copied)
    // details of a queue's head come after its tree
    await expect(async () => expect(await shown(other)).toBe(await shown(page))).toPass()
  })
}

test('back and forward undo and do again', async ({ page }) => {
  await page.goto(view('shop'))
  const steps: (() => Promise<unknown>)[] = [
    () => page.getByRole('tab', { name: 'Waits' }).click(),
    () => page.getByRole('tabpanel').getByRole('button', { name: 'Lock:tuple' }).click(),
    () => page.keyboard.press('+'),
    () => page.keyboard.press('ArrowRight'),
    () => page.getByLabel('Time zone').selectOption('local'),
  ]
  const seen = [{ url: page.url(), text: await shown(page) }]
  for (const step of steps) {
    await step()
    await expect(page).not.toHaveURL(seen.at(-1)!.url)
    seen.push({ url: page.url(), text: await shown(page) })
  }
  for (const { url, text } of seen.slice(0, -1).reverse()) {
    await page.goBack()
    await expect(page).toHaveURL(url)
    expect(await shown(page)).toBe(text)
  }
  for (const { url, text } of seen.slice(1)) {
    await page.goForward()
    await expect(page).toHaveURL(url)
    expect(await shown(page)).toBe(text)
  }
})

test('a drag over the load is a window, its steps are no history', async ({ page }) => {
  await open(page, 'shop')
  const chart = page.getByRole('img', { name: /^Load by/ }).locator('.u-over')
  const box = (await chart.boundingBox())!
  const x = (share: number) => box.x + share * box.width
  await page.mouse.move(x(0.25), box.y + 50)
  await page.mouse.down()
  await page.mouse.move(x(0.4), box.y + 60, { steps: 5 })
  await page.mouse.move(x(0.5), box.y + 60, { steps: 5 })
  await page.mouse.up()
  await expect(page).not.toHaveURL(new RegExp(`since=${WHOLE.since}`))
  const [since, until] = ['since', 'until'].map((name) => Date.parse(given(page).get(name)!))
  expect(Math.abs(since! - Date.parse(at(150)))).toBeLessThan(3000)
  expect(Math.abs(until! - Date.parse(at(300)))).toBeLessThan(3000)
  await page.goBack()
  await expect(page).toHaveURL(new RegExp(`since=${WHOLE.since}`))
})

test('the brush of the overview is dragged with one step back', async ({ page }) => {
  await open(page, 'shop', { since: at(60), until: at(120) })
  const box = (await page.locator('.brush').boundingBox())!
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + box.width / 2, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2 + 100, y, { steps: 8 })
  await page.mouse.up()
  const [since, until] = ['since', 'until'].map((name) => Date.parse(given(page).get(name)!))
  expect(until! - since!).toBe(60_000)
  expect(since).toBeGreaterThan(Date.parse(at(80)))
  await page.goBack()
  await expect(page).toHaveURL(new RegExp(`since=${at(60)}`))
})

test('a click on a key filters by it, a click with Alt leaves it out', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits' })
  const panel = page.getByRole('tabpanel')
  await panel.getByRole('button', { name: 'IO:DataFileRead' }).click()
  await expect(page).toHaveURL(/wait_event=IO:DataFileRead/)
  await settled(page)
  await expect(panel.locator('tbody tr')).toHaveCount(1)
  await page.getByRole('button', { name: 'Remove the filter of wait event' }).click()
  await settled(page)
  await panel.getByRole('button', { name: 'IO:DataFileRead' }).click({ modifiers: ['Alt'] })
  await expect(page).toHaveURL(/wait_event=%21IO:DataFileRead/)
  await settled(page)
  await expect(panel.getByRole('button', { name: 'IO:DataFileRead' })).toHaveCount(0)
  await expect(panel.getByRole('button', { name: 'Lock:tuple' })).toHaveCount(1)
})
