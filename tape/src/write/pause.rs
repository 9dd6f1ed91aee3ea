//! Pauses of recording for lack of space. The next writer also learns of them.
//!
//! The note of a pause is an empty file, because that needs no block on a full disk. Its name has
//! the time when the pause began. It is removed when recording resumes.

use crate::files::directory::file_mark;
use crate::files::storage::Storage;
use crate::write::markers::Marker;

/// Cause of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The file system has fewer bytes free than this limit; name of its setting.
    Limit(u64, &'static str),
    /// A write failed.
    Full,
}

impl Cause {
    fn text(self) -> String {
        match self {
            Cause::Limit(bytes, _) => format!("less than {} MB are free", bytes >> 20),
            Cause::Full => "no space left on the file system".to_string(),
        }
    }

    fn detail(self) -> String {
        match self {
            Cause::Limit(_, setting) => format!("{}, see {setting}", self.text()),
            Cause::Full => "no space left for history".to_string(),
        }
    }
}

/// The state of recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Wall clock in ms when the pause began; `None` if recording is not paused.
    since_ms: Option<i64>,
    /// `None` if the pause began with an earlier writer.
    cause: Option<Cause>,
}

impl Pause {
    /// The pause that the previous writer left. History that ends (`end_ms`) after the start of the
    /// pause shows that recording resumed.
    pub(crate) fn found(storage: &dyn Storage, end_ms: Option<i64>) -> Self {
        let noted = noted(storage);
        let since_ms = noted.iter().copied().min();
        let pause = Pause {
            since_ms: since_ms.filter(|&since| end_ms.is_none_or(|end| end <= since)),
            cause: None,
        };
        if pause.since_ms.is_none() {
            forget(storage, &noted);
        }
        pause
    }

    pub(crate) fn is_on(&self) -> bool {
        self.since_ms.is_some()
    }

    /// Begins a pause. Returns its reason if the pause is new.
    pub(crate) fn begin(
        &mut self,
        storage: &dyn Storage,
        cause: Cause,
        wall_ms: i64,
    ) -> Option<String> {
        if self.since_ms.is_none() {
            self.since_ms = Some(wall_ms);
            // If even this fails, the next writer does not learn of the pause.
            let _ = storage.create(&file_mark(wall_ms));
        }
        let is_new = self.cause.is_none();
        self.cause.get_or_insert(cause);
        is_new.then(|| cause.text())
    }

    /// The markers for the first frame after the pause.
    pub(crate) fn markers(&self, wall_ms: i64) -> Vec<Marker> {
        let unknown = || "not enough space for history".to_string();
        let detail = self.cause.map_or_else(unknown, Cause::detail);
        let pause = self
            .since_ms
            .map(|since| Marker::pause(since, wall_ms, &detail));
        pause.into_iter().flatten().collect()
    }

    /// Ends the pause because a frame was written.
    pub(crate) fn end(&mut self, storage: &dyn Storage) {
        if std::mem::take(self).is_on() {
            forget(storage, &noted(storage));
        }
    }
}

/// The times in the names of all notes, in ms since 1970.
fn noted(storage: &dyn Storage) -> Vec<i64> {
    let names = storage.names().unwrap_or_default();
    names
        .iter()
        .filter_map(|found| crate::files::directory::parse_mark(&found.name))
        .collect()
}

fn forget(storage: &dyn Storage, noted: &[i64]) {
    for &time in noted {
        let _ = storage.remove(&file_mark(time));
    }
}
