// Prints the failures and, on the last line, the counts: "N passed, N failed".

import type { FullResult, Reporter, Suite, TestCase, TestResult } from '@playwright/test/reporter'

const plain = (text: string) => text.replaceAll(/\x1b\[[0-9;]*m/g, '')

export default class Count implements Reporter {
  #root: Suite | undefined

  printsToStdio = () => true

  onBegin(_config: unknown, suite: Suite) {
    this.#root = suite
  }

  onTestEnd(test: TestCase, result: TestResult) {
    if (result.status === test.expectedStatus) return
    const name = `${test.parent.title} ${test.title} (${test.location.file}:${test.location.line})`
    console.log(result.retry < test.retries ? `UNSTEADY ${name}: failed, and is run once more` : `not ok ${name}`)
    for (const error of result.errors) console.log(plain(error.stack ?? error.message ?? error.value ?? ''))
  }

  onError(error: { message?: string; stack?: string }) {
    console.log(`error: ${plain(error.stack ?? error.message ?? '')}`)
  }

  onEnd(result: FullResult) {
    const all = this.#root?.allTests() ?? []
    const bad = all.filter((test) => !test.ok() || test.outcome() === 'skipped').length
    const failed = bad === 0 && result.status !== 'passed' ? 1 : bad
    console.log(`${all.length - bad} passed, ${failed} failed`)
  }
}
