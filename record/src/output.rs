//! Frames on their way to disk. Frames are numbered and kept while they cannot
//! be written. If too many wait, new frames are lost and the oldest are kept.

use crate::batch::{Batch, Dictionary, Field};
use crate::budget;
use crate::changed_settings::{Change, cut};
use crate::health::Health;
use crate::identity::Identity;
use crate::log::Log;
use crate::options::Settings;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tacho_source::catalog;
use tacho_tape::format::frame::{DATA, Frame, FrameBuilder, HELLO};
use tacho_tape::format::hello;
use tacho_tape::write::clock::{now, random};
use tacho_tape::write::message::Message;
use tacho_tape::write::recording::Recording;
use tacho_tape::write::writer::Code;

/// Maximum size of all waiting frames, in bytes.
const MOST_WAITING: usize = 8 << 20;

/// Writes frames to a directory.
pub struct Output {
    recording: Recording,
    log: Log,
    pub dictionary: Dictionary,
    incarnation: u64,
    sequence: u64,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// True if frames were lost since the last `take_lost()`.
    lost: bool,
    /// True if the file system has too little free space.
    paused: bool,
    health: Arc<Health>,
}

impl Output {
    /// Writes into the directory that `recording` holds locked.
    pub fn new(recording: Recording, log: Log, health: Arc<Health>) -> Output {
        health.update(|c| (c.writing, c.waiting, c.waiting_frames) = (None, None, 0));
        Output {
            recording,
            log,
            dictionary: Dictionary::default(),
            incarnation: 0,
            sequence: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            lost: false,
            paused: false,
            health,
        }
    }

    /// End of the recorded history, ms since 1970; `None` without history.
    pub fn recorded_ms(&self) -> Option<i64> {
        self.recording.writer().end_ms()
    }

    /// Begins a new life. `gap_reason` says why nothing was recorded before it.
    pub fn begin_life(&mut self, identity: &Identity, settings: &Settings, gap_reason: &str) {
        self.incarnation = random().max(1);
        self.sequence = 0;
        self.dictionary.forget();
        let mut frame = FrameBuilder::new(HELLO, self.incarnation, 0, now().wall_ms);
        hello::write_schema(&mut frame, catalog::schema());
        let numbers = [
            ("system_identifier", identity.system_identifier.to_string()),
            ("timeline", identity.timeline.to_string()),
            ("postmaster_start", identity.postmaster_start_us.to_string()),
            ("server_version_num", identity.version.to_string()),
            ("in_recovery", u8::from(identity.in_recovery).to_string()),
            ("host", identity.place.clone()),
            ("started_by", "recorder".to_string()),
            ("gap_reason", gap_reason.to_string()),
        ];
        let numbers = numbers.into_iter().chain(settings.of_writer());
        let meta: Vec<(&str, String)> = numbers.collect();
        let meta: Vec<(&str, &str)> = meta.iter().map(|m| (m.0, m.1.as_str())).collect();
        hello::write_meta(&mut frame, &meta);
        self.queue(frame.finish());
    }

    /// Takes the rows of a frame.
    pub fn put(&mut self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        self.sequence += 1;
        let mut frame = FrameBuilder::new(DATA, self.incarnation, self.sequence, batch.base_ms());
        batch.write(&mut frame);
        let bytes = frame.finish();
        let is_short = !self.waiting.is_empty() && budget::is_exhausted();
        if is_short || self.waiting_bytes + bytes.len() > MOST_WAITING {
            // The missing number makes the writer put a marker.
            self.lost = true;
            self.health.update(|c| c.lost_frames += 1);
            self.dictionary.forget();
            return;
        }
        self.queue(bytes);
    }

    fn queue(&mut self, bytes: Vec<u8>) {
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(bytes);
        self.write();
    }

    /// Writes waiting frames until one cannot be written.
    fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let recording = &mut self.recording;
        let (waiting, waiting_bytes) = (&mut self.waiting, &mut self.waiting_bytes);
        let paused = &mut self.paused;
        self.health.while_writing(|| {
            while let Some(bytes) = waiting.front() {
                if let Ok(Some(frame)) = Frame::parse(bytes) {
                    let code = recording.push(&frame);
                    *paused = code == Code::Paused;
                    if code != Code::Written {
                        return;
                    }
                }
                *waiting_bytes -= bytes.len();
                waiting.pop_front();
            }
        });
        let frames = self.waiting.len();
        self.health.update(|c| {
            c.waiting_frames = frames;
            c.waiting = (frames > 0).then(|| c.waiting.unwrap_or_else(Instant::now));
            c.disk = c.disk.take().filter(|_| frames > 0);
        });
    }

    fn log_messages(&self, messages: &[Message]) {
        for message in messages {
            let Message::Trouble(text) = message else {
                self.log.print(message);
                continue;
            };
            let hint = match self.paused {
                true => "; recording resumes when there is space (see --min-free-space)",
                false => "",
            };
            self.log
                .error(&format!("history is not being written: {text}{hint}"));
            self.health.update(|c| c.disk = Some(text.clone()));
        }
    }

    /// True if frames were lost since the last call.
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Writes and synchronises what is due. Returns false if the directory is
    /// gone.
    pub fn flush_due(&mut self) -> bool {
        if self.recording.is_lost() {
            return false;
        }
        self.write();
        let recording = &mut self.recording;
        let messages = self.health.while_writing(|| {
            recording.flush(false);
            recording.housekeeping()
        });
        self.log_messages(&messages);
        true
    }

    /// Writes all waiting frames and finishes the recording. Returns false if
    /// some frames could not be written.
    pub fn finish(&mut self) -> bool {
        self.write();
        let recording = &mut self.recording;
        let messages = self.health.while_writing(|| recording.finish());
        self.log_messages(&messages);
        self.waiting.is_empty()
    }
}

/// Adds a row to table `marker`. Times are in ms; 0 = none.
pub fn put_marker(
    batch: &mut Batch,
    dictionary: &mut Dictionary,
    kind: &str,
    [time, since, until]: [i64; 3],
    detail: &str,
) {
    let detail = dictionary.name(batch, detail.as_bytes());
    let kind = catalog::schema().value("marker", kind).unwrap_or(0);
    let fields: [Field; 5] = [
        ("time", time),
        ("kind", kind),
        ("since", since),
        ("until", until),
        ("detail", detail),
    ];
    batch.add("marker", &fields);
}

/// Adds a row to table `marker` for a changed setting.
pub fn put_changed_setting(batch: &mut Batch, dictionary: &mut Dictionary, change: &Change) {
    let setting = &change.setting;
    let name = cut(&setting.name);
    let texts = [
        ("object_class", Some("setting")),
        ("object_name", Some(&*name)),
        ("username", setting.role.as_deref()),
        ("database", setting.database.as_deref()),
        ("old_value", change.old.as_deref()),
        ("new_value", change.new.as_deref()),
        ("detail", change.place.as_deref()),
    ];
    let kind = catalog::schema().value("marker", "settings changed");
    let mut fields = vec![("time", change.time_ms), ("kind", kind.unwrap_or(0))];
    for (name, text) in texts {
        let bytes = text.unwrap_or_default().as_bytes();
        fields.push((name, dictionary.name(batch, bytes)));
    }
    batch.add("marker", &fields);
}
