// The page's table of root blockers (heads of lock queues): the work and wait of each head, heads
// in a deadlock, and blockers without a process id.

import { test } from './own'
import { cells } from './shown'
import { expect, settled } from './web'

const BEGIN = Date.parse('2026-04-01T12:00:00Z')
const at = (second: number) => new Date(BEGIN + second * 1000).toISOString()
const START = at(-3600)
const WINDOW = `since=${at(0)}&until=${at(60)}`
const backend = (pid: number) => ({ pid, backend_start: START, backend_type: 'client backend', database: 'shop', username: 'app', application: 'worker', client_addr: `10.0.0.${pid}` })
const waits = (time: string, waiter: number, blocker: number | '') => ({
  ...{ time, waiter, waiter_start: START, blocker, blocker_start: blocker === '' ? '' : START, hard: 1 },
  ...{ locktype: 'transactionid', field1: 900 + Number(blocker), modes_held: 128, mode_requested: 5, wait_start: at(0) },
})

/** Ten seconds. Processes 7 and 8 wait for each other (a deadlock), 9 waits for 7. Process 11
 *  waits for 10, which reads from disk. Process 12 waits for a blocker that was gone, so samples
 *  have no process id of it. */
function story() {
  const sessions: Record<string, string | number>[] = []
  const locks: Record<string, string | number>[] = []
  for (let second = 0; second < 10; second += 1) {
    const tick = { time: at(second), tick: second + 1 }
    const lock = { state: 'active', wait_event_type: 'Lock', wait_event: 'transactionid' }
    for (const [waiter, blocker] of [[7, 8], [8, 7], [9, 7], [11, 10], [12, '']] as const) {
      const by: Record<string, string | number> = blocker === '' ? {} : { blocked_by: blocker, blocked_by_start: START }
      sessions.push({ ...tick, ...backend(waiter), ...lock, ...by })
      locks.push(waits(tick.time, waiter, blocker))
    }
    sessions.push({ ...tick, ...backend(10), state: 'active', wait_event_type: 'IO', wait_event: 'DataFileRead', query_id: 5, query_text: 'update item' })
  }
  for (let second = 10; second < 60; second += 1) sessions.push({ time: at(second), tick: second + 1 })
  return { sessions, others: { locks } }
}

test('a deadlock is a cycle, no head, and the tree says where it closes', async ({ page, history }) => {
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&tab=locks`))
  await settled(page)
  const panel = page.getByRole('tabpanel')
  const rows = await cells(panel.locator('table.heads'))
  const cycle = rows.find((row) => row[3]!.includes('7'))!
  expect(cycle.slice(3, 7)).toEqual(['cycle of 7', 'worker', 'in a deadlock', '3'])
  const nodes = await panel.locator('.tree li').allInnerTexts()
  const begin = nodes.findIndex((node) => node.includes('cycle of 7'))
  expect(nodes[begin]).toContain('in a deadlock, Lock:transactionid')
  expect(nodes[begin + 1]).toMatch(/8[^]*waits 00:00:04 for transactionid 907[^]*↻ 7 waits for it/)
  expect(nodes.filter((node) => node.includes('↻ 7 waits for it'))).toHaveLength(1)
})

test('a head shows its own wait, user, database, client and time', async ({ page, history }) => {
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&tab=locks`))
  await settled(page)
  const heads = page.getByRole('tabpanel').locator('table.heads')
  const head = (await cells(heads)).find((row) => row[3] === '10')!
  expect(head[7]).toBe('12:00:00 – 12:00:09')
  expect(head.slice(9, 13)).toEqual(['IO:DataFileRead', 'app', 'shop', '10.0.0.10'])
})

test('the statement that ends a head is copied, and ends no later session with its process id', async ({ page, history, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&tab=locks`))
  await settled(page)
  const row = page.getByRole('tabpanel').locator('table.heads tr', { hasText: 'IO:DataFileRead' })
  for (const name of ['pg_terminate_backend', 'pg_cancel_backend']) {
    const button = row.getByRole('button', { name: `${name}(10)` })
    await expect(button).toHaveAttribute('title', /\. Without pg_read_all_stats, a role finds only its own sessions by it\.$/)
    await button.click()
    const statement = `select ${name}(pid) from pg_stat_activity where pid = 10 and date_trunc('second', backend_start) = '2026-04-01T11:00:00Z';`
    await expect(row.getByRole('status')).toHaveText(`copied: ${statement}`)
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(statement)
  }
})

test('an unknown holder has the name and the reason of the command line', async ({ page, history }) => {
  const { sessions, others } = story()
  const address = await history(sessions, others)
  await page.goto(address(`${WINDOW}&tab=locks`))
  await settled(page)
  const panel = page.getByRole('tabpanel')
  expect((await cells(panel.locator('table.heads'))).map((row) => row[3])).toContain('(lost)')
  await expect(panel.getByText('(lost): holders that ended before the sampler could look them up.').first()).toBeVisible()
})

test('a head has the first lane, also among sessions that did more, with the seconds of blocking', async ({ page, history }) => {
  const { sessions, others } = story()
  const busy = Array.from({ length: 60 }, (_, second) => [20, 21, 22].map((pid) => ({ time: at(second), tick: second + 1, ...backend(pid), state: 'active', cpu: 'running' })))
  const address = await history([...busy.flat(), ...sessions].sort((a, b) => Date.parse(a.time as string) - Date.parse(b.time as string)), others)
  const asked = async (name: string, more = '') => {
    const answer = await page.request.get(address(WINDOW + more).replace('?', `api/v1/${name}?`))
    return ((await answer.json()) as { rows: Record<string, unknown>[] }).rows
  }
  const head = (await asked('blocking')).find((row) => row.kind === 'session')!
  expect(head).toMatchObject({ pid: 10, blocked_seconds: 10 })
  for (const n of [1, 2]) {
    const [first] = await asked('lanes', `&n=${n}`)
    expect(first).toMatchObject({ pid: 10, held_seconds: 10 })
  }
})

test.describe('390 pixels', () => {
  test.use({ viewport: { width: 390, height: 844 } })
  test('at 390 pixels each cell of a head has the name of its column, and nothing is cut off', async ({ page, history }) => {
    const { sessions, others } = story()
    const address = await history(sessions, others)
    await page.goto(address(`${WINDOW}&tab=locks`))
    await settled(page)
    const heads = page.getByRole('tabpanel').locator('table.heads')
    expect(await heads.evaluate((one) => one.parentElement!.scrollWidth - one.parentElement!.clientWidth)).toBe(0)
    const names = await heads.locator('tbody tr').first().locator('td').evaluateAll((all) => all.map((one) => getComputedStyle(one, '::before').content))
    expect(names).toContain('"waits itself"')
    expect(names.every((name) => name !== 'none')).toBe(true)
  })
})
