//! A history directory as readers see it: the parts of every node in order of
//! ticks, and what is damaged.

use crate::background::supervised;
use crate::block_read::{BlockFile, Schemas};
use crate::directory::{self, Kind, Numbers};
use crate::error::{self, Error, Result};
use crate::footer::{Bytes, Footer};
use crate::log::{LogContents, LogDamage, LogHeader, read_log};
use crate::part::{Part, PartInfo, RoleColumn, role_columns};
use crate::schema::Schema;
use crate::storage::{OsStorage, ReadFile, Storage, read_all};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// A node: one recorder's own sequence of ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Random number of the node.
    pub id: u64,
    /// System identifier in its newest part.
    pub system_identifier: u64,
    /// Timeline in its newest part.
    pub timeline: u32,
    /// Least slot time in ms.
    pub first_ms: i64,
    /// Greatest slot time in ms.
    pub last_ms: i64,
    /// Number of parts.
    pub parts: usize,
}

/// Bytes that could not be read. The rest of the file was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where the damage begins.
    pub offset: u64,
    /// How many bytes were skipped.
    pub bytes: u64,
    /// Slot time of the last tick before it, ms, if there is one.
    pub since_ms: Option<i64>,
    /// Slot time of the first tick after it, ms, if there is one.
    pub until_ms: Option<i64>,
    /// What is wrong.
    pub reason: String,
}

/// The history of a directory at the moment it was opened.
#[derive(Clone, Default)]
pub struct Store {
    parts: BTreeMap<u64, Vec<Part>>,
    damage: Vec<Damage>,
    own_node: Option<u64>,
    apart: Vec<u64>,
    /// The nodes there were before parts were left out.
    all_nodes: Option<Vec<NodeInfo>>,
}

/// How often the directory is listed again when files vanish meanwhile.
const ATTEMPTS: usize = 20;

impl Store {
    /// Reads what a directory holds at this moment. Open logs are read as far
    /// as they are written; damage is reported and does not hinder the rest.
    ///
    /// # Errors
    /// The directory does not exist or could not be read.
    pub fn open(directory: &Path) -> Result<Self> {
        Store::open_storage(&OsStorage::new(directory))
    }

    /// Reads what a storage holds, as [`Store::open`].
    ///
    /// # Errors
    /// It could not be read.
    pub fn open_storage(storage: &dyn Storage) -> Result<Self> {
        let recorded = directory::recorded_node(storage);
        let mut attempt = 0;
        let (mut store, parts) = loop {
            attempt += 1;
            let opened = open_all(storage)?;
            let mut store = Store::default();
            let (parts, vanished) = store.read(storage, &opened);
            if vanished == 0 || attempt == ATTEMPTS {
                break (store, parts);
            }
        };
        match recorded {
            Ok(None) => (),
            Ok(Some(own)) => (store.own_node, store.apart) = (Some(own.node), own.apart),
            Err(error) => {
                let path = storage.directory().join(directory::NODE);
                store.unreadable(&path, 0, &error);
            }
        }
        store.take(drop_covered(parts));
        Ok(store)
    }

    /// The parts of all files, each number once, and how many files were gone.
    fn read(&mut self, storage: &dyn Storage, opened: &[Opened]) -> (Vec<Part>, usize) {
        let mut schemas = Schemas::default();
        let mut parts: Vec<Part> = Vec::new();
        // Of merged files that are damaged.
        let mut doubtful: Vec<Part> = Vec::new();
        let mut later = Repeats::default();
        let (mut valid, mut replacing) = (HashSet::new(), Vec::<Numbers>::new());
        let mut vanished = 0;
        let merged = |f: &&Opened| f.numbers.is_merged();
        let (merged, single): (Vec<&Opened>, Vec<&Opened>) = opened.iter().partition(merged);
        // Merged files first: a valid one replaces those it was made of.
        for mut files in [merged, single.clone()] {
            let replaced = |f: &Opened| replacing.iter().any(|r| r.replaces(f.numbers));
            files.retain(|f| f.kind == Kind::Sealed && !replaced(f));
            let footers = files.chunks(BATCH).flat_map(|b| read_footers(storage, b));
            for (file, footer) in files.iter().zip(footers) {
                let numbers = file.numbers;
                if replacing.iter().any(|r| r.replaces(numbers)) {
                    continue;
                }
                let path = file.path(storage);
                match footer.and_then(|(bytes, f)| BlockFile::new(bytes, f, &mut schemas)) {
                    Ok(block) => {
                        self.report(&path, &block.damage);
                        later.sealed(numbers.first, &block);
                        if !numbers.is_merged() {
                            valid.insert(numbers);
                        } else if block.damage.is_empty() {
                            replacing.push(numbers);
                        } else {
                            doubtful.extend(block.parts());
                            continue;
                        }
                        parts.extend(block.parts());
                    }
                    // Merged or removed meanwhile.
                    Err(error) if error.kind == error::Kind::NotFound => vanished += 1,
                    Err(error) => self.unreadable(&path, file.length(), &error),
                }
            }
        }
        let sealed = |n: Numbers| valid.contains(&n) || replacing.iter().any(|r| r.replaces(n));
        let logs = single.iter().filter(|f| f.kind == Kind::Log);
        for file in logs.rev().filter(|f| !sealed(f.numbers)) {
            let path = file.path(storage);
            match read_open(file, &path, &mut later) {
                Ok((damage, part)) => {
                    self.report(&path, &damage);
                    parts.extend(part);
                }
                // A log whose header is not written yet.
                Err(_) if file.length() < crate::log::FRAMES_AT as u64 => (),
                Err(error) => self.unreadable(&path, file.length(), &error),
            }
        }
        // Those whose parents are all there.
        doubtful.retain(|part| !is_covered_by(part, &parts));
        parts.extend(doubtful);
        (parts, vanished)
    }

    fn report(&mut self, path: &Path, damage: &[LogDamage]) {
        let found = damage.iter().map(|found| Damage::of_file(path, found));
        self.damage.extend(found);
    }

    fn unreadable(&mut self, path: &Path, bytes: u64, error: &Error) {
        self.damage.push(Damage {
            file: path.to_path_buf(),
            offset: error.offset.unwrap_or(0),
            bytes,
            since_ms: None,
            until_ms: None,
            reason: error.message.clone(),
        });
    }

    /// A store of parts that are in memory.
    pub fn from_parts(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut store = Store::default();
        store.take(parts.into_iter().collect());
        store
    }

    fn take(&mut self, mut parts: Vec<Part>) {
        parts.sort_by_key(|part| (part.node(), part.first_tick()));
        // Mostly there is one node: its parts are not moved.
        while let Some(node) = parts.last().map(Part::node) {
            let first = parts.partition_point(|part| part.node() < node);
            let of_node = match first {
                0 => std::mem::take(&mut parts),
                first => parts.split_off(first),
            };
            self.parts.insert(node, of_node);
        }
    }

    /// The nodes, the one with the newest tick first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        if let Some(all) = &self.all_nodes {
            return all.clone();
        }
        let mut nodes: Vec<NodeInfo> = self.parts.iter().filter_map(node_info).collect();
        nodes.sort_by_key(|n| (std::cmp::Reverse(n.last_ms), n.id));
        nodes
    }

    /// The node the directory itself belongs to, when it says so.
    pub fn own_node(&self) -> Option<u64> {
        self.own_node
    }

    /// Nodes of other servers, whose histories were copied.
    pub(crate) fn apart(&self) -> &[u64] {
        &self.apart
    }

    /// Names of roles with another OID are null from now on, so that a role
    /// does not see what a dropped one of its name did. Rows without an OID
    /// keep theirs.
    pub fn hide_other_roles(&mut self, oid: i64) {
        let mut known: Option<(Arc<Schema>, Arc<[RoleColumn]>)> = None;
        for part in self.parts.values_mut().flatten() {
            let schema = part.shared_schema();
            let columns = match &known {
                Some((last, columns)) if Arc::ptr_eq(last, schema) => columns.clone(),
                _ => {
                    let columns: Arc<[RoleColumn]> = role_columns(schema).into();
                    known.insert((schema.clone(), columns)).1.clone()
                }
            };
            *part = part.without_other_roles(oid, columns);
        }
    }

    /// Leaves out parts; returns what they were. Nodes stay known, so that the
    /// same ones answer.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&Part) -> bool) -> Vec<PartInfo> {
        self.all_nodes = Some(self.nodes());
        let parts = self.parts.values_mut();
        let left_out = parts.flat_map(|parts| parts.extract_if(.., |part| is_left_out(part)));
        left_out.map(|part| part.info().clone()).collect()
    }

    /// The parts of a node by ascending ticks; none for an unknown one.
    pub fn parts(&self, node: u64) -> impl Iterator<Item = &Part> {
        self.parts.get(&node).into_iter().flatten()
    }

    /// What could not be read when the history was opened.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// What was found since then, when columns were asked for, and took nothing
    /// away.
    pub fn later_damage(&self) -> Vec<Damage> {
        let parts = self.parts.values().flatten();
        let found = parts.filter_map(|p| Some(Damage::of_file(&p.info().file, &p.damage()?)));
        let mut found: Vec<Damage> = found.collect();
        // All groups of a file tell the same; those of another may lie between.
        found.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        found.dedup();
        found
    }
}

impl Damage {
    fn of_file(path: &Path, found: &LogDamage) -> Self {
        Damage {
            file: path.to_path_buf(),
            offset: found.offset,
            bytes: found.bytes,
            since_ms: found.since_ms,
            until_ms: found.until_ms,
            reason: found.reason.clone(),
        }
    }

    /// The damage that an error of reading a part's column stands for.
    pub fn of_part(part: &Part, error: &Error) -> Self {
        let info = part.info();
        Damage {
            file: error
                .path
                .clone()
                .unwrap_or_else(|| info.file.to_path_buf()),
            offset: error.offset.unwrap_or(0),
            bytes: 0,
            since_ms: Some(info.min_ms),
            until_ms: Some(info.max_ms),
            reason: error.message.clone(),
        }
    }
}

/// An open history file.
struct Opened {
    numbers: Numbers,
    kind: Kind,
    file: Arc<dyn ReadFile>,
}

impl Opened {
    fn path(&self, storage: &dyn Storage) -> PathBuf {
        storage.directory().join(self.numbers.name(self.kind))
    }

    /// Its length, for messages.
    fn length(&self) -> u64 {
        self.file.bytes().unwrap_or(0)
    }
}

/// Most sealed files held open, the newest ones, if the process may have twice
/// as many; older ones are opened when they are read. Only retention removes
/// them; the files of the last days, which may be merged, are among the newest.
const HELD_OPEN: usize = 700;

/// With more files than these, several threads read their footers.
const FILES_ALONE: usize = 16;
/// Most of these threads.
const THREADS: usize = 4;
/// Footers that are read before what they say is taken over: what is held for
/// the others in between takes memory.
const BATCH: usize = 4_096;

/// Reads the footers of sealed files, in their order.
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
            // What no thread could do is done here.
            footers.extend(done.unwrap_or_else(|| read(share)));
        }
        footers
    })
}

/// Opens all files before any is read: the writer seals and removes files at
/// any time, and what is open stays readable. When one is gone, or the list
/// was not the same before and after, the directory is listed again.
fn open_all(storage: &dyn Storage) -> Result<Vec<Opened>> {
    let mut known: HashMap<(Numbers, Kind), Arc<dyn ReadFile>> = HashMap::new();
    let mut before: Vec<(Numbers, Kind)> = Vec::new();
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut names = directory::names(storage)?;
        names.retain(|name| name.1 != Kind::Temporary);
        let newest = names.len().saturating_sub(held_open());
        let mut opened = Vec::with_capacity(names.len());
        for (index, &(numbers, kind)) in names.iter().enumerate() {
            let held = index >= newest || kind == Kind::Log;
            let file = open_one(storage, (numbers, kind), held, &mut known)?;
            opened.extend(file.map(|file| Opened {
                numbers,
                kind,
                file,
            }));
        }
        let same = names == before && opened.len() == names.len();
        if same || attempt == ATTEMPTS {
            return Ok(opened);
        }
        before = names;
    }
}

/// `None` when the file is gone.
fn open_one(
    storage: &dyn Storage,
    key: (Numbers, Kind),
    held: bool,
    known: &mut HashMap<(Numbers, Kind), Arc<dyn ReadFile>>,
) -> Result<Option<Arc<dyn ReadFile>>> {
    if let Some(file) = known.get(&key) {
        return Ok(Some(file.clone()));
    }
    let name = key.0.name(key.1);
    if !held {
        return Ok(Some(storage.open_later(&name)));
    }
    let path = storage.directory().join(&name);
    match storage.open(&name) {
        Ok(file) => {
            known.insert(key, file.clone());
            Ok(Some(file))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        // The reader lacks something, not the file.
        Err(e) if is_out_of_files(&e) => Err(Error::io("open file", &path, e)),
        // Tried again when it is read; what fails then is damage of it alone.
        Err(_) => Ok(Some(storage.open_later(&name))),
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

/// First sequences by file and life of the sampler: frames that a later file
/// repeats do not count in an earlier log.
#[derive(Default)]
pub(crate) struct Repeats(Vec<(u64, u64, u64)>);

impl Repeats {
    /// Notes the frames of a sealed file.
    pub(crate) fn sealed(&mut self, number: u64, block: &BlockFile) {
        let frames = block.frames().filter(|f| f.incarnation != 0);
        self.0
            .extend(frames.map(|f| (number, f.incarnation, f.first)));
    }

    /// Notes the frames of a log; returns the first sequence that does not
    /// count in it. To be called for the newest log first.
    pub(crate) fn log(&mut self, number: u64, header: &LogHeader) -> u64 {
        let later = |r: &&(u64, u64, u64)| r.0 > number && r.1 == header.incarnation;
        let until = self.0.iter().filter(later).map(|r| r.2).min();
        let own = (number, header.incarnation, header.first_sequence);
        self.0.push(own);
        until.unwrap_or(u64::MAX)
    }
}

/// Damage of a log, and what else is in it.
fn read_open(
    file: &Opened,
    path: &Path,
    later: &mut Repeats,
) -> Result<(Vec<LogDamage>, Option<Part>)> {
    let bytes = read_all(&*file.file).map_err(|e| Error::io("read file", path, e))?;
    let header = LogHeader::parse(&bytes)?;
    let until = later.log(file.numbers.first, &header);
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

/// Others begin and end where the part does: the writer removes what it has
/// merged in order.
fn is_covered_by(part: &Part, others: &[Part]) -> bool {
    let mut of_node = others.iter().filter(|o| o.node() == part.node());
    of_node.clone().any(|o| o.first_tick() == part.first_tick())
        && of_node.any(|o| o.last_tick() == part.last_tick())
}

/// Leaves out parts whose ticks lie within those of another part of the node,
/// which was made of them; of two alike the first stays. Parts without ticks
/// stay.
fn drop_covered(mut parts: Vec<Part>) -> Vec<Part> {
    let has_ticks = |p: &PartInfo| p.first_tick <= p.last_tick;
    // Larger before what it covers.
    parts.sort_by_key(|p| (p.node(), p.first_tick(), std::cmp::Reverse(p.last_tick())));
    let mut covered: Option<(u64, u64)> = None;
    parts.retain(|p| {
        if !has_ticks(p.info()) {
            return true;
        }
        if covered.is_some_and(|(node, last)| node == p.node() && p.last_tick() <= last) {
            return false;
        }
        covered = Some((p.node(), p.last_tick()));
        true
    });
    parts
}

fn node_info((&id, parts): (&u64, &Vec<Part>)) -> Option<NodeInfo> {
    let newest = parts.last()?.info();
    Some(NodeInfo {
        id,
        system_identifier: newest.identity.system_identifier,
        timeline: newest.identity.timeline,
        first_ms: parts.iter().map(Part::min_ms).min()?,
        last_ms: parts.iter().map(Part::max_ms).max()?,
        parts: parts.len(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::block::FrameRange;
    use crate::build::PartBuilder;
    use crate::directory::file_name;
    use crate::memory::MemoryStorage;
    use crate::part::Identity;
    use crate::seal::{seal_log, write_sealed};
    use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read, rows_difference};
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

    /// Puts a log of some frames; returns what must be seen of it.
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

    pub(crate) fn check(storage: &MemoryStorage, expected: &Rows) -> Store {
        let store = Store::open_storage(storage).unwrap();
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
        use crate::memory::Crash;
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

    /// A directory of as many sealed files as several threads read.
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
    fn what_footers_say_is_read_again() {
        let (storage, expected) = many_files();
        let store = check(&storage, &expected);
        assert_eq!(store.damage(), &[]);
        // One that cannot be read again is an error of its part alone.
        let store = Store::open_storage(&storage).unwrap();
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
        let (mut told, mut lost) = (Vec::new(), 0);
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
            told.insert(0, storage.directory().join(name));
        }
        let store = Store::open_storage(&storage).unwrap();
        let files: Vec<_> = store.damage().iter().map(|d| d.file.clone()).collect();
        assert_eq!(files, told);
        // What a damaged tail leads to is read all the same.
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
            .rposition(|w| w == crate::frame::MAGIC)
            .unwrap();
        let before = log[..at]
            .windows(4)
            .rposition(|w| w == crate::frame::MAGIC)
            .unwrap();
        log[before + 50] ^= 1;
        storage.put("0000000001.open", &log);
        assert_eq!(Store::open_storage(&storage).unwrap().damage().len(), 1);
        let sealed = seal_log(&storage, 1, u64::MAX).unwrap();
        assert_eq!(sealed.damage.len(), 1);
        let store = Store::open_storage(&storage).unwrap();
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
        // The first log holds 20 frames; writing the last two seemed to fail.
        put_log(&storage, 1, &mut first.clone(), 20);
        for _ in 0..18 {
            first.frame();
        }
        let mut second = first.clone();
        storage.remove("0000000003.open").unwrap();
        put_log(&storage, 2, &mut second, 12);
        let store = Store::open_storage(&storage).unwrap();
        let (ticks, _) = read(store.parts(9));
        assert_eq!(difference(&ticks, &whole.0), None);
    }

    #[test]
    fn each_file_is_read_by_its_own_schema() {
        let storage = MemoryStorage::new();
        let catalog = include_str!("../../catalog/samples.h");
        for number in 1..=2 {
            let mut schema = Schema::from_catalog(catalog).unwrap().with_runs();
            schema.tables.retain(|t| number == 1 || t.name != "lock");
            let mut builder = PartBuilder::new(Arc::new(schema)).unwrap();
            let tick = number as i64;
            let values = [("tick", tick), ("slot_time", 1_000 * tick)];
            builder.row("tick", &values).unwrap();
            let identity = header(1, 0, 1).identity;
            let frames = FrameRange::default();
            write_sealed(&storage, number, builder, identity, frames).unwrap();
        }
        let store = Store::open_storage(&storage).unwrap();
        let has_locks = |part: &Part| part.schema().table("lock").is_some();
        let parts: Vec<bool> = store.parts(9).map(has_locks).collect();
        assert_eq!(parts, [true, false]);
    }
}
