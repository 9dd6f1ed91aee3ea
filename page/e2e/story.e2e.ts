// The exact sentences on top of the page for each incident of the demo.

import { dropped } from './dropped'
import { INCIDENTS } from './incidents'
import { test as own } from './own'
import { type Staged, BAD, WINDOW, at, readings, staged } from './staged'
import { expect, settled, test } from './web'

const MB = 1024 ** 2
const table = { locktype: 'relation', mode: 8, table: true }
const schema = { time: at(BAD), since: at(BAD), until: at(BAD), kind: 'schema changed', database: 'shop', username: 'deploy', application: 'deployment' }

interface Said {
  history: () => Staged
  /** The headline; null: there is none. */
  headline: string | null
  alarms?: string[]
  story: string
}

const queue = { locktype: 'transactionid', mode: 5 }
const QUEUE_WORKER: [number, string] = [12, 'update item set qty = qty - $1 where id = $2']
const ON_CPU = 'on a CPU. Look at Queries: which one does more than before.'

/** The sentences by the names of incidents.ts. */
const SAID: Record<string, Said> = {
  'plan-change': {
    history: dropped,
    headline: 'At 03:12:00 DROP INDEX app.orders_customer on app.orders, role deploy, database shop, application migrate, when "select * from app.orders where customer = $1" got another plan and slower, from 0.20 to 3.24 sessions',
    story: `4.24 active sessions on average, on 4 CPUs; peak 5. 100 % of it is CPU:running: ${ON_CPU}`,
  },
  'lock-storm': {
    history: () =>
      staged([
        { pid: 500, application: 'stock import', query: [1, 'update item set price = $1'], idle: true },
        { pid: 600, count: 20, application: 'web', query: [2, 'update item set qty = $1 where id = $2'], wait: ['Lock', 'transactionid'], behind: { pid: 500, ...queue } },
      ]),
    headline: 'Since 03:12:00 process 500 (stock import, idle in transaction) blocks 20 sessions',
    story: '17.00 active sessions on average, on 4 CPUs; peak 21. 94.1 % of it is Lock:transactionid: waiting for another transaction to end, which changed the same row. Look at Locks: the root blocker; end it, or wait.',
  },
  'ddl-queue': {
    history: () =>
      staged(
        [
          { pid: 500, application: 'nightly report', query: [3, 'select count(*), pg_sleep(900) from orders'], wait: ['Timeout', 'PgSleep'] },
          { pid: 501, application: 'deployment', query: [4, 'alter table orders add column channel text'], wait: ['Lock', 'relation'], behind: { pid: 500, ...table } },
          { pid: 600, count: 12, application: 'web', query: [5, 'select * from orders where id = $1'], wait: ['Lock', 'relation'], behind: { pid: 501, ...table, mode: 1 } },
        ],
        { markers: [{ ...schema, command: 'ALTER TABLE', object_class: 'table', object_oid: 16400, object_name: 'public.orders' }] },
      ),
    headline: 'Since 03:12:00 process 500 (nightly report, active) blocks 13 sessions on relation public.orders',
    story: '12.20 active sessions on average, on 4 CPUs; peak 15. 85.2 % of it is Lock:relation: waiting for a lock on a whole table. Look at Locks: often a DDL statement in the queue.',
  },
  'bulk-load': {
    history: () =>
      staged([{ pid: 600, count: 3, application: 'supplier load', query: [7, 'copy import_line from stdin'], wait: ['IO', 'WALWrite'] }], {
        server: readings({ elapsed_ms: 10_000, checkpoints_requested: 0 }, { checkpoints_requested: 1 }),
      }),
    headline: 'Since 03:12:00 clients began to run "copy import_line from stdin", from 0.00 to 2.40 sessions',
    alarms: ['48 forced checkpoints'],
    story: '3.40 active sessions on average, on 4 CPUs; peak 4. 70.6 % of it is IO:WALWrite: writing to the write-ahead log. Look at Queries: which one writes much.',
  },
  'connection-storm': {
    history: () =>
      staged([{ pid: 600, count: 6, application: 'mobile app', query: [11, 'select * from item where id in ($1, $2)'] }], {
        server: readings({ elapsed_ms: 10_000 }),
        server_database: readings({ object: 'shop', xact_commit: 500, sessions: 1 }, { sessions: 900 }),
      }),
    headline: 'Since 03:12:00 clients began to run "select * from item where id in ($1, $2)", from 0.00 to 4.80 sessions',
    alarms: ['up to 90 new sessions per second'],
    story: `5.80 active sessions on average, on 4 CPUs; peak 7. 100 % of it is CPU:running: ${ON_CPU}`,
  },
  'lock-manager': {
    history: () => staged([{ pid: 600, count: 16, application: 'sensor page', query: [6, 'select max(value) from reading where sensor = $1'], wait: ['LWLock', 'LockManager'] }]),
    headline: 'Since 03:12:00 clients began to run "select max(value) from reading where sensor = $1", from 0.00 to 12.80 sessions',
    story: '13.80 active sessions on average, on 4 CPUs; peak 17. 92.8 % of it is LWLock:LockManager: contention in the lock manager. Look at Queries: many locks each, as of partitions, or a queue for one row.',
  },
  'temp-spill': {
    history: () =>
      staged([{ pid: 600, count: 2, application: 'month end', query: [13, 'select max(place) from (select row_number() over (order by note) as place from orders) as o'], wait: ['IO', 'BufFileWrite'] }], {
        server: readings({ elapsed_ms: 10_000 }),
        server_database: readings({ object: 'shop', xact_commit: 500, temp_bytes: 0 }, { temp_bytes: 100 * MB }),
      }),
    headline: 'Since 03:12:00 clients began to run "select max(place) from (select row_number() over (order by n…", from 0.00 to 1.60 sessions',
    alarms: ['4.69 GB of temporary files'],
    story: '2.60 active sessions on average, on 4 CPUs; peak 3. 61.5 % of it is IO:BufFileWrite: writing a temporary file. Look at Queries: sorts and hashes beyond work_mem.',
  },
  'endless-query': {
    history: () => staged([{ pid: 600, application: 'sales report', query: [9, 'select count(*) from orders as a, orders as b where a.total < b.total'] }]),
    headline: 'Since 03:12:00 clients began to run "select count(*) from orders as a, orders as b where a.total …", from 0.00 to 0.80 sessions',
    story: `1.80 active sessions on average, on 4 CPUs; peak 2. 100 % of it is CPU:running: ${ON_CPU}`,
  },
  'idle-slot': {
    history: () => staged([], { server: readings({ elapsed_ms: 10_000 }), server_slot: readings({ object: 'warehouse', slot_active: 0, slot_retained: 300 * MB }) }),
    headline: null,
    alarms: ['slot warehouse, which no process uses, keeps 300 MB of log'],
    story: `1.00 active sessions on average, on 4 CPUs; peak 1. 100 % of it is CPU:running: ${ON_CPU}`,
  },
  errors: {
    history: () =>
      staged(
        [
          { pid: 600, application: 'queue worker', query: QUEUE_WORKER, wait: ['Lock', 'transactionid'], behind: { pid: 601, ...queue } },
          { pid: 601, application: 'queue worker', query: QUEUE_WORKER, wait: ['Lock', 'transactionid'], behind: { pid: 600, ...queue } },
        ],
        { server: readings({ elapsed_ms: 10_000 }), server_database: readings({ object: 'shop', xact_commit: 500, deadlocks: 0 }, { deadlocks: 1 }) },
      ),
    headline: 'Since 03:12:00 process 600 (queue worker) and others wait for each other, a deadlock: up to 2 sessions, 960 s in all',
    alarms: ['48 deadlocks'],
    story: '2.60 active sessions on average, on 4 CPUs; peak 3. 61.5 % of it is Lock:transactionid: waiting for another transaction to end, which changed the same row. Look at Locks: the root blocker; end it, or wait.',
  },
  'frozen-standby': {
    history: () => staged([{ pid: 600, count: 10, application: 'web', query: [10, 'commit'], wait: ['IPC', 'SyncRep'] }]),
    headline: 'Since 03:12:00 clients began to run "commit", from 0.00 to 8.00 sessions',
    story: '9.00 active sessions on average, on 4 CPUs; peak 11. 88.9 % of it is IPC:SyncRep: waiting for a standby to confirm the commit. Look at Server: the standby, or the network to it.',
  },
  'io-saturation': {
    history: () => staged([{ pid: 600, count: 8, application: 'export', query: [8, 'select count(*) as orders from orders where note like $1'], wait: ['IO', 'DataFileRead'] }]),
    headline: 'Since 03:12:00 clients began to run "select count(*) as orders from orders where note like $1", from 0.00 to 6.40 sessions',
    story: '7.40 active sessions on average, on 4 CPUs; peak 9. 86.5 % of it is IO:DataFileRead: reading a table or an index that is not in shared buffers. Look at Queries: who reads most; an index may be missing.',
  },
}

test('each incident of the demo has its sentences here', () => {
  expect(Object.keys(SAID).sort()).toEqual(Object.keys(INCIDENTS).sort())
})

for (const [name, { history: made, headline, alarms = [], story }] of Object.entries(SAID)) {
  own(`the page says what happened in ${name}`, async ({ page, history }) => {
    const { sessions, others } = made()
    const address = await history(sessions, others)
    await page.goto(address(WINDOW))
    await settled(page)
    await expect(page.locator('.headline')).toHaveText(headline === null ? [] : [headline])
    await expect(page.locator('.alarms button')).toHaveText(alarms)
    await expect(page.locator('.story')).toHaveText(story)
  })
}
