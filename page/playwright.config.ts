import { defineConfig } from '@playwright/test'
import { join } from 'node:path'

// Debian's browser; the root user of a container has no sandbox to give.
export default defineConfig({
  testDir: 'e2e',
  testMatch: '*.e2e.ts',
  globalSetup: './e2e/setup.ts',
  fullyParallel: true,
  forbidOnly: true,
  workers: 2,
  // As in tools/pool.sh.
  retries: Number(process.env.TACHO_TRIES ?? 1) - 1,
  timeout: 240_000,
  expect: {
    timeout: 15_000,
    // Allows a few edges of letters to differ, but no word.
    toHaveScreenshot: { threshold: 0.2, maxDiffPixels: 100, animations: 'disabled' },
  },
  // One set of pictures for all machines.
  snapshotPathTemplate: '{testDir}/looks/{arg}{ext}',
  updateSnapshots: 'none',
  reporter: [['./e2e/count.ts']],
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox'],
      // The same fonts on every machine.
      env: { ...process.env, FONTCONFIG_FILE: join(import.meta.dirname, 'e2e/looks/fonts.conf') },
    },
    timezoneId: 'America/New_York',
    locale: 'en-GB',
    trace: 'off',
  },
})
