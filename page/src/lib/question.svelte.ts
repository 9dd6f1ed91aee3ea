// A question that follows what it depends on: the newest is asked, the one
// before is given up, its answer stays on the screen until the new one is there.

import { untrack } from 'svelte'
import { type Answer, type Asked, Problem, address, api } from './api'

export class Question {
  #answer: Answer | null = $state.raw(null)
  #answered: Asked | null = $state.raw(null)
  problem: Problem | null = $state.raw(null)
  loading = $state(false)
  #again = $state(0)
  #fits: (answered: Asked) => boolean
  #seen: () => boolean

  /** Null asks nothing. What no longer fits what else is on the screen is not
   *  shown while the new one is asked, nor when that fails. Call it where
   *  components begin. What is not `seen` is asked when nothing else is. */
  constructor(asked: () => Asked | null, fits: (answered: Asked) => boolean = () => true, seen: () => boolean = () => true) {
    this.#fits = fits
    this.#seen = seen
    const now = $derived(asked())
    const url = $derived(now ? address(now) : null)
    $effect(() => {
      void this.#again
      // The text, not the object, says whether it is another question.
      const question = url === null ? null : untrack(() => now)
      if (!question) return this.#clear()
      const stop = new AbortController()
      void this.#ask(question, stop.signal)
      return () => stop.abort()
    })
  }

  /** What the answer on the screen is of. */
  get answered(): Asked | null {
    const answered = this.#answered
    return answered && this.#fits(answered) ? answered : null
  }

  get answer(): Answer | null {
    return this.answered && this.#answer
  }

  retry = () => (this.#again += 1)

  #clear() {
    this.#answer = this.#answered = this.problem = null
    this.loading = false
  }

  async #ask(asked: Asked, signal: AbortSignal) {
    this.loading = true
    try {
      const answer = api.kept(asked) ?? (await api.ask(asked, signal, { seen: this.#seen }))
      if (signal.aborted) return
      this.#answer = answer
      this.#answered = asked
      this.problem = null
    } catch (error) {
      if (signal.aborted) return
      this.problem = error instanceof Problem ? error : new Problem(0, String(error))
    }
    this.loading = false
  }
}
