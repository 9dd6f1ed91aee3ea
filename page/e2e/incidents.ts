// The incidents of demo/incidents, solved on the page by somebody on call who does not know what
// was played: the clicks, and what is read before and after them.

import type { Page } from '@playwright/test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, settled } from './web'

/** All that somebody on call may click: the first of each. A name here is of the page, never of an incident. */
export const CLICKS = {
  headline: '.headline button',
  /** The link of the sentence on top. */
  next: '.story .next button',
  alarm: '.alarms button',
  change: '.findings li button',
  row: '[role=tabpanel] tbody button',
  flag: '.flags button',
} as const
export type Click = keyof typeof CLICKS

export interface Incident {
  clicks: Click[]
  /** Read in the headline, the sentence and the lines below, before any click. */
  first: RegExp[]
  /** Read in the panel after the last click. */
  then: RegExp[]
  /** True if the headline says when the incident began. */
  told?: boolean
  /** The picture of the guide: after how many clicks (all), and its height in pixels (1000). */
  picture?: { after?: number; height?: number }
}

export const INCIDENTS: Record<string, Incident> = {
  'plan-change': {
    clicks: ['headline'],
    first: [/DROP INDEX (public\.)?orders_customer on (public\.)?orders, .*application deployment/, /"select id, item_id, ordered_at from orders where customer/],
    then: [/where customer = \$1/, /order history/],
    told: true,
    picture: { height: 1380 },
  },
  'lock-storm': {
    clicks: ['headline'],
    first: [/process \d+ \(stock import, idle in transaction\) block(s|ed up to) 2\d sessions/],
    then: [/■ \d+ stock import idle in transaction, .* 2\d wait .*update item set qty = \$1 where id = \$2/],
    told: true,
  },
  'ddl-queue': {
    clicks: ['headline'],
    first: [/process \d+ \(nightly report, active\) block(s|ed up to) \d\d sessions/, /ALTER TABLE (public\.)?orders, .*application deployment/],
    then: [/■ \d+ nightly report active.* pg_sleep.* └ \d+ deployment waits .*alter table orders add column if not exists channel text/],
    told: true,
  },
  'bulk-load': {
    clicks: ['headline'],
    first: [/clients began to run "copy import_line from stdin"/, /\d forced checkpoints/],
    then: [/copy import_line from stdin/, /supplier load/],
    told: true,
    picture: { after: 0 },
  },
  'connection-storm': {
    clicks: ['headline'],
    first: [/client connections rose from \d+\.\d+ to \d\d+\.\d+/, /up to \d\d+ new sessions per second/],
    then: [/where id in \(\$1/, /mobile app/],
    told: true,
    picture: { after: 0 },
  },
  'lock-manager': {
    clicks: ['headline'],
    first: [/clients began to run "select max\(value\) from reading where sensor = \$1"/],
    then: [/LWLock:LockManager/, /sensor page/],
    told: true,
  },
  'temp-spill': {
    clicks: ['headline'],
    first: [/clients began to run "select max\(place\) from/, /[MG]B of temporary files/],
    then: [/row_number\(\) over \(order by note/, /month end/],
    told: true,
    picture: { after: 0 },
  },
  'endless-query': {
    clicks: ['headline'],
    first: [/clients began to run "select count\(\*\) from orders as a, orders as b/],
    then: [/Running since \d\d:\d\d:\d\d, for \d\d(\.\d)? s: process \d+/, /sales report/],
    told: true,
  },
  'idle-slot': {
    clicks: ['alarm'],
    first: [/slot warehouse, which no process uses, keeps \d+ MB of log/],
    then: [/Log kept for slots/],
  },
  errors: {
    clicks: ['headline'],
    first: [/process \d+ \(queue worker\) and others wait(ed)? for each other, a deadlock/, /\d\d deadlocks/, /insert into signup values/],
    then: [/queue worker in a deadlock .*update item set qty = qty - \$1 where id = \$2/],
    told: true,
    picture: { height: 1180 },
  },
  'frozen-standby': {
    clicks: ['next'],
    first: [/IPC:SyncRep: waiting for a standby to confirm the commit/],
    then: [/Log behind: second/],
  },
  'io-saturation': {
    clicks: ['headline'],
    first: [/clients began to run "select count\(\*\) as orders/],
    then: [/IO:DataFileRead/, /export/],
    told: true,
  },
}

/** Words of three letters or more, in small letters. */
const words = (text: string) => text.toLowerCase().match(/[a-z]{3,}/g) ?? []
/** Words of incidents in a selector: with one of them a click is no longer blind. */
export function telling(selector: string): string[] {
  const known = Object.entries(INCIDENTS).flatMap(([name, { first, then }]) => words([name, ...[...first, ...then].map(({ source }) => source)].join(' ')))
  return words(selector).filter((word) => known.includes(word))
}

export interface Played {
  since: string
  until: string
}

/** Times of the last play of each incident, by name, from .demo/incidents. */
export function played(demo: string): Map<string, Played> {
  const file = join(demo, 'incidents')
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  return new Map(lines.map((line) => line.split(' ') as [string, string, string, string]).map(([name, , since, until]) => [name, { since, until }]))
}

const plain = (text: string) => text.replace(/\s+/g, ' ')

/** Opens the page at the time of an incident and solves it. `look` is called before each click and at the end. */
export async function solve(page: Page, { since, until }: Played, { clicks, first, then, told }: Incident, look: (done: number) => Promise<unknown> = async () => {}) {
  await page.goto(`?server=shop&since=${since}&until=${until}`)
  await settled(page)
  const seen = plain(await page.locator('main').innerText())
  for (const text of first) expect(seen).toMatch(text)
  if (told) {
    const [time] = /\d\d:\d\d:\d\d/.exec(await page.locator('.headline').innerText())!
    const late = (Date.parse(`${since.slice(0, 10)}T${time}Z`) - Date.parse(since)) / 1000
    expect(Math.abs(late), `${time} is near ${since}`).toBeLessThanOrEqual(6)
  }
  for (const [done, click] of clicks.entries()) {
    await look(done)
    await page.locator(CLICKS[click]).first().click()
    await settled(page)
  }
  const panel = page.getByRole('tabpanel')
  for (const text of then) await expect.poll(async () => plain(await panel.innerText())).toMatch(text)
  await look(clicks.length)
}
