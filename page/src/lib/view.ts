// The view of the page, as its address has it. A copied address shows the same view.

import { COMPARED, type Compared } from './compare'
import { INDEX_SORTS, type IndexSort, TABLE_SORTS, type TableSort } from './tables'
import { type Zone, lengthText, parseLength, rfc3339 } from './time'

export const TABS = ['queries', 'waits', 'sessions', 'locks', 'dimensions', 'tables', 'server', 'events'] as const
export type Tab = (typeof TABS)[number]
/** Titles of the tabs. */
export const TITLES: Record<Tab, string> = {
  queries: 'Queries',
  waits: 'Waits',
  sessions: 'Sessions',
  locks: 'Locks',
  dimensions: 'Dimensions',
  tables: 'Tables',
  server: 'Server',
  events: 'Events',
}

/** Columns that queries are sorted by. */
export const SORTS = ['load', 'calls', 'mean', 'p95', 'total', 'rows', 'reads', 'temp', 'errors', 'last', 'query', 'user', 'database'] as const
export type Sort = (typeof SORTS)[number]

/** Dimensions for filters and for cuts of the load; they have the names of the arguments. */
export const DIMENSIONS = [
  'wait_event_type',
  'wait_event',
  'query_id',
  'application',
  'username',
  'database',
  'client_addr',
  'state',
  'backend_type',
  'category',
  'pid',
  'cpu',
  'root_blocker',
  'blocked_by',
  'leader',
  'plan_id',
  'tags',
] as const
/** A dimension that is one key of the tags, such as tag:controller. Each window has its own. */
export type Tag = `tag:${string}`
export type Dimension = (typeof DIMENSIONS)[number] | Tag

const isTag = (name: string): name is Tag => /^tag:[\w.-]{1,32}$/.test(name)
export const isDimension = (name: string | null): name is Dimension => name !== null && (isOf(DIMENSIONS, name) || isTag(name))

/** The dimensions of the filters, the tags last. */
export const filtered = (filters: View['filters']): Dimension[] => [
  ...DIMENSIONS.filter((dimension) => filters[dimension] !== undefined),
  ...Object.keys(filters).filter(isTag),
]

/** Names for people. */
const LABELS: Record<(typeof DIMENSIONS)[number], string> = {
  wait_event_type: 'wait class',
  wait_event: 'wait event',
  query_id: 'query',
  application: 'application',
  username: 'user',
  database: 'database',
  client_addr: 'client',
  state: 'state',
  backend_type: 'process type',
  category: 'category',
  pid: 'process',
  cpu: 'kind of CPU',
  root_blocker: 'root blocker',
  blocked_by: 'blocked by',
  leader: 'parallel leader',
  plan_id: 'plan',
  tags: 'tags',
}
/** The name of a dimension for people. A tag has the name of its key. */
export const dimensionName = (dimension: Dimension): string => (isTag(dimension) ? `tag ${dimension.slice('tag:'.length)}` : LABELS[dimension])

export interface View {
  server: string | null
  /** Length in ms of a window that ends now and moves on; null if the window is fixed. */
  live: number | null
  since: number | null
  until: number | null
  zone: Zone
  by: Dimension
  tab: Tab
  /** True if the page shows all servers above the chosen one. */
  fleet: boolean
  /** The earlier window that the page compares with; null without a comparison. */
  compare: Compared | null
  filters: Partial<Record<Dimension, string>>
  /** Moment of the lock tree, in ms since 1970; null if none was chosen. */
  at: number | null
  sort: Sort
  /** Words that the text of a shown query must have; null shows all. */
  find: string | null
  /** True for all queries, false for the largest ones. */
  all: boolean
  /** Plans of the query whose trees are shown, two at most. */
  plans: string[]
  /** Columns that tables and indexes are sorted by. */
  tables: TableSort
  indexes: IndexSort
}

const isOf = <T extends string>(all: readonly T[], text: string | null): text is T =>
  (all as readonly (string | null)[]).includes(text)

function time(text: string | null): number | null {
  const parsed = text === null ? NaN : Date.parse(text)
  return Number.isNaN(parsed) ? null : parsed
}

/** Parses an address. Missing and unknown parts get their defaults. */
export function parseView(search: string): View {
  const given = new URLSearchParams(search)
  const [since, until] = [time(given.get('since')), time(given.get('until'))]
  const fixed = since !== null && until !== null && until > since
  const [by, tab, compare, sort] = [given.get('by'), given.get('tab'), given.get('compare'), given.get('sort')]
  const [tables, indexes] = [given.get('tables'), given.get('indexes')]
  const filters: View['filters'] = {}
  for (const [name, filter] of given) {
    if (isDimension(name) && filter) filters[name] ??= filter
  }
  return {
    server: given.get('server'),
    live: fixed ? null : parseLength(given.get('live') ?? ''),
    since: fixed ? since : null,
    until: fixed ? until : null,
    zone: given.get('tz') === 'local' ? 'local' : 'UTC',
    by: isDimension(by) ? by : 'wait_event_type',
    tab: isOf(TABS, tab) ? tab : 'queries',
    fleet: given.has('fleet'),
    compare: isOf(COMPARED, compare) ? compare : null,
    filters,
    at: time(given.get('at')),
    sort: isOf(SORTS, sort) ? sort : 'load',
    find: given.get('find') || null,
    all: given.get('queries') === 'all',
    plans: (given.get('plans') ?? '').split(',').filter((id) => /^-?\d+$/.test(id)).slice(0, 2),
    tables: isOf(TABLE_SORTS, tables) ? tables : 'work',
    indexes: isOf(INDEX_SORTS, indexes) ? indexes : 'scans',
  }
}

/** The address of a view, without defaults. */
export function viewSearch(view: View): string {
  const given = new URLSearchParams()
  const put = (name: string, value: string | null | undefined) => value && given.set(name, value)
  put('server', view.server)
  if (view.since !== null && view.until !== null) {
    put('since', rfc3339(view.since))
    put('until', rfc3339(view.until))
  } else {
    put('live', view.live === null ? null : lengthText(view.live))
  }
  put('tz', view.zone === 'UTC' ? null : view.zone)
  put('by', view.by === 'wait_event_type' ? null : view.by)
  put('tab', view.tab === 'queries' ? null : view.tab)
  put('fleet', view.fleet ? 'all' : null)
  put('compare', view.compare)
  for (const dimension of filtered(view.filters)) put(dimension, view.filters[dimension])
  put('at', view.at === null ? null : rfc3339(view.at))
  put('sort', view.sort === 'load' ? null : view.sort)
  put('find', view.find)
  put('queries', view.all ? 'all' : null)
  put('tables', view.tables === 'work' ? null : view.tables)
  put('indexes', view.indexes === 'scans' ? null : view.indexes)
  put('plans', view.filters.query_id === undefined ? null : view.plans.join(','))
  return '?' + given.toString().replaceAll('%3A', ':').replaceAll('%2C', ',')
}
