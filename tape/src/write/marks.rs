//! Markers that users write. The user's process leaves a complete file in the directory
//! ([`leave`]). The writer puts the marker before the next frame and removes the file once the log
//! is on disk. A writer that starts skips files whose markers are already in the history.

use crate::files::directory::{LOCK, NODE};
use crate::files::lock::is_held;
use crate::files::storage::{OsStorage, Stamp, Storage, read_all};
use crate::format::schema::Schema;
use crate::query::{INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, Removal, decode, removals};
use crate::store::snapshot::Snapshot;
use crate::write::clock::{Now, now, random};
use crate::write::markers::{MARK, Marker};
use crate::write::message::Message;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// Maximum length of a text in bytes.
pub const TEXT_BYTES: usize = 1_000;

/// Prefix of a file name; 16 hexadecimal digits follow.
const PREFIX: &str = "marker-";
/// Suffix of the name of an incomplete file.
const INCOMPLETE: &str = ".tmp";
/// First word of a file, with its version. It is followed by the time in ms since 1970, a line
/// feed, and the text.
const HEAD: &str = "tacho-marker-1 ";
/// Maximum length of a file in bytes.
const FILE_BYTES: u64 = 1_100;
/// Maximum number of markers before one frame.
const AT_ONCE: usize = 100;
/// Maximum number of waiting files.
const WAITING: usize = 1_000;
/// Pause between two looks into the directory.
const LOOK_MS: i64 = 1_000;
/// Maximum distance from the writer's time. A marker that is further away gets the writer's time.
const DAY_MS: i64 = 86_400_000;

/// Leaves a marker with the current time for the recorder of a directory. When this returns, the
/// marker is on disk; it enters the history with the next tick.
///
/// # Errors
/// - The text is empty, too long, or has control characters (`22023`).
/// - Nothing is recorded into the directory (`55000`).
/// - Too many markers wait (`53400`).
/// - The process may not write to the directory (`42501`).
pub fn write_mark(directory: &Path, text: &str) -> QueryResult<()> {
    let text = checked(text)?;
    check_recorded(directory)?;
    let storage = OsStorage::new(directory);
    let failed = |e| write_error(directory, &e);
    let waiting = storage.names().map_err(failed)?;
    if waiting.iter().filter(|n| is_mark(&n.name)).count() >= WAITING {
        let message = format!(
            "{WAITING} markers in directory \"{}\" are not recorded yet",
            directory.display()
        );
        return Err(QueryError::new("53400", message)
            .hint("Check the log of the recorder and the output of tacho status."));
    }
    let name = format!("{PREFIX}{:016x}", random());
    let incomplete = format!("{name}{INCOMPLETE}");
    let left = write(directory, &incomplete, text)
        .and_then(|()| storage.rename(&incomplete, &name))
        .and_then(|()| storage.sync_directory());
    left.map_err(|e| {
        let _ = storage.remove(&incomplete);
        failed(e)
    })
}

fn checked(text: &str) -> QueryResult<&str> {
    let text = text.trim();
    let invalid = |what: &str| Err(QueryError::invalid(format!("the text of a marker {what}")));
    match text {
        "" => invalid("is empty"),
        _ if text.len() > TEXT_BYTES => invalid(&format!("has more than {TEXT_BYTES} bytes")),
        _ if text.chars().any(char::is_control) => invalid("has control characters"),
        _ => Ok(text),
    }
}

/// Fails unless a process holds the lock of the directory.
fn check_recorded(directory: &Path) -> QueryResult<()> {
    let shown = directory.display();
    let not_recorded = || {
        let message = format!("no recorder runs for directory \"{shown}\"");
        Err(QueryError::new("55000", message)
            .hint("Start the server or tacho record: the recorder writes the markers."))
    };
    if !directory.join(NODE).exists() && !directory.join(LOCK).exists() {
        return match std::fs::read_dir(directory) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(write_error(directory, &e)),
            _ => not_recorded(),
        };
    }
    match is_held(directory) {
        Ok(true) => Ok(()),
        Ok(false) => not_recorded(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => not_recorded(),
        Err(e) => Err(write_error(directory, &e)),
    }
}

fn write_error(directory: &Path, error: &io::Error) -> QueryError {
    let directory = directory.display();
    let message = format!("could not write a marker to directory \"{directory}\": {error}");
    match error.kind() {
        io::ErrorKind::PermissionDenied => QueryError::new(INSUFFICIENT_PRIVILEGE, message)
            .hint("Run this as the user that runs the recorder, such as postgres."),
        io::ErrorKind::ReadOnlyFilesystem => QueryError::new("25006", message),
        io::ErrorKind::StorageFull => QueryError::new("53100", message),
        _ => QueryError::new("58030", message),
    }
}

/// Writes and syncs a file that belongs to the directory's owner and that only the owner may read.
fn write(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(directory.join(name))?;
    let owner = std::fs::metadata(directory)?;
    if file.metadata()?.uid() != owner.uid() {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    file.write_all(format!("{HEAD}{}\n{text}", now().wall_ms).as_bytes())?;
    file.sync_all()
}

/// True for the name of a complete file.
fn is_mark(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    let plain = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    digits.len() == 16 && digits.bytes().all(plain)
}

/// The contents of a marker's file.
struct Mark {
    name: String,
    time_ms: i64,
    text: String,
}

impl Mark {
    /// Reads a file.
    ///
    /// # Errors
    /// It could not be read, or is not a marker's file.
    fn read(storage: &dyn Storage, name: &str) -> io::Result<Mark> {
        let file = storage.open(name)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a marker file");
        if file.bytes()? > FILE_BYTES {
            return Err(invalid());
        }
        let bytes = read_all(&*file)?;
        let whole = String::from_utf8(bytes).map_err(|_| invalid())?;
        let (time, text) = whole
            .strip_prefix(HEAD)
            .and_then(|rest| rest.split_once('\n'))
            .ok_or_else(invalid)?;
        let time_ms = time.parse().map_err(|_| invalid())?;
        let text = checked(text).map_err(|_| invalid())?;
        Ok(Mark {
            name: name.to_string(),
            time_ms,
            text: text.to_string(),
        })
    }
}

/// The files that the writer has found.
#[derive(Default)]
pub(crate) struct Marks {
    /// Markers for the next frame.
    waiting: Vec<Mark>,
    /// Files whose markers are in the log, which may not be on disk yet.
    written: Vec<String>,
    /// Names of all files that were found.
    known: BTreeSet<String>,
    /// Names of the files that could not be read. They are tried again.
    unread: BTreeSet<String>,
    /// Monotonic time of the last look in ms, and the stamp of the directory at that time.
    looked: Option<(i64, Option<Stamp>)>,
}

impl Marks {
    /// The files that earlier writers left. If a marker is already in the history, its file only
    /// has to be removed.
    pub(crate) fn found(storage: &dyn Storage) -> Marks {
        let names = storage.names().unwrap_or_default();
        let left = names.iter().map(|found| found.name.as_str());
        let (complete, others): (Vec<&str>, Vec<&str>) = left.partition(|name| is_mark(name));
        let broken_off = |name: &&str| name.strip_suffix(INCOMPLETE).is_some_and(is_mark);
        for name in others.into_iter().filter(broken_off) {
            let _ = storage.remove(name);
        }
        let mut marks = Marks::default();
        if !complete.is_empty() {
            let recorded = recorded_texts(storage).unwrap_or_default();
            for mark in complete.iter().filter_map(|n| Mark::read(storage, n).ok()) {
                if recorded.contains(&(mark.time_ms, mark.text)) {
                    marks.known.insert(mark.name.clone());
                    marks.written.push(mark.name);
                }
            }
        }
        marks
    }

    /// Finds new files. Removes a file that is not a marker, with a message. If the schema does not
    /// know this kind of markers, files wait.
    pub(crate) fn read_new(
        &mut self,
        storage: &dyn Storage,
        schema: &Schema,
        now: Now,
    ) -> Vec<Message> {
        let before = self.looked;
        let is_known = schema.value("marker", MARK).is_some();
        if !is_known || before.is_some_and(|(at, _)| now.mono_ms - at < LOOK_MS) {
            return Vec::new();
        }
        let stamp = storage.stamp();
        self.looked = Some((now.mono_ms, stamp));
        if stamp.is_some() && before.is_some_and(|(_, before)| before == stamp) {
            return Vec::new();
        }
        // Without a stamp the next call looks again.
        let again = Some((now.mono_ms, None));
        let Ok(names) = storage.names() else {
            self.looked = again;
            return Vec::new();
        };
        let is_new = |name: &String| is_mark(name) && !self.known.contains(name);
        let mut news: Vec<String> = names.into_iter().map(|n| n.name).filter(is_new).collect();
        // Files that could not be read come last, so that they hold back no others.
        news.sort_by_key(|name| self.unread.contains(name));
        let free = AT_ONCE.saturating_sub(self.waiting.len());
        if news.len() > free {
            self.looked = again;
        }
        let mut messages = Vec::new();
        for name in news.into_iter().take(free) {
            match Mark::read(storage, &name) {
                Ok(mark) => self.waiting.push(mark.with_credible_time(now)),
                Err(error) if is_no_marker(&error) => {
                    let path = storage.directory().join(&name);
                    let message = format!("ignored marker file \"{}\": {error}", path.display());
                    messages.push(Message::Warning(message));
                    let _ = storage.remove(&name);
                }
                Err(error) => {
                    // Perhaps the file can be read later.
                    self.looked = again;
                    if self.unread.insert(name.clone()) {
                        let path = storage.directory().join(&name);
                        let message = format!(
                            "could not read marker file \"{}\", trying again: {error}",
                            path.display()
                        );
                        messages.push(Message::Warning(message));
                    }
                    continue;
                }
            }
            self.unread.remove(&name);
            self.known.insert(name);
        }
        messages
    }

    /// The markers of the next frame.
    pub(crate) fn markers(&self) -> impl Iterator<Item = Marker> {
        let marker = |mark: &Mark| Marker::mark(mark.time_ms, mark.text.clone());
        self.waiting.iter().map(marker)
    }

    /// Notes that the markers are in the log.
    pub(crate) fn written(&mut self) {
        self.written
            .extend(self.waiting.drain(..).map(|mark| mark.name));
    }

    /// Removes the files of markers that are on disk. If that fails, it is tried again after the
    /// next sync.
    pub(crate) fn synced(&mut self, storage: &dyn Storage) {
        let known = &mut self.known;
        self.written.retain(|name| match storage.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => true,
            _ => {
                known.remove(name);
                false
            }
        });
    }
}

/// True if the file is none that `tacho mark` writes: other contents, or a directory.
fn is_no_marker(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput];
    kinds.contains(&error.kind())
}

impl Mark {
    /// The marker, with the writer's time if its own is more than a day away.
    fn with_credible_time(mut self, now: Now) -> Mark {
        let is_near = self.time_ms.abs_diff(now.wall_ms) < DAY_MS as u64;
        self.time_ms = if is_near { self.time_ms } else { now.wall_ms };
        self
    }
}

/// Times (ms since 1970) and texts of the users' markers in the history.
fn recorded_texts(storage: &dyn Storage) -> crate::Result<BTreeSet<(i64, String)>> {
    let store = Snapshot::open_storage(storage)?;
    let mut recorded = BTreeSet::new();
    for node in store.nodes() {
        for part in store.parts(node.id).filter(|p| p.rows("marker") > 0) {
            let kind = part.schema().value("marker", MARK).unwrap_or(0);
            // Damaged parts are skipped.
            let markers = removals(part, kind, decode).unwrap_or_default();
            let text = |marker: Removal| Some((marker.time_ms, marker.detail?));
            recorded.extend(markers.into_iter().filter_map(text));
        }
    }
    Ok(recorded)
}
