// The keys of the tags in the page's window. Each is a dimension.

import { filteredArgs } from './args'
import { place } from './place.svelte'
import { Question } from './question.svelte'
import { keysOf } from './tags'
import type { Tag } from './view'

/** Number of different tags whose keys are read. A key that is only in rarer tags is not offered. */
const SETS = '200'

export class TagKeys {
  #top: Question

  /** Asks only while `wanted` is true. Must be called at the begin of a component. */
  constructor(wanted: () => boolean) {
    this.#top = new Question(() =>
      wanted() && place.window ? { function: 'top', args: { dimension: 'tags', ...filteredArgs(place.view, place.window), n: SETS } } : null,
    )
  }

  get dimensions(): Tag[] {
    return keysOf(this.#top.answer?.rows ?? [])
  }
}
