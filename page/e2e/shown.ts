// For tests that compare numbers on the page with the answers of `tacho` about the same history:
// reads both.

import { type Locator } from '@playwright/test'
import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import { program } from './tape'
import { expect } from './web'

export type Row = Record<string, string | number | boolean | null>

/** The output of a command line about the history of a server. */
export function printed(line: string, server = 'shop'): string {
  const environment = { ...process.env, TZ: 'UTC', PATH: `${dirname(program('tacho'))}:${process.env.PATH}` }
  return execFileSync('bash', ['-c', `${line} --tape "$1"`, 'bash', `${process.env.TACHO_TAPES}/${server}`], {
    encoding: 'utf8',
    env: environment,
    maxBuffer: 1 << 28,
  })
}

/** The rows of the answer in JSON. */
export const said = (line: string, server = 'shop') => JSON.parse(printed(`${line} --json`, server)) as Row[]

export const UNITS: Record<string, number> = {
  ...{ 'µs': 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400 },
  ...{ B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, k: 1e3, M: 1e6, '%': 1, '/s': 1, '': 1 },
}

/** Checks that a shown figure is a value, in seconds or bytes, rounded. */
export function same(shown: string | null, value: unknown, what: string) {
  const text = (shown ?? '').trim()
  if (value === null) return expect(text, what).toMatch(/^(–|)$/)
  const found = /^(<?)([\d,]+(?:\.(\d+))?)\s*(\D*)$/.exec(text)
  expect(found, `${what}: ${text}`).not.toBeNull()
  const [, below, digits, decimals = '', unit = ''] = found!
  const scale = UNITS[unit.trim()]
  expect(scale, `${what}: unit of ${text}`).toBeDefined()
  const [number, own] = [Number(digits!.replaceAll(',', '')), Number(value) / scale!]
  if (below) return expect(own, what).toBeLessThan(number)
  expect(Math.abs(number - own), `${what}: ${text} is ${own}`).toBeLessThanOrEqual(0.5000001 * 10 ** -decimals.length)
}

/** Opens the table behind a picture. Its rows appear a moment after the click. */
export const asTable = async (picture: Locator): Promise<void> => {
  await picture.getByText('As a table').click()
  await picture.getByRole('region', { name: /as a table$/ }).locator('tbody tr').first().waitFor()
}

export const cells = async (table: Locator): Promise<string[][]> =>
  table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((one) => one.textContent!.trim())))
