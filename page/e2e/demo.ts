// The page of the demo (make demo), whose directory is TACHO_DEMO.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { start, test as base } from './web'

const demo = process.env.TACHO_DEMO!

export const test = base.extend<object, { address: string }>({
  address: [
    async ({}, use) => {
      const web = await start(['--tape', `shop=${join(demo, 'data/tacho')}`, '--token-file', join(demo, 'token')])
      await use(web.address)
      await web.stop()
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ address }, use) => use(address),
  known: async ({ context, address }, use) => {
    const token = readFileSync(join(demo, 'token'), 'utf8').trim()
    await context.request.get(`${address}?token=${token}`)
    await use()
  },
})
