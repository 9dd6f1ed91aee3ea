// The page of a history that one test makes for itself.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cell, imported } from './tape'
import { TOKEN, type Web, start, test as base } from './web'

type Rows = Record<string, Cell>[]

/** Makes a history called `own`; addresses of the page are of it from then on. */
export const test = base.extend<{ history: (sessions: Rows, others?: Record<string, Rows>) => Promise<(search: string) => string> }>({
  history: async ({ context }, use) => {
    const directory = mkdtempSync(join(tmpdir(), 'tacho-page-own-'))
    let web: Web | null = null
    await use(async (sessions, others = {}) => {
      const token = join(directory, 'token')
      writeFileSync(token, `${TOKEN}\n`, { mode: 0o600 })
      web = await start(['--tape', `own=${imported(directory, 'own', sessions, others)}`, '--token-file', token])
      const { address } = web
      await context.request.get(`${address}?token=${TOKEN}`)
      return (search) => `${address}?${search}`
    })
    await (web as Web | null)?.stop()
    rmSync(directory, { recursive: true })
  },
})
