//! Measurements of the server as a whole, from its views, under the names of the catalog. Counters
//! are recorded as increases since the previous reading. After a connect each view is probed alone.
//! A refused view is not asked again on that connection, unless it was locked.

use crate::batch::{Batch, Dictionary, Field};
use crate::output::put_marker;
use std::collections::HashMap;
use tacho_dsn::Answer;
use tacho_source::catalog;
use tacho_tape::format::schema::{ColumnDef, Role};

/// Increases over a longer time than this are not recorded, because it is unknown when in this time
/// they happened.
const LONGEST_MS: i64 = 3_600_000;
const SERVER: &str = "server";

/// The end of the write-ahead log; other positions are compared with it.
macro_rules! position {
    () => {
        "case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end"
    };
}

/// A question whose columns have the names of a catalog table. `object` names a row, `key`
/// identifies it, `reset` is when its counters began at 0, ms.
pub struct Source {
    /// Name of the source in messages and markers.
    pub what: &'static str,
    table: &'static str,
    /// First server version that has the view, and first version that no longer has it; 160000 is
    /// 16.
    versions: (u32, u32),
    pub sql: &'static str,
}

/// All versions.
const ALL: (u32, u32) = (0, u32::MAX);

/// Maximum number of databases that are measured; the shared objects count as one of them.
macro_rules! most {
    () => {
        1000
    };
}
const MOST_ROWS: usize = most!();

/// Distance in bytes from a position to the end of the write-ahead log.
macro_rules! behind {
    ($position:literal) => {
        concat!(
            "case when ",
            $position,
            " is not null then greatest(pg_wal_lsn_diff(p, ",
            $position,
            "), 0) end as "
        )
    };
}

macro_rules! reset {
    () => {
        "(date_part('epoch', stats_reset) * 1e6)::int8 / 1000 as reset"
    };
}

/// A row of `pg_stat_io`. The columns for bytes depend on the version. Rows that never counted are
/// left out, but not rows of clients: they show a reset.
macro_rules! io {
    ($read:literal, $written:literal, $extended:literal) => {
        concat!(
            "select concat_ws('/', backend_type, object, context) as object, \
            reads as io_reads, ",
            $read,
            "::int8 as io_read_bytes, round(read_time * 1000)::int8 as io_read_time, \
            writes as io_writes, ",
            $written,
            "::int8 as io_write_bytes, round(write_time * 1000)::int8 as io_write_time, \
            writebacks as io_writebacks, \
            round(writeback_time * 1000)::int8 as io_writeback_time, \
            extends as io_extends, ",
            $extended,
            "::int8 as io_extend_bytes, round(extend_time * 1000)::int8 as io_extend_time, \
            hits as io_hits, evictions as io_evictions, reuses as io_reuses, \
            fsyncs as io_fsyncs, round(fsync_time * 1000)::int8 as io_fsync_time, ",
            reset!(),
            " from pg_stat_io where backend_type = 'client backend' or \
            greatest(reads, writes, writebacks, extends, hits, evictions, reuses, fsyncs) > 0"
        )
    };
}

static SOURCES: &[Source] = &[
    Source {
        what: "transactions",
        table: SERVER,
        versions: ALL,
        sql: concat!(
            "select pg_snapshot_xmax(pg_current_snapshot()) as transaction_ids, \
            max(age(datfrozenxid)) as oldest_xid_age, \
            greatest(count(*) + 1 - ",
            most!(),
            ", 0) as databases_left_out from pg_database"
        ),
    },
    Source {
        what: "the end of the log",
        table: SERVER,
        versions: ALL,
        sql: "select pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() \
            else pg_current_wal_insert_lsn() end, '0/0') as wal_bytes",
    },
    Source {
        what: "recovery",
        table: SERVER,
        versions: ALL,
        sql: "select greatest(pg_wal_lsn_diff(received, replayed), 0) as recovery_lag_bytes, \
            case when received <= replayed or ms < 0 then 0 else trunc(ms)::int8 end as recovery_lag \
            from (select date_part('epoch', \
                clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 as ms, \
              case when pg_is_in_recovery() then pg_last_wal_receive_lsn() end as received, \
              case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end as replayed) l \
            where received is not null",
    },
    Source {
        what: "write-ahead log",
        table: SERVER,
        versions: ALL,
        sql: concat!(
            "select wal_records, wal_fpi, wal_buffers_full, ",
            reset!(),
            " from pg_stat_wal"
        ),
    },
    Source {
        what: "the archiver",
        table: SERVER,
        versions: ALL,
        sql: concat!(
            "select archived_count as wal_archived, failed_count as wal_archive_failed, ",
            reset!(),
            " from pg_stat_archiver"
        ),
    },
    Source {
        what: "checkpoints",
        table: SERVER,
        versions: (0, 170_000),
        sql: concat!(
            "select checkpoints_timed, checkpoints_req as checkpoints_requested, \
            trunc(checkpoint_write_time)::int8 as checkpoint_write_time, \
            trunc(checkpoint_sync_time)::int8 as checkpoint_sync_time, \
            buffers_checkpoint as checkpoint_buffers, ",
            reset!(),
            " from pg_stat_bgwriter"
        ),
    },
    Source {
        what: "checkpoints",
        table: SERVER,
        versions: (170_000, u32::MAX),
        sql: concat!(
            "select num_timed + restartpoints_timed as checkpoints_timed, \
            num_requested + restartpoints_req as checkpoints_requested, \
            trunc(write_time)::int8 as checkpoint_write_time, \
            trunc(sync_time)::int8 as checkpoint_sync_time, \
            buffers_written as checkpoint_buffers, ",
            reset!(),
            " from pg_stat_checkpointer"
        ),
    },
    Source {
        what: "databases",
        table: "server_database",
        versions: ALL,
        sql: concat!(
            "select datid as key, datname as object, xact_commit, xact_rollback, blks_read, \
            blks_hit, trunc(blk_read_time * 1000)::int8 as blk_read_time, \
            trunc(blk_write_time * 1000)::int8 as blk_write_time, tup_returned, tup_fetched, \
            tup_inserted, tup_updated, tup_deleted, temp_files, temp_bytes, deadlocks, conflicts, \
            sessions, sessions_abandoned, sessions_fatal, sessions_killed, ",
            reset!(),
            " from pg_stat_database order by datid limit ",
            most!()
        ),
    },
    Source {
        what: "I/O",
        table: "server_io",
        versions: (160_000, 180_000),
        sql: io!(
            "reads * op_bytes",
            "writes * op_bytes",
            "extends * op_bytes"
        ),
    },
    Source {
        what: "I/O",
        table: "server_io",
        versions: (180_000, u32::MAX),
        sql: io!("read_bytes", "write_bytes", "extend_bytes"),
    },
    Source {
        what: "replicas",
        table: "server_replica",
        versions: ALL,
        sql: concat!(
            "select application_name as object, ",
            behind!("sent_lsn"),
            "replica_sent_lag, ",
            behind!("write_lsn"),
            "replica_write_lag, ",
            behind!("flush_lsn"),
            "replica_flush_lag, ",
            behind!("replay_lsn"),
            "replica_replay_lag, \
            (date_part('epoch', replay_lag) * 1e6)::int8 as replica_replay_delay \
            from pg_stat_replication, (select ",
            position!(),
            " as p) l where state not in ('startup', 'backup')"
        ),
    },
    Source {
        what: "replication slots",
        table: "server_slot",
        versions: ALL,
        sql: concat!(
            "select slot_name as object, active::int as slot_active, ",
            behind!("restart_lsn"),
            "slot_retained, \
            greatest(age(xmin), age(catalog_xmin)) as slot_xmin_age \
            from pg_replication_slots, (select ",
            position!(),
            " as p) l"
        ),
    },
];

/// Sources that exist in a version of the server.
pub fn sources(version: u32) -> impl Iterator<Item = &'static Source> {
    let has = move |source: &&Source| (source.versions.0..source.versions.1).contains(&version);
    SOURCES.iter().filter(has)
}

/// Values by index of the table's measurements; `None` if unknown.
type Values = Vec<Option<i64>>;
/// Rows by key.
type Rows = Vec<(Vec<u8>, Row)>;

/// One row of an answer.
#[derive(Clone, Default)]
struct Row {
    object: Vec<u8>,
    values: Values,
    reset_ms: Option<i64>,
}

/// Rows of a source at the last reading that had it.
#[derive(Default)]
struct PreviousReading {
    /// Time of the monotonic clock, ms.
    read_ms: i64,
    rows: HashMap<Vec<u8>, Row>,
    /// True if the answer had all rows. A row that is new in the next answer therefore began at 0.
    listed: bool,
}

/// The previous reading of each source, and the sources that work.
#[derive(Default)]
pub struct Measures {
    before: HashMap<&'static str, PreviousReading>,
    read_ms: Option<i64>,
    interval: Option<i64>,
    /// Sources that work on this connection; `None` until probed.
    working_sources: Option<Vec<&'static Source>>,
}

/// A reading: rows to record, and the resets before it.
#[derive(Default)]
pub struct Reading {
    elapsed_ms: i64,
    rows: Vec<(&'static str, Vec<u8>, Values)>,
    resets: Vec<(i64, String)>,
}

/// The measurements of a table, in the order of the catalog.
fn measurements(table: &str) -> impl Iterator<Item = &'static ColumnDef> {
    let table = catalog::schema().table(table);
    let columns = table.map_or(&[][..], |table| &table.columns);
    let measured = |c: &&ColumnDef| matches!(c.role, Role::Counter | Role::Gauge);
    columns.iter().filter(measured)
}

impl Measures {
    /// True if the server's clock has entered another interval, so a reading is due.
    pub fn is_due(&mut self, server_ms: i64, interval_ms: i64) -> bool {
        let interval = Some(server_ms.div_euclid(interval_ms));
        std::mem::replace(&mut self.interval, interval) != interval
    }

    /// Probes the sources again, because another connection may have other rights.
    pub fn probe(&mut self) {
        self.working_sources = None;
    }

    /// Forgets the last reading: another life of the server begins, and its counters start at 0.
    pub fn forget(&mut self) {
        *self = Measures::default();
    }

    /// Sources to ask, once probed.
    pub fn working_sources(&self) -> Option<&[&'static Source]> {
        self.working_sources.as_deref()
    }

    /// Sets the sources that work.
    pub fn set_working_sources(&mut self, working_sources: Vec<&'static Source>) {
        self.working_sources = Some(working_sources);
    }

    /// Takes the answers. `mono_ms` is a time of the monotonic clock, which is never set.
    pub fn take(&mut self, answers: &[(&'static Source, Answer)], mono_ms: i64) -> Reading {
        let read = answers
            .iter()
            .map(|(source, answer)| (*source, read(source.table, answer)));
        self.compare(read.collect(), mono_ms)
    }

    fn compare(&mut self, read: Vec<(&'static Source, Rows)>, mono_ms: i64) -> Reading {
        let elapsed_ms = self
            .read_ms
            .replace(mono_ms)
            .map_or(0, |before| mono_ms - before);
        self.before
            .retain(|_, before| mono_ms - before.read_ms <= LONGEST_MS);
        let mut reading = Reading {
            elapsed_ms: elapsed_ms.max(0),
            ..Reading::default()
        };
        let mut server: Values = vec![None; measurements(SERVER).count()];
        for (source, rows) in read {
            let before = self.before.remove(source.what).unwrap_or_default();
            let mut now = PreviousReading {
                read_ms: mono_ms,
                listed: rows.len() < MOST_ROWS,
                ..PreviousReading::default()
            };
            for (key, row) in rows {
                let old = before.rows.get(&key);
                let values = reading.growth(source, &row, old, before.listed);
                match source.table {
                    SERVER => merge(&mut server, &values),
                    table if is_recorded(table, &values) => {
                        reading.rows.push((table, row.object.clone(), values));
                    }
                    _ => (),
                }
                now.rows.insert(key, row);
            }
            self.before.insert(source.what, now);
        }
        reading.rows.insert(0, (SERVER, Vec::new(), server));
        reading
    }
}

/// Fills unknown values of `server` from `values`.
fn merge(server: &mut [Option<i64>], values: &[Option<i64>]) {
    for (server, value) in server.iter_mut().zip(values) {
        *server = server.or(*value);
    }
}

/// True if a row is recorded: a counter grew, or a gauge has a value.
fn is_recorded(table: &str, values: &[Option<i64>]) -> bool {
    let mut measured = measurements(table).zip(values);
    measured.any(|(column, value)| match column.role {
        Role::Counter => value.is_some_and(|value| value != 0),
        _ => value.is_some(),
    })
}

impl Reading {
    /// Increases of a row since the previous reading. After a reset the counters themselves are the
    /// increase. They also are for a new row, if the previous answer had all rows (`listed`);
    /// otherwise the increase of a new row is unknown.
    fn growth(&mut self, source: &Source, row: &Row, old: Option<&Row>, listed: bool) -> Values {
        let was_reset = old.is_some_and(|old| old.reset_ms != row.reset_ms);
        if was_reset {
            let what = reset_of(source, &row.object);
            let detail = format!("statistics of {what} were reset");
            let told = (row.reset_ms.unwrap_or(0), detail);
            // Rows that were reset together are reported once.
            if !self.resets.contains(&told) {
                self.resets.push(told);
            }
        }
        let started_at_zero = was_reset || (old.is_none() && listed && source.table != SERVER);
        let grown = |(c, (column, value)): (usize, (&ColumnDef, &Option<i64>))| {
            let value = (*value)?;
            if column.role != Role::Counter || started_at_zero {
                return Some(value);
            }
            let before = (*old?.values.get(c)?)?;
            (value >= before).then(|| value - before)
        };
        let measured = measurements(source.table).zip(&row.values);
        measured.enumerate().map(grown).collect()
    }

    /// Adds the rows of a reading, at a time of the server's clock. `vcpus_x100` is 0 if unknown.
    pub fn write_rows(
        &self,
        batch: &mut Batch,
        dictionary: &mut Dictionary,
        time_ms: i64,
        vcpus_x100: i64,
    ) {
        for (reset_ms, detail) in &self.resets {
            let times = [*reset_ms, 0, 0];
            put_marker(batch, dictionary, "statistics reset", times, detail);
        }
        for (table, object, values) in &self.rows {
            let object = dictionary.name(batch, object);
            let mut fields: Vec<Field> = vec![
                ("time", time_ms),
                ("elapsed_ms", self.elapsed_ms),
                ("object", object),
            ];
            // The values are stored plus one, because 0 means unknown.
            let known = measurements(table).zip(values);
            let known = known.filter_map(|(column, v)| Some((column.name.as_str(), (*v)? + 1)));
            fields.extend(known);
            if *table == SERVER && vcpus_x100 > 0 {
                fields.push(("vcpus", vcpus_x100 + 1));
            }
            batch.add(table, &fields);
        }
    }
}

/// Names the statistics that were reset.
fn reset_of(source: &Source, object: &[u8]) -> String {
    match source.table {
        SERVER | "server_io" => source.what.to_string(),
        _ if object.is_empty() => "shared objects".to_string(),
        _ => format!("database \"{}\"", String::from_utf8_lossy(object)),
    }
}

/// Rows by key; without a column `key` the object's name is the key.
fn read(table: &str, answer: &Answer) -> Rows {
    let columns: Vec<Option<usize>> = measurements(table)
        .map(|column| answer.column(&column.name))
        .collect();
    let [key, object, reset] = ["key", "object", "reset"].map(|name| answer.column(name));
    let bytes = |row, column: Option<usize>| {
        let bytes = column.and_then(|column| answer.bytes(row, column));
        bytes.unwrap_or_default().to_vec()
    };
    let number = |row, column: Option<usize>| answer.number(row, column?);
    let row = |row| {
        let values = columns.iter().map(|column| number(row, *column)).collect();
        let known = Row {
            object: bytes(row, object),
            values,
            reset_ms: number(row, reset),
        };
        (bytes(row, key.or(object)), known)
    };
    (0..answer.rows()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn source(what: &str) -> &'static Source {
        SOURCES.iter().find(|source| source.what == what).unwrap()
    }

    /// A row with one value.
    fn row(what: &str, key: &str, column: &str, value: i64, reset_ms: i64) -> (Vec<u8>, Row) {
        let measured = measurements(source(what).table);
        let row = Row {
            object: key.as_bytes().to_vec(),
            values: measured
                .map(|c| (c.name == column).then_some(value))
                .collect(),
            reset_ms: Some(reset_ms),
        };
        (key.as_bytes().to_vec(), row)
    }

    /// Values of a column by object, and resets.
    fn told(reading: &Reading, column: &str) -> Vec<(String, Option<i64>)> {
        let mut told = Vec::new();
        for (table, object, values) in &reading.rows {
            if let Some(c) = measurements(table).position(|c| c.name == column) {
                told.push((String::from_utf8(object.clone()).unwrap(), values[c]));
            }
        }
        told
    }

    #[test]
    fn every_column_of_a_question_is_in_the_catalog_and_every_table_has_one() {
        for source in SOURCES {
            assert!(measurements(source.table).count() > 0, "{}", source.what);
        }
        // Clients cannot see figures of the host, nor connections that never became sessions.
        let asked = |name: &str| SOURCES.iter().any(|s| s.sql.contains(name));
        let unasked = measurements(SERVER)
            .filter(|c| !asked(&c.name))
            .map(|c| c.id);
        let unasked: Vec<_> = unasked.collect();
        let of_host: Vec<_> = (3..=21).chain(38..=39).collect();
        let advice = "ask for what a view tells in SOURCES, list what only the host does here";
        assert_eq!(unasked, of_host, "{advice}");
        for table in [
            "server_database",
            "server_replica",
            "server_slot",
            "server_io",
        ] {
            assert!(measurements(table).all(|c| asked(&c.name)), "{table}");
        }
    }

    #[test]
    fn each_version_has_each_source_once() {
        let all: BTreeSet<&str> = SOURCES.iter().map(|s| s.what).collect();
        for version in [140_000, 160_009, 170_000, 190_000] {
            let mut has: Vec<&str> = sources(version).map(|s| s.what).collect();
            has.sort_unstable();
            let mut wanted: Vec<&str> = all.iter().copied().collect();
            wanted.retain(|what| version >= 160_000 || *what != "I/O");
            assert_eq!(has, wanted, "{version}");
        }
    }

    #[test]
    fn a_counter_is_its_increase_and_a_reset_is_counted_whole_and_told() {
        let mut measures = Measures::default();
        let mut read = |value, reset_ms, mono_ms| {
            let rows = vec![row("write-ahead log", "", "wal_records", value, reset_ms)];
            let reading = measures.compare(vec![(source("write-ahead log"), rows)], mono_ms);
            let (told, resets) = (told(&reading, "wal_records"), reading.resets);
            (told[0].1, reading.elapsed_ms, resets)
        };
        assert_eq!(read(100, 5, 1_000), (None, 0, vec![]));
        assert_eq!(read(130, 5, 11_000), (Some(30), 10_000, vec![]));
        assert_eq!(read(130, 5, 12_000), (Some(0), 1_000, vec![]));
        let reset = "statistics of write-ahead log were reset".to_string();
        assert_eq!(read(7, 9, 13_000), (Some(7), 1_000, vec![(9, reset)]));
        assert_eq!(
            read(3, 9, 14_000),
            (None, 1_000, vec![]),
            "back without a reset"
        );
        assert_eq!(
            read(9, 9, 3_614_001),
            (None, 3_600_001, vec![]),
            "too long ago"
        );
    }

    #[test]
    fn a_source_that_was_not_read_for_an_hour_at_most_keeps_its_counts() {
        let wal = source("write-ahead log");
        let mut measures = Measures::default();
        let mut read = |value: Option<i64>, mono_ms| {
            let rows = value.map(|value| (wal, vec![row(wal.what, "", "wal_records", value, 5)]));
            told(
                &measures.compare(rows.into_iter().collect(), mono_ms),
                "wal_records",
            )[0]
            .1
        };
        assert_eq!(read(Some(100), 0), None);
        assert_eq!(read(None, 1_000), None);
        assert_eq!(read(Some(130), 2_000), Some(30));
        assert_eq!(read(None, 1_802_000), None);
        assert_eq!(read(Some(131), 3_602_000), Some(1));
        assert_eq!(read(None, 5_402_000), None);
        assert_eq!(read(Some(132), 7_202_001), None, "too long ago");
    }

    #[test]
    fn rows_of_io_are_reset_together_and_told_of_once() {
        let io = SOURCES.iter().find(|s| s.table == "server_io").unwrap();
        let mut measures = Measures::default();
        let mut read = |rows: &[(&str, i64)], reset_ms| {
            let rows = rows
                .iter()
                .map(|(name, n)| row("I/O", name, "io_reads", *n, reset_ms));
            let reading = measures.compare(vec![(io, rows.collect())], 0);
            (told(&reading, "io_reads"), reading.resets)
        };
        let grown = |name: &str, by| (name.to_string(), Some(by));
        assert_eq!(read(&[("a", 5), ("b", 6)], 1), (vec![], vec![]));
        assert_eq!(
            read(&[("a", 2), ("b", 1), ("c", 3)], 9),
            (
                vec![grown("a", 2), grown("b", 1), grown("c", 3)],
                vec![(9, "statistics of I/O were reset".to_string())]
            )
        );
        assert_eq!(
            read(&[("a", 2), ("b", 8)], 9),
            (vec![grown("b", 7)], vec![])
        );
    }

    #[test]
    fn a_database_that_is_new_began_at_0_and_one_that_rests_has_no_row() {
        let databases = source("databases");
        let mut measures = Measures::default();
        let mut read = |rows: &[(&str, i64)]| {
            let rows = rows
                .iter()
                .map(|(name, n)| row("databases", name, "xact_commit", *n, 0));
            let reading = measures.compare(vec![(databases, rows.collect())], 0);
            told(&reading, "xact_commit")
        };
        let grown = |name: &str, by| (name.to_string(), Some(by));
        assert_eq!(read(&[("old", 100)]), []);
        assert_eq!(read(&[("old", 100), ("new", 7)]), [grown("new", 7)]);
        assert_eq!(read(&[("old", 104), ("new", 7)]), [grown("old", 4)]);
        let all: Vec<_> = (0..MOST_ROWS).map(|i| format!("d{i}")).collect();
        let mut cut: Vec<_> = all.iter().map(|name| (name.as_str(), 5)).collect();
        let _ = read(&cut);
        *cut.last_mut().unwrap() = ("left out before", 5_000);
        assert_eq!(read(&cut), [], "nobody saw what it had counted before");
        assert_eq!(measures.compare(vec![], 0).rows.len(), 1, "not asked");
        let rows = vec![row("databases", "newer", "xact_commit", 9, 0)];
        let reading = measures.compare(vec![(databases, rows)], 0);
        assert_eq!(
            told(&reading, "xact_commit"),
            [],
            "nobody saw whether it was there"
        );
    }
}
