//! Follows a log while it is written: reads only the appended bytes. Its rows become parts of a few
//! thousand rows each. Finished parts do not change; every snapshot has its own copy of the last
//! part.

use crate::error::supervised;
use crate::error::{self, Error, Result};
use crate::files::directory::Listed;
use crate::files::storage::{ReadFile, Storage, read_readable};
use crate::format::ingest::Definitions;
use crate::format::log::{FRAMES_AT, LogContents, LogHeader, read_log};
use crate::format::part::{Memory, Part, PartInfo, Source};
use crate::format::schema::Schema;
use crate::format::table::{BytesColumn, Column, Table};
use crate::store::open::{Opened, is_lasting};
use crate::store::snapshot::Damage;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of rows of a finished group. A snapshot copies at most this many rows, plus the rows of
/// one tick.
const GROUP_ROWS: usize = 4_096;

/// A followed log.
pub(crate) struct Live {
    pub(crate) listed: Listed,
    file: Arc<dyn ReadFile>,
    path: Arc<PathBuf>,
    header: Option<LogHeader>,
    /// Data frames from this sequence on do not count.
    until_sequence: u64,
    /// The contents so far; `None` after an error.
    contents: Option<LogContents>,
    /// Length of the log in bytes at the last read; `None` if it must be read again.
    length: Option<u64>,
    error: Option<Error>,
    /// True if the log was gone at the last read. A sealed file may have its rows.
    is_gone: bool,
    groups: Vec<(Arc<Memory>, PartInfo)>,
    definitions: Option<Definitions>,
    parts: Vec<Part>,
}

impl Live {
    pub(crate) fn new(opened: Opened, storage: &dyn Storage) -> Self {
        Live {
            path: Arc::new(opened.path(storage)),
            listed: opened.listed,
            file: opened.file,
            header: None,
            until_sequence: u64::MAX,
            contents: None,
            length: None,
            error: None,
            is_gone: false,
            groups: Vec::new(),
            definitions: None,
            parts: Vec::new(),
        }
    }

    /// The header of the log; `None` while it is unreadable.
    pub(crate) fn header(&mut self) -> Option<&LogHeader> {
        if self.header.is_none() {
            let bytes = self.bytes(0, FRAMES_AT as u64).ok()?;
            self.header = LogHeader::parse(&bytes).ok();
        }
        self.header.as_ref()
    }

    /// True if its header is not written yet.
    pub(crate) fn is_without_header(&self) -> bool {
        self.header.is_none()
    }

    /// True if the log was gone at the last read.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Sets the sequence from which on data frames do not count. If such frames were counted
    /// already, the log is read again.
    pub(crate) fn count_until(&mut self, until_sequence: u64) {
        if until_sequence == self.until_sequence {
            return;
        }
        let last = self.contents.as_ref().map_or(0, |c| c.last_sequence);
        if self.until_sequence != u64::MAX || until_sequence <= last {
            self.forget();
        }
        self.until_sequence = until_sequence;
    }

    /// Reads appended bytes. Returns true if anything has changed.
    pub(crate) fn follow(&mut self) -> bool {
        let length = self.file.bytes();
        if self.length.is_some() && length.as_ref().ok() == self.length.as_ref() {
            return false;
        }
        let length = length.map_err(|e| Error::io("read file", &self.path, e));
        let done = length.and_then(|length| {
            supervised("read a log", || self.read_on(length))?;
            Ok(length)
        });
        let is_gone = |e: &Error| e.kind == error::Kind::NotFound;
        self.is_gone = done.as_ref().err().is_some_and(is_gone);
        match done {
            Ok(length) => (self.length, self.error) = (Some(length), None),
            Err(error) => {
                self.forget();
                // A log without a complete header is not an error.
                let length = self.file.bytes().unwrap_or(0);
                self.length = is_lasting(&error).then_some(length);
                self.error = Some(error).filter(|_| length >= FRAMES_AT as u64);
            }
        }
        self.show();
        true
    }

    fn forget(&mut self) {
        (self.contents, self.length, self.definitions) = (None, None, None);
        self.groups.clear();
    }

    /// Reads from the end of the last valid frame. Reads the whole log after damage, or if it
    /// became shorter.
    fn read_on(&mut self, length: u64) -> Result<()> {
        let is_clear = |c: &LogContents| c.damage.is_empty() && c.end as u64 <= length;
        let contents = match self.contents.take().filter(is_clear) {
            Some(mut contents) => {
                let bytes = self.bytes(contents.end as u64, length)?;
                contents.read_on(&bytes, self.until_sequence);
                contents
            }
            None => {
                self.forget();
                let bytes = self.bytes(0, length)?;
                read_log(&bytes, self.until_sequence)?
            }
        };
        self.contents = Some(contents);
        Ok(())
    }

    fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>> {
        let read = read_readable(&*self.file, from, to);
        read.map_err(|e| Error::io("read file", &self.path, e))
    }

    /// Makes the parts for the next snapshots.
    fn show(&mut self) {
        let mut before = std::mem::take(&mut self.parts);
        let Some(contents) = &mut self.contents else {
            return;
        };
        let Some(ingest) = &mut contents.ingest else {
            return;
        };
        ingest.set_group_rows(GROUP_ROWS);
        let definitions = ingest.definitions(self.definitions.take());
        let identity = &contents.header.identity;
        let finish = |(tables, mut info): (Vec<Table>, PartInfo)| {
            info.identity = identity.clone();
            (info.file, info.open) = (self.path.clone(), true);
            (Arc::new(Memory::new(tables)), info)
        };
        before.truncate(match definitions.is_same {
            true => self.groups.len(),
            false => 0,
        });
        self.groups
            .extend(ingest.take_groups().into_iter().map(finish));
        let current_group = ingest.copy_current_group().map(finish);
        let (lost, dropped) = (ingest.lost_definitions(), ingest.dropped_rows());
        let schema = ingest.schema();
        let (shown, known) = (before.len(), &definitions.memory);
        let groups = self.groups.iter().chain(&current_group).skip(shown);
        before.extend(groups.map(|group| part_of(schema, known, group)));
        if let Some(first) = before.first_mut() {
            *first = first.with_lost(lost, dropped);
        }
        self.parts = before;
        self.definitions = Some(definitions);
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Damage, in the form in which a one-shot reader reports it.
    pub(crate) fn damage(&self) -> Vec<Damage> {
        let length = self.length.unwrap_or(0);
        let error = self.error.iter();
        let error = error.map(|e| Damage::unreadable(&self.path, length, e));
        let contents = self.contents.iter().flat_map(|c| &c.damage);
        let found = contents.map(|found| Damage::of_file(&self.path, found));
        error.chain(found).collect()
    }
}

fn part_of(schema: &Arc<Schema>, known: &Arc<Memory>, group: &(Arc<Memory>, PartInfo)) -> Part {
    let source = GroupOfLog {
        own: group.0.clone(),
        definitions: known.clone(),
    };
    Part::new(group.1.clone(), schema.clone(), Arc::new(source))
}

/// The rows of a group, and the dictionaries of its log.
struct GroupOfLog {
    own: Arc<Memory>,
    definitions: Arc<Memory>,
}

impl GroupOfLog {
    fn of(&self, table: usize) -> &Memory {
        match self.definitions.rows(table) {
            0 => &self.own,
            _ => &self.definitions,
        }
    }
}

impl Source for GroupOfLog {
    fn rows(&self, table: usize) -> usize {
        self.of(table).rows(table)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        self.of(table).ints(table, column)
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        self.of(table).bytes(table, column)
    }
}
