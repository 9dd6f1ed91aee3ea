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
