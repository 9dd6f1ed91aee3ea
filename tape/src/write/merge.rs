//! Merging: the sealed files of a finished day become one file, with a group for each hour and
//! dictionaries of its own. The merged file replaces them. Order of operations: create, write,
//! fdatasync, rename, sync the directory, remove the parents. A crash between any two of them
//! leaves a directory with the same contents. The reason: a valid file of several numbers replaces
//! every file whose numbers are among them.
//!
//! Only undamaged files of one recorder and one start of the server are merged. Their tables and
//! columns may differ.
//!
//! Memory holds one source group, one hour, the dictionaries of the merged file, and one table of a
//! source file's dictionaries. Finding a row in the merged dictionaries takes up to 32 bytes for
//! each row. Continuing the starts of sessions takes 27 bytes for each session.

use crate::error::{self, Error, Result};
use crate::files::directory::{self, Kind, Numbers};
use crate::files::storage::Storage;
use crate::format::part::{Identity, Part};
use crate::format::part_builder::{PartBuilder, Places};
use crate::format::schema::{ColumnType, RUN, STATS, Schema};
use crate::format::sealed_write::{FrameRange, at_ticks};
use crate::format::table::{BytesColumn, Column, Data, Table, make_room};
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::write::recover::Stored;
use crate::write::seal::{SealedFile, discard};
use crate::write::texts::{self, LeftOut, Usage};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;
/// Maximum number of rows of table `run` in a group.
const MAX_RUNS: usize = 1_000_000;

/// Files to merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeJob {
    /// The sealed files in ascending order. A single file is rewritten.
    pub files: Vec<Numbers>,
    /// Interval in ms for thinning the statistics of statements.
    pub thin_ms: Option<u64>,
    /// Maximum length of all texts in the merged file, in bytes.
    pub text_limit: u64,
}

impl MergeJob {
    /// Numbers of the merged file.
    pub fn numbers(&self) -> Numbers {
        let first = self.files.first().map_or(0, |n| n.first);
        let last = self.files.last().map_or(0, |n| n.last);
        Numbers { first, last }
    }
}

/// A merged file.
#[derive(Debug)]
pub struct Merged {
    /// Length of the merged file in bytes.
    pub bytes: u64,
    /// First and last slot time; `None` without ticks.
    pub times: Option<(i64, i64)>,
    /// The node and server that wrote it.
    pub identity: Identity,
    /// Interval of its statistics of statements in ms; `None` if it has none.
    pub statements_ms: Option<u64>,
    /// Errors about parents that could not be removed. The next writer removes them.
    pub left: Vec<Error>,
}

/// The next files of a node to merge, if there are any: files of one day and one start of one
/// server, at most `most_bytes` together. A file that cannot join them must follow, so the day is
/// over. `waiting` are the numbers of logs that will be sealed.
pub fn plan(stored: &[Stored], node: u64, most_bytes: u64, waiting: &[u64]) -> Option<MergeJob> {
    let mut run = Run::default();
    for file in stored {
        if run.takes(file, most_bytes, waiting) {
            run.push(file);
            continue;
        }
        if run.files.len() > 1 {
            return Some(MergeJob {
                files: run.files,
                thin_ms: None,
                text_limit: u64::MAX,
            });
        }
        run = Run::default();
        let own = file.identity.as_ref().is_some_and(|i| i.node == node);
        if own && file.kind == Kind::Sealed && !file.numbers.is_merged() {
            run.push(file);
        }
    }
    None
}

/// The next file of a node to rewrite with longer intervals, if there is one: its statistics of
/// statements are older than the age of a tier. `tiers` are intervals and ages in ms, in ascending
/// order; ages count back from `now_ms`.
pub fn plan_thin(
    stored: &[Stored],
    node: u64,
    now_ms: i64,
    tiers: &[(u64, i64)],
) -> Option<MergeJob> {
    stored.iter().find_map(|file| {
        let own = file.identity.as_ref().is_some_and(|i| i.node == node);
        let (has, last) = (file.statements_ms?, file.times?.1);
        let old = |tier: &&(u64, i64)| now_ms.saturating_sub(last) > tier.1;
        let &(wants, _) = tiers.iter().rev().find(old)?;
        (own && file.kind == Kind::Sealed && has < wants).then(|| MergeJob {
            files: vec![file.numbers],
            thin_ms: Some(wants),
            text_limit: u64::MAX,
        })
    })
}

/// Consecutive files that may become one.
#[derive(Default)]
struct Run {
    files: Vec<Numbers>,
    identity: Option<Identity>,
    day: Option<i64>,
    bytes: u64,
}

impl Run {
    fn takes(&self, file: &Stored, most_bytes: u64, waiting: &[u64]) -> bool {
        let Some(last) = self.files.last() else {
            return false;
        };
        let day = file.times.map(|t| t.0.div_euclid(DAY_MS));
        let between = |n: &u64| last.last < *n && *n < file.numbers.first;
        file.kind == Kind::Sealed
            && !file.numbers.is_merged()
            && file.identity == self.identity
            && (day.is_none() || self.day.is_none() || day == self.day)
            && self.bytes + file.bytes <= most_bytes
            && !waiting.iter().any(between)
    }

    fn push(&mut self, file: &Stored) {
        self.files.push(file.numbers);
        self.identity.clone_from(&file.identity);
        self.day = self.day.or(file.times.map(|t| t.0.div_euclid(DAY_MS)));
        self.bytes += file.bytes;
    }
}

/// Merges files. `None` if it was stopped. After that, or after an error, the directory is
/// unchanged.
///
/// # Errors
/// A file is damaged, missing or of another recorder, or the merged one could
/// not be written.
pub fn merge(storage: &dyn Storage, job: &MergeJob, stop: &AtomicBool) -> Result<Option<Merged>> {
    check_alone(storage, job)?;
    let written = write_merged(storage, job, stop);
    let mut merged = match written {
        Ok(Some(merged)) => merged,
        other => {
            discard(storage, job.numbers());
            return other;
        }
    };
    let parents = job.files.iter().filter(|n| **n != job.numbers());
    for numbers in parents {
        let name = numbers.name(Kind::Sealed);
        match storage.remove(&name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                let path = storage.directory().join(&name);
                merged.left.push(Error::io("remove file", &path, e));
            }
            _ => (),
        }
    }
    Ok(Some(merged))
}

/// Fails if there are other files with numbers among the job's: the merged file would hide them.
fn check_alone(storage: &dyn Storage, job: &MergeJob) -> Result<()> {
    let all = job.numbers();
    for file in directory::list(storage)? {
        let foreign = file.kind == Kind::Log || !job.files.contains(&file.numbers);
        if file.kind != Kind::Temporary && all.replaces(file.numbers) && foreign {
            let path = storage.directory().join(file.name());
            return Err(
                Error::new(error::Kind::Damaged, "file lies between the files to merge").at(&path),
            );
        }
    }
    Ok(())
}

fn write_merged(
    storage: &dyn Storage,
    job: &MergeJob,
    stop: &AtomicBool,
) -> Result<Option<Merged>> {
    let mut schemas = Schemas::default();
    let Some(schema) = common_schema(storage, job, &mut schemas, stop)? else {
        return Ok(None);
    };
    let mut merger: Option<Merger> = None;
    for numbers in &job.files {
        let (block, path) = open(storage, *numbers, &mut schemas)?;
        if let Some(damage) = block.damage.first() {
            return Err(Error::damaged(damage.reason.clone())
                .at(&path)
                .offset(damage.offset));
        }
        if let Some(merger) = &mut merger {
            merger.begin_file();
        }
        for (part, frames) in block.parts().zip(block.frames()) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let merger = match &mut merger {
                Some(merger) => merger,
                None => {
                    let identity = part.info().identity.clone();
                    merger.insert(Merger::create(storage, job, schema.clone(), identity)?)
                }
            };
            merger.add(&part, frames).map_err(|e| e.at(&path))?;
        }
    }
    let Some(mut merger) = merger else {
        return Err(Error::damaged("nothing to merge"));
    };
    merger.limit_texts(job.text_limit)?;
    merger.finish(storage).map(Some)
}

fn open(
    storage: &dyn Storage,
    numbers: Numbers,
    schemas: &mut Schemas,
) -> Result<(BlockFile, PathBuf)> {
    let name = numbers.name(Kind::Sealed);
    let path = storage.directory().join(&name);
    let file = storage.open(&name);
    let file = file.map_err(|e| Error::io("open file", &path, e))?;
    Ok((BlockFile::open_whole(file, &path, schemas)?, path))
}

/// The schema with all tables and columns of the files. They differ if the program was replaced
/// while the server ran. `None` if it was stopped.
fn common_schema(
    storage: &dyn Storage,
    job: &MergeJob,
    schemas: &mut Schemas,
    stop: &AtomicBool,
) -> Result<Option<Arc<Schema>>> {
    let mut common: Option<Arc<Schema>> = None;
    for numbers in &job.files {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (block, path) = open(storage, *numbers, schemas)?;
        let own = block.schema();
        let both = match &common {
            None => own.clone(),
            Some(known) if **known == *own => continue,
            Some(known) => Arc::new(known.with_all_of(&own).ok_or_else(|| {
                Error::damaged("columns differ from the columns of the earlier files").at(&path)
            })?),
        };
        common = Some(both);
    }
    common
        .ok_or_else(|| Error::damaged("nothing to merge"))
        .map(Some)
}

/// Writes groups as one file and adapts their references.
///
/// # Errors
/// The file could not be written; no temporary file is left.
pub(crate) fn rewrite(
    storage: &dyn Storage,
    numbers: Numbers,
    parts: &[(Part, FrameRange)],
) -> Result<()> {
    let write = || -> Result<()> {
        let first = parts.first().map(|p| &p.0);
        let first = first.ok_or_else(|| Error::damaged("nothing to write"))?;
        let job = MergeJob {
            files: vec![numbers],
            thin_ms: None,
            text_limit: u64::MAX,
        };
        let schema = Arc::new(first.schema().clone());
        let identity = first.info().identity.clone();
        let mut merger = Merger::create(storage, &job, schema, identity)?;
        for (part, frames) in parts {
            merger.begin_file();
            merger.add(part, *frames)?;
        }
        merger.finish(storage).map(drop)
    };
    write().inspect_err(|_| discard(storage, numbers))
}

/// A merged file being written.
struct Merger {
    file: SealedFile,
    builder: PartBuilder,
    schema: Arc<Schema>,
    identity: Identity,
    /// For each table: where the rows of the current file's dictionary are in the merged one.
    places: HashMap<usize, Places>,
    /// Uses of the texts.
    usage: Usage,
    /// The newest run of each session, by the session's reference.
    newest: Vec<Newest>,
    /// Hour of the current group, and the frames it was made of.
    hour: Option<i64>,
    frames: Option<FrameRange>,
    times: Option<(i64, i64)>,
    /// Interval of the statistics of statements in ms, once there are some.
    statements_ms: Option<u64>,
    thin_ms: Option<u64>,
}

/// End and start of the newest run of a session.
#[derive(Clone, Copy, Default)]
struct Newest {
    end: i64,
    /// Start of the query as it was read, in ms since 1970; `kept` is the start as it was written.
    was: i64,
    kept: i64,
}

impl Merger {
    fn create(
        storage: &dyn Storage,
        job: &MergeJob,
        schema: Arc<Schema>,
        identity: Identity,
    ) -> Result<Self> {
        let numbers = job.numbers();
        let file = SealedFile::create(storage, numbers, schema.clone(), identity.clone())?;
        Ok(Merger {
            file: file.with_coarse_starts().with_thin(job.thin_ms),
            builder: PartBuilder::new(schema.clone())?,
            schema,
            identity,
            places: HashMap::new(),
            usage: Usage::default(),
            newest: Vec::new(),
            hour: None,
            frames: None,
            times: None,
            statements_ms: None,
            thin_ms: job.thin_ms,
        })
    }

    /// Callers call this before the parts of another file, which has other dictionaries.
    fn begin_file(&mut self) {
        self.places.clear();
    }

    fn add(&mut self, part: &Part, frames: FrameRange) -> Result<()> {
        if part.info().identity != self.identity {
            return Err(Error::damaged("file belongs to another server"));
        }
        let ticks = part.first_tick() <= part.last_tick();
        let hour = ticks.then(|| part.min_ms().div_euclid(HOUR_MS));
        if self.ends_group(hour, frames, part.rows(RUN)) {
            self.group()?;
        }
        self.hour = self.hour.or(hour);
        let range = self.frames.get_or_insert(frames);
        range.first = range.first.min(frames.first);
        range.last = range.last.max(frames.last);
        if ticks {
            let (min, max) = self.times.unwrap_or((i64::MAX, i64::MIN));
            self.times = Some((min.min(part.min_ms()), max.max(part.max_ms())));
        }
        if part.rows(STATS) > 0 {
            self.statements_ms = Some(self.thin_ms.unwrap_or(0));
        }
        self.copy(part)
    }

    fn ends_group(&self, hour: Option<i64>, frames: FrameRange, rows: usize) -> bool {
        let Some(own) = self.frames else {
            return false;
        };
        let other_life = (own.incarnation, own.tick_base) != (frames.incarnation, frames.tick_base);
        let other_hour = self.hour.is_some() && hour.is_some() && self.hour != hour;
        other_life || other_hour || self.builder.run_rows() + rows > MAX_RUNS
    }

    fn group(&mut self) -> Result<()> {
        if let Some(frames) = self.frames.take() {
            self.file.group(&mut self.builder, frames)?;
        }
        self.hour = None;
        Ok(())
    }

    /// Drops the least used texts above the limit, and adds a marker about them.
    fn limit_texts(&mut self, most_bytes: u64) -> Result<()> {
        let left_out = texts::limit(&mut self.builder, &self.usage, most_bytes);
        let kind = self.schema.value("marker", "texts left out");
        let (Some(kind), 1..) = (kind, left_out.texts) else {
            return Ok(());
        };
        let (since, until) = self.times.unwrap_or((0, 0));
        let LeftOut { texts, bytes } = left_out;
        let detail = format!("{texts} query texts of {bytes} bytes exceeded tacho.text_limit");
        let detail = self.builder.name(&detail)?;
        let marker = [
            ("time", until),
            ("kind", kind),
            ("since", since),
            ("until", until),
            ("detail", detail),
        ];
        self.builder.row("marker", &marker).map(drop)
    }

    fn finish(mut self, storage: &dyn Storage) -> Result<Merged> {
        self.group()?;
        // The dictionaries are written now; nothing else should be in memory.
        self.newest = Vec::new();
        self.usage = Usage::default();
        self.begin_file();
        let bytes = self.file.finish(storage, self.builder)?;
        Ok(Merged {
            bytes,
            times: self.times,
            identity: self.identity,
            statements_ms: self.statements_ms,
            left: Vec::new(),
        })
    }

    /// Adds the rows of a part to the current group.
    fn copy(&mut self, part: &Part) -> Result<()> {
        self.builder.lost_definitions += part.info().lost_definitions;
        self.builder.dropped_rows += part.info().dropped_rows;
        let schema = self.schema.clone();
        let mut order: Vec<usize> = (0..schema.tables.len()).collect();
        // Table `name` comes first, because other dictionaries refer to it.
        order.sort_by_key(|&t| (!schema.is_dictionary(t), schema.tables[t].name != "name"));
        for t in order {
            let name = schema.tables[t].name.as_str();
            // Totals are computed again. All groups of a file share its dictionaries.
            let done = schema.is_totals(t) || self.places.contains_key(&t);
            if part.rows(name) == 0 || done {
                continue;
            }
            let rows = stored(part, &schema, t, &self.places)?;
            self.usage.count(&schema, t, &rows);
            if schema.is_dictionary(t) {
                let places = self.builder.intern_table(t, rows);
                self.places.insert(t, places);
            } else if name == RUN {
                self.runs(part, t, &rows)?;
            } else {
                self.builder.tables[t].append(rows);
            }
        }
        Ok(())
    }

    fn runs(&mut self, part: &Part, t: usize, rows: &Table) -> Result<()> {
        let def = &self.schema.tables[t];
        let incomplete = || Error::damaged("table \"run\" lacks columns");
        let own = |name| def.index(name).ok_or_else(incomplete);
        let [session, first, ticks] = [own("session")?, own("first_tick")?, own("ticks")?];
        let starts = ["query_start", "xact_start", "state_change"];
        let starts = starts.map(|name| def.index(name));
        let value = |c: usize, row: usize| rows.get(c, row);
        let order = self.builder.runs.columns().to_vec();
        let clock = Clock::read(part)?;
        let mut values = vec![0; order.len()];
        let used = order.iter().enumerate();
        let used: Vec<(usize, usize)> = used
            .filter(|(_, c)| matches!(&rows.columns[**c], Data::Ints(v) if !v.is_empty()))
            .map(|(slot, c)| (slot, *c))
            .collect();
        for row in 0..rows.rows {
            let (session, first) = (value(session, row), value(first, row));
            let shift = match starts[0].map_or(0, |c| value(c, row)) {
                0 => 0,
                start => self.shift(session, first, start, &clock),
            };
            for &(slot, c) in &used {
                values[slot] = value(c, row);
                if shift != 0 && values[slot] != 0 && starts.contains(&Some(c)) {
                    values[slot] += shift;
                }
            }
            let ticks = value(ticks, row);
            if !self.builder.runs.push(session, first, ticks, &values) {
                return Err(Error::damaged("runs of a session overlap"));
            }
            self.newest_mut(session).end = first.saturating_add(ticks);
        }
        Ok(())
    }

    fn newest_mut(&mut self, session: i64) -> &mut Newest {
        let slot = usize::try_from(session).unwrap_or(0);
        let more = (slot + 1).saturating_sub(self.newest.len());
        if more > 0 {
            make_room(&mut self.newest, more);
            self.newest.resize(slot + 1, Newest::default());
        }
        &mut self.newest[slot]
    }

    /// The difference in ms to add to a start, so that it equals the start written before. Two
    /// files may have slightly different starts of one execution (`starts.rs`).
    fn shift(&mut self, session: i64, first: i64, start: i64, clock: &Clock) -> i64 {
        let newest = self.newest_mut(session);
        let adjacent = newest.kept != 0 && first == newest.end;
        let same = newest.was == start || adjacent && clock.is_near(first, newest.kept, start);
        newest.was = start;
        if !same {
            newest.kept = start;
        }
        newest.kept - start
    }
}

/// The times at which the ticks of a part were taken.
struct Clock {
    numbers: Vec<i64>,
    taken: Vec<i64>,
    interval: Vec<i64>,
}

impl Clock {
    fn read(part: &Part) -> Result<Self> {
        let column = |name| part.ints("tick", name).map(|c| c.to_vec());
        Ok(Clock {
            numbers: column("tick")?,
            taken: column("taken_at")?,
            interval: column("interval_ms")?,
        })
    }

    /// True if two starts belong to one query: it began before this tick and the tick before, and
    /// the starts differ only by rounding.
    fn is_near(&self, tick: i64, kept: i64, start: i64) -> bool {
        let at = |values| at_ticks(&[tick], &self.numbers, values)[0];
        let interval = at(&self.interval);
        let rounding = (interval / 4).max(1_000);
        at(&self.taken) - start >= interval && (kept - start).abs() <= rounding
    }
}

/// A table of a part with the references of the merged file. Columns of zeros become empty. Frees
/// the part's decoded columns.
fn stored(
    part: &Part,
    schema: &Schema,
    t: usize,
    places: &HashMap<usize, Places>,
) -> Result<Table> {
    let def = &schema.tables[t];
    let mut columns = Vec::with_capacity(def.columns.len());
    for column in &def.columns {
        columns.push(match column.ty {
            ColumnType::Bytes => Read::Bytes(part.bytes(&def.name, &column.name)?),
            _ => Read::Ints(part.ints(&def.name, &column.name)?),
        });
    }
    part.release();
    part.release_shared();
    let mut table = Table::new(def);
    table.rows = part.rows(&def.name);
    for (c, (column, read)) in def.columns.iter().zip(columns).enumerate() {
        let mut values = match read {
            Read::Bytes(strings) => {
                table.columns[c] = Data::Bytes(Arc::unwrap_or_clone(strings.0));
                continue;
            }
            Read::Ints(values) if values.iter().all(|&v| v == 0) => continue,
            Read::Ints(values) => Arc::unwrap_or_clone(values.0),
        };
        let target = match column.ty {
            ColumnType::Name => schema.index("name"),
            ColumnType::Ref => Some(schema.index(&column.target).unwrap_or(usize::MAX)),
            _ => None,
        };
        if let Some(target) = target {
            replace(&mut values, places.get(&target))?;
        }
        table.columns[c] = Data::Ints(values);
    }
    Ok(table)
}

/// A column of a part.
enum Read {
    Ints(Column),
    Bytes(BytesColumn),
}

/// Replaces references by references to rows of the merged file.
fn replace(references: &mut [i64], places: Option<&Places>) -> Result<()> {
    let places = places.unwrap_or(&Places::Same(0));
    for reference in references {
        let place = places.of(*reference);
        *reference = place.ok_or_else(|| Error::damaged("reference to a missing row"))?;
    }
    Ok(())
}
