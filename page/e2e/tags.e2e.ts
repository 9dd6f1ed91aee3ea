// The load by the keys of tags, such as the controller of an application.

import type { Page } from '@playwright/test'
import { test } from './own'
import { expect, settled } from './web'

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const then = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const WINDOW = `since=${then(0)}&until=${then(300)}`
/** The tags of each session that is active in each second. */
const TAGS = ['controller=orders,action=show', 'controller=orders,action=list', 'controller=carts,action=show', 'job=mail', '']

const sessions = Array.from({ length: 300 }, (_, second) =>
  TAGS.map((tags, n) => ({ time: then(second), tick: second + 1, pid: 100 + n, backend_start: then(-60), state: 'active', cpu: 'running', query_id: 1 + n, query_text: `select ${n}`, tags })),
).flat()

/** The rows of a dimension's section, without the bars. */
const rows = async (page: Page, name: string) => {
  const section = page.getByRole('tabpanel').locator('section').filter({ has: page.getByRole('heading', { name, exact: true }) })
  await expect(section.locator('tbody tr').first()).toBeVisible()
  return (await section.locator('tbody tr').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim())
}

test('each key of the tags is a dimension, the one with the most load first', async ({ page, history }) => {
  const address = await history(sessions)
  await page.goto(address(`${WINDOW}&tab=dimensions`))
  await settled(page)
  await expect(page.getByRole('tabpanel').getByRole('heading', { name: /^tag / })).toHaveText(['tag controller', 'tag action', 'tag job'])
  expect(await rows(page, 'tag controller')).toEqual(['2.00 40.0 % orders', '2.00 40.0 % (null)', '1.00 20.0 % carts'])
})

test('a click on a value of a tag is a filter, and its address shows the same to somebody else', async ({ page, history, context }) => {
  const address = await history(sessions)
  await page.goto(address(`${WINDOW}&tab=dimensions`))
  await settled(page)
  await page.getByRole('tabpanel').getByRole('button', { name: 'orders', exact: true }).click()
  await settled(page)
  expect(new URL(page.url()).searchParams.get('tag:controller')).toBe('orders')
  await expect(page.locator('.chip')).toHaveText(/tag controller = orders/)
  expect(await rows(page, 'tag action')).toEqual(['1.00 50.0 % list', '1.00 50.0 % show'])
  const other = await context.newPage()
  await other.goto(page.url())
  await settled(other)
  expect(await rows(other, 'tag action')).toEqual(await rows(page, 'tag action'))
})

test('the load is cut by a tag', async ({ page, history }) => {
  const address = await history(sessions)
  await page.goto(address(WINDOW))
  await settled(page)
  await page.getByRole('button', { name: /^by wait class/ }).click()
  await page.locator('.slice').getByRole('button', { name: 'tag action' }).click()
  await settled(page)
  expect(new URL(page.url()).searchParams.get('by')).toBe('tag:action')
  await expect(page.getByRole('button', { name: /^by tag action/ })).toBeVisible()
  const legend = page.getByRole('list', { name: 'Parts of the load' })
  await expect(legend).toContainText('show')
  await expect(legend).toContainText('list')
})

test('a filter can be chosen from the keys and values of the tags', async ({ page, history }) => {
  const address = await history(sessions)
  await page.goto(address(WINDOW))
  await settled(page)
  await page.getByRole('button', { name: '+ filter' }).click()
  await page.getByRole('combobox', { name: 'Dimension' }).selectOption('tag:job')
  await page.getByRole('form', { name: 'Add a filter' }).getByRole('button', { name: 'mail' }).click()
  await settled(page)
  await expect(page.locator('.chip')).toHaveText(/tag job = mail/)
})
