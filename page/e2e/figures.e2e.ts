// Each figure on the page equals the command line's figure for the question that the panel shows.

import { type Locator, type Page } from '@playwright/test'
import { readFileSync } from 'node:fs'
import { explained, parseDictionary } from '../src/lib/waits'
import { type Row, UNITS, asTable, cells, printed, said, same } from './shown'
import { DEPLOYED, PLANS } from './tape'
import { WHOLE, expect, open, settled, test } from './web'

interface Answer {
  line: string
  rows: Row[]
}

/** Answers of the command line to the questions of a panel, by function. */
async function answers(panel: Locator): Promise<Answer[]> {
  const details = panel.locator('details', { hasText: 'Show as SQL and command line' })
  const lines = (await details.locator('dd code').allTextContents()).filter((line) => line.startsWith('tacho '))
  expect(lines.length).toBeGreaterThan(0)
  return lines.map((line) => ({ line, rows: said(line) }))
}
const first = (all: Answer[], start: string): Row[] => {
  const found = all.find(({ line }) => line.startsWith(`tacho ${start}`))
  if (!found) throw new Error(`no question begins with ${start}`)
  return found.rows
}

const panel = (page: Page) => page.getByRole('tabpanel')
const at = (text: unknown) => Date.parse(String(text))

test('the story has the load, the CPUs and the largest wait', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits' })
  const [story, all] = [(await page.locator('.story').innerText()).replaceAll(/\s+/g, ' '), await answers(panel(page))]
  const waits = first(all, 'top wait_event ')
  const load = waits.reduce((sum, row) => sum + Number(row.avg_aas), 0)
  const said = /^([\d.]+) active sessions on average, on (\d+) CPUs; peak (\d+)\. ([\d.]+ %) of it is (\S+): .*Observed: ([\d.]+ %)/.exec(story)
  expect(said, story).not.toBeNull()
  same(said![1]!, load, 'load')
  expect(Number(said![2])).toBe(waits[0]!.vcpus)
  same(said![4]!, waits[0]!.pct, 'share')
  expect(said![5]).toBe(waits[0]!.key)
  same(said![6]!, waits[0]!.coverage_pct, 'coverage')
})

test('the load has each step of each class, its peak and coverage', async ({ page }) => {
  await open(page, 'shop')
  const load = page.getByRole('region', { name: /^Load/ })
  await asTable(load)
  const all = await answers(load)
  const [cut, whole] = [all[0]!.rows, all[1]!.rows]
  const names = (await load.locator('thead th').allTextContents()).slice(1, -3)
  const shown = (await cells(load)).slice(1)
  expect(shown.length).toBe(whole.length)
  shown.forEach((row, i) => {
    const { bucket_start, avg_aas, peak_sessions, coverage_pct } = whole[i]!
    names.forEach((name, k) => {
      const own = cut.find((one) => one.bucket_start === bucket_start && one.key === name)
      same(row[k + 1]!, avg_aas === null ? null : (own?.avg_aas ?? 0), `${name} at ${String(bucket_start)}`)
    })
    same(row.at(-3)!, avg_aas, `load at ${String(bucket_start)}`)
    same(row.at(-2)!, peak_sessions, 'peak')
    same(row.at(-1)!, coverage_pct, 'coverage')
  })
})

test('queries have load, share, calls, mean and p95', async ({ page }) => {
  await open(page, 'shop')
  const all = await answers(panel(page))
  const [load, cost] = [first(all, 'top query_id '), first(all, 'queries ')]
  const shown = await cells(panel(page).locator('table.queries'))
  const ids = [...new Set(load.filter((row) => Number(row.avg_aas) > 0).map((row) => row.key))]
  expect(shown.length).toBe(ids.length)
  shown.forEach((row, i) => {
    const own = load.filter((one) => one.key === ids[i])
    const sum = (name: string) => own.reduce((total, one) => total + Number(one[name] ?? 0), 0)
    same(row[0]!, sum('avg_aas'), 'load')
    same(row[1]!, sum('pct'), 'share')
    const statement = cost.find((one) => one.key === ids[i])!
    same(row[4]!, statement.calls_per_second, 'calls')
    same(row[5]!, Number(statement.mean_exec_time) / 1000, 'mean')
    same(row[6]!, Number(statement.p95_exec_time) / 1000, 'p95')
  })
})

test('a query has what its statistics say', async ({ page }) => {
  await open(page, 'shop', { query_id: '4' })
  const section = page.getByRole('region', { name: 'This query' })
  const own = first(await answers(section), 'statements-history ')[0]!
  const shown = Object.fromEntries(
    await section.locator('dl div').evaluateAll((all) => all.map((one) => [one.querySelector('dt')?.textContent, one.querySelector('dd')?.textContent])),
  ) as Record<string, string>
  const calls = Number(own.calls)
  same(shown.calls!, own.calls_per_second, 'calls')
  for (const percent of ['p50', 'p95', 'p99']) same(shown[percent]!, Number(own[`${percent}_exec_time`]) / 1000, percent)
  same(shown.mean!, Number(own.mean_exec_time) / 1000, 'mean')
  same(shown['CPU per call']!, (Number(own.user_time) + Number(own.system_time)) / calls / 1000, 'CPU')
  same(shown['blocks per call']!, (Number(own.shared_blks_hit) + Number(own.shared_blks_read)) / calls, 'blocks')
  same(shown['blocks read per call']!, Number(own.shared_blks_read) / calls, 'blocks')
  same(shown['rows per call']!, Number(own.rows) / calls, 'rows')
  same(shown.errors!, own.errors, 'errors')
  expect(shown['last call']).toContain(new Date(String(own.last_call)).toISOString().slice(11, 19))
  expect(await section.locator('pre').textContent()).toBe(own.query_text)

  const plans = section.getByRole('region', { name: 'Plans' })
  const loads = first(await answers(plans), 'top plan_id ')
  expect(new Set(loads.map((row) => row.key))).toEqual(new Set(PLANS))
  const planned = await cells(plans.locator('section'))
  expect(planned.map((row) => row[3])).toEqual(loads.map((row) => row.key))
  planned.forEach((row, i) => same(row[0]!, loads[i]!.avg_aas, 'load of a plan'))

  const took = section.getByRole('region', { name: 'How long calls took' }).first()
  await asTable(took)
  const classes = first(await answers(took), 'latency-history ')
  const from = await took.locator('th[data-from]').evaluateAll((all) => all.map((th) => Number((th as HTMLElement).dataset.from)))
  expect(new Set(classes.flatMap((row) => row.exec_time_from ?? []))).toEqual(new Set([from[0], from.at(-1)]))
  const steps = [...new Set(classes.map((row) => String(row.period_start)))]
  const map = await cells(took)
  expect(map.length).toBe(steps.length)
  map.forEach((row, i) => {
    const rows = classes.filter((one) => one.period_start === steps[i])
    from.forEach((least, k) => same(row[k + 1]!, rows.find((one) => one.exec_time_from === least)?.calls ?? 0, `calls of ${least} ms in ${steps[i]}`))
    same(row.at(-1)!, rows.reduce((sum, one) => sum + Number(one.calls), 0), 'all calls')
  })
  expect(classes.reduce((sum, one) => sum + Number(one.calls), 0)).toBe(calls)
})

test('waits have load, share and peak', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits' })
  const own = first(await answers(panel(page)), 'top wait_event ').filter((row) => Number(row.avg_aas) > 0)
  const shown = await cells(panel(page))
  expect(shown.map((row) => row[3])).toEqual(own.map((row) => row.key))
  shown.forEach((row, i) => {
    same(row[0]!, own[i]!.avg_aas, 'load')
    same(row[1]!, own[i]!.pct, 'share')
    same(row[4]!, own[i]!.peak_sessions, 'at once')
  })
})

test('waits have the explanations of the dictionary', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits' })
  const known = parseDictionary(readFileSync(new URL('../../catalog/waits.txt', import.meta.url), 'utf8'))
  const own = first(await answers(panel(page)), 'top wait_event ').filter((row) => Number(row.avg_aas) > 0)
  expect(own.length).toBeGreaterThan(3)
  for (const { key } of own.filter(({ key }) => key !== '(other)')) {
    const expected = explained(known, String(key))
    expect(expected, String(key)).toMatch(/^.+\nNormal: .+\n(Next: |No further step)/)
    await expect(panel(page).getByRole('row', { name: String(key) }).locator('.means').first()).toHaveAttribute('title', expected!)
  }
})

test('lanes are the spans of sessions', async ({ page }) => {
  await open(page, 'shop', { tab: 'sessions' })
  await asTable(panel(page))
  const own = first(await answers(panel(page)), 'sessions ').filter((row) => row.kind === 'sampled')
  const shown = await cells(panel(page).getByRole('region', { name: 'Sessions as a table' }))
  expect(shown.length).toBe(Math.min(400, own.length))
  const seconds = (text: string) => {
    const parts = [...text.matchAll(/([\d.]+) (ms|s|min|h|d)/g)]
    return parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit!]!, 0)
  }
  const key = (pid: unknown, text: string, state: unknown) => `${String(pid)} ${text} ${String(state)}`
  const known = new Map(own.map((row) => [key(row.pid, new Date(at(row.span_start)).toISOString().slice(11, 19), row.state), row]))
  for (const [pid, who, from, lasted, state, wait, blocker] of shown) {
    const row = known.get(key(pid, from!.slice(-8), state))
    expect(row, `${pid} ${from}`).toBeDefined()
    expect(seconds(lasted!)).toBe(row!.seconds)
    expect(who).toBe(row!.application)
    expect(wait).toBe(row!.wait_event ? `${row!.wait_event_type}:${row!.wait_event}` : `CPU:${row!.cpu}`)
    expect(blocker).toBe(String(row!.blocked_by ?? ''))
  }
})

test('lanes of a longer window tell what was most of a column', async ({ page }) => {
  await open(page, 'shop', { tab: 'sessions', since: '2026-03-01T09:55:00Z' })
  await expect(panel(page)).toContainText('one column = 4.7 s, its colour the main wait')
  await asTable(panel(page))
  const own = first(await answers(panel(page)), 'sessions ').filter((row) => row.kind === 'sampled')
  const shown = await cells(panel(page))
  expect(shown.length).toBeGreaterThan(0)
  expect(shown.length).toBeLessThanOrEqual(own.length)
  const pids = new Set(own.map((row) => String(row.pid)))
  for (const [pid] of shown) expect(pids).toContain(pid)
})

test('from a longer window a click leads to lanes of seconds', async ({ page }) => {
  await open(page, 'shop', { tab: 'sessions', since: '2026-03-01T10:47:30Z', until: '2026-03-01T11:15:00Z' })
  await expect(panel(page)).toContainText('one column = 1.8 s, its colour the main wait')
  await panel(page).getByRole('button', { name: 'the middle 15 min' }).click()
  await settled(page)
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 10:53:45 – 11:08:45')
  await expect(panel(page)).toContainText('second by second')
  await asTable(panel(page))
  const own = first(await answers(panel(page)), 'sessions ').filter((row) => row.kind === 'sampled')
  expect((await cells(panel(page))).length).toBe(Math.min(400, own.length))
})

test('the page of a query has the sessions that ran it', async ({ page }) => {
  await open(page, 'shop', { query_id: '1' })
  const lanes = panel(page).getByRole('region', { name: 'Sessions that ran it' })
  await asTable(lanes)
  const own = first(await answers(lanes), 'sessions ').filter((row) => row.kind === 'sampled')
  expect(own.map((row) => row.query_id)).toEqual(own.map(() => '1'))
  const busy = new Map<string, number>()
  for (const row of own) busy.set(String(row.pid), (busy.get(String(row.pid)) ?? 0) + Number(row.seconds))
  const longest = [...busy].sort(([a, x], [b, y]) => y - x || Number(a) - Number(b)).slice(0, 10)
  expect(longest.length).toBe(10)
  expect(await lanes.locator('.names .pid').allInnerTexts()).toEqual(longest.map(([pid]) => pid))
  expect((await cells(lanes)).length).toBe(own.filter((row) => longest.some(([pid]) => pid === String(row.pid))).length)
  await lanes.locator('.names button').first().click()
  await expect(page).toHaveURL(/query_id=1.*pid=\d+|pid=\d+.*query_id=1/)
})

test('locks have the heads of queues, and the queue of a moment', async ({ page }) => {
  await open(page, 'shop', { tab: 'locks' })
  const all = (await answers(panel(page))).filter(({ line }) => line.startsWith('tacho blocking'))
  const heads = all.find(({ line }) => !line.includes('--at'))!.rows
  const shown = await cells(panel(page).locator('table.heads'))
  const sum = heads.reduce((total, row) => total + Number(row.blocked_seconds), 0)
  expect(shown.length).toBe(heads.length)
  shown.forEach((row, i) => {
    const { blocked_seconds, pid, application, state, waiters, xact_age, first_seen, last_seen } = heads[i]!
    const clock = (time: unknown) => /\d\d:\d\d:\d\d/.exec(String(time))![0]
    same(row[0]!, blocked_seconds, 'waited')
    same(row[1]!, (100 * Number(blocked_seconds)) / sum, 'share')
    expect(row.slice(3, 9)).toEqual([pid, application, state, waiters, `${clock(first_seen)} – ${clock(last_seen)}`, xact_age].map(String))
  })
  const tree = all.find(({ line }) => line.includes('--at'))!.rows
  const nodes = await panel(page).locator('.tree li').allInnerTexts()
  expect(nodes.length).toBe(tree.length)
  tree.forEach((row, i) => {
    expect(nodes[i]).toContain(String(row.pid))
    expect(nodes[i]).toContain(row.level === 0 ? `${row.waiters} wait` : String(row.object))
  })
})

test('dimensions have load and share of each key', async ({ page }) => {
  await open(page, 'shop', { tab: 'dimensions' })
  for (const section of await panel(page).locator('section').all()) {
    const own = (await answers(section)).find(({ line }) => !line.includes('--by'))!.rows.filter((row) => Number(row.avg_aas) > 0)
    const shown = await cells(section)
    expect(shown.map((row) => row[3])).toEqual(own.map((row) => String(row.key ?? '(null)')))
    shown.forEach((row, i) => {
      same(row[0]!, own[i]!.avg_aas, 'load')
      same(row[1]!, own[i]!.pct, 'share')
    })
  }
})

test('pictures of the server have the readings of each step', async ({ page }) => {
  await open(page, 'shop', { tab: 'server' })
  const own = (await answers(panel(page))).flatMap(({ rows }) => rows)
  const figures = await panel(page).locator('figure').all()
  expect(figures.length).toBe(9)
  for (const figure of figures) {
    await asTable(figure)
    const table = figure.locator('table')
    const columns = await table.locator('th[data-metric]').evaluateAll((all) => all.map((th) => ({ ...(th as HTMLElement).dataset }) as { metric: string; object: string }))
    const rows = await cells(table)
    expect(rows.length).toBeGreaterThan(50)
    for (const row of rows) {
      columns.forEach(({ metric, object }, i) => {
        const start = row[0]!.slice(-8)
        const is = (one: Row) => one.metric === metric && one.avg !== null && (object === '' || one.object === object)
        const found = own.filter((one) => is(one) && String(one.period_start).slice(11, 19) === start)
        const sum = found.length > 0 ? found.reduce((total, one) => total + Number(one.avg), 0) : null
        const factor = metric.startsWith('cpu_') ? 0.001 : metric.startsWith('pressure_') ? 0.0001 : 1
        same(row[i + 1]!, sum === null ? null : sum * factor, `${metric} of ${object} at ${start}`)
      })
    }
  }
})

test('events are the markers', async ({ page }) => {
  await open(page, 'shop', { tab: 'events' })
  const own = first(await answers(panel(page)), 'markers ')
  const shown = await cells(panel(page).locator('.panel').first())
  expect(shown.map(([when, kind, detail]) => [when!.slice(-8), kind, detail])).toEqual(
    own.map((row) => [String(row.marker_time).slice(11, 19), row.kind, row.detail ?? '']),
  )
})

test('statements that change things have their times, numbers and roles', async ({ page }) => {
  await open(page, 'shop', { tab: 'events' })
  const changes = panel(page).locator('section')
  const own = (await answers(changes)).find(({ line }) => line.includes(`--query-id ${DEPLOYED.id}`))!.rows.filter((row) => Number(row.calls) > 0)
  const shown = await cells(changes)
  expect(shown.map(([when, text, calls, , user, database]) => [when!.slice(-8), text, calls, user, database])).toEqual(
    own.map((row) => [String(row.period_start).slice(11, 19), DEPLOYED.text, String(row.calls), row.username, row.database]),
  )
  expect(own.length).toBe(1)
  same(shown[0]![3]!, Number(own[0]!.mean_exec_time) / 1000, 'mean')
})

test('the file of a panel has every row and column of its answer', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits' })
  const own = first(await answers(panel(page)), 'top wait_event ')
  await panel(page).getByText('Show as SQL and command line').click()
  const downloading = page.waitForEvent('download')
  await panel(page).getByRole('button', { name: 'Save top.csv' }).click()
  const file = await downloading
  expect(file.suggestedFilename()).toBe('top.csv')
  const [head, ...lines] = readFileSync(await file.path(), 'utf8').trimEnd().split('\r\n')
  expect(lines.length).toBe(own.length)
  const names = head!.split(',')
  expect(names).toEqual(Object.keys(own[0]!))
  lines.forEach((line, i) => expect(line.split(',')).toEqual(names.map((name) => String(own[i]![name] ?? ''))))
})

test('a saved report is the one of the command line, of the window and the filters', async ({ page }) => {
  await open(page, 'shop', { application: 'web' })
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Report' }).click()
  const file = await downloading
  expect(file.suggestedFilename()).toBe('tacho-shop-20260301T105500Z.html')
  const own = printed(`tacho report --since ${WHOLE.since} --until ${WHOLE.until} --application web --format html`)
  expect(own).toContain('<dt>average load</dt>')
  expect(readFileSync(await file.path(), 'utf8')).toBe(own)
})

test('with a filter and another zone, the figures follow filter and zone', async ({ page }) => {
  await open(page, 'shop', { tab: 'waits', application: 'web', username: '!report', tz: 'local' })
  const all = await answers(panel(page))
  expect(all[0]!.line).toContain('--application web')
  expect(all[0]!.line).toContain('--tz America/New_York')
  const own = first(all, 'top wait_event ')
  const shown = await cells(panel(page))
  shown.forEach((row, i) => same(row[0]!, own[i]!.avg_aas, 'load'))
  await page.keyboard.press('t')
  await settled(page)
  await expect(page.locator('.window')).toHaveText('Sun 1 Mar, 10:55 – 11:05')
})

test('all servers stand above the one, the worst first, and a click enters one', async ({ page }) => {
  await open(page, 'shop', { application: 'web' })
  await page.getByRole('button', { name: 'All', exact: true }).click()
  await expect(page).toHaveURL(/fleet=all/)
  await settled(page)
  const strip = page.getByRole('region', { name: 'All servers' })
  const load = (server: string): Row & { server: string } => ({ server, ...said(`tacho aas --since ${WHOLE.since} --until ${WHOLE.until}`, server)[0]! })
  const own = ['damaged', 'hostile', 'shop'].map(load).sort((a, b) => Number(b.avg_aas) - Number(a.avg_aas) || (a.server < b.server ? -1 : 1))
  const shown = await cells(strip)
  expect(shown.map((row) => row[0])).toEqual([...own.map((row) => row.server), 'empty', 'missing'])
  own.forEach((row, i) => {
    same(shown[i]![2]!, row.avg_aas, `load of ${row.server}`)
    expect(shown[i]!.slice(3)).toEqual([`${row.vcpus} CPUs`, `peak ${row.peak_sessions}`])
  })
  expect(shown.slice(-2).map((row) => row[2])).toEqual(['no history yet', 'not found'])
  await strip.getByRole('button', { name: 'hostile' }).click()
  await expect(page).toHaveURL(/server=hostile/)
  expect(page.url()).not.toContain('application=')
  await settled(page)
  await page.goBack()
  await page.goBack()
  await expect(strip).toHaveCount(0)
})
