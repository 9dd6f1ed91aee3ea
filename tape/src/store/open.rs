//! Reads the files of a history directory: finds the files that count, takes each row once, and
//! reports damage.

use crate::error::supervised;
use crate::error::{self, Error, Result};
use crate::files::directory::{self, Kind, Listed, Numbers};
use crate::files::open_files::{LaterFile, OpenFiles};
use crate::files::storage::{Name, OsStorage, ReadFile, Stamp, Storage, read_readable};
use crate::format::footer::{Bytes, Footer};
use crate::format::log::{FRAMES_AT, LogContents, LogHeader, read_log};
use crate::format::part::{LogDamage, Part};
use crate::store::cache::{ColumnStore, Shared};
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::store::snapshot::is_covered_by;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::store::snapshot::{Damage, Snapshot};

/// Maximum number of times that the directory is listed because files vanish.
pub(crate) const ATTEMPTS: usize = 20;

impl Snapshot {
    /// Reads the current contents of a directory. Open logs are read as far as they are written.
    /// Damage is reported and does not stop the reading. One-shot callers open a snapshot; repeat
    /// callers keep a [`crate::Tape`].
    ///
    /// # Errors
    /// The directory does not exist or could not be read.
    pub fn open(directory: &Path) -> Result<Self> {
        Snapshot::open_storage(&OsStorage::new(directory))
    }

    /// Reads the contents of a storage, as [`Snapshot::open`].
    ///
    /// # Errors
    /// It could not be read.
    pub fn open_storage(storage: &dyn Storage) -> Result<Self> {
        let (mut files, mut known) = (Files::default(), KnownFiles::default());
        let mut history = History::read(storage, &mut files, &mut known)?;
        let logs = std::mem::take(&mut history.logs);
        for file in &logs {
            history.read_log(storage, file);
        }
        Ok(history.into_snapshot())
    }
}

/// The contents of a directory's files. Each number counts once.
#[derive(Clone, Default)]
pub(crate) struct History {
    pub(crate) parts: Vec<Part>,
    /// Parts of damaged merged files. They are read only if some of their parents, the files that
    /// they were merged from, are missing. Otherwise the undamaged parents have the same rows.
    pub(crate) doubtful: Vec<Part>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) repeats: Repeats,
    /// Logs whose rows are in no sealed file, newest first.
    pub(crate) logs: Vec<Opened>,
    /// True if a file is unreadable now but may become readable later.
    pub(crate) is_passing: bool,
    own_node: Option<u64>,
    other_servers: Vec<u64>,
    /// An error of the file `node`, reported after errors of logs.
    pub(crate) node_damage: Option<Damage>,
    vanished: bool,
}

/// Sealed files that a repeat reader knows, by name and inode.
#[derive(Default)]
pub(crate) struct KnownFiles {
    schemas: Schemas,
    /// `None` for a one-shot reader.
    pub(crate) shared: Option<Shared>,
    pub(crate) blocks: HashMap<Listed, BlockFile>,
}

impl KnownFiles {
    fn block(&self, file: &Opened) -> Option<&BlockFile> {
        self.blocks.get(&file.listed)
    }

    /// Adds a file whose footer was read.
    fn learn(&mut self, file: &Opened, bytes: Bytes, footer: Footer) -> Result<BlockFile> {
        let shared = self.shared.as_ref().map(Shared::of_file);
        let kept = shared.map_or_else(ColumnStore::default, ColumnStore::Shared);
        let block = BlockFile::new(bytes, footer, &mut self.schemas, kept)?;
        if self.shared.is_some() {
            self.blocks.insert(file.listed, block.clone());
        }
        Ok(block)
    }
}

impl History {
    /// Reads the sealed files, and finds the logs that count.
    pub(crate) fn read(
        storage: &dyn Storage,
        files: &mut Files,
        known: &mut KnownFiles,
    ) -> Result<History> {
        let recorded = directory::recorded_node(storage);
        let mut attempt = 0;
        let mut history = loop {
            attempt += 1;
            let opened = open_all(storage, files)?;
            let mut history = History::default();
            history.sealed(storage, opened, known);
            if !history.vanished || attempt == ATTEMPTS {
                break history;
            }
            files.vanished();
        };
        history.is_passing |= history.vanished;
        match recorded {
            Ok(None) => (),
            Ok(Some(own)) => {
                (history.own_node, history.other_servers) = (Some(own.node), own.other_servers)
            }
            Err(error) => {
                let path = storage.directory().join(directory::NODE);
                let damage = Damage::unreadable(&path, 0, &error);
                history.node_damage = Some(Damage {
                    whole: false,
                    ..damage
                });
                history.is_passing |= !is_lasting(&error);
            }
        }
        Ok(history)
    }

    fn sealed(&mut self, storage: &dyn Storage, opened: Vec<Opened>, known: &mut KnownFiles) {
        let (mut valid, mut replacing) = (HashSet::new(), Vec::<Numbers>::new());
        let merged = |f: &&Opened| f.numbers().is_merged();
        let (merged, single): (Vec<&Opened>, Vec<&Opened>) = opened.iter().partition(merged);
        // Merged files come first, because a valid merged file replaces its parents.
        for mut files in [merged, single] {
            let replaced = |f: &Opened| replacing.iter().any(|r| r.replaces(f.numbers()));
            files.retain(|f| f.listed.kind == Kind::Sealed && !replaced(f));
            let unknown = files.iter().filter(|f| known.block(f).is_none());
            let unknown: Vec<&Opened> = unknown.copied().collect();
            let mut footers = unknown.chunks(BATCH).flat_map(|b| read_footers(storage, b));
            for file in files {
                let block = match known.block(file) {
                    Some(block) => Some(Ok(block.clone())),
                    None => footers.next().map(|footer| {
                        let (bytes, footer) = footer?;
                        known.learn(file, bytes, footer)
                    }),
                };
                let numbers = file.numbers();
                if replacing.iter().any(|r| r.replaces(numbers)) {
                    continue;
                }
                match block {
                    Some(Ok(block)) if self.block(storage, file, &block) => {
                        match numbers.is_merged() {
                            true => replacing.push(numbers),
                            false => drop(valid.insert(numbers)),
                        }
                    }
                    Some(Err(error)) => self.not_read(storage, file, &error),
                    _ => (),
                }
            }
        }
        let is_sealed = |n: Numbers| valid.contains(&n) || replacing.iter().any(|r| r.replaces(n));
        let is_log = |f: &Opened| {
            let numbers = f.numbers();
            f.listed.kind == Kind::Log && !numbers.is_merged() && !is_sealed(numbers)
        };
        self.logs = opened.into_iter().filter(is_log).collect();
        self.logs.reverse();
    }

    /// Adds a sealed file. Returns false if it is damaged and merged: then its parents count
    /// instead.
    fn block(&mut self, storage: &dyn Storage, file: &Opened, block: &BlockFile) -> bool {
        self.report(&file.path(storage), &block.damage);
        self.repeats.sealed(file.numbers().first, block);
        let is_doubtful = file.numbers().is_merged() && !block.damage.is_empty();
        match is_doubtful {
            true => self.doubtful.extend(block.parts()),
            false => self.parts.extend(block.parts()),
        }
        !is_doubtful
    }

    fn not_read(&mut self, storage: &dyn Storage, file: &Opened, error: &Error) {
        match error.kind {
            // The file was merged or removed meanwhile.
            error::Kind::NotFound => self.vanished = true,
            _ => {
                self.is_passing |= !is_lasting(error);
                let path = file.path(storage);
                self.damage
                    .push(Damage::unreadable(&path, file.length(), error));
            }
        }
    }

    /// Reads a log for a one-shot reader.
    fn read_log(&mut self, storage: &dyn Storage, file: &Opened) {
        let path = file.path(storage);
        match read_open(file, &path, &mut self.repeats) {
            Ok((damage, part)) => {
                self.report(&path, &damage);
                self.parts.extend(part);
            }
            // The header of this log is not written yet.
            Err(_) if file.length() < FRAMES_AT as u64 => (),
            Err(error) => {
                let damage = Damage::unreadable(&path, file.length(), &error);
                self.damage.push(damage);
            }
        }
    }

    pub(crate) fn report(&mut self, path: &Path, damage: &[LogDamage]) {
        let found = damage.iter().map(|found| Damage::of_file(path, found));
        self.damage.extend(found);
    }

    /// A snapshot of the sealed files only; takes their parts out.
    pub(crate) fn take_files(&mut self) -> Snapshot {
        let files = History {
            parts: std::mem::take(&mut self.parts),
            damage: self.damage.clone(),
            own_node: self.own_node,
            other_servers: self.other_servers.clone(),
            ..History::default()
        };
        files.into_snapshot()
    }

    /// A snapshot of everything.
    pub(crate) fn into_snapshot(mut self) -> Snapshot {
        // Drops doubtful parts whose parents are all there.
        let parts = &self.parts;
        self.doubtful.retain(|part| !is_covered_by(part, parts));
        self.parts.append(&mut self.doubtful);
        let mut snapshot = Snapshot::of_files(self.parts);
        snapshot.damage = self.damage;
        snapshot.damage.extend(self.node_damage);
        (snapshot.own_node, snapshot.other_servers) = (self.own_node, self.other_servers);
        snapshot
    }
}

/// True if reading again gives the same error.
pub(crate) fn is_lasting(error: &Error) -> bool {
    matches!(error.kind, error::Kind::Damaged | error::Kind::Version)
}

/// A history file. It is open, or is opened when it is read.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) listed: Listed,
    pub(crate) file: Arc<dyn ReadFile>,
}

impl Opened {
    pub(crate) fn numbers(&self) -> Numbers {
        self.listed.numbers
    }

    pub(crate) fn path(&self, storage: &dyn Storage) -> PathBuf {
        let name = self.listed.numbers.name(self.listed.kind);
        storage.directory().join(name)
    }

    /// Length in bytes, for messages.
    fn length(&self) -> u64 {
        self.file.bytes().unwrap_or(0)
    }
}

/// Maximum number of sealed files that a one-shot reader holds open, the newest ones. Half of the
/// process's limit applies if it is smaller. Older files are opened when they are read, because
/// only retention removes them: files that may be merged are days old at most, so they are among
/// the newest.
const HELD_OPEN: usize = 700;

/// With more files than this, several threads read their footers.
const FILES_ALONE: usize = 16;
/// Maximum number of threads that read footers.
const THREADS: usize = 4;
/// Number of footers that are read before they are processed. It limits the memory for unprocessed
/// footers.
const BATCH: usize = 4_096;

/// Reads the footers of sealed files; results are in the same order.
fn read_footers(storage: &dyn Storage, files: &[&Opened]) -> Vec<Result<(Bytes, Footer)>> {
    let read = |files: &[&Opened]| -> Vec<Result<(Bytes, Footer)>> {
        let footers = files.iter().map(|file| {
            let bytes = Bytes::new(file.file.clone(), Arc::new(file.path(storage)))?;
            let footer = Footer::read(&bytes)?.without_entries();
            Ok((bytes, footer))
        });
        footers.collect()
    };
    let threads = match files.len() > FILES_ALONE {
        true => thread::available_parallelism().map_or(1, usize::from),
        false => 1,
    };
    let mut shares = files.chunks(files.len().div_ceil(threads.min(THREADS)).max(1));
    thread::scope(|scope| {
        let own = shares.next().unwrap_or_default();
        let start = |share| {
            let started = thread::Builder::new().spawn_scoped(scope, move || read(share));
            (share, started)
        };
        let others: Vec<_> = shares.map(start).collect();
        let mut footers = read(own);
        for (share, started) in others {
            let done = started.ok().and_then(|thread| thread.join().ok());
            // If a thread did not start or panicked, this thread does its work.
            footers.extend(done.unwrap_or_else(|| read(share)));
        }
        footers
    })
}

/// The open files of a directory.
#[derive(Default)]
pub(crate) struct Files {
    /// All names at the last listing, in the directory's order.
    names: Vec<Name>,
    /// Stamp of the directory before that listing, if a later change will change the stamp.
    stamp: Option<Stamp>,
    /// The history files among these names.
    listed: Vec<Listed>,
    open: HashMap<Listed, Arc<dyn ReadFile>>,
    /// The open files of all tapes; `None` for a one-shot reader.
    shared: Option<Arc<OpenFiles>>,
}

impl Files {
    /// Files that share their limit with all tapes.
    pub(crate) fn shared(files: &Arc<OpenFiles>) -> Self {
        Files {
            shared: Some(files.clone()),
            ..Files::default()
        }
    }

    /// Number of the newest files that are opened when they are listed.
    fn opened_at_once(&self) -> usize {
        let shared = self.shared.as_ref().map(|files| files.most());
        shared.unwrap_or(HELD_OPEN).min(held_open())
    }

    /// Callers report here that a file was gone when it was read. The next read lists the directory
    /// until two lists are equal.
    pub(crate) fn vanished(&mut self) {
        self.names.clear();
        self.listed.clear();
        self.stamp = None;
    }

    /// True if the history files and the file `node` are the same as at the last listing. The
    /// directory is listed only if it has changed.
    pub(crate) fn are_still(&mut self, storage: &dyn Storage) -> Result<bool> {
        let stamp = storage.stamp();
        if stamp.is_some() && stamp == self.stamp {
            return Ok(true);
        }
        let names = directory::names(storage)?;
        let same = names == self.names
            || self.listed == directory::listed(&names) && node_of(&self.names) == node_of(&names);
        if same {
            (self.names, self.stamp) = (names, stamp);
        }
        Ok(same)
    }

    /// True if the file was in the last listing.
    pub(crate) fn has(&self, file: &Listed) -> bool {
        self.listed.binary_search(file).is_ok()
    }

    /// Opens a file now if `held`, otherwise when it is read. `None` if the file is gone.
    fn file(
        &mut self,
        storage: &dyn Storage,
        listed: Listed,
        held: bool,
    ) -> Result<Option<Arc<dyn ReadFile>>> {
        if let Some(file) = self.open.get(&listed) {
            return Ok(Some(file.clone()));
        }
        let name = listed.numbers.name(listed.kind);
        let path = storage.directory().join(&name);
        let opener = storage.opener(&name);
        let opened = match &self.shared {
            Some(files) => files.file(opener, held),
            None if held => opener.open(),
            None => return Ok(Some(Arc::new(LaterFile(opener)))),
        };
        match opened {
            Ok(file) => {
                self.open.insert(listed, file.clone());
                Ok(Some(file))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            // The process lacks a resource; the file is not damaged.
            Err(e) if is_out_of_files(&e) => Err(Error::io("open file", &path, e)),
            // Opening is tried again at the first read. An error then is damage of this file only.
            Err(_) => Ok(Some(Arc::new(LaterFile(storage.opener(&name))))),
        }
    }
}

fn node_of(names: &[Name]) -> Option<&Name> {
    names.iter().find(|found| found.name == directory::NODE)
}

/// Opens all files before any is read. The writer may seal and remove files at any time, and open
/// files stay readable. If a file is gone, or if the last two lists differ, the directory is listed
/// again.
fn open_all(storage: &dyn Storage, files: &mut Files) -> Result<Vec<Opened>> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let stamp = storage.stamp();
        let names = directory::names(storage)?;
        let listed = directory::listed(&names);
        let newest = listed.len().saturating_sub(files.opened_at_once());
        let mut opened = Vec::with_capacity(listed.len());
        for (index, &listed) in listed.iter().enumerate() {
            let held = index >= newest || listed.kind == Kind::Log;
            let file = files.file(storage, listed, held)?;
            opened.extend(file.map(|file| Opened { listed, file }));
        }
        let same = listed == files.listed && opened.len() == listed.len();
        (files.names, files.listed, files.stamp) = (names, listed, stamp);
        if same || attempt == ATTEMPTS {
            let listed = &files.listed;
            files
                .open
                .retain(|file, _| listed.binary_search(file).is_ok());
            return Ok(opened);
        }
    }
}

fn held_open() -> usize {
    let most = getrlimit(Resource::Nofile).current;
    let half = most.and_then(|most| usize::try_from(most / 2).ok());
    half.unwrap_or(HELD_OPEN).min(HELD_OPEN)
}

fn is_out_of_files(error: &std::io::Error) -> bool {
    let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(|e| Some(e.raw_os_error()));
    lacks.contains(&error.raw_os_error())
}

/// For each file and life of the sampler: number of the file, incarnation, first sequence. Frames
/// that a later file repeats do not count in an earlier log.
#[derive(Clone, Default)]
pub(crate) struct Repeats(Vec<(u64, u64, u64)>);

impl Repeats {
    /// Notes the frames of a sealed file.
    pub(crate) fn sealed(&mut self, number: u64, block: &BlockFile) {
        let frames = block.frames().filter(|f| f.incarnation != 0);
        self.0
            .extend(frames.map(|f| (number, f.incarnation, f.first)));
    }

    /// Notes the frames of a log. Returns the first sequence that does not count in it. Call it for
    /// the newest log first.
    pub(crate) fn log(&mut self, number: u64, header: &LogHeader) -> u64 {
        let later = |r: &&(u64, u64, u64)| r.0 > number && r.1 == header.incarnation;
        let until = self.0.iter().filter(later).map(|r| r.2).min();
        let own = (number, header.incarnation, header.first_sequence);
        self.0.push(own);
        until.unwrap_or(u64::MAX)
    }
}

/// The damage of a log, and its part.
fn read_open(
    file: &Opened,
    path: &Path,
    later: &mut Repeats,
) -> Result<(Vec<LogDamage>, Option<Part>)> {
    let failed = |e| Error::io("read file", path, e);
    let length = file.file.bytes().map_err(failed)?;
    let bytes = read_readable(&*file.file, 0, length).map_err(failed)?;
    let header = LogHeader::parse(&bytes)?;
    let until = later.log(file.numbers().first, &header);
    supervised("read a log", || {
        let mut contents = read_log(&bytes, until)?;
        let damage = std::mem::take(&mut contents.damage);
        Ok((damage, part_of(contents, path.to_path_buf())))
    })
}

fn part_of(contents: LogContents, path: PathBuf) -> Option<Part> {
    let builder = contents.ingest?.into_builder();
    let part = builder
        .has_rows()
        .then(|| builder.finish(contents.header.identity))?;
    Some(part.of_file(path, true))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::files::directory::file_name;
    use crate::format::part::Identity;
    use crate::format::part_builder::PartBuilder;
    use crate::format::sealed_write::FrameRange;
    use crate::testing::memory::MemoryStorage;
    use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read, rows_difference};
    use crate::write::seal::{seal_log, write_sealed};
    use proptest::prelude::*;

    pub(crate) type Rows = (Vec<(u64, i64)>, Vec<Seen>);

    fn header(incarnation: u64, tick_base: u64, first_sequence: u64) -> LogHeader {
        LogHeader {
            identity: Identity {
                node: 9,
                ..Identity::default()
            },
            incarnation,
            tick_base,
            first_sequence,
            created_ms: 0,
        }
    }

    /// Writes a log of some frames; returns the contents that readers must see.
    pub(crate) fn put_log(
        storage: &MemoryStorage,
        number: u64,
        sampler: &mut Sampler,
        frames: usize,
    ) -> Rows {
        let header = header(sampler.incarnation, sampler.tick_base, sampler.sequence);
        let mut bytes = vec![sampler.hello(&[])];
        let (mut ticks, mut seen) = (Vec::new(), Vec::new());
        for _ in 0..frames {
            let (frame, t, s) = sampler.frame();
            bytes.push(frame);
            ticks.extend(t);
            seen.extend(s);
        }
        storage.put(&file_name(number, Kind::Log), &log_bytes(&header, &bytes));
        seen.sort();
        (ticks, seen)
    }

    pub(crate) fn sampler(seed: u64, load: Load) -> Sampler {
        let mut sampler = Sampler::new(seed, load);
        sampler.tick_base = 1_000;
        sampler
    }

    pub(crate) fn check(storage: &MemoryStorage, expected: &Rows) -> Snapshot {
        let store = Snapshot::open_storage(storage).unwrap();
        let (ticks, rows) = read(store.parts(9));
        assert_eq!(difference(&ticks, &expected.0), None);
        assert_eq!(rows_difference(&rows, &expected.1), None);
        store
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn a_sealed_file_reads_as_its_log(seed in 0..u64::MAX, ticks_per_frame in 1..8usize, sessions in 0..9usize) {
            let storage = MemoryStorage::new();
            let load = Load { ticks_per_frame, sessions, ..Load::default() };
            let expected = put_log(&storage, 1, &mut sampler(seed, load), 40);
            check(&storage, &expected);
            let sealed = seal_log(&storage, 1, u64::MAX).unwrap();
            prop_assert_eq!(sealed.last_sequence, 40);
            let store = check(&storage, &expected);
            prop_assert_eq!(store.damage(), &[]);
            prop_assert_eq!(store.nodes()[0].first_ms, expected.0[0].1);
            let names: Vec<String> = storage.list().unwrap().into_iter().map(|e| e.name).collect();
            prop_assert_eq!(names, vec!["0000000001.tape"]);
        }
    }

    #[test]
    fn a_log_beside_its_sealed_file_counts_once() {
        let storage = MemoryStorage::new();
        let expected = put_log(&storage, 1, &mut sampler(1, Load::default()), 30);
        let log = storage.bytes_of("0000000001.open").unwrap();
        seal_log(&storage, 1, u64::MAX).unwrap();
        storage.put("0000000001.open", &log);
        check(&storage, &expected);
        // The same ticks under another number lie within the sealed file.
        storage.put("0000000002.open", &log);
        assert_eq!(check(&storage, &expected).parts(9).count(), 1);
    }

    #[test]
    fn a_crash_at_any_point_of_sealing_changes_nothing() {
        use crate::testing::memory::Crash;
        let storage = MemoryStorage::new();
        let expected = put_log(&storage, 1, &mut sampler(2, Load::default()), 30);
        let steps = {
            let copy = storage.after(Crash::Process);
            seal_log(&copy, 1, u64::MAX).unwrap();
            copy.operations()
        };
        assert_eq!(steps, 6);
        for step in 0..=steps {
            for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
                let copy = storage.after(Crash::Process);
                copy.stop_at(step);
                let _ = seal_log(&copy, 1, u64::MAX);
                let after = copy.after(crash);
                check(&after, &expected);
                // The next start seals what is left.
                if after.bytes_of("0000000001.open").is_some() {
                    seal_log(&after, 1, u64::MAX).unwrap();
                }
                check(&after, &expected);
            }
        }
    }

    #[test]
    fn a_failing_operation_of_sealing_keeps_the_log() {
        for operation in 1..=6 {
            let storage = MemoryStorage::new();
            let expected = put_log(&storage, 1, &mut sampler(3, Load::default()), 30);
            storage.fail_at(operation, std::io::ErrorKind::StorageFull);
            assert!(
                seal_log(&storage, 1, u64::MAX).is_err(),
                "operation {operation}"
            );
            check(&storage, &expected);
            seal_log(&storage, 1, u64::MAX).unwrap();
            check(&storage, &expected);
        }
    }

    /// A directory with enough sealed files for several threads.
    fn many_files() -> (MemoryStorage, Rows) {
        let storage = MemoryStorage::new();
        let mut expected = Rows::default();
        for number in 1..=2 * FILES_ALONE as u64 {
            let mut sampler = sampler(number, Load::default());
            sampler.tick_base = 1_000 * number;
            let (ticks, rows) = put_log(&storage, number, &mut sampler, 2);
            seal_log(&storage, number, u64::MAX).unwrap();
            expected.0.extend(ticks);
            expected.1.extend(rows);
        }
        expected.1.sort();
        (storage, expected)
    }

    #[test]
    fn footers_are_read_again() {
        let (storage, expected) = many_files();
        let store = check(&storage, &expected);
        assert_eq!(store.damage(), &[]);
        // If one file cannot be read again, only its part has an error.
        let store = Snapshot::open_storage(&storage).unwrap();
        storage.fail_read_at(storage.reads() + 1);
        let failed = store
            .parts(9)
            .map(|part| part.ints("tick", "tick").is_err());
        let failed: Vec<bool> = failed.collect();
        assert!(failed[0] && !failed[1..].contains(&true), "{failed:?}");
    }

    #[test]
    fn several_threads_tell_damage_in_the_order_of_the_files() {
        let (storage, _) = many_files();
        let (mut damaged, mut lost) = (Vec::new(), 0);
        for number in (1..=2 * FILES_ALONE as u64).rev().step_by(3) {
            let name = file_name(number, Kind::Sealed);
            let mut bytes = storage.bytes_of(&name).unwrap();
            let end = bytes.len();
            match number % 2 {
                0 => bytes[end - 1] ^= 1,
                _ => {
                    bytes.truncate(50);
                    lost += 1;
                }
            }
            storage.put(&name, &bytes);
            damaged.insert(0, storage.directory().join(name));
        }
        let store = Snapshot::open_storage(&storage).unwrap();
        let files: Vec<_> = store.damage().iter().map(|d| d.file.clone()).collect();
        assert_eq!(files, damaged);
        // Readable contents of a file with a damaged tail are still read.
        assert_eq!(store.parts(9).count(), 2 * FILES_ALONE - lost);
    }

    #[test]
    fn damage_of_a_log_stays_known_when_it_is_sealed() {
        let storage = MemoryStorage::new();
        put_log(
            &storage,
            1,
            &mut sampler(
                7,
                Load {
                    trouble: 0,
                    ..Load::default()
                },
            ),
            30,
        );
        let mut log = storage.bytes_of("0000000001.open").unwrap();
        let at = log
            .windows(4)
            .rposition(|w| w == crate::format::frame::MAGIC)
            .unwrap();
        let before = log[..at]
            .windows(4)
            .rposition(|w| w == crate::format::frame::MAGIC)
            .unwrap();
        log[before + 50] ^= 1;
        storage.put("0000000001.open", &log);
        assert_eq!(Snapshot::open_storage(&storage).unwrap().damage().len(), 1);
        let sealed = seal_log(&storage, 1, u64::MAX).unwrap();
        assert_eq!(sealed.damage.len(), 1);
        let store = Snapshot::open_storage(&storage).unwrap();
        let part = store.parts(9).next().unwrap();
        let kind = part.schema().value("marker", "damage").unwrap();
        assert_eq!(part.ints("marker", "kind").unwrap()[..], [kind]);
        let slot = |n: i64| 1_790_000_000_000 + n * 1_000;
        assert_eq!(part.ints("marker", "since").unwrap()[..], [slot(27)]);
        assert_eq!(part.ints("marker", "until").unwrap()[..], [slot(29)]);
    }

    #[test]
    fn frames_that_a_later_file_repeats_count_once() {
        let storage = MemoryStorage::new();
        let mut first = sampler(8, Load::default());
        let whole = put_log(&storage, 3, &mut first.clone(), 30);
        // The first log has 20 frames; writing the last two seemed to fail.
        put_log(&storage, 1, &mut first.clone(), 20);
        for _ in 0..18 {
            first.frame();
        }
        let mut second = first.clone();
        storage.remove("0000000003.open").unwrap();
        put_log(&storage, 2, &mut second, 12);
        let store = Snapshot::open_storage(&storage).unwrap();
        let (ticks, _) = read(store.parts(9));
        assert_eq!(difference(&ticks, &whole.0), None);
    }

    #[test]
    fn each_file_is_read_by_its_own_schema() {
        let storage = MemoryStorage::new();
        for number in 1..=2 {
            let mut schema = crate::catalog::samples().with_runs();
            schema.tables.retain(|t| number == 1 || t.name != "lock");
            let mut builder = PartBuilder::new(Arc::new(schema)).unwrap();
            let tick = number as i64;
            let values = [("tick", tick), ("slot_time", 1_000 * tick)];
            builder.row("tick", &values).unwrap();
            let identity = header(1, 0, 1).identity;
            let frames = FrameRange::default();
            write_sealed(&storage, number, builder, identity, frames).unwrap();
        }
        let store = Snapshot::open_storage(&storage).unwrap();
        let has_locks = |part: &Part| part.schema().table("lock").is_some();
        let parts: Vec<bool> = store.parts(9).map(has_locks).collect();
        assert_eq!(parts, [true, false]);
    }
}
