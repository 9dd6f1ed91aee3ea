// Figures and the filters, windows and users that they are about.

import type { Page } from '@playwright/test'
import { test as own } from './own'
import { cells } from './shown'
import { at } from './tape'
import { expect, open, settled, test } from './web'

test('costs of another window are not shown beside the load of this one', async ({ page }) => {
  await open(page, 'shop', { since: at(300), until: at(420) })
  const calls = async () => (await cells(page.getByRole('tabpanel').locator('table.queries'))).map((row) => row[4])
  expect((await calls())[0]).not.toBe('–')
  let answer = () => {}
  const held = new Promise<void>((resolve) => (answer = resolve))
  await page.route((url) => url.pathname.endsWith('/queries'), async (route) => (await held, route.continue()))
  await page.keyboard.press('ArrowLeft')
  await expect.poll(async () => new Set(await calls())).toEqual(new Set(['–']))
  await expect(page.getByRole('tabpanel')).not.toContainText('none of it was counted')
  answer()
  await expect.poll(async () => (await calls())[0]).not.toBe('–')
})

test('locks and errors say which filters do not apply', async ({ page }) => {
  await open(page, 'shop', { tab: 'locks' })
  const panel = page.getByRole('tabpanel')
  await expect(panel).not.toContainText('Filters do not apply')
  await open(page, 'shop', { tab: 'locks', application: 'web' })
  await expect(panel).toContainText('Filters do not apply here: queues are shown for the whole server.')
  await open(page, 'shop', { application: 'web' })
  await expect(panel.getByRole('region', { name: 'Errors' })).toContainText('Only filters of query, database and user apply to errors.')
})

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const then = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const WINDOW = `since=${then(0)}&until=${then(300)}&query_id=7`
const sessions = Array.from({ length: 300 }, (_, second) => ({ time: then(second), tick: second + 1, pid: 1, backend_start: then(-60), state: 'active', cpu: 'running', username: 'app', query_id: 7, query_text: 'select 7' }))
const counted = (second: number, username: string, calls: number) => ({ time: then(second), elapsed_ms: 60_000, username, database: 'shop', query_id: 7, toplevel: 1, calls, total_exec_time_ms: calls * 2 })
const figure = async (page: Page, name: string) => page.getByRole('region', { name: 'This query' }).locator('dl div').filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd').first().innerText()

own('figures of a query are those of the chosen user', async ({ page, history }) => {
  const statements = [60, 120, 180, 240, 300].flatMap((second) => [counted(second, 'app', 60), counted(second, 'report', 600), { time: then(second), elapsed_ms: 60_000 }])
  const address = await history(sessions, { statements })
  await page.goto(address(WINDOW))
  await settled(page)
  expect(await figure(page, 'calls')).toBe('11.0/s')
  await page.goto(address(`${WINDOW}&username=app`))
  await settled(page)
  expect(await figure(page, 'calls')).toBe('1.00/s')
})

own('where nothing was measured there is no figure', async ({ page, history }) => {
  const statements = [60, 120, 300].flatMap((second) => [counted(second, 'app', 60), { time: then(second), elapsed_ms: 60_000 }])
  const address = await history(sessions, { statements })
  await page.goto(address(WINDOW))
  await settled(page)
  expect(await figure(page, 'CPU per call')).toBe('–')
})
