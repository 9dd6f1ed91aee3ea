import { defineConfig } from '@playwright/test'
import tests from '../playwright.config'

// Against the incidents that demo/incidents.sh has played. The server answers while the demo still records.
export default defineConfig({ ...tests, testDir: '.', testMatch: 'solved.ts', globalSetup: undefined, expect: { timeout: 90_000 }, reporter: [['./count.ts']], use: { ...tests.use, timezoneId: 'UTC' } })
