// Arguments shared by all questions of a view.

import { type Span, rfc3339, zoneName } from './time'
import type { View } from './view'

/** Server and window, in the page's time zone. */
export function windowArgs(view: View, window: Span): Record<string, string> {
  const zone = zoneName(view.zone)
  return {
    ...(view.server === null ? {} : { server: view.server }),
    since: rfc3339(window.since),
    until: rfc3339(window.until),
    ...(zone === 'UTC' ? {} : { tz: zone }),
  }
}

/** Server, window and filters. */
export function filteredArgs(view: View, window: Span): Record<string, string> {
  const filters = Object.entries(view.filters).filter(([, text]) => text !== undefined)
  return { ...windowArgs(view, window), ...(Object.fromEntries(filters) as Record<string, string>) }
}

/** The filters that statistics of statements know. */
const OF_STATEMENTS = ['query_id', 'database', 'username'] as const

/** Server, window, and the filters that statistics of statements know. */
export function statementArgs(view: View, window: Span): Record<string, string> {
  const filters = OF_STATEMENTS.flatMap((name) => (view.filters[name] === undefined ? [] : [[name, view.filters[name]]]))
  return { ...windowArgs(view, window), ...(Object.fromEntries(filters) as Record<string, string>) }
}

/** True if statistics of statements do not know one of the filters. */
export const hasOthers = (view: View) => Object.keys(view.filters).some((name) => !(OF_STATEMENTS as readonly string[]).includes(name))
