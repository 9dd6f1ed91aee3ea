//! Contents and damage of a history file. Every byte is checked.

use crate::error::{Error, Result};
use crate::files::directory::{Kind, parse_name, recorded_node};
use crate::files::storage::{OsStorage, ReadFile, Storage, read_readable};
use crate::format::log::{LogHeader, read_log};
use crate::format::part::{Identity, LogDamage, Part};
pub use crate::query::Removal;
use crate::query::{REMOVED, decode, removals};
use crate::store::sealed_read::{BlockFile, Schemas};
use std::path::Path;
use std::sync::Arc;

/// The contents and the damage of a file.
pub struct FileReport {
    /// File name.
    pub name: String,
    /// Kind of the file.
    pub kind: Kind,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The node and server that wrote it.
    pub identity: Identity,
    /// Groups of the file as parts, or the one part of a log.
    pub parts: Vec<Part>,
    /// Damaged ranges of bytes.
    pub damage: Vec<LogDamage>,
    /// Bytes of an incomplete frame at the end of a log. This is no damage.
    pub torn_bytes: usize,
    /// Removals of history that its markers record, oldest first.
    pub removals: Vec<Removal>,
}

/// Reads and checks a file by its path.
///
/// # Errors
/// It is no history file, or could not be read, or nothing of it is valid.
pub fn inspect(path: &Path) -> Result<FileReport> {
    let (name, kind, file) = open_history_file(path)?;
    let bytes = file.bytes().map_err(|e| Error::io("read file", path, e))?;
    let mut report = FileReport {
        name: name.into(),
        kind,
        bytes,
        identity: Identity::default(),
        parts: Vec::new(),
        damage: Vec::new(),
        torn_bytes: 0,
        removals: Vec::new(),
    };
    if kind == Kind::Log {
        let log = read_readable(&*file, 0, bytes);
        let log = log.map_err(|e| Error::io("read file", path, e))?;
        let contents = read_log(&log, u64::MAX).map_err(|e| e.at(path))?;
        let header: LogHeader = contents.header;
        report.identity = header.identity.clone();
        report.damage = contents.damage;
        report.torn_bytes = contents.torn_bytes;
        report
            .parts
            .extend(contents.ingest.map(|i| i.finish(header.identity)));
    } else {
        let block = BlockFile::open_whole(file, path, &mut Schemas::default())?;
        report.identity = block.identity().clone();
        report.damage = block.verify()?;
        report.parts = block.parts().collect();
    }
    // Unreadable markers are reported as damage, so they are skipped here.
    let removals = report.parts.iter().filter_map(removals_of);
    report.removals = removals.flatten().collect();
    report.removals.sort_by_key(|removal| removal.time_ms);
    Ok(report)
}

/// The removals of history that a part's markers record; `None` if the markers are damaged.
fn removals_of(part: &Part) -> Option<Vec<Removal>> {
    let kind = part.schema().value("marker", REMOVED)?;
    removals(part, kind, decode).ok()
}

/// Opens a history file by its path. Its kind follows from its name.
pub(crate) fn open_history_file(path: &Path) -> Result<(&str, Kind, Arc<dyn ReadFile>)> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let Some((_, kind)) = parse_name(name) else {
        return Err(Error::damaged("not a history file").at(path));
    };
    let storage = OsStorage::new(path.parent().unwrap_or(Path::new(".")));
    let file = storage.open(name);
    let file = file.map_err(|e| Error::io("open file", path, e))?;
    Ok((name, kind, file))
}

/// Checks the file `node` of a directory, if there is one.
///
/// # Errors
/// It is damaged or could not be read.
pub fn check_node(directory: &Path) -> Result<()> {
    recorded_node(&OsStorage::new(directory)).map(drop)
}

/// The history files of a directory, oldest first.
///
/// # Errors
/// The directory could not be read.
pub fn history_files(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let files = crate::files::directory::list(&OsStorage::new(directory))?;
    let shown = files.iter().filter(|f| f.kind != Kind::Temporary);
    Ok(shown.map(|f| directory.join(f.name())).collect())
}
