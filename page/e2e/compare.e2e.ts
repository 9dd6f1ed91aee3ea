// A window beside an earlier one: both have the figures of the command line.

import { type Page, type Route } from '@playwright/test'
import { asTable, cells, said, same } from './shown'
import { STORM, at } from './tape'
import { expect, open, settled, test } from './web'

const NOW = { since: at(STORM.since), until: at(STORM.until) }
const BEFORE = { since: at(2 * STORM.since - STORM.until), until: NOW.since }
const line = (words: string, { since, until }: typeof NOW) => said(`${words} --since ${since} --until ${until}`)
const load = (page: Page) => page.getByRole('region', { name: /^Load/ })
const panel = (page: Page) => page.getByRole('tabpanel')

/** Each row of the page has the load of both windows, and the difference. */
async function sameChanges(page: Page, dimension: string, column: number) {
  const [now, before] = [NOW, BEFORE].map((window) => line(`tacho top ${dimension} --n all`, window))
  const own = now!.filter((row) => Number(row.avg_aas) > 0)
  const shown = await cells(panel(page).locator('table').last())
  expect(shown.length).toBe(own.length)
  own.forEach(({ key, avg_aas }, i) => {
    const was = Number(before!.find((row) => row.key === key)?.avg_aas ?? 0)
    same(shown[i]![0]!, avg_aas, `${dimension} ${String(key)} now`)
    same(shown[i]![column]!, was, `${dimension} ${String(key)} before`)
    const [, sign, by, factor] = /^([+−]?)([\d.]+) (.*)$/.exec(shown[i]![column + 1]!)!
    const change = Number(avg_aas) - was
    expect(sign, `${dimension} ${String(key)}`).toBe(Number(by) === 0 ? '' : change > 0 ? '+' : '−')
    same(by!, Math.abs(change), `${dimension} ${String(key)} changed by`)
    if (was === 0) expect(factor).toBe('new')
    else same(factor!.replace('× ', ''), Number(avg_aas) / was, `${dimension} ${String(key)} times`)
  })
}

test('queries, waits and the load have the figures of the window before', async ({ page }) => {
  await open(page, 'shop', NOW)
  await page.getByLabel('Compare').selectOption('previous')
  await expect(page).toHaveURL(/compare=previous/)
  await settled(page)
  await sameChanges(page, 'query_id', 2)
  const was = line('tacho aas', BEFORE)[0]!.avg_aas
  same(/Previous window: ([\d.]+)\./.exec(await page.locator('.story').innerText())![1]!, was, 'load before')

  await asTable(load(page))
  const steps = line('tacho timeline --bucket 1s', BEFORE)
  const shown = (await cells(load(page))).slice(1)
  expect(shown.length).toBe(steps.length)
  shown.forEach((row, i) => same(row.at(-3)!, steps[i]!.avg_aas, `load before ${row[0]}`))

  await page.getByRole('tab', { name: 'Waits' }).click()
  await settled(page)
  await sameChanges(page, 'wait_event', 2)
})

test('a query stands against yesterday, or any window; back and forward go between', async ({ page }) => {
  await open(page, 'shop', { ...NOW, query_id: '4' })
  const section = page.getByRole('region', { name: 'This query' })
  const past = section.locator('dd.past')
  await section.getByRole('button', { name: 'Against yesterday' }).click()
  await expect(page).toHaveURL(/compare=day/)
  await expect(section.getByText('which has no record')).toBeVisible()
  await settled(page)
  expect(await past.allTextContents()).toEqual(Array(11).fill('–'))
  await expect(load(page).getByText('the day before: not recorded')).toBeVisible()
  await expect(panel(page).getByText('the day before was not observed')).toBeVisible()

  await page.keyboard.press('c')
  await expect(page).toHaveURL(/compare=week/)
  await page.getByLabel('Compare').selectOption('previous')
  await expect(page).toHaveURL(/compare=previous/)
  await settled(page)
  const own = line('tacho statements-history --query-id 4', BEFORE)[0]!
  const each = (name: string) => Number(own[name]) / Number(own.calls)
  const shown = Object.fromEntries(await past.evaluateAll((all) => all.map((one) => [one.dataset.of, one.textContent]))) as Record<string, string>
  const expected = {
    ...{ calls: own.calls_per_second, mean: Number(own.mean_exec_time) / 1000, p50: Number(own.p50_exec_time) / 1000 },
    ...{ p95: Number(own.p95_exec_time) / 1000, p99: Number(own.p99_exec_time) / 1000, errors: own.errors },
    ...{ 'CPU per call': (each('user_time') + each('system_time')) / 1000, 'blocks per call': each('shared_blks_hit') + each('shared_blks_read'), 'blocks read per call': each('shared_blks_read'), 'rows per call': each('rows') },
  }
  const { 'last call': last, ...others } = shown
  expect(last).toContain(new Date(String(own.last_call)).toISOString().slice(11, 19))
  expect(Object.keys(others).sort()).toEqual(Object.keys(expected).sort())
  for (const [name, value] of Object.entries(expected)) same(shown[name]!, value, name)

  await page.goBack()
  await expect(page.getByLabel('Compare')).toHaveValue('week')
  await page.goBack()
  await expect(page.getByLabel('Compare')).toHaveValue('day')
  await page.goBack()
  await expect(page.getByLabel('Compare')).toHaveValue('')
  await settled(page)
  await expect(past).toHaveCount(0)
  await page.goForward()
  await expect(page.getByLabel('Compare')).toHaveValue('day')
  await settled(page)
  await expect(past).toHaveCount(11)
})

test('a comparison never shows figures of another one, neither before its answer nor after a failure', async ({ page }) => {
  const shows = async (window: string, before: string[], past: number) => {
    await expect(panel(page).getByRole('columnheader', { name: window })).toBeVisible()
    expect(await panel(page).locator('td.before').allTextContents()).toEqual(before)
    expect(await panel(page).locator('td.change').allTextContents().then((all) => new Set(all).has('–'))).toBe(before[0] === '–')
    await expect(panel(page).locator('dd.past')).toHaveCount(past)
    await expect(page.locator('.story')).not.toContainText('Previous window')
  }
  let held: Route[] | null
  for (const tab of ['queries', 'waits']) {
    const past = tab === 'queries' ? 11 : 0
    await open(page, 'shop', { ...NOW, tab, query_id: '1', compare: 'previous' })
    const rows = await panel(page).locator('td.before').count()
    expect(rows).toBeGreaterThan(0)
    expect(await panel(page).locator('td.before').allTextContents()).not.toContain('–')
    held = []
    await page.route(/2026-02-28T/, (route) => void (held ? held.push(route) : route.continue()))
    await page.getByLabel('Compare').selectOption('day')
    await expect.poll(() => held?.length).toBeGreaterThan(2)
    await shows('the day before', Array<string>(rows).fill('–'), 0)
    const waiting = held.splice(0)
    held = null
    for (const route of waiting) await route.continue()
    await settled(page)
    await shows('the day before', Array<string>(rows).fill('–'), past)
    await expect(page.locator('.story')).toContainText('The day before: not recorded.')

    await page.getByLabel('Compare').selectOption('previous')
    await settled(page)
    await page.route(/2026-02-22T/, (route) => route.abort())
    await page.getByLabel('Compare').selectOption('week')
    await settled(page)
    await expect(panel(page).getByRole('alert').first()).toContainText('tacho web does not answer')
    await shows('a week before', Array<string>(rows).fill('–'), 0)
    await page.unroute(/2026-02-22T/)
  }
})
