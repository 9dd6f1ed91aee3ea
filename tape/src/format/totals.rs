//! The tables of totals in sealed files. For each minute and each group they have the coverage and
//! the load: the sum of the weights and the largest number of sessions in one tick, for all samples
//! together and by some dimensions. The code that answers questions makes and reads them
//! (`query/sums/totals_write.rs`, `query/sums/totals.rs`).

use crate::format::schema::{RUN, SAMPLE, Schema, TableDef};

/// Table with the coverage and the load of each minute.
pub(crate) const WHOLE: &str = "minute";
/// Id of the first table of totals; all tables with larger ids are totals, too.
pub(crate) const FIRST_ID: u8 = 200;
/// Dimensions with totals for each minute and for each group.
pub(crate) const BY_MINUTE: [&str; 2] = ["wait_event", "wait_event_type"];
/// Dimensions with many keys: they have totals for each group, and sums for each minute of the
/// largest keys of the file and of each group.
pub(crate) const BY_GROUP: [&str; 1] = ["query_id"];
/// Columns of a table of totals by minute.
pub(crate) const MINUTE_COLUMNS: [&str; 5] = ["group", "key", "minute", "sum_ms", "most"];
/// Columns of a table of totals by group.
pub(crate) const GROUP_COLUMNS: [&str; 4] = ["group", "key", "sum_ms", "most"];
/// Columns of the minutes of the largest keys. Each key has a row for every row of table `minute`.
pub(crate) const KEY_COLUMNS: [&str; 2] = ["key", "sum_ms"];
/// Columns of the minutes of a group's largest keys. Each key has a row for every row of table
/// `minute` of its group.
pub(crate) const OWN_COLUMNS: [&str; 3] = ["group", "key", "sum_ms"];
/// Columns of [`WHOLE`]. From `observed_ms` to `vcpus_x100` they are a row of `Coverage::to_row`
/// (`query/`).
pub(crate) const WHOLE_COLUMNS: [&str; 12] = [
    "group",
    "minute",
    "observed_ms",
    "failed_ms",
    "ticks_observed",
    "ticks_failed",
    "last_slot_ms",
    "last_interval_ms",
    "vcpus_slot_ms",
    "vcpus_x100",
    "sum_ms",
    "most",
];
/// Name of a dimension's table of totals by minute.
pub(crate) fn minute_table(dimension: &str) -> String {
    format!("{WHOLE}_{dimension}")
}

/// Name of a dimension's table of totals by group.
pub(crate) fn group_table(dimension: &str) -> String {
    format!("group_{dimension}")
}

/// Name of the table with the minutes of each group's largest keys that the file's table of largest
/// keys lacks.
pub(crate) fn own_table(dimension: &str) -> String {
    format!("group_minute_{dimension}")
}

/// The tables of totals. Every sealed file has them beside the sampler's tables.
pub(crate) fn tables() -> Vec<TableDef> {
    let by_minute = BY_MINUTE
        .iter()
        .map(|name| (minute_table(name), &MINUTE_COLUMNS[..]));
    let by_group = BY_GROUP.iter().flat_map(|name| {
        let groups = (group_table(name), &GROUP_COLUMNS[..]);
        [groups, (minute_table(name), &KEY_COLUMNS[..])]
    });
    let all = [(WHOLE.to_string(), &WHOLE_COLUMNS[..])].into_iter();
    let whole_groups = BY_MINUTE
        .iter()
        .map(|name| (group_table(name), &GROUP_COLUMNS[..]));
    let own = BY_GROUP
        .iter()
        .map(|name| (own_table(name), &OWN_COLUMNS[..]));
    let all = all.chain(by_minute).chain(by_group);
    let all = (FIRST_ID..).zip(all.chain(whole_groups).chain(own));
    all.map(|(id, (name, columns))| TableDef::of_numbers(id, &name, columns))
        .collect()
}

impl Schema {
    /// True if this table (by index) is a table of totals. Files store these with the dictionaries,
    /// for all groups.
    pub fn is_totals(&self, table: usize) -> bool {
        self.tables[table].id >= FIRST_ID
    }

    /// The same schema with table `run` in place of `sample`, and with the tables of totals. `at`
    /// becomes `first_tick` and `gone` becomes `ticks`; their ids stay.
    #[must_use]
    pub fn with_runs(mut self) -> Self {
        if let Some(table) = self.tables.iter_mut().find(|t| t.name == SAMPLE) {
            table.name = RUN.into();
            for column in &mut table.columns {
                match column.name.as_str() {
                    "at" => column.name = "first_tick".into(),
                    "gone" => column.name = "ticks".into(),
                    _ => (),
                }
            }
        }
        if !(0..self.tables.len()).any(|t| self.is_totals(t)) {
            self.tables.extend(tables());
        }
        self
    }
}
