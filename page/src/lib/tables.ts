// Rows of `tables_history` and `indexes_history`: what was done to tables, and which indexes are used.

import type { Row } from './api'
import { type Zone, duration, moment } from './time'
import { DASH, bytes, count } from './units'

/** Columns that tables and indexes are sorted by. */
export const TABLE_SORTS = ['work', 'scans', 'read', 'written', 'blocks', 'dead', 'vacuumed', 'analyzed', 'size', 'growth', 'table'] as const
export type TableSort = (typeof TABLE_SORTS)[number]
export const INDEX_SORTS = ['scans', 'entries', 'used', 'size', 'growth', 'index'] as const
export type IndexSort = (typeof INDEX_SORTS)[number]

/** The key of all tables that an answer does not show. */
export const REST = '(other)'

/** A table or an index in a window; null where something is not known. */
export interface Relation {
  id: string
  name: string
  /** False if the history has only the OIDs of database and relation. */
  isNamed: boolean
  database: string
  kind: string | null
  scans: number | null
  read: number
  size: number | null
  growth: number | null
  /** Time of the last scan, from PostgreSQL 16 on. */
  used: number | null
}
export interface Table extends Relation {
  work: number
  written: number
  blocks: number
  dead: number | null
  live: number | null
  /** Times; null = never, or not known. */
  vacuumed: number | null
  analyzed: number | null
  /** True if the last one was by autovacuum. */
  isAuto: { vacuumed: boolean; analyzed: boolean }
}
export interface Index extends Relation {
  table: string
  /** Begin and end of the time in which scans were counted; without an end nothing was counted. */
  since: number | null
  until: number | null
}

const number = (value: unknown) => (typeof value === 'number' ? value : 0)
const known = (value: unknown) => (typeof value === 'number' ? value : null)
const text = (value: unknown) => (typeof value === 'string' ? value : '')
const time = (value: unknown) => (typeof value === 'string' ? Date.parse(value) : null)
const latest = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : Math.max(a, b))

function relation(row: Row): Relation {
  const [name, numbers] = [text(row.key), `${row.database_oid}/${row.oid}`]
  return {
    id: name === REST ? REST : `${numbers} ${text(row.database)}`,
    name,
    isNamed: name !== REST && name !== numbers,
    database: text(row.database),
    kind: text(row.kind) || null,
    scans: known(row.scans),
    read: number(row.tuples_returned),
    size: known(row.bytes),
    growth: known(row.growth_bytes),
    used: time(row.last_scan),
  }
}

/** True if the history says that it is an index. */
const isIndex = ({ kind }: Relation) => kind !== null && /index|primary key/.test(kind)

/** The tables of an answer, without the indexes. A row without a kind may be either. */
export function tablesOf(rows: Row[]): Table[] {
  const table = (row: Row): Table => {
    const [vacuum, autovacuum] = [time(row.last_vacuum), time(row.last_autovacuum)]
    const [analyze, autoanalyze] = [time(row.last_analyze), time(row.last_autoanalyze)]
    const [vacuumed, analyzed] = [latest(vacuum, autovacuum), latest(analyze, autoanalyze)]
    return {
      ...relation(row),
      work: number(row.work),
      written: number(row.tuples_inserted) + number(row.tuples_updated) + number(row.tuples_deleted),
      blocks: number(row.blks_read),
      dead: known(row.dead_tuples),
      live: known(row.live_tuples),
      vacuumed,
      analyzed,
      isAuto: { vacuumed: vacuumed !== null && vacuumed === autovacuum, analyzed: analyzed !== null && analyzed === autoanalyze },
    }
  }
  return rows.map(table).filter((one) => !isIndex(one))
}

const SYSTEM = /^pg_(catalog|toast)\./

/** The indexes of an answer. Indexes of system catalogs are left out. */
export function indexesOf(rows: Row[]): Index[] {
  const index = (row: Row): Index => {
    const until = time(row.known_until)
    const counted = relation(row)
    return { ...counted, scans: until === null ? null : counted.scans, table: text(row.table_name), since: time(row.known_from), until }
  }
  return rows.map(index).filter(({ name }) => !SYSTEM.test(name))
}

/** True if the answer has sizes and kinds, so that the catalog was read. */
export const hasCatalog = (all: Relation[]) => all.some(({ kind }) => kind !== null)

/** How a table is written: the time zone, and the time that ages end at. */
export interface Shown {
  zone: Zone
  until: number
}

/** A column: its title, the value that it sorts by, and the order that the reader takes. */
export interface Column<T> {
  title: string
  value: (row: T) => number | string | null
  /** True if the smallest value comes first. */
  rises?: boolean
  order: string
  text: (row: T, shown: Shown) => string
  /** A sentence behind the figure. */
  more?: (row: T, shown: Shown) => string
  /** True if the figure deserves attention. */
  isBad?: (row: T) => boolean
  /** Shown on wide screens only, unless the table is sorted by it. */
  wide?: boolean
}

const signed = (value: number | null) => (value !== null && value > 0 ? '+' : '') + bytes(value)
/** The larger unit of a length alone. */
const length = (ms: number) => duration(Math.max(0, ms)).split(' ').slice(0, 2).join(' ')
const age = (then: number, { until }: Shown) => `${length(until - then)} ago`
const NEVER = -1
const when = (then: number | null, isAuto: boolean, { zone }: Shown) => (then === null ? '' : `${moment(then, zone)}${isAuto ? ', by autovacuum' : ''}`)
const done = (then: number | null, row: Table, shown: Shown) => (row.dead === null ? DASH : then === null ? 'never' : age(then, shown))

/** A share of dead rows as in the default of autovacuum_vacuum_scale_factor, and a number of rows
 *  that is no trifle. */
const isBloated = ({ dead, live }: Table) => dead !== null && dead >= 1000 && dead > 0.2 * (dead + (live ?? 0))

const SIZE = { title: 'size', value: ({ size }: Relation) => size, order: 'bytes', text: ({ size }: Relation) => bytes(size) }
const GROWTH = { title: 'growth', value: ({ growth }: Relation) => growth, order: 'growth_bytes', text: ({ growth }: Relation) => signed(growth) }

export const TABLE_COLUMNS: Record<TableSort, Column<Table>> = {
  work: { title: 'work', value: ({ work }) => work, order: 'work', text: ({ work }) => count(work), more: () => 'Rows read and written, and blocks read' },
  scans: { title: 'scans', value: ({ scans }) => scans, order: 'scans', text: ({ scans }) => count(scans), more: () => 'Scans of the whole table' },
  read: { title: 'rows read', value: ({ read }) => read, order: 'tuples_returned', text: ({ read }) => count(read), more: () => 'Rows that scans of the whole table read' },
  written: { title: 'rows written', value: ({ written }) => written, order: 'work', text: ({ written }) => count(written), more: () => 'Rows inserted, updated and deleted' },
  blocks: { title: 'blocks read', value: ({ blocks }) => blocks, order: 'blks_read', text: ({ blocks }) => count(blocks), wide: true },
  dead: {
    title: 'dead rows',
    value: ({ dead }) => dead,
    order: 'work',
    text: ({ dead }) => count(dead),
    more: ({ dead, live }) => (dead === null ? '' : `${count(dead)} dead beside ${count(live)} live rows, as the server estimates them`),
    isBad: isBloated,
  },
  vacuumed: {
    title: 'vacuumed',
    value: ({ dead, vacuumed }) => (dead === null ? null : (vacuumed ?? NEVER)),
    rises: true,
    order: 'work',
    text: (row, shown) => done(row.vacuumed, row, shown),
    more: ({ vacuumed, isAuto }, shown) => when(vacuumed, isAuto.vacuumed, shown),
  },
  analyzed: {
    title: 'analyzed',
    value: ({ dead, analyzed }) => (dead === null ? null : (analyzed ?? NEVER)),
    rises: true,
    order: 'work',
    text: (row, shown) => done(row.analyzed, row, shown),
    more: ({ analyzed, isAuto }, shown) => when(analyzed, isAuto.analyzed, shown),
    wide: true,
  },
  size: SIZE,
  growth: { ...GROWTH, wide: true },
  table: { title: 'table', value: ({ name }) => name, order: 'work', text: ({ name }) => name },
}

/** The last use of an index, or since when it has none. */
function use({ scans, used, since, until }: Index, shown: Shown): string {
  if (used !== null) return age(used, shown)
  if (scans === null || since === null || until === null) return DASH
  return scans > 0 ? 'in this window' : `none for ${length(until - since)}`
}
const useMore = ({ used, since, until }: Index, { zone }: Shown) =>
  used !== null ? moment(used, zone) : since !== null && until !== null ? `Counted from ${moment(since, zone)} to ${moment(until, zone)}` : 'The catalog was not read in this window'

/** True if no query used an index that is no constraint. */
export const isUnused = ({ scans, kind }: Index) => scans === 0 && kind === 'index'

export const INDEX_COLUMNS: Record<IndexSort, Column<Index>> = {
  scans: { title: 'scans', value: ({ scans }) => scans, rises: true, order: 'unused', text: ({ scans }) => count(scans), isBad: isUnused },
  entries: {
    title: 'entries read',
    value: ({ scans, read }) => (scans === null ? null : read),
    order: 'tuples_returned',
    text: ({ scans, read }) => (scans === null ? DASH : count(read)),
  },
  used: { title: 'last use', value: ({ used, since }) => used ?? since, rises: true, order: 'unused', text: use, more: useMore },
  size: SIZE,
  growth: { ...GROWTH, wide: true },
  index: { title: 'index', value: ({ name }) => name, order: 'unused', text: ({ name }) => name },
}

/** Numbers with the largest first, texts by the alphabet; what is not known is last. Equal rows keep
 *  their order. */
export function ordered<T extends Relation>(all: T[], { value, rises }: Column<T>): T[] {
  const compared = (a: T, b: T) => {
    const [x, y] = [value(a), value(b)]
    if (x === null || y === null) return Number(x === null) - Number(y === null)
    if (typeof x === 'string' || typeof y === 'string') return String(x).localeCompare(String(y))
    return rises ? x - y : y - x
  }
  const rest = ({ id }: T) => Number(id === REST)
  return all.toSorted((a, b) => rest(a) - rest(b) || compared(a, b))
}
