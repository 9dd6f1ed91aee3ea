//! Writes the rows of the experiment as Parquet with zstd, for comparison: a file
//! per day, with a row group for each bucket; each group has the rows of one
//! database after the other.

use super::data::{Bucket, COLUMNS, Day, Values};
use crate::scenario::Layout;
use anyhow::{Context, Result, bail};
use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Compression level: the default of zstd.
const LEVEL: i32 = 3;

/// Writes a day of all databases. Returns the time for encoding and writing the
/// rows.
pub fn write(directory: &Path, number: u64, days: &[Day], layout: &Layout) -> Result<Duration> {
    let days: Vec<Vec<Bucket>> = days.iter().map(|day| day.buckets(layout)).collect();
    let first = days.first().and_then(|day| day.first());
    let schema = schema(&first.context("a day without rows")?.columns)?;
    let begin = Instant::now();
    let compression = Compression::ZSTD(ZstdLevel::try_new(LEVEL)?);
    let properties = WriterProperties::builder().set_compression(compression);
    let file = File::create(directory.join(format!("{number}.parquet")))?;
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    for at in 0..days.iter().map(Vec::len).max().unwrap_or(0) {
        let buckets: Vec<&Bucket> = days.iter().filter_map(|day| day.get(at)).collect();
        let mut group = writer.next_row_group()?;
        let databases: Vec<Values> = buckets.iter().map(|b| database(b)).collect();
        put(&mut group, databases.iter())?;
        for column in 0..COLUMNS.len() {
            put(&mut group, buckets.iter().map(|b| &b.columns[column]))?;
        }
        group.close()?;
    }
    writer.into_inner()?.sync_all()?;
    Ok(begin.elapsed())
}

fn schema(columns: &[Values]) -> Result<Arc<Type>> {
    let kinds = columns.iter().map(|values| match values {
        Values::Ints(_) => Physical::INT64,
        Values::Floats(_) => Physical::DOUBLE,
    });
    let named = COLUMNS.iter().copied().zip(kinds);
    let all = std::iter::once(("database_id", Physical::INT64)).chain(named);
    let fields = all.map(|(name, kind)| {
        let column = Type::primitive_type_builder(name, kind);
        Ok(Arc::new(
            column.with_repetition(Repetition::REQUIRED).build()?,
        ))
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("statements").with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

/// The database of each row of a bucket.
fn database(bucket: &Bucket) -> Values {
    Values::Ints(vec![bucket.database; bucket.columns[0].len()])
}

/// Writes the next column of a group.
fn put<'a>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    parts: impl Iterator<Item = &'a Values>,
) -> Result<()> {
    let mut column = group.next_column()?.context("a group with fewer columns")?;
    for part in parts {
        match part {
            Values::Ints(v) => column.typed::<Int64Type>().write_batch(v, None, None)?,
            Values::Floats(v) => column.typed::<DoubleType>().write_batch(v, None, None)?,
        };
    }
    Ok(column.close()?)
}

/// Reads all files back, and passes the original columns of each group to `each`.
pub fn read(directory: &Path, each: &mut dyn FnMut(&[Values])) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let file = SerializedFileReader::new(File::open(entry?.path())?)?;
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group)?;
            let columns = (0..group.num_columns()).map(|c| get(group.as_ref(), c));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            each(columns.get(1..).context("a group without columns")?);
        }
    }
    Ok(())
}

fn get(group: &dyn RowGroupReader, column: usize) -> Result<Values> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    match group.get_column_reader(column)? {
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::with_capacity(rows);
            reader.read_records(rows, None, None, &mut values)?;
            Ok(Values::Ints(values))
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::with_capacity(rows);
            reader.read_records(rows, None, None, &mut values)?;
            Ok(Values::Floats(values))
        }
        _ => bail!("a column of another type"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parquet_gives_back_every_value_of_every_layout() {
        let days: Vec<Day> = (1..=2).map(|database| Day::new(0, database)).collect();
        for (bucket_minutes, multiply) in [(720, None), (1_440, Some(100))] {
            let layout = Layout {
                name: "l".into(),
                bucket_minutes,
                decimals: None,
                multiply,
            };
            let directory = tempfile::tempdir().expect("directory");
            write(directory.path(), 1, &days, &layout).expect("written");
            let mut sums = vec![0_i64; COLUMNS.len()];
            let mut groups = 0;
            read(directory.path(), &mut |columns| {
                groups += 1;
                for (sum, values) in sums.iter_mut().zip(columns) {
                    *sum = sum.wrapping_add(values.sum());
                }
            })
            .expect("read");
            assert_eq!(groups, 1_440 / bucket_minutes);
            for (at, sum) in sums.iter().enumerate() {
                let given = days.iter().map(|d| d.columns(&layout)[at].sum());
                assert_eq!(*sum, given.fold(0, i64::wrapping_add), "{}", COLUMNS[at]);
            }
        }
    }
}
