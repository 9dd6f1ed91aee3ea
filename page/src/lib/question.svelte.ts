// A question that follows what it depends on. One runs at a time. When it is finished,
// the newest one follows. An answer stays on the screen until the next one is there.

import { untrack } from 'svelte'
import { type Answer, type Asked, Problem, address, api } from './api'
import { place } from './place.svelte'
import { SECOND } from './time'

/** An answer to another question than the newest is dimmed after this time. */
const PATIENCE = SECOND
/** A live answer that is only some ticks old is dimmed later: it is not wrong. */
const LIVE_PATIENCE = 5 * SECOND

/** Questions with one picture. The next ones begin when all of them are finished: their
 *  answers are of one window, although each takes its own time. */
export class Together {
  #running = 0
  #waiting: (() => void)[] = []

  begin() {
    this.#running += 1
  }

  /** One is answered; resolves when all are. */
  async end(): Promise<void> {
    this.#running -= 1
    if (this.#running > 0) return new Promise((resolve) => this.#waiting.push(resolve))
    for (const go of this.#waiting.splice(0)) go()
  }
}

interface Options {
  /** An answer that no longer fits the rest of the screen is hidden until the next one. */
  fits?: (answered: Asked) => boolean
  /** A question whose panel is not seen waits until no other runs. */
  seen?: () => boolean
  together?: Together
}

export class Question {
  #answer: Answer | null = $state.raw(null)
  #answered: Asked | null = $state.raw(null)
  problem: Problem | null = $state.raw(null)
  loading = $state(false)
  /** The answer on the screen has been waiting for the next one for long. */
  stale = $state(false)
  #again = $state(0)
  #fits: (answered: Asked) => boolean
  #seen: () => boolean
  #together: Together
  /** The address of the question that runs, and the one to ask after it. */
  #runs: string | null = null
  #next: Asked | null = null
  #stop: AbortController | null = null
  /** The subject of the page when the running question began, and when the answered one did. */
  #about = ''
  #answeredAbout = ''
  #dims: ReturnType<typeof setTimeout> | undefined

  /** Null asks nothing. Call it where components begin. */
  constructor(asked: () => Asked | null, { fits = () => true, seen = () => true, together = new Together() }: Options = {}) {
    this.#fits = fits
    this.#seen = seen
    this.#together = together
    const now = $derived(asked())
    const url = $derived(now ? address(now) : null)
    $effect(() => {
      void [this.#again, place.turn]
      // The text, not the object, says whether it is another question.
      const question = url === null ? null : untrack(() => now)
      untrack(() => this.#want(question))
    })
    $effect(() => () => this.#end())
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

  /** Only a page about something else gives up the question that runs. */
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
