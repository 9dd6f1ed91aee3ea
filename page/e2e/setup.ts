// Runs before all tests: makes histories, and starts one `tacho web` that answers for them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tapes } from './tape'
import { start } from './web'

export default async function setup() {
  const directory = mkdtempSync(join(tmpdir(), 'tacho-page-'))
  const token = join(directory, 'token')
  writeFileSync(token, 'of-all-tests-of-the-page\n', { mode: 0o600 })
  const all = tapes(join(directory, 'tapes'))
  const named = Object.entries(all).flatMap(([name, tape]) => ['--tape', `${name}=${tape}`])
  const web = await start([...named, '--token-file', token])
  process.env.TACHO_WEB = web.address
  process.env.TACHO_TAPES = join(directory, 'tapes')
  return async () => {
    await web.stop()
    rmSync(directory, { recursive: true })
  }
}
