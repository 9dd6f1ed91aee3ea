// Prints the output of budget.ts unchanged, and failures to the other output.

import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter'

export default class Lines implements Reporter {
  printsToStdio = () => true

  onStdOut(chunk: string | Buffer) {
    process.stdout.write(chunk)
  }

  onTestEnd(test: TestCase, result: TestResult) {
    for (const error of result.errors) console.error(`error: ${test.title}: ${error.stack ?? error.message ?? ''}`)
  }

  onError(error: { message?: string }) {
    console.error(`error: ${error.message ?? ''}`)
  }
}
