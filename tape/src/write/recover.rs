//! What a writer finds when it starts: the sealed files, the logs to seal, and
//! where the history of its node ends.

use crate::error::supervised;
use crate::error::{self, Error, Result};
use crate::files::directory::{self, Kind, Numbers, file_name};
use crate::files::storage::{Storage, read_all};
use crate::format::log::{LogHeader, Scan, Stretch};
use crate::format::part::{Identity, Part};
use crate::format::schema::{STATS, Schema};
use crate::store::open::Repeats;
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::write::live_definitions::Carry;
use crate::write::seal::read_log_file;

/// A file that retention may remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its numbers.
    pub numbers: Numbers,
    /// What it is.
    pub kind: Kind,
    /// Its length.
    pub bytes: u64,
    /// Least and greatest slot time; `None` without ticks.
    pub times: Option<(i64, i64)>,
    /// Who wrote it; `None` when it cannot be merged with others.
    pub identity: Option<Identity>,
    /// The shortest interval its statistics of statements are summed up in
    /// (0 = as recorded); `None` without any.
    pub statements_ms: Option<u64>,
}

/// A log that must be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealJob {
    /// Its number.
    pub number: u64,
    /// Data frames from this sequence on do not count.
    pub until_sequence: u64,
}

/// Where the history of a node ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Last tick number.
    pub tick: u64,
    /// End of the last slot, ms.
    pub end_ms: Option<i64>,
    /// The last life of the sampler said that it stops.
    pub stopped: bool,
    /// The server.
    pub identity: Identity,
    /// Last life of the sampler, 0 = none.
    pub incarnation: u64,
    /// Last sequence of it.
    pub sequence: u64,
    /// Tick base of it.
    pub tick_base: u64,
}

impl End {
    /// For the node that goes on with this one's history: its ticks are its
    /// own, the time in between is a gap.
    pub(crate) fn of_node_before(self) -> End {
        End {
            end_ms: self.end_ms,
            stopped: self.stopped,
            identity: self.identity,
            ..End::default()
        }
    }
}

/// More ticks than one file holds: a day of a hundred a second.
const FILE_TICKS: u64 = 10_000_000;

/// What a directory holds.
#[derive(Default)]
pub struct Remains {
    /// Sealed files, and logs that cannot be sealed, oldest first.
    pub stored: Vec<Stored>,
    /// Logs to seal, oldest first.
    pub jobs: Vec<SealJob>,
    /// Where the history of the node ends.
    pub end: End,
    /// Entries in use at the end of the newest log.
    pub carry: Carry,
    /// Number for the next log.
    pub next_number: u64,
    /// Files that could not be read, now or ever.
    unreadable: u64,
    /// What went wrong, for the server's log.
    pub errors: Vec<Error>,
}

/// Looks through a directory and removes what a crash has left over.
///
/// # Errors
/// The directory could not be read.
pub fn look(storage: &dyn Storage, node: u64) -> Result<Remains> {
    let mut found = Remains {
        next_number: 1,
        ..Remains::default()
    };
    let mut schemas = Schemas::default();
    let mut later = Repeats::default();
    let mut sealed = Vec::new();
    let files = directory::list(storage)?;
    // A merged file before what it replaces.
    let merged = |f: &&directory::HistoryFile| f.numbers.is_merged();
    let (merged, single): (Vec<&directory::HistoryFile>, Vec<_>) = files.iter().partition(merged);
    let mut valid: Vec<Numbers> = Vec::new();
    for file in merged.into_iter().chain(single) {
        found.next_number = found.next_number.max(file.numbers.last + 1);
        let replaced = valid.iter().any(|v| v.replaces(file.numbers));
        match file.kind {
            Kind::Temporary => drop(storage.remove(&file.name())),
            // The crash came between the rename of the merged file and this.
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
            // The crash came between rename and removal.
            let _ = storage.remove(&file.name());
            continue;
        }
        found.log(storage, node, file, &mut later);
    }
    // What cannot be read now may be readable later: no tick may come twice.
    let unread = found.unreadable.saturating_mul(FILE_TICKS);
    found.end.tick = found.end.tick.saturating_add(unread);
    found.jobs.reverse();
    found.stored.sort_by_key(|s| s.numbers);
    Ok(found)
}

impl Remains {
    /// False when the file cannot be read at all.
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
            // Its header was not written any more: nothing is in it.
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
                self.carry = read_carry(storage, &name).unwrap_or_default();
            }
        }
    }

    /// Moves the end when a part reaches further; true if it does.
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

/// Is there a stop marker at or after this time?
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

/// The entries in use at the end of a log.
fn read_carry(storage: &dyn Storage, name: &str) -> Option<Carry> {
    let bytes = read_all(&*storage.open(name).ok()?).ok()?;
    let mut schema: Option<Schema> = None;
    let mut carry = Carry::default();
    for stretch in Scan::new(&bytes) {
        let Stretch::Frame(frame) = stretch else {
            continue;
        };
        let Ok(sections) = frame.all_sections() else {
            continue;
        };
        match &schema {
            None => schema = crate::format::hello::read_schema(&sections).ok(),
            Some(schema) => carry.frame(schema, &sections, &frame.header),
        }
    }
    Some(carry)
}

/// True for an error that more space would cure.
pub fn is_space(error: &Error) -> bool {
    error.kind == error::Kind::NoSpace
}
