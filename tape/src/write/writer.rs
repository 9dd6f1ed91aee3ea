//! The writer: takes frames, appends them to the log, begins new logs, hands out logs for sealing,
//! and removes old files. It reads no clock and no pipe and starts no thread; its caller does.
//!
//! After a failed write or sync a log is never touched again. It is sealed up to the last frame
//! known to be good, and the frame goes to a new log.

use crate::error::{Error, Result};
use crate::files::directory::{Kind, file_name};
use crate::files::shipped::forget_unknown;
use crate::files::storage::{AppendFile, Storage};
use crate::format::frame::{DATA, Frame, HELLO};
use crate::format::frame_summary::{Connection, FrameSummary};
use crate::format::hello;
use crate::format::log::{FRAMES_AT, LogHeader};
use crate::format::section::Section;
use crate::write::background::Retries;
use crate::write::claim::claim_node;
use crate::write::clock::Now;
use crate::write::live_definitions::LiveDefinitions;
use crate::write::markers::{Marker, define_markers};
use crate::write::marks::Marks;
use crate::write::merge::MergeJob;
use crate::write::message::Message;
use crate::write::pause::{Cause, Pause};
use crate::write::recover::{End, SealJob, Stored, is_space, read_directory};
use crate::write::removed::Removed;
use crate::write::settings::{Limit, Settings};
use crate::write::space::{Removable, SpaceGuard, Verdict};
use crate::write::unshipped::Unshipped;
use std::sync::Arc;

mod files;

/// A log is closed after this much slot time, in ms.
pub const LOG_MS: i64 = 600_000;
/// A log is closed after this many rows of table `sample`.
pub const LOG_ROWS: u64 = 250_000;
/// Free space is checked again after this many bytes.
const SPACE_BYTES: u64 = 1 << 20;
/// Free space is checked again after this many ms.
const SPACE_MS: i64 = 1_000;

/// Acknowledgement codes (`docs/format.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All frames are written.
    Written,
    /// The newest frame waits for space.
    Paused,
    /// The newest frame could not be written.
    Failed,
}

/// The current log.
struct OpenLog {
    number: u64,
    file: Box<dyn AppendFile>,
    bytes: u64,
    rows: u64,
    first_slot_ms: Option<i64>,
    /// Monotonic time in ms of the first write that is not synced.
    dirty_since: Option<i64>,
    /// True if the log's name in the directory is on disk.
    named: bool,
    /// True if the next frame must go to a new log, because the clock jumped within a frame.
    full: bool,
}

/// Writes one directory.
pub struct Writer {
    storage: Arc<dyn Storage>,
    node: u64,
    /// The reason why this is a new node, until a marker has it.
    new_node: Option<String>,
    settings: Settings,
    stored: Vec<Stored>,
    jobs: Vec<SealJob>,
    /// Closed logs. They are sealed when the next log has a frame: until then a new writer needs
    /// their definitions.
    closed: Vec<SealJob>,
    /// Numbers and lengths of the logs that wait to be sealed.
    waiting_bytes: Vec<(u64, u64)>,
    end: End,
    live_definitions: LiveDefinitions,
    connection: Option<Connection>,
    log: Option<OpenLog>,
    next_number: u64,
    /// True until a frame of this life of the sampler has a tick.
    new_life: bool,
    pause: Pause,
    /// True if earlier frames of this life of the sampler went to another directory.
    moved: bool,
    /// True if the newest frame could not be written; the reason was reported.
    failing: bool,
    /// Last check of the free space: monotonic time in ms, and length of the log then in bytes.
    space_checked: Option<(i64, u64)>,
    guard: SpaceGuard,
    removed: Removed,
    marks: Marks,
    messages: Vec<Message>,
    /// Numbers of logs that are not sealed yet.
    unsealed: Vec<u64>,
    retries: Retries,
    /// The job that is being merged.
    merging: Option<MergeJob>,
    /// True if there may be files to merge.
    may_merge: bool,
}

impl Writer {
    /// Takes over a directory whose lock the caller holds. `random` becomes the node's number if it
    /// has none. Logs of earlier writers are sealed when the first frame is written.
    ///
    /// # Errors
    /// The directory could not be read or the file `node` not be written.
    pub fn open(storage: Arc<dyn Storage>, random: u64) -> Result<Self> {
        let claim = claim_node(&*storage, random)?;
        let before = claim.before.map(|before| read_directory(&*storage, before));
        let found = read_directory(&*storage, claim.node)?;
        let end = match before.transpose()? {
            Some(before) if found.end == End::default() => before.end.of_node_before(),
            _ => found.end,
        };
        forget_unknown(&*storage, found.next_number);
        let pause = Pause::found(&*storage, end.end_ms);
        let mut messages = claim.messages;
        messages.extend(found.errors.iter().map(|e| Message::Error(e.to_string())));
        Ok(Writer {
            messages,
            node: claim.node,
            new_node: claim.new_node,
            settings: Settings::default(),
            stored: found.stored,
            unsealed: found.jobs.iter().map(|j| j.number).collect(),
            retries: Retries::default(),
            merging: None,
            may_merge: true,
            jobs: Vec::new(),
            closed: found.jobs,
            waiting_bytes: Vec::new(),
            end,
            live_definitions: found.live_definitions,
            connection: None,
            log: None,
            next_number: found.next_number,
            new_life: false,
            pause,
            moved: false,
            failing: false,
            space_checked: None,
            guard: SpaceGuard::default(),
            removed: Removed::default(),
            marks: Marks::found(&*storage),
            storage,
        })
    }

    /// End of the history: the end of its last tick's slot, in ms since 1970; `None` without ticks.
    pub fn end_ms(&self) -> Option<i64> {
        self.end.end_ms
    }

    /// Takes a frame. After any code except [`Code::Written`], the caller must send the frame again
    /// later.
    pub fn push(&mut self, frame: &Frame<'_>, now: Now) -> Code {
        let sections = match frame.all_sections() {
            Ok(sections) => sections,
            Err(error) => {
                let message = format!("ignored frame {}: {error}", frame.header.sequence);
                self.messages.push(Message::Error(message));
                return Code::Written;
            }
        };
        match frame.header.kind {
            HELLO => self.hello(frame, &sections),
            DATA => return self.data(frame, &sections, now),
            _ => (),
        }
        Code::Written
    }

    fn hello(&mut self, frame: &Frame<'_>, sections: &[Section<'_>]) {
        let incarnation = frame.header.incarnation;
        let connection = Connection::new(incarnation, frame.bytes, sections);
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => {
                let message = format!("could not read the hello frame of the sampler: {error}");
                self.messages.push(Message::Error(message));
                return;
            }
        };
        self.close_log(u64::MAX);
        self.apply(&hello::read_meta(sections));
        if incarnation != self.end.incarnation {
            self.live_definitions.clear();
            self.new_life = true;
            self.end.tick_base = self.end.tick;
            self.end.incarnation = incarnation;
            self.end.sequence = 0;
        }
        self.connection = Some(connection);
    }

    fn apply(&mut self, meta: &[(String, String)]) {
        for (key, value) in meta {
            if !self.settings.set(key, value) {
                let message = format!("invalid value for \"{key}\": \"{value}\"");
                self.messages.push(Message::Warning(message));
            }
        }
        if let Err(error) = self.storage.set_file_mode(self.settings.file_mode) {
            let message = format!("could not set permissions of the directory: {error}");
            self.messages.push(Message::Warning(message));
        }
    }

    fn data(&mut self, frame: &Frame<'_>, sections: &[Section<'_>], now: Now) -> Code {
        let known = self.connection.as_ref();
        let Some(connection) = known.filter(|c| c.incarnation == frame.header.incarnation) else {
            let message = "ignored a frame without a hello frame before it";
            self.messages.push(Message::Error(message.into()));
            return Code::Written;
        };
        if frame.header.sequence <= self.end.sequence {
            return Code::Written;
        }
        let schema = &connection.schema;
        self.messages
            .extend(self.marks.read_new(&*self.storage, schema, now));
        let mut summary = FrameSummary::read(schema, sections, frame.header.base_ms);
        if frame.header.sequence == self.end.sequence + 1 {
            summary.compare_clocks(connection.last_taken_ms);
        }
        self.moved |= self.new_life && self.end.sequence == 0 && frame.header.sequence > 1;
        if let Err(code) = self.check_space(now) {
            return code;
        }
        if self.must_roll(&summary) {
            self.close_log(u64::MAX);
        }
        if let Err(error) = self.append(frame, &summary, now) {
            return self.failed(&error, frame.header.sequence, now);
        }
        self.failing = false;
        self.took(frame, sections, &summary);
        Code::Written
    }

    fn must_roll(&self, summary: &FrameSummary) -> bool {
        let Some(log) = &self.log else {
            return false;
        };
        let long = match (log.first_slot_ms, summary.first_slot_ms()) {
            (Some(first), Some(slot)) => slot.saturating_sub(first) >= LOG_MS,
            _ => false,
        };
        let space = self.storage.space().ok();
        let limits = [
            space.and_then(|s| self.settings.size_limit(s)),
            self.settings.unshipped_limit(),
        ];
        let limit = limits.into_iter().flatten().min();
        let large = limit.is_some_and(|limit| log.bytes >= limit / 16);
        let stepped = summary.clock_step.is_some();
        log.full || long || large || stepped || log.rows >= LOG_ROWS
    }

    /// Writes the frame, preceded by its markers. If no log is open, begins a new one.
    fn append(&mut self, frame: &Frame<'_>, summary: &FrameSummary, now: Now) -> Result<()> {
        let markers = self.markers(frame, summary, now);
        let mut bytes = Vec::new();
        if self.log.is_none() {
            self.begin_log(frame.header.sequence, now, &mut bytes)?;
        }
        if let Some(connection) = &self.connection {
            bytes.extend(define_markers(&connection.schema, &markers, &frame.header));
        }
        bytes.extend_from_slice(frame.bytes);
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let name = file_name(log.number, Kind::Log);
        let path = self.storage.directory().join(name);
        let appended = log.file.append(&bytes);
        appended.map_err(|e| Error::io("write to file", &path, e))?;
        log.bytes += bytes.len() as u64;
        log.rows += summary.sample_rows;
        log.full |= summary.steps_inside();
        log.first_slot_ms = log.first_slot_ms.or(summary.first_slot_ms());
        log.dirty_since.get_or_insert(now.mono_ms);
        Ok(())
    }

    fn begin_log(&mut self, first_sequence: u64, now: Now, bytes: &mut Vec<u8>) -> Result<()> {
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        let number = self.next_number;
        let name = file_name(number, Kind::Log);
        let path = self.storage.directory().join(&name);
        // A number is used only once, even if this fails.
        self.next_number += 1;
        let file = self.storage.create(&name);
        let file = file.map_err(|e| Error::io("create file", &path, e))?;
        let mut identity = self.settings.identity.clone();
        identity.node = self.node;
        let header = LogHeader {
            identity,
            incarnation: connection.incarnation,
            tick_base: self.end.tick_base,
            first_sequence,
            created_ms: now.wall_ms,
        };
        bytes.extend(header.encode());
        debug_assert_eq!(bytes.len(), FRAMES_AT);
        bytes.extend_from_slice(&connection.hello);
        let schema = &connection.schema;
        let incarnation = connection.incarnation;
        bytes.extend(
            self.live_definitions
                .next_log(schema, incarnation, first_sequence),
        );
        self.log = Some(OpenLog {
            number,
            file,
            bytes: 0,
            rows: 0,
            first_slot_ms: None,
            dirty_since: None,
            named: false,
            full: false,
        });
        Ok(())
    }

    /// The markers to write before a frame.
    fn markers(&self, frame: &Frame<'_>, summary: &FrameSummary, now: Now) -> Vec<Marker> {
        let mut markers = Vec::new();
        let first = summary.first_slot_ms();
        let lost = match self.end.sequence {
            0 => 0,
            last => frame.header.sequence - last - 1,
        };
        let gap = |detail: String| {
            let (since, until) = (self.end.end_ms.or(self.life_ms())?, first?);
            (since < until).then(|| Marker::gap(since, until, detail))
        };
        if let (Some(why), Some(slot)) = (&self.new_node, first) {
            markers.push(Marker::new_node(slot, why.clone()));
        }
        if self.new_life {
            markers.extend(gap(self.cause().into()));
        } else if lost > 0 {
            markers.extend(gap(format!("{lost} frames were lost")));
        }
        let step = summary
            .clock_step
            .filter(|_| !summary.has_clock_step_marker);
        if let (Some(step), Some(slot)) = (step, first) {
            markers.push(Marker::clock_step(slot, step));
        }
        markers.extend(self.pause.markers(now.wall_ms));
        markers.extend(self.removed.markers(&self.settings, now.wall_ms));
        markers.extend(self.marks.markers());
        markers
    }

    /// Start of the server in ms, if this life of the sampler recorded into another directory
    /// before.
    fn life_ms(&self) -> Option<i64> {
        let start_us = self.settings.identity.postmaster_start_us;
        self.moved.then_some(start_us / 1_000)
    }

    /// The reason why nothing was recorded before this life of the sampler.
    fn cause(&self) -> &str {
        if self.moved {
            return "the directory was removed or replaced";
        }
        if let Some(reason) = &self.settings.gap_reason {
            return reason;
        }
        let old = &self.end.identity;
        let new = &self.settings.identity;
        let same_server = old.postmaster_start_us == new.postmaster_start_us;
        if self.pause.is_on() {
            return match same_server {
                true => "recording was paused for lack of space",
                false => "the server ended while recording was paused for lack of space",
            };
        }
        match (same_server, self.end.stopped) {
            (false, true) => "server was stopped",
            (false, false) => "server was killed or the machine failed",
            (true, true) => "recording was off",
            (true, false) => "crash recovery",
        }
    }

    /// Notes that the frame is in the log.
    fn took(&mut self, frame: &Frame<'_>, sections: &[Section<'_>], summary: &FrameSummary) {
        self.end.sequence = frame.header.sequence;
        self.jobs.append(&mut self.closed);
        self.pause.end(&*self.storage);
        self.removed = Removed::default();
        self.marks.written();
        if let Some(connection) = &mut self.connection {
            self.live_definitions
                .frame(&connection.schema, sections, &frame.header);
            connection.last_taken_ms = summary.last_taken_ms().or(connection.last_taken_ms);
        }
        if let Some(tick) = summary.last_tick() {
            (self.new_life, self.moved) = (false, false);
            self.new_node = None;
            self.end.tick = self.end.tick_base.saturating_add(tick);
            self.end.end_ms = summary.end_ms();
            self.end.stopped = false;
            self.end.identity = self.settings.identity.clone();
        }
        self.end.stopped |= summary.has_stop_marker;
        let meta = hello::read_meta(sections);
        if !meta.is_empty() {
            self.apply(&meta);
            self.retain();
        }
    }

    /// Closes the log after an error. The frame was not written.
    fn failed(&mut self, error: &Error, sequence: u64, now: Now) -> Code {
        if !self.remove_begun() {
            self.close_log(sequence);
        }
        if is_space(error) {
            self.pause(Cause::Full, now);
            return Code::Paused;
        }
        if !std::mem::replace(&mut self.failing, true) {
            self.messages.push(Message::Trouble(error.to_string()));
        }
        Code::Failed
    }

    /// Removes the current log if it was created but has no frame; false if there is none, or if it
    /// stays. Otherwise each attempt on a full disk would leave a file.
    fn remove_begun(&mut self) -> bool {
        let begun = self.log.as_ref().filter(|log| log.bytes == 0);
        let name = begun.map(|log| file_name(log.number, Kind::Log));
        let removed = name.is_some_and(|name| self.storage.remove(&name).is_ok());
        if removed {
            self.log = None;
        }
        removed
    }

    /// Pauses recording. Frames written so far are synced now, not at the next flush.
    fn pause(&mut self, cause: Cause, now: Now) {
        if !self.sync_log() {
            self.close_log(u64::MAX);
        }
        let trouble = self.pause.begin(&*self.storage, cause, now.wall_ms);
        self.messages.extend(trouble.map(Message::Trouble));
    }

    /// Checks the free space from time to time.
    fn check_space(&mut self, now: Now) -> std::result::Result<(), Code> {
        let written = self.log.as_ref().map_or(0, |l| l.bytes);
        let fresh = self.space_checked.is_some_and(|(at, bytes)| {
            now.mono_ms - at < SPACE_MS && written.abs_diff(bytes) < SPACE_BYTES
        });
        if fresh && !self.pause.is_on() {
            return Ok(());
        }
        self.space_checked = Some((now.mono_ms, written));
        // If the file system does not report its free space, recording continues.
        let Ok(space) = self.storage.space() else {
            return Ok(());
        };
        let lacking = self.settings.free_limit().saturating_sub(space.free);
        match self.guard.decide(lacking, self.removable(), now.mono_ms) {
            Verdict::Room => Ok(()),
            Verdict::RemoveOldest => {
                self.say_removal(lacking);
                let unshipped = Unshipped::read(&*self.storage, &self.settings);
                self.remove_oldest(Limit::Space, unshipped);
                Ok(())
            }
            Verdict::Pause => {
                self.pause(
                    Cause::Limit(
                        self.settings.free_limit(),
                        self.settings.name_of(Limit::Space),
                    ),
                    now,
                );
                Err(Code::Paused)
            }
        }
    }

    fn removable(&self) -> Removable {
        Removable {
            bytes: self.stored.iter().map(|s| s.bytes).sum(),
            oldest: self.stored.first().map(|s| s.bytes),
        }
    }

    /// Reports the removal of history that is not yet too old.
    fn say_removal(&mut self, lacking: u64) {
        let Some(oldest) = self.stored.first() else {
            return;
        };
        let name = oldest.numbers.name(oldest.kind);
        let path = self.storage.directory().join(name);
        self.messages.push(Message::Warning(format!(
            "removed the oldest history file \"{}\": free space is {lacking} bytes below \"{}\"",
            path.display(),
            self.settings.name_of(Limit::Space)
        )));
    }

    /// Closes the current log, to be sealed. Frames from sequence `until_sequence` on do not become
    /// part of the sealed file. Earlier frames are on disk afterwards, unless the sync fails.
    fn close_log(&mut self, until_sequence: u64) {
        self.sync_log();
        if let Some(log) = self.log.take() {
            self.waiting_bytes.push((log.number, log.bytes));
            self.unsealed.push(log.number);
            self.closed.push(SealJob {
                number: log.number,
                until_sequence,
            });
        }
    }

    /// Syncs the log if the flush interval is over, or if `force`. Also hands out failed sealings
    /// again.
    pub fn flush(&mut self, now: Now, force: bool) {
        self.jobs.extend(self.retries.due(now.mono_ms));
        let since = self.log.as_ref().and_then(|log| log.dirty_since);
        let interval_ms = self.settings.flush_interval_ms as i64;
        let due = since.is_some_and(|since| force || now.mono_ms - since >= interval_ms);
        if due && !self.sync_log() {
            self.close_log(u64::MAX);
        }
    }

    /// Syncs the log, and its name if it is new. Returns false on failure; the sync is not tried
    /// again.
    fn sync_log(&mut self) -> bool {
        let Some(log) = &mut self.log else {
            return true;
        };
        if log.dirty_since.take().is_none() {
            return true;
        }
        let directory = self.storage.directory();
        let path = directory.join(file_name(log.number, Kind::Log));
        let synced = log.file.sync();
        let mut synced = synced.map_err(|e| Error::io("synchronize file", &path, e));
        if synced.is_ok() && !std::mem::replace(&mut log.named, true) {
            let named = self.storage.sync_directory();
            synced = named.map_err(|e| Error::io("synchronize directory", directory, e));
        }
        let report = |error: Error| self.messages.push(Message::Error(error.to_string()));
        let is_synced = synced.map_err(report).is_ok();
        if is_synced {
            self.marks.synced(&*self.storage);
        }
        is_synced
    }

    /// ms until the log must be synced with [`Writer::flush`]; `None` if all frames are on disk.
    pub fn flush_in_ms(&self, now: Now) -> Option<i64> {
        let since = self.log.as_ref()?.dirty_since?;
        let due = since + self.settings.flush_interval_ms as i64;
        Some((due - now.mono_ms).max(0))
    }

    /// Length of all history files in bytes.
    pub fn bytes(&self) -> u64 {
        let stored: u64 = self.stored.iter().map(|s| s.bytes).sum();
        let waiting: u64 = self.waiting_bytes.iter().map(|w| w.1).sum();
        stored + waiting + self.log.as_ref().map_or(0, |l| l.bytes)
    }

    /// Incarnation and sequence of the last frame written.
    pub fn written(&self) -> (u64, u64) {
        (self.end.incarnation, self.end.sequence)
    }

    /// Identity of the server, and the settings of the newest frame that had some.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True if a hello frame was understood.
    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Lines for the server's log since the last call.
    pub fn messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }
}
