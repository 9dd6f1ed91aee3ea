// A growing history, and its page.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { record } from './tape'
import { TOKEN, type Web, settled, start, test as base } from './web'

export interface Shop {
  web: Web
  /** Records the last finished second, with `load` sessions at work. */
  tick: (load: number, head?: number) => number
  /** The writer waits for space since the last tick. */
  pause: () => void
  /** Stops the server, and starts it again on the same port. */
  away: (meanwhile: () => Promise<void>) => Promise<void>
}

/** The page follows the history live, with a window of five minutes. */
export const test = base.extend<{ shop: Shop }>({
  shop: async ({ page, context }, use) => {
    const directory = mkdtempSync(join(tmpdir(), 'tacho-page-live-'))
    const [tape, token] = [join(directory, 'shop'), join(directory, 'token')]
    writeFileSync(token, `${TOKEN}\n`, { mode: 0o600 })
    const args = ['--tape', tape, '--token-file', token]
    let last = Math.floor(Date.now() / 1000) * 1000 - 3000
    record(directory, tape, last, 60, 2)
    let web = await start(args)
    const known = () => context.request.get(`${web.address}?token=${TOKEN}`)
    const tick = (load: number, head?: number) => {
      last = Math.max(last + 1000, Math.floor(Date.now() / 1000) * 1000 - 1000)
      record(directory, tape, last, 1, load, head)
      return last
    }
    const pause = () => writeFileSync(join(tape, `paused-${last}`), '')
    const away = async (meanwhile: () => Promise<void>) => {
      await web.stop()
      await meanwhile()
      web = await start(args, new URL(web.address).host)
      await known()
    }
    await known()
    await page.goto(`${web.address}?live=5m`)
    await settled(page)
    await use({ web, tick, pause, away })
    await web.stop()
    rmSync(directory, { recursive: true })
  },
})
