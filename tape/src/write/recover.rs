//! The state that a writer finds when it starts: sealed files, logs to seal, and the end of its
//! node's history.

use crate::error::supervised;
use crate::error::{self, Error, Result};
use crate::files::directory::{self, Kind, Numbers, file_name};
use crate::files::storage::{Storage, read_all};
use crate::format::log::{LogHeader, Scan, Stretch};
use crate::format::part::{Identity, Part};
use crate::format::schema::{STATS, Schema};
use crate::store::open::Repeats;
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::write::live_definitions::LiveDefinitions;
use crate::write::seal::read_log_file;

/// A file that retention may remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Numbers of the logs whose rows the file has.
    pub numbers: Numbers,
    /// Kind of the file.
    pub kind: Kind,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// First and last slot time in ms since 1970; `None` without ticks.
    pub times: Option<(i64, i64)>,
    /// The node and server that wrote it; `None` if it cannot be merged with others.
    pub identity: Option<Identity>,
    /// Shortest interval of its statistics of statements in ms (0 = as recorded); `None` if it has
    /// none.
    pub statements_ms: Option<u64>,
}

/// A log to seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealJob {
    /// Number of the log.
    pub number: u64,
    /// Data frames from this sequence on do not become part of the sealed file.
    pub until_sequence: u64,
}

/// The end of a node's history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Last tick number.
    pub tick: u64,
    /// End of the last slot in ms.
    pub end_ms: Option<i64>,
    /// True if the last life of the sampler wrote a stop marker.
    pub stopped: bool,
    /// Node and server of the last tick.
    pub identity: Identity,
    /// Last life of the sampler; 0 = none.
    pub incarnation: u64,
    /// Last sequence of that life.
    pub sequence: u64,
    /// Tick base of that life.
    pub tick_base: u64,
}

impl End {
    /// The end for a node that continues this node's history. It counts its own ticks; the time in
    /// between is a gap.
    pub(crate) fn of_node_before(self) -> End {
        End {
            end_ms: self.end_ms,
            stopped: self.stopped,
            identity: self.identity,
            ..End::default()
        }
    }
}

/// More ticks than a file can have: a day with a hundred a second.
const FILE_TICKS: u64 = 10_000_000;

/// The contents of a directory.
#[derive(Default)]
pub struct DirectoryState {
    /// Sealed files, and logs that cannot be sealed, oldest first.
    pub stored: Vec<Stored>,
    /// Logs to seal, oldest first.
    pub jobs: Vec<SealJob>,
    /// The end of the node's history.
    pub end: End,
    /// Dictionary entries in use at the end of the newest log.
    pub live_definitions: LiveDefinitions,
    /// Number for the next log.
    pub next_number: u64,
    /// Number of files that could not be read.
    unreadable: u64,
    /// Errors for the server's log.
    pub errors: Vec<Error>,
}

/// Looks through a directory and removes files left by a crash.
///
/// # Errors
/// The directory could not be read.
pub fn read_directory(storage: &dyn Storage, node: u64) -> Result<DirectoryState> {
    let mut found = DirectoryState {
        next_number: 1,
        ..DirectoryState::default()
    };
    let mut schemas = Schemas::default();
    let mut later = Repeats::default();
    let mut sealed = Vec::new();
    let files = directory::list(storage)?;
    // Merged files come before the files that they replace.
    let merged = |f: &&directory::HistoryFile| f.numbers.is_merged();
    let (merged, single): (Vec<&directory::HistoryFile>, Vec<_>) = files.iter().partition(merged);
    let mut valid: Vec<Numbers> = Vec::new();
    for file in merged.into_iter().chain(single) {
        found.next_number = found.next_number.max(file.numbers.last + 1);
        let replaced = valid.iter().any(|v| v.replaces(file.numbers));
        match file.kind {
            Kind::Temporary => drop(storage.remove(&file.name())),
            // The writer crashed between the rename of the merged file and this removal.
            _ if replaced => drop(storage.remove(&file.name())),
            Kind::Sealed => {
                if found.sealed(storage, node, file, &mut schemas, &mut later) {
                    sealed.push(file.numbers.first);
                    let whole = found.stored.last().is_some_and(|s| s.identity.is_some());
                    valid.extend((whole && file.numbers.is_merged()).then_some(file.numbers));
                }
            }
            Kind::Log => (),
        }
    }
    let replaced = |f: &directory::HistoryFile| valid.iter().any(|v| v.replaces(f.numbers));
    let logs = files.iter().filter(|f| f.kind == Kind::Log && !replaced(f));
    for file in logs.rev() {
        if sealed.contains(&file.numbers.first) {
            // The writer crashed between rename and removal.
            let _ = storage.remove(&file.name());
            continue;
        }
        found.log(storage, node, file, &mut later);
    }
    // An unreadable file may become readable later, and no tick number may be used twice.
    let unread = found.unreadable.saturating_mul(FILE_TICKS);
    found.end.tick = found.end.tick.saturating_add(unread);
    found.jobs.reverse();
    found.stored.sort_by_key(|s| s.numbers);
    Ok(found)
}

impl DirectoryState {
    /// Reads a sealed file; returns false if it is unreadable.
    fn sealed(
        &mut self,
        storage: &dyn Storage,
        node: u64,
        file: &directory::HistoryFile,
        schemas: &mut Schemas,
        later: &mut Repeats,
    ) -> bool {
        let name = file.name();
        let path = storage.directory().join(&name);
        let mut stored = Stored {
            numbers: file.numbers,
            kind: file.kind,
            bytes: file.bytes,
            times: None,
            identity: None,
            statements_ms: None,
        };
        let opened = storage.open(&name);
        let opened = opened.map_err(|e| Error::io("open file", &path, e));
        let block = match opened.and_then(|f| BlockFile::open(f, &path, schemas)) {
            Ok(block) => block,
            Err(error) => {
                self.unreadable += 1;
                self.errors.push(error);
                self.stored.push(stored);
                return false;
            }
        };
        if block.damage.is_empty() {
            stored.identity = Some(block.identity().clone());
        }
        later.sealed(file.numbers.first, &block);
        let own = block.identity().node == node;
        for (part, frames) in block.parts().zip(block.frames()) {
            if part.first_tick() <= part.last_tick() {
                let (min, max) = stored.times.unwrap_or((i64::MAX, i64::MIN));
                stored.times = Some((min.min(part.min_ms()), max.max(part.max_ms())));
            }
            if part.rows(STATS) > 0 {
                let ms = part.info().statements_ms;
                stored.statements_ms = Some(stored.statements_ms.map_or(ms, |old| old.min(ms)));
            }
            if own {
                let end = (frames.incarnation, frames.last, frames.tick_base);
                self.extend_end(&part, end);
            }
        }
        self.stored.push(stored);
        true
    }

    fn log(
        &mut self,
        storage: &dyn Storage,
        node: u64,
        file: &directory::HistoryFile,
        later: &mut Repeats,
    ) {
        let number = file.numbers.first;
        let name = file_name(number, Kind::Log);
        let path = storage.directory().join(&name);
        let header = supervised("read a log", || read_header(storage, &name));
        let header = header.map_err(|e| e.at(&path));
        let until_sequence = header.as_ref().map_or(0, |h| later.log(number, h));
        let read = || {
            let contents = read_log_file(storage, number, until_sequence)?;
            let part = contents
                .ingest
                .map(|i| i.finish(contents.header.identity.clone()));
            Ok((contents.header, contents.last_sequence, part))
        };
        let read = header.and_then(|_| supervised("read a log", read).map_err(|e| e.at(&path)));
        let (header, last_sequence, part) = match read {
            Ok(read) => read,
            // The header is incomplete, so the log has no frames.
            Err(_) if file.bytes < crate::format::log::FRAMES_AT as u64 => {
                let _ = storage.remove(&name);
                return;
            }
            Err(error) => {
                self.unreadable += 1;
                self.errors.push(error);
                self.stored.push(Stored {
                    numbers: file.numbers,
                    kind: Kind::Log,
                    bytes: file.bytes,
                    times: None,
                    identity: None,
                    statements_ms: None,
                });
                return;
            }
        };
        self.jobs.push(SealJob {
            number,
            until_sequence,
        });
        if header.identity.node != node {
            return;
        }
        let end = (header.incarnation, last_sequence, header.tick_base);
        if let Some(part) = part {
            let newest = self.extend_end(&part, end);
            if newest {
                self.live_definitions = read_live_definitions(storage, &name).unwrap_or_default();
            }
        }
    }

    /// Moves the end of the history to the end of this part, if the part has later ticks or later
    /// frames of the same incarnation. Returns true if it moved the end.
    fn extend_end(
        &mut self,
        part: &Part,
        (incarnation, sequence, tick_base): (u64, u64, u64),
    ) -> bool {
        let has_ticks = part.first_tick() <= part.last_tick();
        let further = has_ticks && part.last_tick() >= self.end.tick;
        let same = incarnation == self.end.incarnation;
        let longer = same && sequence > self.end.sequence;
        if !further && !longer {
            return false;
        }
        if same {
            self.end.sequence = self.end.sequence.max(sequence);
        } else if further {
            (self.end.incarnation, self.end.sequence) = (incarnation, sequence);
        }
        if !further {
            self.end.stopped |= has_stop(part, i64::MIN).unwrap_or(false);
            return true;
        }
        self.end.tick = part.last_tick();
        self.end.tick_base = tick_base;
        self.end.identity = part.info().identity.clone();
        if let Ok((slot, interval)) = last_slot(part) {
            self.end.end_ms = Some(slot + interval);
            self.end.stopped = has_stop(part, slot).unwrap_or(false);
        }
        true
    }
}

/// Slot time and interval of the last tick.
fn last_slot(part: &Part) -> Result<(i64, i64)> {
    let last = |column| {
        part.ints("tick", column)
            .map(|c| c.last().copied().unwrap_or(0))
    };
    Ok((last("slot_time")?, last("interval_ms")?))
}

/// True if there is a stop marker at or after this time.
fn has_stop(part: &Part, since_ms: i64) -> Result<bool> {
    let stop = part.schema().value("marker", "stop");
    let kinds = part.ints("marker", "kind")?;
    let times = part.ints("marker", "time")?;
    let mut markers = kinds.iter().zip(times.iter());
    Ok(markers.any(|(kind, time)| Some(*kind) == stop && *time >= since_ms))
}

fn read_header(storage: &dyn Storage, name: &str) -> Result<LogHeader> {
    let path = storage.directory().join(name);
    let file = storage
        .open(name)
        .map_err(|e| Error::io("open file", &path, e))?;
    let mut head = vec![0; crate::format::log::FRAMES_AT];
    let read = file.read_at(0, &mut head);
    let read = read.map_err(|e| Error::io("read file", &path, e))?;
    LogHeader::parse(&head[..read]).map_err(|e| e.at(&path))
}

/// The dictionary entries in use at the end of a log; `None` if it cannot be read.
fn read_live_definitions(storage: &dyn Storage, name: &str) -> Option<LiveDefinitions> {
    let bytes = read_all(&*storage.open(name).ok()?).ok()?;
    let mut schema: Option<Schema> = None;
    let mut live_definitions = LiveDefinitions::default();
    for stretch in Scan::new(&bytes) {
        let Stretch::Frame(frame) = stretch else {
            continue;
        };
        let Ok(sections) = frame.all_sections() else {
            continue;
        };
        match &schema {
            None => schema = crate::format::hello::read_schema(&sections).ok(),
            Some(schema) => live_definitions.frame(schema, &sections, &frame.header),
        }
    }
    Some(live_definitions)
}

/// True if more free space would cure the error.
pub fn is_space(error: &Error) -> bool {
    error.kind == error::Kind::NoSpace
}
