// The alarms of the server stand under the sentence, and a click opens their group.

import type { Page } from '@playwright/test'
import { at as later, dropped } from './dropped'
import { test } from './own'
import { WINDOW as STAGED, readings, staged } from './staged'
import { expect, settled } from './web'

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const at = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const alarms = (page: Page) => page.locator('.alarms button')
const WINDOW = `since=${at(0)}&until=${at(60)}`

/** A minute with 40 deadlocks, one forced checkpoint, 30 new sessions per second and an idle slot. */
function minute() {
  const sessions = Array.from({ length: 60 }, (_, second) => ({ time: at(second), tick: second + 1, pid: 1, backend_start: at(-60), state: 'active', cpu: 'running' }))
  const measured = (row: (second: number) => Record<string, string | number>) => [0, 10, 20, 30, 40, 50].map((second) => ({ time: at(second), ...row(second) }))
  const others = {
    server: measured((second) => ({ elapsed_ms: second ? 10_000 : '', checkpoints_requested: second === 20 ? 1 : 0 })),
    server_database: measured((second) => ({ object: 'shop', xact_commit: 500, sessions: second ? 300 : 0, deadlocks: second ? 8 : 0 })),
    server_slot: measured(() => ({ object: 'left', slot_active: 0, slot_retained: 300 * 1024 ** 2 })),
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

test.describe('1440 × 900', () => {
  test.use({ viewport: { width: 1440, height: 900 } })
  test('the first query is within 500 pixels at 1440 × 900, below a cause of two lines and three alarms', async ({ page, history }) => {
    const { sessions, others } = dropped()
    const measured = (row: (second: number) => Record<string, string | number>) => Array.from({ length: 120 }, (_, i) => ({ time: later(10 * i), ...row(10 * i) }))
    const bad = {
      server: measured((second) => ({ elapsed_ms: second ? 10_000 : '', checkpoints_requested: 0 })),
      server_database: measured((second) => ({ object: 'shop', xact_commit: 500, sessions: second ? 300 : 0, deadlocks: second === 800 ? 8 : 0 })),
      server_slot: measured(() => ({ object: 'left', slot_active: 0, slot_retained: 3 * 1024 ** 3 })),
    }
    const address = await history(sessions, { ...others, ...bad })
    await page.goto(address(`since=${later(600)}&until=${later(1200)}`))
    await settled(page)
    await expect(alarms(page)).toHaveText(['up to 30 new sessions per second', '8 deadlocks', 'slot left, which no process uses, keeps 3.00 GB of log'])
    const row = page.locator('table.queries tbody tr').first()
    expect((await row.boundingBox())!.y).toBeLessThanOrEqual(500)
  })
  test('a short finding and an alarm share one line', async ({ page, history }) => {
    const { sessions, others } = staged([
      { pid: 500, application: 'stock import', query: [1, 'update item set price = $1'], idle: true },
      { pid: 600, count: 20, application: 'web', query: [2, 'update item set qty = $1 where id = $2'], wait: ['Lock', 'transactionid'], behind: { pid: 500, locktype: 'transactionid', mode: 5 } },
    ])
    const address = await history(sessions, { ...others, server: readings({ elapsed_ms: 10_000 }), server_slot: readings({ object: 'left', slot_active: 0, slot_retained: 3 * 1024 ** 3 }) })
    await page.goto(address(STAGED))
    await settled(page)
    const [finding, alarm] = [(await page.locator('.headline').boundingBox())!, (await alarms(page).first().boundingBox())!]
    expect(alarm.x).toBeGreaterThan(finding.x + finding.width)
    expect(Math.abs(alarm.y + alarm.height / 2 - (finding.y + finding.height / 2))).toBeLessThan(6)
  })
})
