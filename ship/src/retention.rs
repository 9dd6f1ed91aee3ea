//! Tells the writer's retention which files are shipped, and reads from markers what
//! retention removed before it was shipped.

use crate::contents::schema;
use crate::field::Names;
use crate::hours::{HOUR_MS, NEAR_MS, hour_of, is_lasting, latest_ms};
use crate::options::Options;
use crate::place::Result;
use crate::scratch::TempFile;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tacho_tape::files::directory::{Numbers, parse_name};
use tacho_tape::files::shipped::{Shipped, is_shipped_name, shipped_name};
use tacho_tape::write::removed::NOT_SHIPPED;
use tacho_tape::{Part, Snapshot};

/// Lines of a note that the writer reads. The lines after them are for people.
const LINES: usize = 3;

/// Tells the retention of one tape about one place.
pub struct Retention {
    directory: PathBuf,
    name: String,
    place: String,
    server: Option<String>,
    told: Option<u64>,
    others: Vec<String>,
}

impl Retention {
    /// Announces to the writer that a server is shipped to a place.
    ///
    /// # Errors
    /// Nothing can be written into the directory of the tape.
    pub fn open(options: &Options) -> Result<Retention> {
        let mut hash = Sha256::new();
        let given = [&options.to, &options.command, &options.server];
        for text in given.map(|text| text.as_deref().unwrap_or_default()) {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        let mut id = [0; 8];
        id.copy_from_slice(&hash.finalize()[..8]);
        let id = u64::from_be_bytes(id);
        // A command may contain secrets, so the note has only its hash.
        let place = options.to.clone();
        let mut retention = Retention {
            directory: options.tape.clone(),
            name: shipped_name(id),
            place: place.unwrap_or_else(|| format!("--command {id:016x}")),
            server: options.server.clone(),
            told: None,
            others: Vec::new(),
        };
        let known = fs::read_to_string(options.tape.join(&retention.name)).ok();
        let known = known.and_then(|text| Shipped::parse(&text));
        retention.others = retention.find_others(known.as_ref());
        retention.announce(known.map_or(0, |known| known.until))?;
        Ok(retention)
    }

    /// Messages about other destinations that retention waits for longer than for this one. An
    /// edited command is another destination, so the note of the old one may be among them.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    fn find_others(&self, known: Option<&Shipped>) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let others = names.filter(|name| is_shipped_name(name) && *name != self.name);
        let mut others: Vec<String> = others.filter_map(|name| self.other(&name, known)).collect();
        others.sort();
        others
    }

    /// The message about the note of another destination; `None` if retention need not wait for it.
    fn other(&self, name: &str, known: Option<&Shipped>) -> Option<String> {
        let path = self.directory.join(name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let Some(other) = Shipped::parse(&text) else {
            return Some(format!(
                "retention waits for the destination of file \"{}\", which cannot be read: no file counts as shipped there\nHINT:  Remove this file if you have given up that destination.",
                path.display()
            ));
        };
        let is_behind = known.is_none_or(|known| other.until < known.until);
        let more = text.lines().skip(LINES).collect::<Vec<_>>().join(", ");
        let more = if more.is_empty() {
            more
        } else {
            format!(", {more}")
        };
        is_behind.then(|| {
            format!(
                "retention also waits for the destination of file \"{}\": {}{more}, shipped until {}\nHINT:  Remove this file if you have given up that destination. An edited --command counts as a new one.",
                path.display(),
                other.place,
                other.until
            )
        })
    }

    /// Notes that all files up to number `until` are shipped.
    ///
    /// # Errors
    /// The note could not be written.
    pub fn announce(&mut self, until: u64) -> Result<()> {
        if self.told == Some(until) {
            return Ok(());
        }
        let path = self.directory.join(&self.name);
        self.write(&path, until).map_err(|e| {
            format!(
                "could not write file \"{}\": {e}\nDETAIL:  This file tells the writer of the history which files are shipped and may be removed.\nHINT:  Run tacho ship as the owner of the directory and on the history itself, not on a copy, or without --tell-retention.",
                path.display()
            )
        })?;
        self.told = Some(until);
        Ok(())
    }

    fn write(&self, path: &Path, until: u64) -> io::Result<()> {
        let place = self.place.clone();
        let mut text = Shipped { until, place }.text();
        if let Some(server) = &self.server {
            let _ = writeln!(text, "server {server}");
        }
        let now_ms = Timestamp::now().as_millisecond();
        let _ = writeln!(text, "time {}", format_time(now_ms));
        let file = TempFile::new(&self.directory, text.as_bytes())?;
        // The directory decides who may read; the writer may be another user.
        fs::set_permissions(file.path(), Permissions::from_mode(0o644))?;
        fs::rename(file.path(), path)
    }
}

/// The highest file number up to which no file has rows that are still to be shipped.
/// `not_shipped` has the first hour of each node that is not shipped. Files of other
/// servers, and lasting damage, do not count as waiting.
///
/// # Errors
/// A file could not be read; a later attempt may succeed.
pub fn shipped_until(tape: &Snapshot, not_shipped: &HashMap<u64, i64>) -> Result<u64> {
    let (mut last, mut first_waiting) = (0, None);
    for node in tape.nodes() {
        let is_other = tape.other_servers().contains(&node.id);
        let limit = not_shipped.get(&node.id).copied().unwrap_or(i64::MIN);
        for part in tape.parts(node.id) {
            let Some(numbers) = numbers(part) else {
                continue;
            };
            last = last.max(numbers.last);
            if !is_other && waits(part, limit)? {
                let first = first_waiting.unwrap_or(u64::MAX).min(numbers.first);
                first_waiting = Some(first);
            }
        }
    }
    Ok(first_waiting.map_or(last, |first| first.saturating_sub(1)))
}

fn numbers(part: &Part) -> Option<Numbers> {
    let name = part.info().file.file_name()?.to_str()?;
    parse_name(name).map(|(numbers, _)| numbers)
}

/// True if a part has, or may get, rows of hour `limit` or later.
fn waits(part: &Part, limit: i64) -> Result<bool> {
    if part.info().open {
        return Ok(true);
    }
    let with_ticks = part.min_ms() <= part.max_ms();
    if with_ticks && part.max_ms().saturating_add(NEAR_MS) < limit.saturating_mul(HOUR_MS) {
        return Ok(false);
    }
    match latest_ms(part) {
        Ok(latest) => Ok(latest.is_some_and(|latest| hour_of(latest) >= limit)),
        Err(error) if is_lasting(&error) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

/// Periods that were removed before they were shipped, from the markers of an hour.
///
/// # Errors
/// A part is damaged.
pub fn removed_before(part: &Part, hour: i64) -> tacho_tape::Result<Vec<String>> {
    let kind = schema().value("marker", "history removed");
    let [kinds, times, since, until, details] =
        ["kind", "time", "since", "until", "detail"].map(|name| part.ints("marker", name));
    let (kinds, times, since, until, details) = (kinds?, times?, since?, until?, details?);
    let rows = (0..kinds.len()).filter(|r| Some(kinds[*r]) == kind && hour_of(times[*r]) == hour);
    let rows: Vec<usize> = rows.collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let names = Names::read(part)?;
    let told = rows.into_iter().filter_map(|row| {
        let detail = names.get(details[row])?;
        let (since, until) = (format_time(since[row]), format_time(until[row]));
        let is_lost = detail.ends_with(NOT_SHIPPED);
        is_lost.then(|| format!("history of {since} to {until} was removed: {detail}"))
    });
    Ok(told.collect())
}

/// A time as messages show it: 2026-01-02 03:04:05Z.
pub fn format_time(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}
