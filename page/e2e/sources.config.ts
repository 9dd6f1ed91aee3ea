import { defineConfig } from '@playwright/test'
import tests from '../playwright.config'

// The page on connections (make test-page SOURCES=dsn), with a server of its own.
export default defineConfig({ ...tests, testDir: '.', testMatch: 'sources.ts', globalSetup: './setup.ts', reporter: [['./count.ts']], workers: 1, fullyParallel: false })
