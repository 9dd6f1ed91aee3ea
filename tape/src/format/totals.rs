//! The tables of totals in sealed files: what each minute and each group observed
//! and, of the samples that count as load, the sum and the most in one tick, whole
//! and by some dimensions. Made and read by the code that answers questions
//! (`query/sums/totals_write.rs`, `query/sums/totals.rs`).

use crate::format::schema::TableDef;

/// What was observed, and the load.
pub(crate) const WHOLE: &str = "minute";
/// Id of the first table of totals; those behind it are totals too.
pub(crate) const FIRST_ID: u8 = 200;
/// Dimensions there are totals by for each minute and for each group.
pub(crate) const BY_MINUTE: [&str; 2] = ["wait_event", "wait_event_type"];
/// Dimensions of many keys: there are totals by them for each group, and the
/// sums of each minute for the largest keys.
pub(crate) const BY_GROUP: [&str; 1] = ["query_id"];
/// Columns of a table of totals by minute.
pub(crate) const MINUTE_COLUMNS: [&str; 5] = ["group", "key", "minute", "sum_ms", "most"];
/// Columns of a table of totals by group.
pub(crate) const GROUP_COLUMNS: [&str; 4] = ["group", "key", "sum_ms", "most"];
/// Columns of the minutes of the largest keys: for each of them a row for
/// every one of table `minute`.
pub(crate) const KEY_COLUMNS: [&str; 2] = ["key", "sum_ms"];
/// Columns of [`WHOLE`]; what stands between is `Coverage::to_row` of the query.
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
/// The table of totals by minute of a dimension.
pub(crate) fn minute_table(dimension: &str) -> String {
    format!("{WHOLE}_{dimension}")
}

/// The table of totals by group of a dimension.
pub(crate) fn group_table(dimension: &str) -> String {
    format!("group_{dimension}")
}

/// The tables of totals, which every file has beside those it was sent.
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
    let all = (FIRST_ID..).zip(all.chain(by_minute).chain(by_group).chain(whole_groups));
    all.map(|(id, (name, columns))| TableDef::of_numbers(id, &name, columns))
        .collect()
}
