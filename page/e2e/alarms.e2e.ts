// The alarms of the server stand under the sentence, and a click opens their group.

import type { Page } from '@playwright/test'
import { test } from './own'
import { expect, settled } from './web'

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const at = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const alarms = (page: Page) => page.locator('.alarms button')
const WINDOW = `since=${at(0)}&until=${at(60)}`

/** A minute with 40 deadlocks, one forced checkpoint, 30 new sessions per second and an idle slot. */
function minute() {
  const sessions = Array.from({ length: 60 }, (_, second) => ({ time: at(second), tick: second + 1, pid: 1, backend_start: at(-60), state: 'active', cpu: 'running' }))
  const readings = (row: (second: number) => Record<string, string | number>) => [0, 10, 20, 30, 40, 50].map((second) => ({ time: at(second), ...row(second) }))
  const others = {
    server: readings((second) => ({ elapsed_ms: second ? 10_000 : '', checkpoints_requested: second === 20 ? 1 : 0 })),
    server_database: readings((second) => ({ object: 'shop', xact_commit: 500, sessions: second ? 300 : 0, deadlocks: second ? 8 : 0 })),
    server_slot: readings(() => ({ object: 'left', slot_active: 0, slot_retained: 300 * 1024 ** 2 })),
  }
  return { sessions, others }
}

test('alarms of the window stand in a line, and a click opens their group', async ({ page, history }) => {
  const { sessions, others } = minute()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  const told = ['up to 30 new sessions per second', '40 deadlocks', 'slot left, which no process uses, keeps 300 MB of log']
  await expect(alarms(page)).toHaveText(told)
  await alarms(page).nth(2).click()
  await settled(page)
  await expect(page.getByRole('tabpanel').locator('.groups .head').first()).toContainText('Replication and slots')
})

test('no alarm stands beside a filter, or in a window of months', async ({ page, history }) => {
  const { sessions, others } = minute()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&application=web`))
  await settled(page)
  await expect(alarms(page)).toHaveCount(0)
  await page.goto(address(`since=2026-01-01T00:00:00Z&until=${at(60)}`))
  await settled(page)
  await expect(page.locator('.story')).toContainText('active sessions')
  await expect(alarms(page)).toHaveCount(0)
})
