// Meanings of wait events, and the next thing to look at.

import { TABS, TITLES, type Tab } from './view'

interface Meaning {
  is: string
  next: string
  /** The group of measurements that Server begins with. */
  group?: string
}

const CLASSES: Record<string, Meaning> = {
  CPU: { is: 'on a CPU, or ready to run', next: 'Queries: which one does more than before' },
  Lock: { is: 'waiting for a lock that another session holds', next: 'Locks: the root blocker' },
  LWLock: { is: 'waiting for an internal lock of short duration', next: 'Queries: many sessions doing the same at once' },
  IO: { is: 'waiting for a read or write of a file', next: 'Queries and Server: more reads, or a slower disk' },
  IPC: { is: 'waiting for another process of the server', next: 'Sessions: which process is it waiting for' },
  Client: { is: 'waiting for the client', next: 'Dimensions: which application, and what does it do meanwhile' },
  Timeout: { is: 'sleeping for a set time', next: 'Queries: pg_sleep, or a configured delay' },
  Buffer: { is: 'waiting for a page that another session changes or looks at', next: 'Queries: a page that many sessions use, such as the end of an index' },
  BufferPin: { is: 'waiting for other sessions to release a buffer pin', next: 'Sessions: a cursor that stays open' },
  Extension: { is: 'waiting inside an extension', next: 'Queries: what calls the extension' },
  Activity: { is: 'a background process without work', next: 'nothing' },
}

const EVENTS: Record<string, Meaning> = {
  'CPU*': { is: 'active without a wait event: on a CPU, ready to run, or in the kernel; the history does not tell which', next: 'Queries: which one does more than before' },
  'CPU:running': { is: 'on a CPU', next: 'Queries: which one does more than before' },
  'CPU:runnable': { is: 'ready to run, but no CPU is free', next: 'Queries, by load: more work than CPUs' },
  'CPU:blkio': { is: 'in the kernel, waiting for a disk', next: 'Server: pressure of I/O', group: 'Host' },
  'CPU:sleep': { is: 'asleep in code without a wait event', next: 'Queries: what do these have in common' },
  'Lock:transactionid': { is: 'waiting for another transaction to end, which changed the same row', next: 'Locks: the root blocker; end it, or wait' },
  'Lock:tuple': { is: 'queueing for a row that others wait for already', next: 'Locks: the root blocker; end it, or wait' },
  'Lock:relation': { is: 'waiting for a lock on a whole table', next: 'Locks: often a DDL statement in the queue' },
  'Lock:advisory': { is: 'waiting for a lock that the application takes by itself', next: 'Locks: who holds it' },
  'Lock:extend': { is: 'waiting to make a table larger', next: 'Queries: many inserts into one table' },
  'Lock:virtualxid': { is: 'waiting for transactions that began earlier', next: 'Locks: CREATE INDEX CONCURRENTLY waits for the oldest' },
  'IO:DataFileRead': { is: 'reading a table or an index that is not in shared buffers', next: 'Queries: who reads most; an index may be missing' },
  'IO:DataFileWrite': { is: 'writing a page to make room for another', next: 'Server: checkpoints, or shared_buffers too small', group: 'Write-ahead log and checkpoints' },
  'IO:DataFileExtend': { is: 'making a table larger', next: 'Queries: bulk inserts' },
  'IO:WALSync': { is: 'making a commit durable', next: 'Queries: many small transactions, or a slow disk' },
  'IO:WALWrite': { is: 'writing to the write-ahead log', next: 'Queries: which one writes much' },
  'IO:BufFileRead': { is: 'reading a temporary file', next: 'Queries: sorts and hashes beyond work_mem' },
  'IO:BufFileWrite': { is: 'writing a temporary file', next: 'Queries: sorts and hashes beyond work_mem' },
  'LWLock:WALWrite': { is: 'waiting for another session that writes the log', next: 'Waits: many commits at once, IO:WALSync' },
  'LWLock:BufferMapping': { is: 'contention on the buffer mapping table', next: 'Queries: reads of many pages that are not cached' },
  'LWLock:BufferContent': { is: 'waiting for a page that another session changes', next: 'Queries: a page that many sessions use, such as the end of an index' },
  'LWLock:LockManager': { is: 'contention in the lock manager', next: 'Queries: many locks each, as of partitions, or a queue for one row' },
  'LWLock:ProcArray': { is: 'waiting for the list of transactions', next: 'Queries: many short transactions at once' },
  'LWLock:SubtransSLRU': { is: 'waiting for a lookup of subtransactions', next: 'Sessions: savepoints or exception blocks beside a long transaction' },
  'LWLock:MultiXactOffsetSLRU': { is: 'waiting for lists of row lockers', next: 'Queries: foreign keys, when many sessions share one parent row' },
  'Client:ClientRead': { is: 'waiting for the next command of the client', next: 'Sessions: in a transaction it holds locks' },
  'Client:ClientWrite': { is: 'waiting for the client to take rows', next: 'Queries: a large result, or a slow network' },
  'IPC:SyncRep': { is: 'waiting for a standby to confirm the commit', next: 'Server: the standby, or the network to it', group: 'Replication and slots' },
  'IPC:ParallelFinish': { is: 'waiting for parallel workers to end', next: 'Queries: the plan of it' },
  'IPC:BgWorkerShutdown': { is: 'waiting for a background worker to end', next: 'Sessions' },
  'IPC:ExecuteGather': { is: 'waiting for rows of parallel workers', next: 'Queries: the plan of it' },
  'Timeout:PgSleep': { is: 'in pg_sleep()', next: 'Queries: who sleeps in the database' },
  'Timeout:VacuumDelay': { is: 'vacuum, pausing by its cost limit', next: 'nothing, unless it never ends' },
  'Timeout:SpinDelay': { is: 'waiting for a spinlock', next: 'more busy sessions than CPUs' },
}

/** The view with which the text begins, and the rest of the text. */
export function named(next: string): { tab: Tab | null; rest: string } {
  const tab = TABS.find((tab) => next.startsWith(TITLES[tab])) ?? null
  return { tab, rest: tab ? next.slice(TITLES[tab].length) : next }
}

/** Majors differ in case only: `IO:WALSync` is `IO:WalSync` from 17 on. */
const BY_NAME = new Map(Object.entries(EVENTS).map(([event, means]) => [event.toLowerCase(), means]))

/** The meaning of the event, or else of its class; null if neither is described. */
export function meaning(event: string): Meaning | null {
  return BY_NAME.get(event.toLowerCase()) ?? CLASSES[event.split(':', 1)[0] ?? ''] ?? null
}

/** Explanations by event in lower case, from the text of catalog/waits.txt. */
export function parseDictionary(text: string): Map<string, string> {
  const entries = text.split('\n\n').map((block) => {
    const [head = '', is = '', normal = '', next = ''] = block.split('\n').filter((line) => !line.startsWith('#'))
    const step = next === 'next -' ? 'No further step is known.' : `Next: ${next.slice(5)}`
    return [head.split(' ', 1)[0]!.toLowerCase(), `${is.slice(3)}\nNormal: ${normal.slice(7)}\n${step}`.trim()] as const
  })
  return new Map(entries)
}

/** The explanation of the event, or else of its class. */
export function explained(dictionary: Map<string, string>, event: string): string | undefined {
  const key = (event === 'CPU*' ? 'CPU:CPU*' : event).toLowerCase()
  return dictionary.get(key) ?? dictionary.get(key.split(':', 1)[0] ?? '')
}

/** The dictionary of wait events; a file of its own, which is fetched when a panel needs it. */
export async function dictionary(): Promise<Map<string, string>> {
  return parseDictionary((await import('../../../catalog/waits.txt?raw')).default)
}
