// Effects of keys. In an input field they write.

import { api } from './api'
import { COMPARED } from './compare'
import { place } from './place.svelte'
import { type Span, moved, scaled, widened } from './time'
import { TABS } from './view'

export interface Doors {
  help: () => void
  time: () => void
  filter: () => void
  mark: () => void
}

/** Share of the window by which arrows move or widen it. */
const STEP = 0.25

/** Widens at the end; the begin stays even if the end would be in the future. */
const widenedLater = (span: Span) => ({ ...span, until: Math.min(widened(span, STEP, 'end').until, Math.max(span.until, api.now())) })

const isField = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.closest('input, select, textarea, dialog[open], [role="tablist"]') !== null

export function press(event: KeyboardEvent, doors: Doors) {
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return
  const span = place.window
  const does: Record<string, () => void> = {
    l: () => (place.view.live === null ? place.goLive() : place.pause()),
    t: () => place.go({ zone: place.view.zone === 'UTC' ? 'local' : 'UTC' }),
    c: () => place.go({ compare: [...COMPARED, null][place.view.compare === null ? 0 : COMPARED.indexOf(place.view.compare) + 1] }),
    m: doors.mark,
    g: doors.time,
    '/': doors.filter,
    '?': doors.help,
    Backspace: () => history.back(),
  }
  // The space bar presses buttons, opens tables, and scrolls a table that has the focus, as arrows do.
  const isIn = (selector: string) => event.target instanceof Element && event.target.closest(selector) !== null
  const scrolls = isIn('[role="region"][tabindex]')
  if (!scrolls && !isIn('button, summary')) does[' '] = does.l!
  if (span && !scrolls) {
    const wide = event.shiftKey
    does.ArrowLeft = () => place.show(wide ? widened(span, STEP, 'begin') : moved(span, -STEP))
    does.ArrowRight = () => place.move(wide ? widenedLater(span) : moved(span, STEP))
  }
  if (span) {
    does['+'] = does['='] = () => place.show(scaled(span, 0.5))
    does['-'] = () => place.show(scaled(span, 2))
  }
  TABS.forEach((tab, i) => (does[String(i + 1)] = () => place.go({ tab })))
  const found = does[event.key]
  if (!found) return
  event.preventDefault()
  found()
}
