// Colours depend on names, never on ranks: a key has the same colour in every panel, window and
// theme. Patterns distinguish keys as well.

/** A colour is a custom property of app.css, which has a value for each theme. */
export interface Paint {
  /** Name of the custom property. */
  colour: string
  pattern: Pattern
}
export const PATTERNS = ['plain', 'rising', 'falling', 'dots', 'lying', 'standing', 'grid'] as const
export type Pattern = (typeof PATTERNS)[number]

/** Wait classes. */
const CLASSES: Record<string, Paint> = {
  CPU: { colour: '--cpu', pattern: 'plain' },
  Lock: { colour: '--lock', pattern: 'rising' },
  IO: { colour: '--io', pattern: 'falling' },
  LWLock: { colour: '--lwlock', pattern: 'dots' },
  IPC: { colour: '--ipc', pattern: 'lying' },
  Client: { colour: '--client', pattern: 'plain' },
  Timeout: { colour: '--timeout', pattern: 'standing' },
  BufferPin: { colour: '--buffer', pattern: 'grid' },
  Buffer: { colour: '--buffer', pattern: 'grid' },
  Extension: { colour: '--extension', pattern: 'standing' },
  Activity: { colour: '--activity', pattern: 'lying' },
  InjectionPoint: { colour: '--extension', pattern: 'dots' },
}
export const OTHER: Paint = { colour: '--other', pattern: 'plain' }
const HUES = 12

function hash(text: string): number {
  let value = 0x811c9dc5
  for (const unit of text) value = Math.imul(value ^ unit.codePointAt(0)!, 0x01000193)
  return (value ^ (value >>> 15)) >>> 0
}

/** The colour of a key. A wait event has the colour of its class. */
export function paint(dimension: string, key: string | null): Paint {
  if (key === null || key === '(other)') return OTHER
  if (dimension === 'wait_event_type') return CLASSES[key] ?? OTHER
  if (dimension === 'wait_event') {
    const base = CLASSES[key.split(':', 1)[0] ?? ''] ?? OTHER
    return { colour: base.colour, pattern: PATTERNS[hash(key) % PATTERNS.length]! }
  }
  if (dimension === 'cpu') return { colour: '--cpu', pattern: PATTERNS[hash(key) % PATTERNS.length]! }
  const value = hash(key)
  const pattern = PATTERNS[Math.floor(value / HUES) % PATTERNS.length]!
  return { colour: `--hue-${value % HUES}`, pattern }
}

/** The order of stacking, bottom first. */
export const CLASSES_IN_ORDER = ['CPU', 'IO', 'LWLock', 'Lock', 'BufferPin', 'Buffer', 'IPC', 'Client', 'Timeout', 'Extension']

/** Sorts keys: wait classes in the usual order, other keys as in the answer; (other) is last. */
export function inOrder(dimension: string, keys: string[]): string[] {
  const rank = (key: string) => {
    if (key === '(other)') return 1000
    if (dimension !== 'wait_event_type') return 0
    const found = CLASSES_IN_ORDER.indexOf(key)
    return found < 0 ? CLASSES_IN_ORDER.length : found
  }
  return keys.toSorted((a, b) => rank(a) - rank(b))
}
