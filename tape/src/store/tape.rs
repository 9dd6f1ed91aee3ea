//! A history directory for repeat callers. [`Tape::refresh`] finds new history: sealed files that
//! are known stay as they are, and logs are followed.

use crate::error::Result;
use crate::files::storage::{OsStorage, Storage};
use crate::store::cache::Shared;
use crate::store::live::Live;
use crate::store::open::{ATTEMPTS, Files, History, KnownFiles};
use crate::store::snapshot::Snapshot;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// A history directory. Usable from several threads.
pub struct Tape {
    storage: Arc<dyn Storage>,
    state: Mutex<State>,
    shared: Shared,
}

/// The known contents of the directory.
#[derive(Default)]
struct State {
    files: Files,
    known: KnownFiles,
    /// Contents of the sealed files. Their parts are in `sealed` unless some are doubtful.
    history: History,
    sealed: Snapshot,
    /// Logs, newest first.
    logs: Vec<Live>,
    snapshot: Option<Arc<Snapshot>>,
}

impl Tape {
    /// A tape of an existing directory. Nothing is read before the first refresh. `shared` keeps
    /// decoded columns.
    pub fn open(directory: &Path, shared: &Shared) -> Self {
        Tape::of_storage(Arc::new(OsStorage::new(directory)), shared)
    }

    /// Same as [`Tape::open`], for a storage.
    pub fn of_storage(storage: Arc<dyn Storage>, shared: &Shared) -> Self {
        Tape {
            storage,
            state: Mutex::new(State::new(shared)),
            shared: shared.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // A thread panicked, so the state may be incomplete: it is read again.
            let mut state = poisoned.into_inner();
            *state = State::new(&self.shared);
            self.state.clear_poison();
            state
        })
    }

    /// The current history: the same snapshot as before if nothing was written. Older snapshots do
    /// not change and can still be used.
    ///
    /// # Errors
    /// The directory does not exist or could not be read. A later call tries
    /// again.
    pub fn refresh(&self) -> Result<Arc<Snapshot>> {
        let mut state = self.state();
        let refreshed = state.refresh(&*self.storage);
        if refreshed.is_err() {
            state.files.vanished();
        }
        refreshed
    }
}

impl State {
    fn new(shared: &Shared) -> Self {
        let mut state = State {
            files: Files::shared(shared.files()),
            ..State::default()
        };
        state.known.shared = Some(shared.clone());
        state
    }

    fn refresh(&mut self, storage: &dyn Storage) -> Result<Arc<Snapshot>> {
        for _ in 1..ATTEMPTS {
            self.find(storage)?;
            // A log that was sealed meanwhile cannot be opened any more.
            if !self.logs.iter().any(Live::is_gone) {
                break;
            }
            self.files.vanished();
        }
        if let Some(known) = &self.snapshot {
            return Ok(known.clone());
        }
        let snapshot = Arc::new(self.compose());
        self.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Lists the files, reads new ones, and follows the logs. If anything has changed, there is no
    /// snapshot afterwards.
    fn find(&mut self, storage: &dyn Storage) -> Result<()> {
        let is_known = self.snapshot.is_some() && !self.history.is_passing;
        if !is_known || !self.files.are_still(storage)? {
            self.read_files(storage)?;
            self.count_frames();
            self.snapshot = None;
        } else if self.logs.iter().any(Live::is_without_header) {
            self.count_frames();
        }
        for log in &mut self.logs {
            if log.follow() {
                self.snapshot = None;
            }
        }
        Ok(())
    }

    /// Reads new sealed files, and starts to follow new logs.
    fn read_files(&mut self, storage: &dyn Storage) -> Result<()> {
        let mut history = History::read(storage, &mut self.files, &mut self.known)?;
        self.known.blocks.retain(|listed, _| self.files.has(listed));
        let logs = self.logs.drain(..).map(|log| (log.listed, log));
        let mut followed: HashMap<_, _> = logs.collect();
        let logs = history.logs.drain(..).map(|opened| {
            let known = followed.remove(&opened.listed);
            known.unwrap_or_else(|| Live::new(opened, storage))
        });
        self.logs = logs.collect();
        self.sealed = match history.doubtful.is_empty() {
            true => history.take_files(),
            false => Snapshot::default(),
        };
        self.history = history;
        Ok(())
    }

    /// Tells each log which of its frames a later file repeats.
    fn count_frames(&mut self) {
        let mut repeats = self.history.repeats.clone();
        for log in &mut self.logs {
            let number = log.listed.numbers.first;
            if let Some(header) = log.header() {
                let until_sequence = repeats.log(number, header);
                log.count_until(until_sequence);
            }
        }
    }

    fn compose(&self) -> Snapshot {
        let parts = self.logs.iter().flat_map(Live::parts).cloned();
        let damage = self.logs.iter().flat_map(Live::damage);
        if !self.history.doubtful.is_empty() {
            let mut all = self.history.clone();
            all.parts.extend(parts);
            all.damage.extend(damage);
            return all.into_snapshot();
        }
        let mut snapshot = self.sealed.with_logs(parts.collect());
        snapshot.damage.extend(damage);
        snapshot.damage.extend(self.history.node_damage.clone());
        snapshot
    }
}
