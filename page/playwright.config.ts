import { defineConfig } from '@playwright/test'

// Debian's browser; the root user of a container has no sandbox to give.
export default defineConfig({
  testDir: 'e2e',
  testMatch: '*.e2e.ts',
  globalSetup: './e2e/setup.ts',
  fullyParallel: true,
  forbidOnly: true,
  workers: 2,
  // as tools/pool.sh
  retries: Number(process.env.TACHO_TRIES ?? 1) - 1,
  timeout: 240_000,
  expect: { timeout: 15_000 },
  reporter: [['./e2e/count.ts']],
  use: {
    launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
    timezoneId: 'America/New_York',
    locale: 'en-GB',
    trace: 'off',
  },
})
