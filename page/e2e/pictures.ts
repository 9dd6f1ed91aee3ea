// Pictures of the demo's storm for the documentation: tools/screenshots.sh.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { settled, start, test as base } from './web'

const demo = process.env.TACHO_DEMO!
const [since, until] = readFileSync(join(demo, 'load'), 'utf8').trim().split(' ')

const test = base.extend<object, { address: string }>({
  address: [
    async ({}, use) => {
      const web = await start(['--tape', `shop=${join(demo, 'data/tacho')}`, '--token-file', join(demo, 'token')])
      await use(web.address)
      await web.stop()
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ address }, use) => use(address),
  known: [
    async ({ context, address }, use) => {
      const token = readFileSync(join(demo, 'token'), 'utf8').trim()
      await context.request.get(`${address}?token=${token}`)
      await use()
    },
    { auto: true },
  ],
})

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
