// The moment that a view shows: under the pointer, else chosen by a click.

import { place } from './place.svelte'
import { pointer } from './pointer.svelte'

const REST_MS = 100

export class Moment {
  /** Where the pointer rests in a picture; null beyond the window. */
  #pointed: number | null = $state(null)

  /** Call it where components begin. */
  constructor() {
    $effect(() => {
      const time = pointer.time
      const rests = setTimeout(() => (this.#pointed = time === null ? null : Math.round(time)), REST_MS)
      return () => clearTimeout(rests)
    })
  }

  /** In the window; null where neither is. */
  get chosen(): number | null {
    const span = place.window
    const found = [this.#pointed, place.view.at].find((time) => time !== null && span !== null && time >= span.since && time < span.until)
    return found ?? null
  }
}
