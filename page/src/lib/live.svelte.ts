// Live events of the server. A broken connection is opened again, and continues after the last tick.

import { api } from './api'
import { place } from './place.svelte'
import { servers } from './servers.svelte'
import { type Zone, MINUTE, SECOND, clock, duration } from './time'

/** The newest second of a history. */
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

/** A stream without an event for this many ms is silent: the server sends its health every ten
 *  seconds. */
export const SILENCE = 15 * SECOND
/** After a silent stream was replaced, each further stream without an event is replaced after
 *  this many ms. The browser may have put it on another connection that hangs. */
const HANGS = 5 * SECOND
const UNKNOWN = 5 * SECOND
/** Pause in ms before the next attempt after a refusal of the server. If the server is gone, the
 *  browser repeats by itself. */
const AGAIN = 2 * SECOND

class Live {
  tick: Tick | null = $state.raw(null)
  health: Health | null = $state.raw(null)
  /** Time between the last two ticks in ms. Before the second tick it is a long estimate. */
  step = $state(UNKNOWN)
  /** True while the connection is broken. */
  lost = $state(false)
  /** Time of the last event, and the current time; both are updated while a server is followed. */
  #heard = $state(0)
  #now = $state(0)
  /** The newest tick. It is shown after all events that arrived together: after an absence, ten
   *  minutes arrive at once. */
  #newest: Tick | null = null
  #soon: ReturnType<typeof setTimeout> | undefined

  constructor() {
    document.addEventListener('visibilitychange', () => this.#move())
  }

  /** Follows a server until the returned function is called. */
  follow(server: string): () => void {
    let source: EventSource
    let again: ReturnType<typeof setTimeout> | undefined
    /** Time at which this stream was opened, in ms. */
    let opened = 0
    this.tick = this.health = this.#newest = null
    this.lost = false
    this.step = UNKNOWN
    this.#heard = this.#now = Date.now()
    const open = () => {
      clearTimeout(again)
      opened = Date.now()
      const from = new URLSearchParams({ server })
      if (this.tick) from.set('since', new Date(this.tick.end).toISOString())
      source = new EventSource(`api/v1/live?${from}`)
      source.onopen = () => (this.lost = false)
      const hears = (name: string, told: (data: string) => void) =>
        source.addEventListener(name, ({ data }) => (this.#hear(opened), told(data)))
      source.onerror = () => {
        this.lost = true
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN)
      }
      hears('tick', (data) => this.#ticked(JSON.parse(data)))
      hears('health', (data) => this.#told(JSON.parse(data)))
      hears('reset', () => this.#move(api.now()))
    }
    open()
    // A connection that hangs looks like a quiet one, so another one is tried.
    const looks = setInterval(() => {
      this.#now = Date.now()
      if (this.#now - this.#heard < SILENCE || this.#now - opened < HANGS) return
      source.close()
      open()
    }, SECOND)
    return () => {
      clearInterval(looks)
      clearTimeout(again)
      clearTimeout(this.#soon)
      this.#soon = undefined
      source.close()
    }
  }

  #hear(opened: number) {
    const before = this.#heard
    this.#heard = this.#now = Date.now()
    // A connection that hung may never answer its questions.
    if (opened - before >= SILENCE) place.askAgain()
  }

  /** Time in ms since 1970 up to which a live window is recorded: the end of the newest tick, but
   *  at most `until`, the window's end. */
  recordedBy(until: number): number {
    const newest = servers.history?.newest
    return Math.min(until, this.tick?.end ?? (newest === undefined ? until : newest + SECOND))
  }

  /** Time without any event in ms, in whole seconds; null if it is shorter than SILENCE. */
  get silent(): number | null {
    const silent = this.#now - this.#heard
    return silent < SILENCE ? null : Math.floor(silent / SECOND) * SECOND
  }

  /** Why the page does not show the present. */
  trouble(zone: Zone): string | null {
    const { health, lost, silent } = this
    const age = silent === null ? '' : ` for ${duration(silent)}`
    if (lost) return `tacho web does not answer${age}; this page resumes when it does.`
    if (silent !== null) return `No response${age}: tacho web, its server or the network hangs. This page resumes by itself.`
    if (!health || health.state === 'recording') return null
    if (health.state === 'late') return `No tick${this.#lateness()}: the server or its recorder is down.`
    if (health.state === 'paused') return `Recording is paused since ${clock(Date.parse(health.paused_since ?? ''), zone)}: no space.`
    return [health.message ?? 'The history cannot be read.', health.hint].filter(Boolean).join('. ')
  }

  /** Words for the time without a tick: the age of the last tick in the newest event of health,
   *  plus the time since then. */
  #lateness(): string {
    const age = this.health?.last_tick_age_s ?? null
    return age === null ? '' : ` for ${duration(age * SECOND + Math.max(0, Math.floor((this.#now - this.#heard) / SECOND) * SECOND))}`
  }

  #ticked(said: { period_end: string; avg_aas: number }) {
    const [end, before] = [Date.parse(said.period_end), this.#newest?.end]
    if (before !== undefined && end > before) this.step = Math.min(end - before, MINUTE)
    this.#newest = { end, load: said.avg_aas }
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.tick = this.#newest
      this.#move()
    })
  }

  #told(health: Health) {
    this.health = health
    // Without ticks the window moves with the clock, and shows a gap.
    if (health.state !== 'recording') this.#move(api.now())
  }

  /** The window ends with the newest tick. A hidden page does not move. */
  #move(to = this.tick?.end) {
    if (document.hidden || to === undefined) return
    if (this.tick) servers.recorded(this.tick.end)
    place.beat(to)
  }
}

export const live = new Live()
