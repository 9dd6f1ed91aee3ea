// A question that follows its arguments. One runs at a time. When it is finished, the newest one
// follows. An answer stays on the screen until the next one is there.

import { untrack } from 'svelte'
import { type Answer, type Asked, Problem, address, api } from './api'
import { place } from './place.svelte'
import { SECOND } from './time'

/** An answer to an outdated question is dimmed after this many ms. */
const PATIENCE = SECOND
/** An answer of a live window is only some ticks old and not wrong, so it is dimmed later. */
const LIVE_PATIENCE = 5 * SECOND

/** Questions of one picture whose answers must be about the same window. The next questions
 *  begin when all of them are finished, although each takes its own time. */
export class Together {
  #running = 0
  #waiting: (() => void)[] = []

  begin() {
    this.#running += 1
  }

  /** Called when one of the questions is answered; resolves when all are. */
  async end(): Promise<void> {
    this.#running -= 1
    if (this.#running > 0) return new Promise((resolve) => this.#waiting.push(resolve))
    for (const go of this.#waiting.splice(0)) go()
  }
}

interface Options {
  /** True if an answer belongs to what the rest of the screen shows, for example the same window.
   *  Otherwise the answer is hidden until the question is answered again. */
  fits?: (answered: Asked) => boolean
  /** True if the panel is visible. Otherwise its question waits until no other one runs. */
  seen?: () => boolean
  together?: Together
}

export class Question {
  #answer: Answer | null = $state.raw(null)
  #answered: Asked | null = $state.raw(null)
  problem: Problem | null = $state.raw(null)
  loading = $state(false)
  /** True if the answer on the screen is outdated and the next one takes long. */
  stale = $state(false)
  #again = $state(0)
  #fits: (answered: Asked) => boolean
  #seen: () => boolean
  #together: Together
  /** The address of the running question, and the next question. */
  #runs: string | null = null
  #next: Asked | null = null
  #stop: AbortController | null = null
  /** `about` of the page (its subject) when the running question began, and when the answered one
   *  began. */
  #about = ''
  #answeredAbout = ''
  #dims: ReturnType<typeof setTimeout> | undefined

  /** Null asks nothing. Must be called at the begin of a component. */
  constructor(asked: () => Asked | null, { fits = () => true, seen = () => true, together = new Together() }: Options = {}) {
    this.#fits = fits
    this.#seen = seen
    this.#together = together
    const now = $derived(asked())
    const url = $derived(now ? address(now) : null)
    $effect(() => {
      void [this.#again, place.turn]
      // Questions are compared by their addresses, not as objects.
      const question = url === null ? null : untrack(() => now)
      untrack(() => this.#want(question))
    })
    $effect(() => () => this.#end())
  }

  /** The question of the answer on the screen. */
  get answered(): Asked | null {
    const answered = this.#answered
    return answered && this.#fits(answered) ? answered : null
  }

  get answer(): Answer | null {
    return this.answered && this.#answer
  }

  retry = () => (this.#again += 1)

  /** Gives up the running question only if the subject of the page has changed. */
  #want(asked: Asked | null) {
    if (!asked) return this.#clear()
    if (this.#stop && this.#about === place.about && !api.kept(asked)) {
      this.#next = address(asked) === this.#runs ? null : asked
      return
    }
    this.#stop?.abort()
    this.#stop = new AbortController()
    this.#about = place.about
    this.loading = true
    void this.#run(asked, this.#stop.signal)
  }

  async #run(first: Asked, signal: AbortSignal) {
    for (let asked: Asked | null = first; asked; asked = this.#next) {
      this.#runs = address(asked)
      this.#next = null
      this.#dimLater()
      this.#together.begin()
      await this.#ask(asked, signal)
      await this.#together.end()
      if (signal.aborted) return
    }
    this.#end()
  }

  #dimLater() {
    const follows = place.view.live !== null && this.#about === this.#answeredAbout
    clearTimeout(this.#dims)
    this.#dims = setTimeout(() => (this.stale = true), follows ? LIVE_PATIENCE : PATIENCE)
  }

  #end() {
    clearTimeout(this.#dims)
    this.#stop?.abort()
    this.#stop = this.#next = this.#runs = null
    this.loading = this.stale = false
  }

  #clear() {
    this.#end()
    this.#answer = this.#answered = this.problem = null
  }

  async #ask(asked: Asked, signal: AbortSignal) {
    try {
      const answer = api.kept(asked) ?? (await api.ask(asked, signal, { seen: this.#seen }))
      if (signal.aborted) return
      this.#answer = answer
      this.#answered = asked
      this.#answeredAbout = this.#about
      this.problem = null
    } catch (error) {
      if (signal.aborted) return
      this.problem = error instanceof Problem ? error : new Problem(0, String(error))
    }
    clearTimeout(this.#dims)
    this.stale = false
  }
}
