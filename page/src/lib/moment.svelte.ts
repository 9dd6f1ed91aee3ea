// The moment that a view shows: under the pointer, otherwise chosen by a click.

import { place } from './place.svelte'
import { pointer } from './pointer.svelte'

const REST_MS = 100

export class Moment {
  /** The moment at which the pointer rests in a picture, in ms since 1970; null without one. */
  #pointed: number | null = $state(null)

  /** Must be called at the begin of a component. */
  constructor() {
    $effect(() => {
      const time = pointer.time
      const rests = setTimeout(() => (this.#pointed = time === null ? null : Math.round(time)), REST_MS)
      return () => clearTimeout(rests)
    })
  }

  /** The moment in ms since 1970 if it is inside the window; null without one. */
  get chosen(): number | null {
    const span = place.window
    const found = [this.#pointed, place.view.at].find((time) => time !== null && span !== null && time >= span.since && time < span.until)
    return found ?? null
  }
}
