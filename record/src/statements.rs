//! Counters of statements, from pg_stat_statements. Each pass records how much they
//! have grown since the previous pass. A counter that was reset, or whose entry was
//! evicted and created again, is recorded as it is. Counts between the last pass
//! and an eviction are lost.

use crate::batch::{Batch, Dictionary, Field};
use crate::names::{Kind, Names};
use std::collections::HashMap;
use tacho_dsn::Answer;
use tacho_source::catalog;
use tacho_tape::format::schema::{ColumnDef, ColumnType};

/// Time 0 of PostgreSQL, 2000-01-01, in ms since 1970: the counters were never reset.
const NEVER_RESET_MS: i64 = 946_684_800_000;

const TABLE: &str = "statement_stats";
/// Id of the first counter in `statement_stats`. Columns with a smaller id are the keys of a row.
const FIRST_COUNTER: u8 = 16;
/// If the previous pass is longer ago than this, in ms, the increases are not recorded: they would
/// belong to no particular time.
const LONGEST_MS: i64 = 3_600_000;
/// Maximum number of rows in a frame.
const FRAME_ROWS: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    user: u32,
    database: u32,
    query_id: i64,
    toplevel: bool,
}

struct EntryCounters {
    values: Vec<i64>,
    /// The shortest and the longest execution, ms. In one life the first can only
    /// fall and the second only rise.
    extremes: [f64; 2],
    /// Time in µs since 1970 when the entry began to count; 0 before 1.11, which does not show it.
    since_us: i64,
}

/// Counters at the previous pass.
#[derive(Default)]
pub struct Statements {
    counted: HashMap<Key, EntryCounters>,
    read_ms: Option<i64>,
    /// Time in ms at which the counters of all roles were last known: an answer showed all entries,
    /// or a reset made them 0.
    all_ms: Option<i64>,
    reset: Option<String>,
    interval: Option<i64>,
}

/// The entries that an answer shows.
#[derive(Clone, Copy)]
struct VisibleEntries {
    /// True if the answer shows entries of all roles (`pg_read_all_stats`). False if it shows only
    /// entries of `user`.
    all: bool,
    /// The role that asks.
    user: u32,
}

/// Rows of a pass.
pub struct Pass {
    time_ms: i64,
    elapsed_ms: i64,
    rows: Vec<(Key, Vec<i64>)>,
    /// Time of the reset, if there was one since the previous pass.
    pub reset_ms: Option<i64>,
}

/// The question; `schema` is the schema of pg_stat_statements. The role's settings
/// must not change values: times are sent as numbers, floats with all digits. A
/// version without `stats_since` takes the null of `missing`.
pub fn question(schema: &str) -> String {
    format!(
        "set local extra_float_digits = 1; \
         select s.* from (select null::timestamptz as stats_since) missing, lateral \
           (select *, (date_part('epoch', stats_since) * 1e6)::int8 as since_us \
             from {schema}.pg_stat_statements(false) where queryid is not null) s; \
         select (date_part('epoch', stats_reset) * 1e6)::int8 / 1000, \
         pg_has_role(current_user, 'pg_read_all_stats', 'usage'), \
         quote_ident(current_user)::regrole::oid \
         from {schema}.pg_stat_statements_info"
    )
}

/// Counters, in the order of the catalog.
fn counters() -> impl Iterator<Item = &'static ColumnDef> {
    let table = catalog::schema().table(TABLE);
    let columns = table.map_or(&[][..], |table| &table.columns);
    columns.iter().filter(|column| column.id >= FIRST_COUNTER)
}

/// Index of a counter's column in an answer. Older versions have other names for
/// two of them.
fn position(answer: &Answer, name: &str) -> Option<usize> {
    let old = match name {
        "shared_blk_read_time" => "blk_read_time",
        "shared_blk_write_time" => "blk_write_time",
        _ => name,
    };
    answer.column(name).or_else(|| answer.column(old))
}

/// How to read a counter from a row.
enum Reader {
    Number(usize),
    /// A time in ms in the column with this index; recorded in units of 10 µs.
    Time(usize),
    /// Sum of squares, in hundredths of ms², from number, sum and deviation.
    Square([usize; 3]),
    Absent,
}

impl Reader {
    fn new(answer: &Answer, column: &ColumnDef) -> Reader {
        let square = |names: [&str; 3]| {
            let [n, sum, deviation] = names.map(|name| position(answer, name));
            Some(Reader::Square([n?, sum?, deviation?]))
        };
        let found = match column.name.as_str() {
            "square_exec_time" => square(["calls", "total_exec_time", "stddev_exec_time"]),
            "square_plan_time" => square(["plans", "total_plan_time", "stddev_plan_time"]),
            name if column.ty == ColumnType::Span => position(answer, name).map(Reader::Time),
            name => position(answer, name).map(Reader::Number),
        };
        found.unwrap_or(Reader::Absent)
    }

    fn read(&self, answer: &Answer, row: usize) -> i64 {
        let real = |column| answer.number::<f64>(row, column).unwrap_or(0.0);
        match *self {
            Reader::Absent => 0,
            Reader::Number(column) => answer.number(row, column).unwrap_or(0),
            Reader::Time(column) => (real(column) * 100.0).round() as i64,
            Reader::Square(columns) => {
                let [n, sum, deviation] = columns.map(real);
                (sum_of_squares(n, sum, deviation) * 100.0).round() as i64
            }
        }
    }
}

fn sum_of_squares(n: f64, sum: f64, deviation: f64) -> f64 {
    if n > 0.0 {
        deviation * deviation * n + sum * sum / n
    } else {
        0.0
    }
}

impl Statements {
    /// True if the server's clock has entered another interval. The first pass is
    /// due at once: it only learns the counters.
    pub fn is_due(&mut self, server_ms: i64, interval_ms: i64) -> bool {
        let interval = Some(server_ms.div_euclid(interval_ms));
        std::mem::replace(&mut self.interval, interval) != interval
    }

    /// Takes the answers of [`question`].
    pub fn take(&mut self, answers: &[Answer], time_ms: i64) -> Option<Pass> {
        let [entries, info] = answers else {
            return None;
        };
        let readers: Vec<Reader> = counters()
            .map(|column| Reader::new(entries, column))
            .collect();
        let [user, database, query_id, toplevel, since] =
            ["userid", "dbid", "queryid", "toplevel", "since_us"].map(|name| entries.column(name));
        let extremes = ["min_exec_time", "max_exec_time"].map(|name| entries.column(name));
        let mut read = Vec::new();
        for row in 0..entries.rows() {
            let key = Key {
                user: user.and_then(|c| entries.number(row, c)).unwrap_or(0),
                database: database.and_then(|c| entries.number(row, c)).unwrap_or(0),
                query_id: query_id.and_then(|c| entries.number(row, c)).unwrap_or(0),
                toplevel: toplevel.is_none_or(|c| entries.bytes(row, c) == Some(b"t")),
            };
            let since_us = since.and_then(|c| entries.number(row, c)).unwrap_or(0);
            let values = readers
                .iter()
                .map(|reader| reader.read(entries, row))
                .collect();
            let extremes =
                extremes.map(|column| column.and_then(|c| entries.number(row, c)).unwrap_or(0.0));
            let counted = EntryCounters {
                values,
                extremes,
                since_us,
            };
            read.push((key, counted));
        }
        let reset = info.text(0, 0).map(str::to_string);
        let sight = VisibleEntries {
            all: info.bytes(0, 1) == Some(b"t"),
            user: info.number(0, 2).unwrap_or(0),
        };
        self.compare(read, reset, sight, time_ms)
    }

    fn compare(
        &mut self,
        read: Vec<(Key, EntryCounters)>,
        reset: Option<String>,
        sight: VisibleEntries,
        time_ms: i64,
    ) -> Option<Pass> {
        let before_ms = self.read_ms.replace(time_ms);
        let is_other = before_ms.is_some() && self.reset != reset;
        self.reset = reset;
        let reset_ms: Option<i64> = self.reset.as_ref().and_then(|text| text.parse().ok());
        let mut before = std::mem::take(&mut self.counted);
        // Counters that were reset before the last reading are the counters of another server, which
        // has taken over. Their values until now belong to no interval. After a crash the counters
        // begin with 0, and their reset has the time 0 of the server.
        let is_older = |(at, ms)| NEVER_RESET_MS < at && at < ms;
        let is_other_server = is_other && reset_ms.zip(before_ms).is_some_and(is_older);
        if is_other_server {
            self.counted = read.into_iter().collect();
            self.all_ms = sight.all.then_some(time_ms);
            return None;
        }
        let was_reset = is_other;
        if was_reset {
            before.clear();
            self.all_ms = Some(time_ms);
        }
        let knows_others = self.all_ms.is_some_and(|ms| time_ms - ms <= LONGEST_MS);
        let mut rows = Vec::new();
        for (key, counted) in read {
            let was = before.remove(&key);
            // The counters of an entry that was hidden until now may be old.
            if was.is_some() || knows_others || key.user == sight.user {
                let growth = growth(&counted, was.as_ref());
                if growth.iter().any(|value| *value != 0) {
                    rows.push((key, growth));
                }
            }
            self.counted.insert(key, counted);
        }
        if sight.all {
            self.all_ms = Some(time_ms);
        } else if knows_others {
            // Entries that are hidden now may go on counting. They keep the values of the last
            // answer that showed them all.
            let hidden = before.into_iter().filter(|(key, _)| key.user != sight.user);
            self.counted.extend(hidden);
        }
        let elapsed_ms = time_ms - before_ms?;
        (1..=LONGEST_MS).contains(&elapsed_ms).then(|| Pass {
            time_ms,
            elapsed_ms,
            rows,
            reset_ms: reset_ms.filter(|_| was_reset),
        })
    }
}

/// Increase since `before`, or the counters themselves if counting began again.
fn growth(now: &EntryCounters, before: Option<&EntryCounters>) -> Vec<i64> {
    match before.filter(|before| is_one_life(before, now)) {
        None => now.values.clone(),
        Some(before) => {
            let pairs = now.values.iter().zip(&before.values);
            pairs.map(|(now, before)| (now - before).max(0)).collect()
        }
    }
}

/// True unless the entry was evicted and created again between the two. Servers before
/// 17 do not say when an entry began. There, a second life is recognised by a
/// smaller counter or narrower extremes. A second life that is ahead in all of them
/// goes unnoticed.
fn is_one_life(before: &EntryCounters, now: &EntryCounters) -> bool {
    let tells = now.since_us != 0;
    let [before_extremes, extremes] = [before.extremes, now.extremes];
    // Both extremes are 0 until the first execution, but the statement may have been planned
    // before.
    let wider = before_extremes == [0.0; 2]
        || extremes[0] <= before_extremes[0] && extremes[1] >= before_extremes[1];
    // Sums of squares are computed from a deviation, and may fall by its rounding.
    let sums = counters().map(|column| !column.name.starts_with("square_"));
    let mut pairs = sums.zip(before.values.iter().zip(&now.values));
    before.since_us == now.since_us
        && (tells || wider)
        && pairs.all(|(is_sum, (before, now))| !is_sum || before <= now)
}

impl Pass {
    /// Query ids of the pass.
    pub fn query_ids(&self) -> impl Iterator<Item = i64> {
        self.rows.iter().map(|row| row.0.query_id)
    }

    /// Requests the names that the pass needs.
    pub fn request(&self, names: &mut Names, now_ms: i64) {
        for (key, _) in &self.rows {
            names.request(Kind::Database, key.database, now_ms);
            names.request(Kind::Role, key.user, now_ms);
        }
    }

    /// Adds the rows of frame number `frame`. Returns false if there are no more.
    /// The last row has no entry: it records that the pass was made, even if
    /// nothing was counted.
    pub fn put(
        &self,
        frame: usize,
        batch: &mut Batch,
        dictionary: &mut Dictionary,
        names: &Names,
    ) -> bool {
        let mut left = self.rows.iter().skip(frame * FRAME_ROWS);
        for (key, growth) in left.by_ref().take(FRAME_ROWS) {
            let entry = key.define(batch, dictionary, names);
            let counted = counters()
                .zip(growth)
                .map(|(column, value)| (column.name.as_str(), *value));
            let fields: Vec<Field> = self.head(entry).into_iter().chain(counted).collect();
            batch.add(TABLE, &fields);
        }
        let more = left.next().is_some();
        if !more {
            batch.add(TABLE, &self.head(0));
        }
        more
    }

    fn head(&self, entry: i64) -> [Field; 3] {
        [
            ("time", self.time_ms),
            ("elapsed_ms", self.elapsed_ms),
            ("entry", entry),
        ]
    }

    /// The time in ms since 1970 that the rows' times are relative to.
    pub fn time_ms(&self) -> i64 {
        self.time_ms
    }
}

impl Key {
    fn define(&self, batch: &mut Batch, dictionary: &mut Dictionary, names: &Names) -> i64 {
        let username = dictionary.name(batch, names.get(Kind::Role, self.user));
        let database = dictionary.name(batch, names.get(Kind::Database, self.database));
        let fields = [
            ("user_oid", self.user.into()),
            ("username", username),
            ("database_oid", self.database.into()),
            ("database", database),
            ("query_id", self.query_id),
            ("toplevel", self.toplevel.into()),
        ];
        dictionary.entry(batch, "entry", &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(calls: i64, since_us: i64) -> EntryCounters {
        let value = |column: &ColumnDef| if column.name == "calls" { calls } else { 0 };
        EntryCounters {
            values: counters().map(value).collect(),
            extremes: [0.0; 2],
            since_us,
        }
    }

    const ME: u32 = 77;
    const ALL: VisibleEntries = VisibleEntries {
        all: true,
        user: ME,
    };
    /// Shows only the entries of role [`ME`].
    const OWN: VisibleEntries = VisibleEntries {
        all: false,
        user: ME,
    };

    /// Runs a pass that shows these entries: calls by query.
    fn seen(
        s: &mut Statements,
        sight: VisibleEntries,
        ms: i64,
        read: &[(Key, i64)],
    ) -> Vec<(i64, i64)> {
        let read = read.iter().map(|(key, calls)| (*key, counted(*calls, 0)));
        let pass = s.compare(read.collect(), Some("0".into()), sight, ms);
        let calls = |row: &(Key, Vec<i64>)| (row.0.query_id, row.1.iter().sum());
        pass.map_or_else(Vec::new, |pass| pass.rows.iter().map(calls).collect())
    }

    fn mine(query_id: i64) -> Key {
        Key {
            user: ME,
            ..key(query_id)
        }
    }

    fn key(query_id: i64) -> Key {
        Key {
            user: 10,
            database: 5,
            query_id,
            toplevel: true,
        }
    }

    type Found = (Vec<(i64, i64)>, Option<i64>);

    /// Runs a pass: calls by query, and the time of a reset.
    fn pass(
        statements: &mut Statements,
        read: &[(i64, i64, i64)],
        reset: &str,
        ms: i64,
    ) -> Option<Found> {
        let read = read
            .iter()
            .map(|(id, calls, since_us)| (key(*id), counted(*calls, *since_us)));
        let pass = statements.compare(read.collect(), Some(reset.to_string()), ALL, ms)?;
        let calls = |row: &(Key, Vec<i64>)| (row.0.query_id, row.1.iter().sum());
        Some((pass.rows.iter().map(calls).collect(), pass.reset_ms))
    }

    #[test]
    fn a_pass_has_the_counts_since_the_pass_before() {
        let mut s = Statements::default();
        assert_eq!(pass(&mut s, &[(1, 100, 0), (2, 5, 0)], "0", 1_000), None);
        let rows = pass(&mut s, &[(1, 103, 0), (2, 5, 0), (3, 7, 0)], "0", 61_000);
        assert_eq!(rows, Some((vec![(1, 3), (3, 7)], None)));
    }

    #[test]
    fn counters_that_restarted_are_counted_from_zero() {
        let mut s = Statements::default();
        pass(&mut s, &[(1, 100, 1), (2, 5, 1)], "0", 1_000);
        let rows = pass(&mut s, &[(1, 120, 2), (2, 4, 1)], "0", 61_000);
        assert_eq!(
            rows,
            Some((vec![(1, 120), (2, 4)], None)),
            "another begin, fewer calls"
        );
        let rows = pass(&mut s, &[(1, 2, 3)], "90000", 121_000);
        assert_eq!(rows, Some((vec![(1, 2)], Some(90_000))), "a reset is told");
        assert_eq!(
            pass(&mut s, &[(1, 9, 3)], "90000", 4_000_000),
            None,
            "too long ago"
        );
    }

    #[test]
    fn counters_of_a_server_that_takes_over_begin_with_their_values() {
        let begin = NEVER_RESET_MS + 1_000_000;
        let at = |ms: i64| (begin + ms).to_string();
        let mut s = Statements::default();
        assert_eq!(pass(&mut s, &[(1, 100, 0)], &at(0), begin + 60_000), None);
        // The other server has counted since a reset that is older than the last reading.
        let read = [(1, 5_000, 0), (2, 9_000, 0)];
        assert_eq!(pass(&mut s, &read, &at(-500), begin + 120_000), None);
        let read = [(1, 5_002, 0), (2, 9_000, 0)];
        let rows = pass(&mut s, &read, &at(-500), begin + 180_000);
        assert_eq!(rows, Some((vec![(1, 2)], None)));
        // A crash.
        let never = NEVER_RESET_MS.to_string();
        let rows = pass(&mut s, &[(1, 7, 0)], &never, begin + 240_000);
        assert_eq!(rows, Some((vec![(1, 7)], Some(NEVER_RESET_MS))));
    }

    #[test]
    fn after_a_reset_all_is_counted_whole_also_what_has_passed_its_old_count() {
        let mut s = Statements::default();
        pass(&mut s, &[(1, 100, 0)], "0", 1_000);
        let rows = pass(&mut s, &[(1, 120, 0)], "90000", 61_000);
        assert_eq!(rows, Some((vec![(1, 120)], Some(90_000))));
    }

    #[test]
    fn counters_that_were_hidden_by_rights_did_not_restart() {
        let mut s = Statements::default();
        pass(&mut s, &[(1, 100, 0), (2, 5, 0)], "0", 1_000);
        let hidden = s.compare(
            vec![(key(1), counted(101, 0))],
            Some("0".into()),
            OWN,
            2_000,
        );
        assert_eq!(hidden.map(|pass| pass.rows.len()), Some(1));
        let rows = pass(&mut s, &[(1, 103, 0), (2, 7, 0)], "0", 3_000);
        assert_eq!(rows, Some((vec![(1, 2), (2, 2)], None)));
        pass(&mut s, &[(1, 103, 0)], "0", 4_000);
        let rows = pass(&mut s, &[(1, 103, 0), (2, 9, 0)], "0", 5_000);
        assert_eq!(rows, Some((vec![(2, 9)], None)), "it was evicted");
    }

    #[test]
    fn without_rights_entries_of_the_own_role_are_kept_while_they_are_shown() {
        let mut s = Statements::default();
        for id in 0..1_000 {
            let ms = 1_000 * (id + 1);
            assert_eq!(
                seen(&mut s, OWN, ms, &[(mine(id), 3)]).len(),
                usize::from(id > 0)
            );
            assert_eq!(s.counted.len(), 1, "evicted ones are not kept");
        }
        let again = seen(&mut s, OWN, 1_001_000, &[(mine(0), 2)]);
        assert_eq!(again, [(0, 2)], "an evicted one begins anew");
    }

    #[test]
    fn counters_hidden_by_rights_are_kept_for_an_hour() {
        let mut s = Statements::default();
        let others = [(key(1), 10), (key(2), 10)];
        seen(&mut s, ALL, 0, &others);
        for minute in 1..=60 {
            seen(&mut s, OWN, minute * 60_000, &[(mine(9), minute)]);
            assert_eq!(s.counted.len(), 3);
        }
        seen(&mut s, OWN, 61 * 60_000, &[(mine(9), 61)]);
        assert_eq!(s.counted.len(), 1);
        // Keys 1 to 3 were hidden for over an hour. Their calls in that time do not belong to one
        // minute, so they are dropped.
        let grown = [(key(1), 90), (key(2), 10), (key(3), 7), (mine(9), 63)];
        assert_eq!(seen(&mut s, ALL, 62 * 60_000, &grown), [(9, 2)]);
        let grown = [(key(1), 91), (key(2), 10), (key(3), 7), (key(4), 5)];
        assert_eq!(seen(&mut s, ALL, 63 * 60_000, &grown), [(1, 1), (4, 5)]);
    }

    #[test]
    fn executions_from_before_a_grant_are_not_counted() {
        let mut s = Statements::default();
        seen(&mut s, OWN, 0, &[(mine(9), 1)]);
        let all = [(key(1), 1_000_000), (mine(9), 1), (mine(8), 4)];
        assert_eq!(seen(&mut s, ALL, 60_000, &all), [(8, 4)]);
        let all = [(key(1), 1_000_002), (mine(9), 1), (mine(8), 4)];
        assert_eq!(seen(&mut s, ALL, 120_000, &all), [(1, 2)]);
    }

    #[test]
    fn a_second_life_is_counted_whole_where_anything_shows_it() {
        let calls_of = |was: [f64; 2], is: [f64; 2], since: [i64; 2]| {
            let mut s = Statements::default();
            let entry = |calls, extremes, since| EntryCounters {
                extremes,
                ..counted(calls, since)
            };
            let first = entry(100, was, since[0]);
            s.compare(vec![(key(1), first)], None, ALL, 0);
            let second = entry(120, is, since[1]);
            let pass = s.compare(vec![(key(1), second)], None, ALL, 60_000);
            pass.map(|pass| pass.rows[0].1.iter().sum::<i64>())
        };
        let older = [0, 0];
        assert_eq!(calls_of([0.1, 5.0], [0.1, 5.0], older), Some(20));
        assert_eq!(calls_of([0.1, 5.0], [0.05, 6.0], older), Some(20));
        assert_eq!(calls_of([0.0, 0.0], [0.05, 6.0], older), Some(20));
        assert_eq!(calls_of([0.1, 5.0], [0.2, 6.0], older), Some(120));
        assert_eq!(calls_of([0.1, 5.0], [0.1, 4.0], older), Some(120));
        // If the server shows when entries began, narrower extremes are no second life: they can be
        // reset on their own.
        assert_eq!(calls_of([0.1, 5.0], [0.2, 4.0], [1, 1]), Some(20));
        assert_eq!(calls_of([0.1, 5.0], [0.1, 5.0], [1, 2]), Some(120));
    }

    #[test]
    fn a_counter_that_fell_shows_a_second_life_but_a_rounded_square_does_not() {
        let grown = |name: &str| {
            let set = |calls, value| {
                let mut counted = counted(calls, 0);
                let index = counters().position(|column| column.name == name);
                counted.values[index.unwrap_or(0)] = value;
                counted
            };
            growth(&set(120, 9), Some(&set(100, 10)))
        };
        let calls = counters().position(|column| column.name == "calls");
        let calls = |name| grown(name)[calls.unwrap_or(0)];
        assert_eq!(calls("rows"), 120);
        assert_eq!(calls("total_exec_time"), 120);
        assert_eq!(calls("wal_bytes"), 120);
        assert_eq!(calls("square_exec_time"), 20);
    }

    #[test]
    fn a_sum_of_squares_follows_from_the_deviation() {
        // 1, 2 and 3 ms: mean 2, variance 2/3.
        let sum = sum_of_squares(3.0, 6.0, (2.0_f64 / 3.0).sqrt());
        assert!((sum - 14.0).abs() < 1e-9, "{sum}");
        assert_eq!(sum_of_squares(0.0, 0.0, 0.0), 0.0);
    }

    #[test]
    fn a_pass_is_due_once_an_interval_of_the_servers_clock() {
        let mut s = Statements::default();
        let due = [30_000, 59_999, 60_000, 119_999, 120_001].map(|ms| s.is_due(ms, 60_000));
        assert_eq!(due, [true, false, true, false, true]);
    }
}
