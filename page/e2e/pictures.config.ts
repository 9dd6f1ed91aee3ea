import { defineConfig } from '@playwright/test'
import tests from '../playwright.config'

// Pictures for the documentation, not tests (tools/screenshots.sh).
export default defineConfig({ ...tests, testDir: '.', testMatch: 'pictures.ts', globalSetup: undefined, reporter: 'list', workers: 1 })
