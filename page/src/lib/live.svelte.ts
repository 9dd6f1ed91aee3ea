// What is recorded at this moment, as the server tells it. A connection that
// breaks is made again and goes on behind the last tick.

import { api } from './api'
import { place } from './place.svelte'
import { servers } from './servers.svelte'
import { SECOND } from './time'

/** A second of a history. */
export interface Tick {
  end: number
  load: number
}
interface Health {
  state: 'recording' | 'late' | 'paused' | 'failed' | 'empty' | 'missing' | 'refused' | 'unreachable'
  last_tick_age_s: number | null
  paused_since: string | null
  message?: string
  hint?: string
}

/** Until a server that refused is asked again; one that is gone, the browser asks. */
const AGAIN = 2 * SECOND

class Live {
  tick: Tick | null = $state.raw(null)
  health: Health | null = $state.raw(null)
  /** Nobody tells anything at this moment. */
  lost = $state(false)
  /** The newest that came, which is shown once no more of the same moment is told: after a
   *  while away, ten minutes come at once. */
  #newest: Tick | null = null
  #soon: ReturnType<typeof setTimeout> | undefined

  constructor() {
    document.addEventListener('visibilitychange', () => this.#move())
  }

  /** Listens to a server until the function that it returns is called. */
  follow(server: string): () => void {
    let source: EventSource
    let again: ReturnType<typeof setTimeout> | undefined
    this.tick = this.health = this.#newest = null
    this.lost = false
    const open = () => {
      const from = new URLSearchParams({ server })
      if (this.tick) from.set('since', new Date(this.tick.end).toISOString())
      source = new EventSource(`api/v1/live?${from}`)
      source.onopen = () => (this.lost = false)
      source.onerror = () => {
        this.lost = true
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN)
      }
      source.addEventListener('tick', ({ data }) => this.#ticked(JSON.parse(data)))
      source.addEventListener('health', ({ data }) => this.#told(JSON.parse(data)))
      source.addEventListener('reset', () => this.#move(api.now()))
    }
    open()
    return () => {
      clearTimeout(again)
      clearTimeout(this.#soon)
      this.#soon = undefined
      source.close()
    }
  }

  #ticked(said: { period_end: string; avg_aas: number }) {
    this.#newest = { end: Date.parse(said.period_end), load: said.avg_aas }
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.tick = this.#newest
      this.#move()
    })
  }

  #told(health: Health) {
    this.health = health
    // Without ticks time goes on all the same, and is a gap.
    if (health.state !== 'recording') this.#move(api.now())
  }

  /** The window ends with the newest tick; nobody looks at one that is hidden. */
  #move(to = this.tick?.end) {
    if (document.hidden || to === undefined) return
    if (this.tick) servers.recorded(this.tick.end)
    place.beat(to)
  }
}

export const live = new Live()
