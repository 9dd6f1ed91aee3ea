// The place of the page: the view in its address, and the window that it means.

import { api } from './api'
import { withValue } from './filter'
import { type Span, SECOND, MINUTE, HOUR, NARROWEST, endingBy } from './time'
import { type Dimension, type View, parseView, viewSearch } from './view'

/** A live window moves in steps of 1/900 of its length, and of a second at least. */
const STEPS = 900
/** A history whose last tick is older than this many ms is not live. */
const STALE = 2 * MINUTE
/** Default length of a live window. */
export const LIVE = 15 * MINUTE

class Place {
  view: View = $state.raw(parseView(location.search))
  /** The end of a live window. */
  #now = $state(Date.now())
  /** The length of the last live window. */
  #length = LIVE

  constructor() {
    addEventListener('popstate', () => (this.view = parseView(location.search)))
  }

  /** The window of the panels. */
  window: Span | null = $derived.by(() => {
    const { since, until, live } = this.view
    if (since !== null && until !== null) return { since, until }
    if (live === null) return null
    const step = Math.max(1, Math.floor(live / STEPS / SECOND)) * SECOND
    const now = Math.floor(this.#now / step) * step
    return { since: now - live, until: now }
  })

  /** Number of calls of askAgain(). */
  turn = $state(0)
  /** The subject of the page, independent of time. When it changes, questions are given up. */
  about: string = $derived.by(() => {
    const { server, by, filters } = this.view
    const length = this.window ? this.window.until - this.window.since : 1
    return JSON.stringify([server, by, filters, Math.round(Math.log2(length)), this.turn])
  })

  /** Gives up all running questions and asks them again. */
  askAgain() {
    this.turn += 1
  }

  /** Changes the view. Back returns from there, unless the change replaces the last one. */
  go(change: Partial<View>, replace = false) {
    this.#length = this.view.live ?? this.#length
    const next = { ...this.view, ...change }
    const search = viewSearch(next)
    if (search === viewSearch(this.view)) return
    this.view = next
    history[replace ? 'replaceState' : 'pushState'](null, '', search)
  }

  /** Shows a window, which ends live. It ends now at the latest, and keeps its length. The steps of
   *  a drag replace each other. */
  show(span: Span, replace = false, at = this.view.at) {
    const { since, until } = endingBy(span, api.now())
    const end = Math.max(until, since + NARROWEST)
    this.go({ since: Math.round(since), until: Math.round(end), live: null, at: at === null ? null : Math.round(at) }, replace)
  }

  /** Moves the window. A live window cannot move later. */
  move(span: Span, replace = false) {
    if (this.view.live === null || !this.window || !isLater(span, this.window)) this.show(span, replace)
  }

  /** Follows the newest tick, with the length of the last live window. */
  goLive(length = this.#length) {
    this.#now = api.now()
    this.go({ live: length, since: null, until: null, at: null })
  }

  /** Moves a live window to this time, in ms since 1970. */
  beat(now: number) {
    if (this.view.live !== null) this.#now = now
  }

  /** Keeps the present content of a live window. */
  pause() {
    if (this.view.live !== null && this.window) this.show(this.window)
  }

  filter(dimension: Dimension, value: string, not = false) {
    const text = withValue(this.view.filters[dimension], value, not)
    this.go({ filters: { ...this.view.filters, [dimension]: text } })
  }

  unfilter(dimension: Dimension) {
    const { [dimension]: _gone, ...filters } = this.view.filters
    this.go({ filters })
  }

  /** Chooses the window for an address without one: live if history is being recorded, otherwise
   *  the last hour of the history. */
  begin(oldest: number, newest: number) {
    if (this.window) return
    if (api.now() - newest < STALE) {
      this.#now = api.now()
      this.go({ live: LIVE }, true)
    } else {
      this.show({ since: Math.max(oldest, newest - HOUR), until: newest + SECOND }, true)
    }
  }
}

/** True if `span` ends later than `than`, begins no earlier and is no shorter. */
const isLater = (span: Span, than: Span) => span.until > than.until && span.since >= than.since && span.until - span.since >= than.until - than.since

export const place = new Place()
