import { defineConfig } from '@playwright/test'
import tests from '../playwright.config'

// Measurements for bench/web.sh, not tests.
export default defineConfig({
  ...tests,
  testDir: '.',
  testMatch: 'budget.ts',
  globalSetup: undefined,
  reporter: [['./budget.report.ts']],
  workers: 1,
  timeout: 0,
  retries: 0,
})
