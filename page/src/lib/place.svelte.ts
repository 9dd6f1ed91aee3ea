// Where the page is: the view of the address, and the window that it means.

import { api } from './api'
import { withValue } from './filter'
import { type Span, SECOND, MINUTE, HOUR, NARROWEST, endingBy } from './time'
import { type Dimension, type View, parseView, viewSearch } from './view'

/** A live window moves by a share of its length, or by a second. */
const STEPS = 900
/** A history whose last tick is older is not live. */
const STALE = 2 * MINUTE
/** A live window when nobody says how long. */
export const LIVE = 15 * MINUTE

class Place {
  view: View = $state.raw(parseView(location.search))
  /** The end of a live window. */
  #now = $state(Date.now())
  /** The length of the live window that was left. */
  #length = LIVE

  constructor() {
    addEventListener('popstate', () => (this.view = parseView(location.search)))
  }

  /** What the panels show. */
  window: Span | null = $derived.by(() => {
    const { since, until, live } = this.view
    if (since !== null && until !== null) return { since, until }
    if (live === null) return null
    const step = Math.max(1, Math.floor(live / STEPS / SECOND)) * SECOND
    const now = Math.floor(this.#now / step) * step
    return { since: now - live, until: now }
  })

  /** Counts the calls of askAgain(). */
  turn = $state(0)
  /** The subject of the page, whichever time it shows. When it changes, questions are given up. */
  about: string = $derived.by(() => {
    const { server, by, filters } = this.view
    const length = this.window ? this.window.until - this.window.since : 1
    return JSON.stringify([server, by, filters, Math.round(Math.log2(length)), this.turn])
  })

  /** Gives up all questions that run, and asks them again. */
  askAgain() {
    this.turn += 1
  }

  /** Goes elsewhere; back returns, unless the place before was none (`replace`). */
  go(change: Partial<View>, replace = false) {
    this.#length = this.view.live ?? this.#length
    const next = { ...this.view, ...change }
    const search = viewSearch(next)
    if (search === viewSearch(this.view)) return
    this.view = next
    history[replace ? 'replaceState' : 'pushState'](null, '', search)
  }

  /** Shows a window, which ends live. It reaches to now at most, and keeps its length. Drags
   *  that go on replace their beginning. */
  show(span: Span, replace = false, at = this.view.at) {
    const { since, until } = endingBy(span, api.now())
    const end = Math.max(until, since + NARROWEST)
    this.go({ since: Math.round(since), until: Math.round(end), live: null, at: at === null ? null : Math.round(at) }, replace)
  }

  /** Moves the window. Live there is nothing later. */
  move(span: Span, replace = false) {
    if (this.view.live === null || !this.window || !isLater(span, this.window)) this.show(span, replace)
  }

  /** Begins at the newest, with the length that live had before. */
  goLive(length = this.#length) {
    this.#now = api.now()
    this.go({ live: length, since: null, until: null, at: null })
  }

  /** Time has gone on: a live window goes with it. */
  beat(now: number) {
    if (this.view.live !== null) this.#now = now
  }

  /** Keeps what a live window shows at this moment. */
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

  /** An address without a window: live where history is being made, else its last hour. */
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

/** It ends later, and is not a part of the other one. */
const isLater = (span: Span, than: Span) => span.until > than.until && span.since >= than.since && span.until - span.since >= than.until - than.since

export const place = new Place()
