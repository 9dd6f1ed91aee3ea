// Each incident of demo/incidents is solved on the page in two clicks at most
// (SOURCES=incidents tools/test-page.sh).

import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { CLICKS, INCIDENTS, played, solve, telling } from './incidents'
import { test } from './demo'
import { expect } from './web'

const demo = process.env.TACHO_DEMO!
const times = played(demo)
const scripts = join(import.meta.dirname, '../../demo/incidents')

test('no selector names a cause, and one that does is found', () => {
  for (const selector of Object.values(CLICKS)) expect(telling(selector), selector).toEqual([])
  expect(telling('button[title="orders_customer"]')).toEqual(['orders', 'customer'])
  expect(telling('[role=tab][title="warehouse"]')).toEqual(['warehouse'])
})

test('every incident of the demo is solved here', () => {
  const files = readdirSync(scripts).map((name) => name.replace('.sh', ''))
  expect(Object.keys(INCIDENTS).sort()).toEqual(files.sort())
  for (const name of files) expect(readFileSync(join(scripts, `${name}.sh`), 'utf8')).toContain('trouble()')
})

for (const [name, incident] of Object.entries(INCIDENTS)) {
  test(`${name} is solved`, async ({ page }) => {
    expect(incident.clicks.length).toBeLessThanOrEqual(2)
    const when = times.get(name)
    expect(when, `${name} was not played`).toBeDefined()
    await solve(page, when!, incident)
  })
}
