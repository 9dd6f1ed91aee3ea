// A `tacho web`, and the common parts of tests: the token, the window, and checks that hold for every page.

import { type Page, test as base, expect } from '@playwright/test'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { LENGTH, at, program } from './tape'

export { expect }

/** The token in the file that setup.ts writes. */
export const TOKEN = 'of-all-tests-of-the-page'

export interface Web {
  address: string
  process: ChildProcess
  stop: () => Promise<void>
}

/** Starts one by a command, on a free port unless `listen` names one. */
export async function start(args: string[], listen = '127.0.0.1:0', command = [program('tacho-web')]): Promise<Web> {
  const child = spawn(command[0]!, [...command.slice(1), ...args, '--listen', listen], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout!).once('line', resolve)
    child.once('error', reject)
    void ended.then(() => reject(new Error('tacho web has ended')))
  })
  const stop = () => (child.kill('SIGKILL'), ended)
  return { address: line, process: child, stop }
}

/** Addresses of the tests' servers, which listen on this host only. */
const OWN = /^(http:\/\/127\.0\.0\.1:\d+\/|blob:)/

interface Seen {
  /** Requests of the page to others, and errors in the page. */
  trouble: string[]
}

export const test = base.extend<{ seen: Seen; known: void }>({
  baseURL: async ({}, use) => use(process.env.TACHO_WEB!.replace(/\?.*/, '')),
  known: [
    async ({ context, baseURL }, use) => {
      await context.request.get(`${baseURL}?token=${TOKEN}`)
      await use()
    },
    { auto: true },
  ],
  seen: [
    async ({ page }, use) => {
      const trouble: string[] = []
      page.on('request', (request) => {
        const url = request.url()
        if (!OWN.test(url)) trouble.push(`asks ${url}`)
      })
      page.on('pageerror', (error) => trouble.push(String(error)))
      page.on('dialog', (dialog) => (trouble.push(`dialog ${dialog.message()}`), void dialog.dismiss()))
      page.on('console', (message) => {
        if (/Content.Security.Policy/i.test(message.text())) trouble.push(message.text())
      })
      await use({ trouble })
      expect(trouble).toEqual([])
    },
    { auto: true },
  ],
})

export { TABS } from '../src/lib/view'
/** The whole history. */
export const WHOLE = { since: at(0), until: at(LENGTH) }

/** The address of a view of a server, with its whole history unless `more` says otherwise. */
export function view(server: string, more: Record<string, string> = {}): string {
  return `?${new URLSearchParams({ server, ...WHOLE, ...more })}`.replaceAll('%3A', ':')
}

/** Waits until every answer is there, also on a busy machine. */
export async function settled(page: Page) {
  await expect(page.locator('main .story')).toBeVisible()
  await expect(page.locator('.waiting, [aria-busy="true"]')).toHaveCount(0, { timeout: 60_000 })
}

export async function open(page: Page, server: string, more: Record<string, string> = {}) {
  await page.goto(view(server, more))
  await settled(page)
}
