//! Adds up the activity of tables and indexes by bucket. A row has the counts of a table or index in the
//! `elapsed_ms` before `time`. The whole row counts in the bucket with the middle of this interval.
//! The last row of an interval has no OID: it is the sum of the tables and indexes without a row of
//! their own, and says that the interval was recorded completely.

use super::intervals::{Nodes, Recorded, may_have, middle_us, record};
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::Window;
use crate::query::rows::relations::Relation;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use std::collections::HashMap;

/// The table with the records.
pub const TABLE: &str = "table_stats";

/// The counters, in the order of the catalog.
pub const COUNTERS: [&str; 14] = [
    "scans",
    "tuples_returned",
    "tuples_fetched",
    "tuples_inserted",
    "tuples_updated",
    "tuples_deleted",
    "tuples_hot_updated",
    NEW_PAGES,
    "blks_read",
    "blks_hit",
    "vacuum_count",
    "autovacuum_count",
    "analyze_count",
    "autoanalyze_count",
];
/// The counter that is stored plus one; 0 = not known.
const NEW_PAGES: &str = "tuples_newpage_updated";
/// Places of the counters that make up the work: rows read and written, and blocks read. The
/// sampler chooses by the same sum.
pub const WORK: [usize; 6] = [1, 2, 3, 4, 5, 8];
/// Columns of the state at the end of an interval: numbers, then times.
const STATE: [&str; 9] = [
    "live_tuples",
    "dead_tuples",
    "mod_since_analyze",
    "ins_since_vacuum",
    "last_vacuum",
    "last_autovacuum",
    "last_analyze",
    "last_autoanalyze",
    "last_scan",
];

/// A table or index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableKey {
    /// Name of its database; `None` if all databases share it.
    pub database: Option<String>,
    /// OID of its database, and OID of the table or index.
    pub relation: Relation,
}

/// The sums of a table or index in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// One sum for each of [`COUNTERS`].
    pub counts: [i64; COUNTERS.len()],
    /// True if the server counts the rows that went to another page.
    pub knows_new_pages: bool,
    /// Number of rows that were added: one for each interval.
    pub intervals: i64,
    /// End of the newest interval, ms since 1970.
    time_ms: i64,
    /// The state at this time, by place in [`STATE`]; times in ms since 1970, 0 = none.
    pub state: [i64; STATE.len()],
}

impl Cell {
    /// The sum of the counters at some places.
    pub fn sum(&self, places: &[usize]) -> i128 {
        places
            .iter()
            .map(|place| i128::from(self.counts[*place]))
            .sum()
    }
}

/// The sums of lines in buckets, and what was recorded.
pub struct TableSums {
    /// The sums. A key is the number of a line and the index of a bucket.
    pub cells: HashMap<(u32, u32), Cell>,
    /// The recorded time of each bucket.
    pub recorded: Vec<Recorded>,
}

/// The tables and indexes of a question.
pub struct Tables<'a> {
    /// The attempt to answer.
    pub run: Run<'a>,
    /// The window, half-open.
    pub window: Window,
    /// The nodes to read.
    pub nodes: Vec<u64>,
    /// Filter of names of databases.
    pub databases: Option<Filter>,
}

impl<'a> Tables<'a> {
    /// The parts of all nodes.
    pub fn parts(&self) -> impl Iterator<Item = &'a Part> {
        let store = self.run.store;
        self.nodes.iter().flat_map(move |node| store.parts(*node))
    }

    /// Adds up the rows. `number` maps a table or index, or `None` for the others, to the line for
    /// its sums.
    pub fn sums(
        &self,
        buckets: &Buckets,
        mut number: impl FnMut(Option<TableKey>) -> u32,
    ) -> QueryResult<TableSums> {
        let mut all = TableSums {
            cells: HashMap::new(),
            recorded: vec![Recorded::default(); buckets.len()],
        };
        let together = Nodes::of(self.run.store, &self.nodes);
        for node in &self.nodes {
            let mut recorded = vec![Recorded::default(); buckets.len()];
            for part in self.run.store.parts(*node) {
                self.run.check_cancel()?;
                if self
                    .run
                    .damage
                    .note_and_continue(may_have(part, TABLE, self.window))?
                    == Some(true)
                {
                    let added =
                        self.add_part(part, buckets, &mut number, (&mut all.cells, &mut recorded));
                    self.run.damage.note_and_continue(added)?;
                    part.release();
                }
            }
            together.add(&mut all.recorded, recorded);
        }
        self.run.damage.check()?;
        Ok(all)
    }

    /// The table or index of each row; `None` for the others. Rows that the filter refuses are left
    /// out.
    fn keys(&self, part: &Part) -> QueryResult<Vec<(usize, Option<TableKey>)>> {
        let view = View::new(part, self.run.decode);
        let column = |name: &str| part.ints(TABLE, name);
        let (databases, oids) = (column("database_oid")?, column("oid")?);
        let names = column("database")?;
        let mut keys = Vec::new();
        for row in 0..oids.len() {
            let (database, oid) = (databases[row], oids[row]);
            let name = view.name(Reference(names[row]))?;
            let wanted = |filter: &Filter| oid != 0 && filter.accepts(name.as_deref());
            if self.databases.as_ref().is_none_or(wanted) {
                let relation = Relation { database, oid };
                let key = TableKey {
                    database: name,
                    relation,
                };
                keys.push((row, (oid != 0).then_some(key)));
            }
        }
        Ok(keys)
    }

    fn add_part(
        &self,
        part: &Part,
        buckets: &Buckets,
        number: &mut impl FnMut(Option<TableKey>) -> u32,
        (cells, recorded): (&mut HashMap<(u32, u32), Cell>, &mut [Recorded]),
    ) -> QueryResult<()> {
        let column = |name: &&str| part.ints(TABLE, name);
        let (time, elapsed) = (column(&"time")?, column(&"elapsed_ms")?);
        let oids = column(&"oid")?;
        let keys = self.keys(part)?;
        let counters = COUNTERS.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let state = STATE.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        for (row, _) in oids.iter().enumerate().filter(|(_, oid)| **oid == 0) {
            record(buckets, time[row], elapsed[row], recorded);
        }
        for (row, key) in keys {
            let Some(bucket) = buckets.index(middle_us(time[row], elapsed[row])) else {
                continue;
            };
            let cell = cells.entry((number(key), bucket as u32)).or_default();
            cell.intervals += 1;
            for (place, values) in counters.iter().enumerate() {
                cell.add(place, values[row]);
            }
            if time[row] >= cell.time_ms {
                cell.time_ms = time[row];
                cell.state = std::array::from_fn(|place| state[place][row]);
            }
        }
        Ok(())
    }
}

impl Cell {
    fn add(&mut self, place: usize, stored: i64) {
        let is_new_pages = COUNTERS[place] == NEW_PAGES;
        self.knows_new_pages |= is_new_pages && stored > 0;
        let value = stored - i64::from(is_new_pages && stored > 0);
        self.counts[place] = self.counts[place].saturating_add(value);
    }
}
