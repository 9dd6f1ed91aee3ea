//! Writes the rows of the experiment to tacho's own files: a day file with a
//! group per hour, as the writer merges them. Times are in units of 10 µs.

use super::data::{COLUMNS, Day, Values};
use crate::scenario::Layout;
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tacho_source::catalog;
use tacho_tape::files::directory::Numbers;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::format::sealed_write::FrameRange;
use tacho_tape::write::seal::SealedFile;
use tacho_tape::{Identity, PartBuilder, Snapshot};

const STATS: &str = "statement_stats";
/// For each stored column: its name in the tape, the index of its source in
/// [`COLUMNS`], and how many units of the source make one unit of the tape. The
/// last one is 0 for seconds, because the tape has ms: 1,000 units in a second.
const KEPT: [(&str, usize, i64); 8] = [
    ("time", 0, 1_000),
    ("calls", 4, 1),
    ("rows", 5, 1),
    ("shared_blks_hit", 6, 1),
    ("shared_blks_read", 7, 1),
    ("total_exec_time", 8, 1),
    ("shared_blk_read_time", 9, 1),
    ("elapsed_ms", 1, 0),
];

/// Writes a day of all databases. Returns the time for encoding and writing the
/// rows.
pub fn write(directory: &Path, number: u64, days: &[Day], layout: &Layout) -> Result<Duration> {
    let schema = Arc::new(catalog::schema().clone().with_runs());
    let storage = OsStorage::new(directory);
    let identity = Identity {
        node: 1,
        ..Identity::default()
    };
    let mut builder = PartBuilder::new(Arc::clone(&schema))?;
    let hourly = Layout {
        bucket_minutes: 60,
        ..layout.clone()
    };
    let days: Vec<_> = days.iter().map(|day| day.buckets(&hourly)).collect();
    let begin = Instant::now();
    let mut file = SealedFile::create(&storage, Numbers::one(number), schema, identity)?;
    let mut spent = begin.elapsed();
    for hour in 0..days.iter().map(Vec::len).max().unwrap_or(0) {
        for bucket in days.iter().filter_map(|day| day.get(hour)) {
            fill(&mut builder, bucket.database, &bucket.columns)?;
        }
        let begin = Instant::now();
        file.group(&mut builder, FrameRange::default())?;
        spent += begin.elapsed();
    }
    let begin = Instant::now();
    file.finish(&storage, builder)?;
    Ok(spent + begin.elapsed())
}

fn fill(builder: &mut PartBuilder, database: i64, columns: &[Values]) -> Result<()> {
    let ints = columns.iter().map(|values| match values {
        Values::Ints(v) => Ok(v.as_slice()),
        Values::Floats(_) => anyhow::bail!("the tape keeps whole numbers"),
    });
    let ints: Vec<&[i64]> = ints.collect::<Result<_>>()?;
    for (row, &fingerprint) in ints[2].iter().enumerate() {
        let entry = [
            ("user_oid", ints[3][row]),
            ("database_oid", database),
            ("query_id", fingerprint),
            ("toplevel", 1),
        ];
        let entry = builder.intern("entry", &entry)?;
        let mut values = vec![("entry", entry)];
        values.extend(KEPT.map(|(name, column, unit)| match unit {
            0 => (name, ints[column][row] * 1_000),
            unit => (name, ints[column][row] / unit),
        }));
        builder.row(STATS, &values)?;
    }
    Ok(())
}

/// Reads all files back, and passes the original columns of each group to `each`.
pub fn read(directory: &Path, each: &mut dyn FnMut(&[Values])) -> Result<()> {
    let store = Snapshot::open(directory)?;
    for node in store.nodes() {
        for part in store.parts(node.id) {
            let mut columns = vec![Vec::new(); COLUMNS.len()];
            for (name, column, unit) in KEPT {
                let values = part.ints(STATS, name)?;
                columns[column] = match unit {
                    0 => values.iter().map(|v| v / 1_000).collect(),
                    unit => values.iter().map(|v| v * unit).collect(),
                };
            }
            let entries = part.ints(STATS, "entry")?;
            for (name, column) in [("query_id", 2), ("user_oid", 3)] {
                let known = part.ints("entry", name)?;
                let of = |&entry: &i64| {
                    known
                        .get(usize::try_from(entry).ok()?.checked_sub(1)?)
                        .copied()
                };
                let values: Option<Vec<i64>> = entries.iter().map(of).collect();
                columns[column] = values.context("a row without its entry")?;
            }
            each(&columns.into_iter().map(Values::Ints).collect::<Vec<_>>());
            part.release();
        }
    }
    Ok(())
}
