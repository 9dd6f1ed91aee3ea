//! Sealing: a sealed file replaces a log. Order of operations: create, write, fdatasync, rename,
//! sync the directory, remove the log. A crash between any two of them leaves a directory with the
//! same contents.

use crate::error::{Error, Result};
use crate::files::directory::{Kind, Numbers, file_name};
use crate::files::storage::{ReadFile, Storage, read_all, read_readable};
use crate::format::last_calls::keep_last;
use crate::format::log::{LogContents, LogHeader, read_log};
use crate::format::part::{Identity, LogDamage, PartInfo};
use crate::format::part_builder::PartBuilder;
use crate::format::schema::{STATS, Schema};
use crate::format::sealed_write::{BlockWriter, FrameRange};
use crate::format::starts::Starts;
use crate::format::table::Table;
use crate::query::sums::totals_write::Writer;
use crate::write::thin::thin;
use std::io;
use std::sync::Arc;

/// Result of sealing a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The log's header.
    pub header: LogHeader,
    /// Ticks and times of the sealed file; `None` if the log had no rows, so there is no file.
    pub info: Option<PartInfo>,
    /// Length of the sealed file in bytes.
    pub bytes: u64,
    /// Sequence of the last data frame; 0 = none.
    pub last_sequence: u64,
    /// Number of rows in table `run`.
    pub runs: usize,
    /// True if it has statistics of statements.
    pub has_statements: bool,
    /// Damage in the log. The sealed file has a marker for each.
    pub damage: Vec<LogDamage>,
    /// Bytes of an incomplete last frame.
    pub torn_bytes: usize,
}

/// Reads a log by number.
///
/// # Errors
/// The file could not be read, or its header is damaged.
pub fn read_log_file(
    storage: &dyn Storage,
    number: u64,
    until_sequence: u64,
) -> Result<LogContents> {
    log_file(storage, number, until_sequence, read_all)
}

/// Same as [`read_log_file`], but pages that the device cannot read are damage.
pub(crate) fn read_readable_log(
    storage: &dyn Storage,
    number: u64,
    until_sequence: u64,
) -> Result<LogContents> {
    let read = |file: &dyn ReadFile| read_readable(file, 0, file.bytes()?);
    log_file(storage, number, until_sequence, read)
}

fn log_file(
    storage: &dyn Storage,
    number: u64,
    until_sequence: u64,
    read: impl Fn(&dyn ReadFile) -> io::Result<Vec<u8>>,
) -> Result<LogContents> {
    let name = file_name(number, Kind::Log);
    let path = storage.directory().join(&name);
    let file = storage.open(&name);
    let file = file.map_err(|e| Error::io("open file", &path, e))?;
    let bytes = read(&*file).map_err(|e| Error::io("read file", &path, e))?;
    read_log(&bytes, until_sequence).map_err(|e| e.at(&path))
}

/// Seals a log to which no writer appends any more.
///
/// # Errors
/// The log could not be read or the sealed file not be written; the log is
/// still there.
pub fn seal_log(storage: &dyn Storage, number: u64, until_sequence: u64) -> Result<Sealed> {
    let contents = read_log_file(storage, number, until_sequence)?;
    let sealed = convert(storage, number, contents)?;
    let name = file_name(number, Kind::Log);
    let removed = storage.remove(&name);
    removed.map_err(|e| Error::io("remove file", &storage.directory().join(&name), e))?;
    Ok(sealed)
}

/// Writes the contents of a log as the sealed file of this number.
///
/// # Errors
/// The file could not be written; no temporary file is left.
pub(crate) fn convert(storage: &dyn Storage, number: u64, contents: LogContents) -> Result<Sealed> {
    let mut sealed = Sealed {
        info: None,
        bytes: 0,
        last_sequence: contents.last_sequence,
        runs: 0,
        has_statements: false,
        damage: contents.damage,
        torn_bytes: contents.torn_bytes,
        header: contents.header,
    };
    let Some(ingest) = contents.ingest else {
        return match sealed.damage.first() {
            // The hello frame is damaged, and the frames behind it cannot be read without it.
            Some(found) => Err(Error::damaged(format!(
                "the schema of the log cannot be read: {}",
                found.reason
            ))),
            None => Ok(sealed),
        };
    };
    let mut builder = ingest.into_builder();
    mark_damage(&mut builder, &sealed.damage)?;
    if builder.has_rows() {
        sealed.runs = builder.run_rows();
        sealed.has_statements = builder.rows(STATS) > 0;
        let frames = FrameRange {
            incarnation: sealed.header.incarnation,
            first: sealed.header.first_sequence,
            last: sealed.last_sequence,
            tick_base: sealed.header.tick_base,
        };
        let identity = sealed.header.identity.clone();
        let (info, bytes) = write_sealed(storage, number, builder, identity, frames)?;
        sealed.info = Some(info);
        sealed.bytes = bytes;
    }
    Ok(sealed)
}

/// Writes the sealed file of this number in one step. Returns its ticks and times, and its length
/// in bytes.
///
/// # Errors
/// The file could not be written; no temporary file is left.
pub fn write_sealed(
    storage: &dyn Storage,
    number: u64,
    mut builder: PartBuilder,
    identity: Identity,
    frames: FrameRange,
) -> Result<(PartInfo, u64)> {
    let numbers = Numbers::one(number);
    let write = || -> Result<(PartInfo, SealedFile)> {
        let mut file = SealedFile::create(storage, numbers, builder.schema(), identity)?;
        let info = file.group(&mut builder, frames)?;
        Ok((info, file))
    };
    let written = write().and_then(|(info, file)| Ok((info, file.finish(storage, builder)?)));
    written.inspect_err(|_| discard(storage, numbers))
}

/// Removes the temporary file of an attempt to write a sealed file.
pub fn discard(storage: &dyn Storage, numbers: Numbers) {
    let _ = storage.remove(&numbers.name(Kind::Temporary));
}

/// A sealed file that is written group by group under a temporary name.
pub struct SealedFile {
    block: BlockWriter,
    numbers: Numbers,
    identity: Identity,
    starts: Option<Starts>,
    thin_ms: Option<u64>,
    groups: u32,
    /// `None` after the totals of a group failed, because either all groups have totals or none.
    totals: Option<Writer>,
}

impl SealedFile {
    /// Begins a file. Removes the temporary file of an earlier attempt.
    ///
    /// # Errors
    /// The file could not be created.
    pub fn create(
        storage: &dyn Storage,
        numbers: Numbers,
        schema: Arc<Schema>,
        identity: Identity,
    ) -> Result<Self> {
        discard(storage, numbers);
        let name = numbers.name(Kind::Temporary);
        let path = storage.directory().join(&name);
        let file = storage.create(&name);
        let file = file.map_err(|e| Error::io("create file", &path, e))?;
        Ok(SealedFile {
            totals: Some(Writer::new(&schema)),
            block: BlockWriter::new(identity.clone(), schema, file, path)?,
            numbers,
            identity,
            starts: Some(Starts::default()),
            thin_ms: None,
            groups: 0,
        })
    }

    /// Keeps starts as they are, because they are coarse already.
    #[must_use]
    pub fn with_coarse_starts(mut self) -> Self {
        self.starts = None;
        self
    }

    /// Thins statistics of statements to intervals of `thin_ms`.
    #[must_use]
    pub fn with_thin(mut self, thin_ms: Option<u64>) -> Self {
        self.thin_ms = thin_ms;
        self
    }

    /// Writes totals by minute of this many queries.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_minute_keys(mut self, keys: usize) -> Self {
        self.totals = self.totals.map(|totals| totals.with_minute_keys(keys));
        self
    }

    /// Writes the rows of a builder as a group. The dictionaries stay in the builder. Returns the
    /// group's ticks and times.
    ///
    /// # Errors
    /// The group could not be written.
    pub fn group(&mut self, builder: &mut PartBuilder, frames: FrameRange) -> Result<PartInfo> {
        let schema = builder.schema();
        let (mut tables, mut info) = builder.take_group();
        if let Some(starts) = &mut self.starts {
            starts.coarsen(&schema, &mut tables);
        }
        if let Some(width) = self.thin_ms {
            thin(&schema, &mut tables, width as i64);
            info.statements_ms = width;
        }
        keep_last(&schema, &mut tables);
        info.identity = self.identity.clone();
        self.groups += 1;
        if info.first_tick <= info.last_tick {
            tables = self.add_totals(builder, &info, tables);
        }
        self.block.group(&info, frames, &tables)?;
        Ok(info)
    }

    /// Computes the totals of a group; returns its tables.
    fn add_totals(
        &mut self,
        builder: &mut PartBuilder,
        info: &PartInfo,
        tables: Vec<Table>,
    ) -> Vec<Table> {
        let group = self.groups;
        let (tables, written) = builder.as_part(info, tables, |part| {
            let totals = self.totals.as_mut();
            totals.is_some_and(|totals| totals.group(part, group).is_ok())
        });
        self.totals = self.totals.take().filter(|_| written);
        tables
    }

    /// Writes the dictionaries and renames the file to its final name. Returns its length in bytes.
    ///
    /// # Errors
    /// The file could not be written; [`discard`] removes the temporary file.
    pub fn finish(self, storage: &dyn Storage, builder: PartBuilder) -> Result<u64> {
        let schema = builder.schema();
        let mut tables = builder.into_dictionaries();
        let totals = self.totals.and_then(|totals| totals.finish(&schema).ok());
        for (t, mut table) in totals.into_iter().flatten().enumerate() {
            if schema.is_totals(t) {
                table.pad();
                tables[t] = table;
            }
        }
        let bytes = self.block.finish(&tables)?;
        let temporary = self.numbers.name(Kind::Temporary);
        let path = storage.directory().join(&temporary);
        let rename = || -> io::Result<()> {
            storage.rename(&temporary, &self.numbers.name(Kind::Sealed))?;
            storage.sync_directory()
        };
        rename().map_err(|e| Error::io("rename file", &path, e))?;
        Ok(bytes)
    }
}

/// Adds a marker for each damage, so that it stays known after the log is removed.
fn mark_damage(builder: &mut PartBuilder, damage: &[LogDamage]) -> Result<()> {
    let Some(kind) = builder.schema.value("marker", "damage") else {
        return Ok(());
    };
    for found in damage {
        let detail = format!(
            "{} bytes of a log were skipped: {}",
            found.bytes, found.reason
        );
        let detail = builder.name(&detail)?;
        let since = found.since_ms.or(found.until_ms).unwrap_or(0);
        let until = found.until_ms.unwrap_or(since);
        let marker = [
            ("time", since),
            ("kind", kind),
            ("since", since),
            ("until", until),
            ("detail", detail),
        ];
        builder.row("marker", &marker)?;
    }
    Ok(())
}
