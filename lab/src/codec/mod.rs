//! Storage of a history of statements in several forms. Measured: size, time to
//! write, time to read, and whether everything written is read.

mod copy;
mod data;
#[cfg(feature = "parquet")]
mod parquet;
mod tape;

use super::access::Access;
use super::process::{Stop, run};
use super::scenario::{Codec, Form, Layout};
use super::store::Metrics;
use super::waits::{Profile, Waits};
use anyhow::{Context, Result, ensure};
use copy::Storage;
use data::{Values, days};
use std::path::Path;
use std::time::{Duration, Instant};

/// Digest of all rows, independent of their order: their number, and a sum of
/// each column.
#[derive(Debug, Default, PartialEq)]
struct Digest {
    rows: usize,
    sums: Vec<i64>,
}

impl Digest {
    fn add(&mut self, columns: &[Values]) {
        self.sums.resize(columns.len(), 0);
        for (sum, values) in self.sums.iter_mut().zip(columns) {
            *sum = sum.wrapping_add(values.sum());
        }
        self.rows += columns.first().map_or(0, Values::len);
    }
}

/// True if this program writes Parquet. The library is as large as the rest of the program, so a
/// build includes it on demand.
pub const PARQUET: bool = cfg!(feature = "parquet");

/// Measurements of a form of storage.
struct Measured {
    bytes: f64,
    write_s: f64,
    read_s: f64,
}

/// Writes and reads the history of a scenario in one form and layout.
pub fn measure(
    access: &Access,
    codec: &Codec,
    form: Form,
    layout: &Layout,
    stop: &Stop,
) -> Result<(Metrics, Profile)> {
    let waits = Waits::start(access)?;
    let mut given = Digest::default();
    let mut read = Digest::default();
    let measured = match form {
        Form::Arrays => table(
            access,
            codec,
            Storage::Array,
            layout,
            [&mut given, &mut read],
            stop,
        ),
        Form::Pco => table(
            access,
            codec,
            Storage::Pco,
            layout,
            [&mut given, &mut read],
            stop,
        ),
        Form::Tape => {
            // The tape has a layout of its own, whatever the layout of the scenario.
            let own = Layout {
                decimals: None,
                multiply: Some(100),
                ..layout.clone()
            };
            files(
                access,
                codec,
                Files::TAPE,
                &own,
                [&mut given, &mut read],
                stop,
            )
        }
        #[cfg(feature = "parquet")]
        Form::Parquet => {
            let parquet = Files::PARQUET;
            files(
                access,
                codec,
                parquet,
                layout,
                [&mut given, &mut read],
                stop,
            )
        }
        _ => anyhow::bail!("unknown form of codec"),
    }?;
    let profile = waits.end()?;
    ensure!(
        given == read,
        "data read differs from data written: {} rows of {}",
        read.rows,
        given.rows
    );
    let metrics = [
        ("size_mib", measured.bytes / f64::from(1 << 20)),
        ("bytes_row", measured.bytes / given.rows.max(1) as f64),
        ("write_s", measured.write_s),
        ("read_s", measured.read_s),
    ];
    let metrics = metrics.map(|(name, value)| (name.to_owned(), value));
    Ok((Metrics::from(metrics), profile))
}

fn loaded(access: &Access, sql: &str, stop: &Stop) -> Result<String> {
    run(access.psql_loaded().args(["-c", sql]), stop)
        .with_context(|| format!("could not run \"{sql}\""))
}

fn table(
    access: &Access,
    codec: &Codec,
    cell: Storage,
    layout: &Layout,
    [given, seen]: [&mut Digest; 2],
    stop: &Stop,
) -> Result<Measured> {
    let like = data::Day::new(0, 1).columns(layout);
    for sql in copy::create(cell, &like) {
        loaded(access, &sql, stop)?;
    }
    let begin = Instant::now();
    let mut writer = copy::Writer::start(access, cell)?;
    let mut spent = begin.elapsed();
    for day in days(codec).flatten() {
        stop.check()?;
        given.add(&day.columns(layout));
        let buckets = day.buckets(layout);
        let begin = Instant::now();
        for bucket in &buckets {
            writer.add(bucket)?;
        }
        spent += begin.elapsed();
    }
    let begin = Instant::now();
    writer.finish(stop)?;
    spent += begin.elapsed();
    let bytes = loaded(access, "select pg_total_relation_size('codec')", stop)?;
    let begin = Instant::now();
    copy::read(access, cell, &like, stop, |columns| seen.add(columns))?;
    let read_s = begin.elapsed().as_secs_f64();
    loaded(access, "drop table codec", stop)?;
    Ok(Measured {
        bytes: bytes.trim().parse().context("size is not a number")?,
        write_s: spent.as_secs_f64(),
        read_s,
    })
}

/// Reads all files of a directory, and passes the columns of each group to the function.
type Reader = fn(&Path, &mut dyn FnMut(&[Values])) -> Result<()>;

/// Functions of a form with files: one writes a day of all databases to a file,
/// numbered from 1; the other reads the columns of all files.
struct Files {
    write: fn(&Path, u64, &[data::Day], &Layout) -> Result<Duration>,
    read: Reader,
}

impl Files {
    const TAPE: Self = Self {
        write: tape::write,
        read: tape::read,
    };
    #[cfg(feature = "parquet")]
    const PARQUET: Self = Self {
        write: parquet::write,
        read: parquet::read,
    };
}

fn files(
    access: &Access,
    codec: &Codec,
    files: Files,
    layout: &Layout,
    [given, seen]: [&mut Digest; 2],
    stop: &Stop,
) -> Result<Measured> {
    let directory = tempfile::tempdir_in(&access.scratch)?;
    let mut write_s = 0.0;
    for (number, days) in (1..).zip(days(codec)) {
        stop.check()?;
        for day in &days {
            given.add(&day.columns(layout));
        }
        write_s += (files.write)(directory.path(), number, &days, layout)?.as_secs_f64();
    }
    let begin = Instant::now();
    (files.read)(directory.path(), &mut |columns| seen.add(columns))?;
    Ok(Measured {
        read_s: begin.elapsed().as_secs_f64(),
        bytes: size(directory.path())?,
        write_s,
    })
}

/// Bytes of the files of a directory.
pub fn size(directory: &Path) -> Result<f64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(directory)? {
        bytes += file?.metadata()?.len();
    }
    Ok(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tape_gives_back_every_value_and_takes_less_than_half_of_the_raw() {
        let layout = Layout {
            name: "l".into(),
            bucket_minutes: 1_440,
            decimals: None,
            multiply: Some(100),
        };
        let days: Vec<_> = (1..=2)
            .map(|database| data::Day::new(0, database))
            .collect();
        let directory = tempfile::tempdir().expect("directory");
        tape::write(directory.path(), 1, &days, &layout).expect("written");
        let (mut given, mut seen) = (Digest::default(), Digest::default());
        days.iter().for_each(|day| given.add(&day.columns(&layout)));
        tape::read(directory.path(), &mut |columns| seen.add(columns)).expect("read");
        assert_eq!(seen, given);
        let raw = (given.rows * 8 * data::COLUMNS.len()) as f64;
        assert!(size(directory.path()).expect("size") < raw / 2.0);
    }
}
