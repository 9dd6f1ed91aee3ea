// Measurements of the server stand in groups that fold, the worst first.

import type { Page } from '@playwright/test'
import { test } from './own'
import { expect, settled } from './web'

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const at = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const WINDOW = `since=${at(0)}&until=${at(300)}&tab=server`
const MB = 1024 ** 2
const panel = (page: Page) => page.getByRole('tabpanel')

/** Five minutes: a replica falls behind, a slot without a process keeps log, the disk fills.
 *  Checkpoints are forced, segments cannot be archived, and 97 of 100 connections are used. */
function story() {
  const sessions: Record<string, string | number>[] = []
  for (let second = 0; second < 300; second += 1) {
    const tick = { time: at(second), tick: second + 1, vcpus: 4, connections: second < 200 ? 40 : 97, max_connections: 100 }
    sessions.push({ ...tick, pid: 1, backend_start: at(-60), state: 'active', cpu: 'running' })
  }
  const times = Array.from({ length: 30 }, (_, i) => i * 10)
  const each = (row: (second: number) => Record<string, string | number>) => times.map((second) => ({ time: at(second), ...row(second) }))
  return {
    sessions,
    others: {
      counts: Array.from({ length: 300 }, (_, second) => ['active', 'idle', 'idle in transaction'].map((state, i) => ({ time: at(second), tick: second + 1, category: 'foreground', state, backends: [8, second < 200 ? 30 : 80, 2][i]! }))).flat(),
      server: each((second) => ({ logins_failed: second === 100 ? 6 : 0, logins_refused: second > 200 ? 1 : 0, elapsed_ms: second ? 10_000 : '', vcpus: 400, load_1: 150, wal_bytes: 1000, checkpoints_timed: 0, checkpoints_requested: second === 100 || second === 200 ? 1 : 0, wal_archive_failed: second > 100 ? 1 : 0 })),
      server_database: [...each(() => ({ object: 'shop', xact_commit: 50, sessions_killed: 0 })), ...each((second) => ({ object: 'crm', xact_commit: 20, sessions_killed: second === 150 ? 3 : 0 }))],
      server_replica: ['one', 'two'].flatMap((object, i) => each((second) => ({ object, replica_sent_lag: 0, replica_write_lag: 10, replica_flush_lag: 20, replica_replay_lag: second * 100_000 * (i + 1) }))),
      server_slot: [...each(() => ({ object: 'used', slot_active: 1, slot_retained: MB })), ...each(() => ({ object: 'left', slot_active: 0, slot_retained: 3000 * MB }))],
      server_disk: [...each((second) => ({ object: 'data directory', disk_free: (40_000 - 100 * second) * MB, disk_size: 200_000 * MB })), ...each(() => ({ object: '/mnt/fast', disk_free: 50_000 * MB, disk_size: 100_000 * MB }))],
    },
  }
}

test('groups stand with the worst first and say what is bad', async ({ page, history }) => {
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  const lines = await panel(page).locator('.groups .head').allInnerTexts()
  const heads = lines.map((text) => text.replace('▾ ', '').trim().replace(/\s*\n\s*/g, ' | '))
  expect(heads).toEqual([
    'Connections | 97 of 100 connections | 6 failed logins | 9 connections refused | 3 sessions killed',
    'Write-ahead log and checkpoints | 19 failures to archive | 2 forced checkpoints',
    'Replication and slots | a replica was 55.3 MB behind | slot left, which no process uses, keeps 2.93 GB of log',
    'Host | 10.7 GB left on the disk of the data directory',
    'Transactions',
  ])
})

test('lag is shown by stage for each replica, slots by name, commits by database', async ({ page, history }) => {
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  const figure = (title: string) => panel(page).locator('figure', { has: page.locator('strong', { hasText: new RegExp(`^${title}$`) }) })
  for (const replica of ['one', 'two']) {
    expect(await figure(`Log behind: ${replica}`).locator('figcaption span').allInnerTexts()).toEqual(['not sent', 'not written', 'not flushed', 'not replayed'])
  }
  expect(await figure('Log kept for slots').locator('figcaption span').allInnerTexts()).toEqual(['left', 'used'])
  expect(await figure('Free space of the disks that the server uses').locator('figcaption span').allInnerTexts()).toEqual(['/mnt/fast', 'data directory'])
  expect(await figure('Commits per second').locator('figcaption span').allInnerTexts()).toEqual(['shop', 'crm'])
  await expect(figure('Connections, of max_connections').locator('figcaption')).toContainText('peak 97.0, of 100')
  expect(await figure('Connections by state, of max_connections').locator('figcaption span').allInnerTexts()).toEqual(['idle', 'active', 'idle in transaction'])
})

test('a group folds, and what stayed at nothing is one line', async ({ page, history }) => {
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(WINDOW))
  await settled(page)
  const replication = panel(page).getByRole('region', { name: 'Replication and slots' })
  await expect(replication.locator('figure').first()).toBeVisible()
  await replication.getByRole('button', { name: 'Replication and slots' }).click()
  await expect(replication.locator('figure')).toHaveCount(0)
  const transactions = panel(page).getByRole('region', { name: 'Transactions' })
  await expect(transactions).not.toContainText('Deadlocks')
})
