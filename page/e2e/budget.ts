// Measures the times of the page in Debian's browser. bench/web.sh starts the server and passes its
// address. The lines of a table go to standard output.

import { type Browser, type CDPSession, type Page, test } from '@playwright/test'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TABS } from './web'

const { TACHO_WEB: address = '', TACHO_TOKEN: token = '', TACHO_WEB_PID: server = '' } = process.env
const runs = Number(process.env.TACHO_RUNS ?? 20)
const seconds = Number(process.env.TACHO_SECONDS ?? 60)
/** Name, begin and end of each history to open. */
const histories = (process.env.TACHO_HISTORIES ?? '').split(' ').filter(Boolean).map((one) => one.split(',') as [string, string, string])
const feed = process.env.TACHO_FEED
/** Ticks per second. */
const speed = Number(process.env.TACHO_SPEED ?? 1)
/** Added to each answer, ms: a server far away. */
const latency = Number(process.env.TACHO_LATENCY || 0)
const away = process.env.TACHO_LATENCY ? `, ${latency} ms away` : ''
/** Length of the live window that follows the feed. */
const live = process.env.TACHO_LIVE ?? '15m'

/** Time in ms until a new window of the browser is at rest. */
const SETTLED_MS = 1000

const say = (...cells: (string | number)[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`)
const rank = (all: number[], share: number) => [...all].sort((a, b) => a - b)[Math.min(all.length - 1, Math.ceil(share * all.length) - 1)] ?? NaN
const ms = (value: number) => (value < 9.95 ? value.toFixed(1) : value.toFixed(0))
const mb = (bytes: number) => (bytes / 1e6).toFixed(1)
const resident = (pid: string) => 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN)

declare global {
  interface Window {
    /** Time from navigation until the story and the load were first painted, ms. */
    shown?: number
    /** For each tick: its arrival, and when the load shows it. */
    ticks: { told: number; shown: number }[]
    /** Numbers of ticks, and of answers from which the load was drawn. */
    came: { ticks: number; loads: number }
    whole: () => Promise<number>
  }
}

/** Runs in the page before its own scripts. In a stream of many ticks per second, ticks are only counted. */
function watching(isFast: boolean) {
  const painted = () => new Promise<number>((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()))))
  const isSeen = (element: Element) => {
    const { top, bottom } = element.getBoundingClientRect()
    return bottom > 0 && top < innerHeight
  }
  const busy = () => [...document.querySelectorAll('main [aria-busy="true"], main .waiting')].some(isSeen)
  window.ticks = []
  window.came = { ticks: 0, loads: 0 }
  const isLoad = (one: PerformanceEntry) => /\/timeline\?.*by=/.test(one.name) && (one as PerformanceResourceTiming).responseStatus === 200
  new PerformanceObserver((list) => (window.came.loads += list.getEntries().filter(isLoad).length)).observe({ type: 'resource' })
  // Waits for two frames without a question: the first of them asks what follows an answer.
  window.whole = async () => {
    let last = await painted()
    for (let quiet = 0; quiet < 2; ) {
      const now = await painted()
      if (busy()) quiet = 0
      else if (quiet++ === 0) last = now
    }
    return last
  }
  const look = async () => {
    const story = document.querySelector('main .story strong')
    const load = document.querySelector('main section[aria-labelledby="load-title"] .u-over')
    if (story && load) window.shown = await painted()
    else requestAnimationFrame(() => void look())
  }
  void look()
  const Own = EventSource
  window.EventSource = class extends Own {
    constructor(url: string | URL) {
      super(url)
      this.addEventListener('tick', () => {
        window.came.ticks += 1
        if (isFast) return
        const told = Date.now()
        void window.whole().then(() => window.ticks.push({ told, shown: Date.now() }))
      })
    }
  }
}

async function opened(browser: Browser): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 } })
  await context.request.get(`${address}?token=${token}`)
  const page = await context.newPage()
  if (latency > 0) {
    const network = await context.newCDPSession(page)
    await network.send('Network.enable')
    await network.send('Network.emulateNetworkConditions', { offline: false, latency, downloadThroughput: -1, uploadThroughput: -1 })
  }
  await page.addInitScript(watching, speed > 1)
  // A new window loads the browser's own pages as well: the list below its address bar takes 90 ms of CPU.
  await page.waitForTimeout(SETTLED_MS)
  return page
}
const view = (server: string, since: string, until: string, more = '') => `${address}?server=${server}&since=${since}&until=${until}${more}`

test('paint and bytes', async ({ browser }) => {
  if (histories.length === 0) return
  const foreign = new Set<string>()
  let bytes = 0
  for (const [name, since, until] of histories) {
    const [first, whole]: number[][] = [[], []]
    for (let run = 0; run <= runs; run += 1) {
      const page = await opened(browser)
      page.on('request', (request) => request.url().startsWith(address) || foreign.add(request.url()))
      await page.goto(view(name, since, until))
      await page.waitForFunction(() => window.shown !== undefined)
      const all = await page.evaluate(() => window.whole())
      // The first run fills the server's caches and does not count.
      if (run > 0) (first!.push((await page.evaluate(() => window.shown))!), whole!.push(all))
      bytes = await page.evaluate(() => {
        const own = performance.getEntries().filter((one): one is PerformanceResourceTiming => 'encodedBodySize' in one)
        return own.filter((one) => !one.name.includes('/api/')).reduce((sum, one) => sum + one.encodedBodySize, 0)
      })
      await page.context().close()
    }
    say(`${name}${away}: first meaningful paint`, first!.length, `${ms(rank(first!, 0.5))} ms`, `${ms(rank(first!, 0.95))} ms`, name === 'day' && !away ? '300 ms' : '')
    say(`${name}${away}: all panels, with an empty cache of the browser`, whole!.length, `${ms(rank(whole!, 0.5))} ms`, `${ms(rank(whole!, 0.95))} ms`, '')
  }
  say('page, compressed', 1, `${(bytes / 1e3).toFixed(0)} kB`, '', '300 kB')
  say('requests to others', 1, foreign.size, '', 0)
})

/** Drags over the load: begin and length, as shares of its width. */
async function brushed(page: Page, from: number, share: number): Promise<number> {
  const box = (await page.getByRole('img', { name: /^Load by/ }).locator('.u-over').boundingBox())!
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + from * box.width, y)
  await page.mouse.down()
  await page.mouse.move(box.x + (from + share) * box.width, y, { steps: 3 })
  await page.evaluate(() => {
    const after = new Promise<number>((resolve) =>
      addEventListener('mouseup', (event) => void window.whole().then((end) => resolve(end - event.timeStamp)), { once: true, capture: true }),
    )
    Object.assign(window, { after })
  })
  await page.mouse.up()
  return page.evaluate(() => (window as unknown as { after: Promise<number> }).after)
}

test('brush', async ({ browser }) => {
  if (histories.length === 0) return
  for (const [name, since, until] of histories) {
    const all: number[] = []
    // A year takes long in each run.
    const count = Date.parse(until) - Date.parse(since) > 31 * 86_400_000 ? Math.min(runs, 2) : runs
    for (const tab of away ? TABS.slice(0, 1) : TABS) {
      const page = await opened(browser)
      const took: number[] = []
      for (let run = 0; run <= count; run += 1) {
        await page.goto(view(name, since, until, `&tab=${tab}`))
        await page.waitForFunction(() => window.shown !== undefined)
        // However long that takes.
        await page.evaluate(() => window.whole())
        // Never the same window twice, because answers are kept.
        const value = await brushed(page, 0.05 + (0.6 * run) / count, 0.2 + (0.1 * (run % 3)) / 3)
        if (run > 0) took.push(value)
      }
      all.push(...took)
      say(`${name}${away}: brush, ${tab}`, took.length, `${ms(rank(took, 0.5))} ms`, `${ms(rank(took, 0.95))} ms`, '')
      await page.context().close()
    }
    say(`**${name}${away}: brush → all visible panels**`, all.length, `${ms(rank(all, 0.5))} ms`, `${ms(rank(all, 0.95))} ms`, name === 'day' && !away ? '100, 250 ms' : '')
  }
  say('tacho web, resident after all of the above', 1, `${mb(resident(server))} MB`, '', '')
})

/** Asks about the longest history and lets the clients leave. Measures until the engine has ended
 *  the questions. */
test('cancel', async () => {
  const longest = histories.at(-1)
  if (!longest) return
  const [name, since, until] = longest
  const headers = { Authorization: `Bearer ${token}` }
  const running = async () => Number(/^tacho_web_running (\d+)/m.exec(await (await fetch(`${address}metrics`, { headers })).text())?.[1])
  const becomes = async (wanted: number, over = () => false) => {
    while (!over() && (await running()) !== wanted);
    return performance.now()
  }
  const took: number[] = []
  for (let run = 0; run < runs; run += 1) {
    const stop = new AbortController()
    let answered = false
    const asked = fetch(`${address}api/v1/top?server=${name}&since=${since}&until=${until}&dimension=pid&by=query_id&n=all&pid=!${run + 1}`, { headers, signal: stop.signal })
    const ended = asked.then(() => (answered = true)).catch(() => undefined)
    await becomes(1, () => answered)
    const left = performance.now()
    stop.abort()
    await ended
    if (!answered) took.push((await becomes(0)) - left)
  }
  say('the end of a question after its client has left', took.length, `${ms(rank(took, 0.5))} ms`, `${ms(rank(took, 0.95))} ms`, '50 ms')
})

interface Size {
  heap: number
  nodes: number
  tab: number
  server: number
}

/** Opens the page in a browser without an inspector, and measures the size of its tab: an inspector
 *  keeps 200 MB of answers there. */
function alone(url: string): { tab: () => number; stop: () => Promise<void> } {
  const profile = mkdtempSync(join(tmpdir(), 'tacho-tab-'))
  const args = ['--headless=new', '--no-sandbox', `--user-data-dir=${profile}`, '--window-size=1440,1000', url]
  const child = spawn(process.env.CHROMIUM ?? '/usr/bin/chromium', args, { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const isTab = (pid: string) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return line.includes('--type=renderer') && line.includes(profile)
    } catch {
      return false // it has ended
    }
  }
  const pids = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isTab(name))
  const stop = async () => {
    child.kill()
    await ended
    rmSync(profile, { recursive: true, force: true })
  }
  return { tab: () => Math.max(...pids().map(resident)), stop }
}

async function sizes(cdp: CDPSession, tab: () => number): Promise<Size> {
  await cdp.send('HeapProfiler.collectGarbage')
  const { metrics } = await cdp.send('Performance.getMetrics')
  const value = (name: string) => metrics.find((one) => one.name === name)?.value ?? NaN
  return { heap: value('JSHeapUsedSize'), nodes: value('Nodes'), tab: tab(), server: resident(server) }
}

test('live', async ({ browser }) => {
  if (!feed) return
  const page = await opened(browser)
  const cdp = await page.context().newCDPSession(page)
  const other = alone(`${address}?token=${token}&server=live&live=${live}`)
  await cdp.send('Performance.enable')
  const written: number[] = []
  const watcher = watch(feed, (kind, name) => kind === 'change' && name?.endsWith('.open') && written.push(Date.now()))
  await page.goto(`${address}?server=live&live=${live}`)
  await page.waitForFunction(() => window.shown !== undefined)
  await page.evaluate(() => window.whole())
  while (other.tab() < 0) await page.waitForTimeout(100)
  const parts = 5
  const before: Size[] = [await sizes(cdp, other.tab)]
  for (let part = 0; part < parts; part += 1) {
    await page.waitForTimeout((1000 * seconds) / parts)
    before.push(await sizes(cdp, other.tab))
  }
  await other.stop()
  watcher.close()
  const ticks = await page.evaluate(() => window.ticks)
  const came = await page.evaluate(() => window.came)
  const since = (time: number) => time - (written.findLast((one) => one <= time) ?? NaN)
  const took = ticks.map(({ told, shown }) => since(told) + (shown - told)).filter((value) => !Number.isNaN(value))
  const length = `live ${seconds} s${speed > 1 ? `, ${speed} ticks a second` : ''}, ${live}`
  say(`${length}: ticks that came, loads drawn`, 1, `${came.ticks} ${came.loads}`, '', '')
  if (speed === 1) say('live: from the write of a tick until the load has it', took.length, `${ms(rank(took, 0.5))} ms`, `${ms(rank(took, 0.95))} ms`, '1,200 ms')
  say(`${length}: heap of the page, at first and after each fifth`, 1, before.map(({ heap }) => mb(heap)).join(' ') + ' MB', '', '')
  say(`${length}: nodes of the page`, 1, before.map(({ nodes }) => nodes).join(' '), '', '')
  say(`${length}: process of a tab that is not inspected, resident`, 1, before.map(({ tab }) => mb(tab)).join(' ') + ' MB', '', '300 MB in 24 h')
  say(`${length}: tacho web, resident`, 1, before.map((one) => mb(one.server)).join(' ') + ' MB', '', '150 MB in 24 h')
  await page.context().close()
})
