// Tags of statements, such as controller=orders,action=show.

import type { Row } from './api'
import type { Tag } from './view'

/** The dimensions of the keys in rows of `top('tags')`, the key with the most load first. */
export function keysOf(rows: Row[]): Tag[] {
  const loads = new Map<string, number>()
  for (const { key, avg_aas } of rows) {
    for (const pair of String(key ?? '').split(',')) {
      const [name, value] = pair.split('=')
      if (name && value !== undefined) loads.set(name, (loads.get(name) ?? 0) + Number(avg_aas ?? 0))
    }
  }
  return [...loads].sort(([, one], [, other]) => other - one).map(([name]): Tag => `tag:${name}`)
}
