// Pictures for the documentation (tools/screenshots.sh): the demo's storm, and the guide's
// incidents after the clicks that lead to their causes.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from './demo'
import { INCIDENTS, played, solve } from './incidents'
import { settled } from './web'

const demo = process.env.TACHO_DEMO!
const [since, until] = readFileSync(join(demo, 'load'), 'utf8').trim().split(' ')

const PICTURES = { queries: { height: 900 }, locks: { height: 900 }, sessions: { height: 1000 } } as const

for (const colorScheme of ['light', 'dark'] as const) {
  for (const [tab, { height }] of Object.entries(PICTURES)) {
    test.describe(`${tab}, ${colorScheme}`, () => {
      test.use({ colorScheme, viewport: { width: 1280, height } })
      test(`picture of ${tab}, ${colorScheme}`, async ({ page }) => {
        await page.goto(`?server=shop&since=${since}&until=${until}&tab=${tab}`)
        await settled(page)
        await page.screenshot({ path: `../docs/pictures/${tab}-${colorScheme}.png`, animations: 'disabled' })
      })
    })
  }
}

const times = played(demo)
for (const [name, incident] of Object.entries(INCIDENTS)) {
  const when = times.get(name)
  if (!when) continue
  const { after = incident.clicks.length, height = 1000 } = incident.picture ?? {}
  test.describe(name, () => {
    test.use({ viewport: { width: 1280, height } })
    test(`picture of ${name}`, async ({ page }) => {
      await solve(page, when, incident, async (done) => {
        if (done === after) await page.screenshot({ path: `../docs/pictures/${name}.png`, animations: 'disabled' })
      })
    })
  })
}
