// The page of servers behind connections, with the extension and with the SQL edition, beside the
// same history in files. tools/page-server.sh makes a server of its own: of MAJOR, if that is set
// (tools/in-pg.sh).

import type { Page } from '@playwright/test'
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { program } from './tape'
import { asTable, cells } from './shown'
import { TABS, TOKEN, expect, open, start, test as base } from './web'

const TOOLS = join(process.cwd(), '../tools')

interface Site {
  address: string
  /** Runs pg_ctl with these arguments. */
  pg: (args: string) => Promise<void>
  /** Output of the program about the server's own files. */
  tacho: (...args: string[]) => string
  /** Runs statements in the server, in one session. */
  sql: (statements: string) => void
}

const test = base.extend<object, { site: Site }>({
  site: [
    async ({}, use) => {
      const directory = mkdtempSync(join(tmpdir(), 'tacho-page-server-'))
      const input = `${process.env.TACHO_TAPES}/shop.csv`
      const own = ['-b', input, '-b', dirname(program('tacho')), '-w', directory, process.env.MAJOR ?? '']
      const [file, ...args] = [...(process.env.MAJOR ? [join(TOOLS, 'in-pg.sh'), ...own] : []), join(TOOLS, 'page-server.sh'), directory, input]
      const env = { ...process.env, TACHO_PROGRAM: program('tacho'), ...(process.env.MAJOR ? { TACHO_BUILDS: '' } : {}) }
      const server = spawn(file!, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
      const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
      const lines = createInterface(server.stdout)[Symbol.asyncIterator]()
      const answer = async () => {
        const { value, done } = await lines.next()
        if (done) throw new Error('tools/page-server.sh has ended')
        return value
      }
      const bin = await answer()
      const pg = async (args: string) => {
        server.stdin.write(`${args}\n`)
        expect(await answer()).toBe('done')
      }
      const asServer = join(TOOLS, 'as-server.sh')
      const data = join(directory, 'data')
      const token = join(directory, 'token')
      writeFileSync(token, `${TOKEN}\n`)
      chownSync(token, statSync(data).uid, statSync(data).gid)
      chmodSync(token, 0o600)
      const socket = `host=${directory} user=`
      const dsn = (name: string, user: string, database: string) => ['--dsn', `${name}=${socket}${user} dbname=${database}`]
      const sources = [...dsn('extension', 'postgres', 'postgres'), ...dsn('edition', 'postgres', 'edition'), ...dsn('nobody', 'nobody', 'postgres')]
      const tapes = ['--tape', `recorded=${data}/tacho`, '--tape', `files=${directory}/files`, ...sources, '--token-file', token]
      const web = await start(tapes, '127.0.0.1:0', [asServer, join(bin, 'tacho-web')])
      const tacho = (...args: string[]) => execFileSync(join(bin, 'tacho'), [...args, '--tape', `${data}/tacho`], { encoding: 'utf8' })
      const sql = (statements: string) => void execFileSync(join(bin, 'psql'), ['-qXh', directory, '-U', 'postgres', '-v', 'ON_ERROR_STOP=1', '-c', statements, 'postgres'])
      await use({ address: web.address, pg, tacho, sql })
      await web.stop()
      server.stdin.end()
      await ended
      rmSync(directory, { recursive: true })
    },
    { scope: 'worker', timeout: 300_000 },
  ],
  baseURL: async ({ site }, use) => use(site.address),
})

const load = async (page: Page) => {
  const region = page.getByRole('region', { name: /^Load/ })
  await asTable(region)
  return cells(region.getByRole('region', { name: 'Load as a table' }))
}

/** The files to compare with, and the window: for the edition the imported files, for the extension
 *  the history that the server has recorded itself. */
const recorded = () => ({ since: new Date(Date.now() - 40_000).toISOString(), until: new Date(Date.now() - 10_000).toISOString() })
const SOURCES = { extension: { files: 'recorded', window: recorded }, edition: { files: 'files', window: () => ({}) } } as const

for (const server of ['extension', 'edition'] as const) {
  const { files, window } = SOURCES[server]
  test(`${server}: the load is that of the files`, async ({ page, site }) => {
    // So that the window has history.
    await expect.poll(() => JSON.parse(site.tacho('aas', '--since', '40s', '--until', '10s', '--json'))[0]?.coverage_pct, { timeout: 120_000 }).toBeGreaterThan(50)
    const shown = window()
    await open(page, files, shown)
    const expected = await load(page)
    expect(expected[0]![1]).not.toBe('–')
    await open(page, server, shown)
    expect(await load(page)).toEqual(expected)
  })
  for (const tab of TABS) {
    test(`${server}: the view ${tab} is there, or says why it is not`, async ({ page }) => {
      await open(page, server, { tab, ...window() })
      await expect(page.getByRole('alert')).toHaveCount(0)
      const lacks = server === 'edition' && tab === 'server'
      if (lacks) await expect(page.getByRole('tabpanel')).toContainText('the SQL edition does not record the server and its host')
      else await expect(page.getByRole('tabpanel')).not.toBeEmpty()
    })
  }
  test(`${server}: a query has its page, and what is not recorded is said`, async ({ page }) => {
    await open(page, server, { query_id: '1', ...window() })
    await expect(page.getByRole('alert')).toHaveCount(0)
    await expect(page.getByRole('region', { name: 'This query' })).toContainText('No execution of this query finished in this window.')
    const took = page.getByRole('region', { name: 'How long calls took', exact: true })
    await expect(took).toContainText(server === 'edition' ? /Not recorded here: .*latency_history/ : /Nothing was recorded|No execution time was counted/)
  })
  test(`${server}: a saved report has what that of the files has`, async ({ page }) => {
    const shown = window()
    const sections = async (name: string) => {
      await open(page, name, shown)
      const address = await page.getByRole('link', { name: 'Report' }).getAttribute('href')
      const saved = await page.request.get(address!)
      expect(saved.status()).toBe(200)
      return (await saved.text()).match(/<h[12].*?<\/h[12]>/g)
    }
    const expected = await sections(files)
    expect(expected).not.toBeNull()
    expect(await sections(server)).toEqual(expected)
  })
  test(`${server}: a mark is told where to be written`, async ({ page }) => {
    await open(page, server, window())
    await page.keyboard.press('m')
    await expect(page.getByRole('dialog')).toContainText('is read through a connection and cannot be marked here')
    await expect(page.getByRole('dialog').getByRole('textbox')).toHaveCount(0)
  })
}

test('two recorded plans of a query are beside each other, with what differs marked', async ({ page, site }) => {
  const query = 'SELECT count(*), pg_sleep(3) FROM beside WHERE id = 5'
  site.sql('CREATE TABLE beside AS SELECT generate_series(1, 1000) AS id')
  site.sql('CREATE INDEX beside_id ON beside (id)')
  site.sql('ANALYZE beside')
  site.sql(`SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; ${query}`)
  site.sql(`SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; ${query}`)
  const sampled = () => {
    const rows = (JSON.parse(site.tacho('samples', '--since', '5min', '--json')) as Record<string, string | null>[]).filter((row) => row.query_text?.includes('FROM beside'))
    return { id: rows[0]?.query_id, plans: [...new Set(rows.map((row) => row.plan_id!))] }
  }
  await expect.poll(() => sampled().plans.length, { timeout: 60_000 }).toBe(2)
  const { id, plans } = sampled()
  const nodes = ([plan, other]: string[]) => JSON.parse(site.tacho('plan', plan!, '--diff', other!, '--json')) as Record<string, string | null>[]
  await expect.poll(() => new Set(nodes(plans).map((row) => row.plan_id)).size, { timeout: 60_000 }).toBe(2)
  const rows = nodes(plans)
  expect(rows.map((row) => [row.node_type, row.differs]).sort()).toEqual([['Aggregate', 'same'], ['Aggregate', 'same'], ['Index Scan', 'node'], ['Seq Scan', 'node']])
  for (const server of ['recorded', 'extension']) {
    await open(page, server, { query_id: id!, plans: plans.join(','), since: new Date(Date.now() - 120_000).toISOString(), until: new Date().toISOString() })
    for (const plan of plans) {
      const tree = page.getByRole('region', { name: `Tree of plan ${plan}` })
      const own = rows.filter((row) => row.plan_id === plan)
      await expect(tree.locator('pre')).toHaveText(own.map((row) => row.explain!))
      await expect(tree.locator('.marked pre')).toHaveText(own.filter((row) => row.differs !== 'same').map((row) => row.explain!))
      await expect(tree.locator('.marked .other')).toHaveText(own.filter((row) => row.differs !== 'same').map((row) => `other plan: ${row.other}`))
    }
    const [left, right] = await Promise.all(plans.map(async (plan) => (await page.getByRole('region', { name: `Tree of plan ${plan}` }).boundingBox())!))
    expect(left!.y).toBe(right!.y)
    expect(left!.x + left!.width).toBeLessThanOrEqual(right!.x)
  }
})

test('a role without rights sees the right that it needs', async ({ page }) => {
  await page.goto('?server=nobody')
  await expect(page.getByRole('heading', { name: 'Permission denied for this history.' })).toBeVisible()
  await expect(page.locator('.nothing')).toContainText('pg_read_all_stats')
})

test('a server that is gone says so, and is back by itself', async ({ page, site }) => {
  await open(page, 'extension', recorded())
  await site.pg('stop -m immediate')
  await page.getByRole('tab', { name: 'Waits' }).click()
  await expect(page.getByRole('tabpanel').getByRole('alert')).toBeVisible()
  await page.goto('?server=extension')
  await expect(page.getByRole('heading', { name: 'There is no connection to this server.' })).toBeVisible()
  await site.pg('start')
  await expect(page.locator('main .story')).toBeVisible({ timeout: 60_000 })
})
