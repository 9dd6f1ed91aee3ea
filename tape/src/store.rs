//! A history directory as readers see it: the parts of every node in order of
//! ticks, and what is damaged.

use crate::block_read::{BlockFile, Schemas};
use crate::directory::{self, HistoryFile, Kind, Numbers};
use crate::error::{self, Error, Result};
use crate::log::{LogContents, LogDamage, LogHeader, read_log};
use crate::part::{Part, PartInfo};
use crate::storage::{OsStorage, ReadFile, Storage, read_all};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            Ok(recorded) => store.own_node = recorded.map(|r| r.node),
            Err(error) => {
                let path = storage.directory().join(directory::NODE);
                store.unreadable(&path, 0, &error);
            }
        }
        for part in drop_covered(parts) {
            store.parts.entry(part.node()).or_default().push(part);
        }
        for parts in store.parts.values_mut() {
            parts.sort_by_key(Part::first_tick);
        }
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
        // Merged files first: a valid one replaces those it was made of.
        let merged = |f: &&Opened| f.listed.numbers.is_merged();
        let (merged, single): (Vec<&Opened>, Vec<&Opened>) = opened.iter().partition(merged);
        let sealed = |f: &&Opened| f.listed.kind == Kind::Sealed;
        for file in merged
            .into_iter()
            .chain(single.iter().copied())
            .filter(sealed)
        {
            let numbers = file.listed.numbers;
            if replacing.iter().any(|r| r.replaces(numbers)) {
                continue;
            }
            let path = storage.directory().join(file.listed.name());
            match BlockFile::open(file.file.clone(), &path, &mut schemas) {
                Ok(mut block) => {
                    self.report(&path, &block.damage);
                    if opened.len() > FILES_KNOWN {
                        block.forget_entries();
                    }
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
                Err(error) => self.unreadable(&path, file.listed.bytes, &error),
            }
        }
        let sealed = |n: Numbers| valid.contains(&n) || replacing.iter().any(|r| r.replaces(n));
        let logs = single.iter().filter(|f| f.listed.kind == Kind::Log);
        for file in logs.rev().filter(|f| !sealed(f.listed.numbers)) {
            let path = storage.directory().join(file.listed.name());
            match read_open(file, &path, &mut later) {
                Ok(contents) => {
                    self.report(&path, &contents.damage);
                    parts.extend(part_of(contents, path));
                }
                // A log whose header is not written yet.
                Err(_) if file.listed.bytes < crate::log::FRAMES_AT as u64 => (),
                Err(error) => self.unreadable(&path, file.listed.bytes, &error),
            }
        }
        // Those whose parents are all there.
        doubtful.retain(|part| !is_covered_by(part, &parts));
        parts.extend(doubtful);
        (parts, vanished)
    }

    fn report(&mut self, path: &Path, damage: &[LogDamage]) {
        let found = damage.iter().map(|d| Damage {
            file: path.to_path_buf(),
            offset: d.offset,
            bytes: d.bytes,
            since_ms: d.since_ms,
            until_ms: d.until_ms,
            reason: d.reason.clone(),
        });
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
        for part in parts {
            store.parts.entry(part.node()).or_default().push(part);
        }
        for parts in store.parts.values_mut() {
            parts.sort_by_key(Part::first_tick);
        }
        store
    }

    /// The nodes, the one with the newest tick first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes: Vec<NodeInfo> = self.parts.iter().filter_map(node_info).collect();
        nodes.sort_by_key(|n| (std::cmp::Reverse(n.last_ms), n.id));
        nodes
    }

    /// The node the directory itself belongs to, when it says so.
    pub fn own_node(&self) -> Option<u64> {
        self.own_node
    }

    /// Names of roles with another OID are null from now on, so that a role
    /// does not see what a dropped one of its name did. Rows without an OID
    /// keep theirs.
    pub fn hide_other_roles(&mut self, oid: i64) {
        for part in self.parts.values_mut().flatten() {
            *part = part.without_other_roles(oid);
        }
    }

    /// The parts of a node by ascending ticks; none for an unknown one.
    pub fn parts(&self, node: u64) -> impl Iterator<Item = &Part> {
        self.parts.get(&node).into_iter().flatten()
    }

    /// What could not be read.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

impl Damage {
    /// The damage that an error of reading a part's column stands for.
    pub fn of_part(part: &Part, error: &Error) -> Self {
        let info = part.info();
        Damage {
            file: error.path.clone().unwrap_or_else(|| info.file.clone()),
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
    listed: HistoryFile,
    file: Arc<dyn ReadFile>,
}

/// Most sealed files held open, the newest ones, if the process may have twice
/// as many; older ones are opened when they are read. Only retention removes
/// them; the files of the last days, which may be merged, are among the newest.
const HELD_OPEN: usize = 700;

/// With more files than these, what their footers say of columns is forgotten
/// until it is needed.
const FILES_KNOWN: usize = 64;

/// Opens all files before any is read: the writer seals and removes files at
/// any time, and what is open stays readable. When one is gone, or the list
/// was not the same before and after, the directory is listed again.
fn open_all(storage: &dyn Storage) -> Result<Vec<Opened>> {
    let mut known: HashMap<(Numbers, Kind), Arc<dyn ReadFile>> = HashMap::new();
    let mut before: Vec<(Numbers, Kind)> = Vec::new();
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut listed = directory::list(storage)?;
        listed.retain(|f| f.kind != Kind::Temporary);
        let names: Vec<(Numbers, Kind)> = listed.iter().map(|f| (f.numbers, f.kind)).collect();
        let newest = listed.len().saturating_sub(held_open());
        let mut opened = Vec::new();
        for (index, listed) in listed.into_iter().enumerate() {
            let held = index >= newest || listed.kind == Kind::Log;
            let file = open_one(storage, &listed, held, &mut known)?;
            opened.extend(file.map(|file| Opened { listed, file }));
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
    listed: &HistoryFile,
    held: bool,
    known: &mut HashMap<(Numbers, Kind), Arc<dyn ReadFile>>,
) -> Result<Option<Arc<dyn ReadFile>>> {
    let key = (listed.numbers, listed.kind);
    if let Some(file) = known.get(&key) {
        return Ok(Some(file.clone()));
    }
    let name = listed.name();
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

fn read_open(file: &Opened, path: &Path, later: &mut Repeats) -> Result<LogContents> {
    let bytes = read_all(&*file.file).map_err(|e| Error::io("read file", path, e))?;
    let header = LogHeader::parse(&bytes)?;
    let until = later.log(file.listed.numbers.first, &header);
    read_log(&bytes, until)
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
mod tests {
    use super::*;
    use crate::block::FrameRange;
    use crate::build::PartBuilder;
    use crate::directory::file_name;
    use crate::memory::MemoryStorage;
    use crate::part::Identity;
    use crate::schema::Schema;
    use crate::seal::{seal_log, write_sealed};
    use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read, rows_difference};
    use proptest::prelude::*;

    type Rows = (Vec<(u64, i64)>, Vec<Seen>);

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
    fn put_log(storage: &MemoryStorage, number: u64, sampler: &mut Sampler, frames: usize) -> Rows {
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

    fn sampler(seed: u64, load: Load) -> Sampler {
        let mut sampler = Sampler::new(seed, load);
        sampler.tick_base = 1_000;
        sampler
    }

    fn check(storage: &MemoryStorage, expected: &Rows) -> Store {
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

    fn sealed_bytes(seed: u64) -> (Vec<u8>, Rows) {
        let storage = MemoryStorage::new();
        let load = Load {
            sessions: 3,
            queries: 3,
            ..Load::default()
        };
        let expected = put_log(&storage, 1, &mut sampler(seed, load), 12);
        seal_log(&storage, 1, u64::MAX).unwrap();
        (storage.bytes_of("0000000001.tape").unwrap(), expected)
    }

    /// Reads every column; what is damaged is an error and not a panic.
    fn read_everything(store: &Store) -> bool {
        let mut whole = true;
        for part in store.parts(9) {
            for table in &part.schema().tables {
                for column in &table.columns {
                    whole &= part.ints(&table.name, &column.name).is_ok();
                    whole &= part.bytes(&table.name, &column.name).is_ok();
                }
            }
        }
        whole
    }

    fn verify(storage: &MemoryStorage) -> usize {
        let file = storage.open("0000000001.tape").unwrap();
        let block = BlockFile::open(file, Path::new("x"), &mut Schemas::default());
        block.unwrap().verify().unwrap().len()
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_file_is_found_and_spares_the_rest() {
        let (bytes, expected) = sealed_bytes(4);
        for bit in (0..bytes.len() * 8).step_by(3) {
            let mut copy = bytes.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            let storage = MemoryStorage::new();
            storage.put("0000000001.tape", &copy);
            let store = Store::open_storage(&storage).unwrap();
            let whole = read_everything(&store);
            // What is stored twice hurts nobody until somebody verifies.
            let found = !whole || !store.damage().is_empty() || verify(&storage) > 0;
            assert!(found, "bit {bit}");
            if whole && store.nodes().len() == 1 {
                let (_, rows) = read(store.parts(9));
                assert_eq!(rows_difference(&rows, &expected.1), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn every_prefix_of_a_sealed_file_is_damage_and_no_panic() {
        let (bytes, _) = sealed_bytes(5);
        for end in 0..bytes.len() {
            let storage = MemoryStorage::new();
            storage.put("0000000001.tape", &bytes[..end]);
            let store = Store::open_storage(&storage).unwrap();
            read_everything(&store);
            assert!(!store.damage().is_empty(), "end {end}");
        }
    }

    #[test]
    fn among_many_files_what_footers_say_is_read_again() {
        let storage = MemoryStorage::new();
        let mut expected = Rows::default();
        for number in 1..=FILES_KNOWN as u64 + 1 {
            let mut sampler = sampler(number, Load::default());
            sampler.tick_base = 1_000 * number;
            let (ticks, rows) = put_log(&storage, number, &mut sampler, 2);
            seal_log(&storage, number, u64::MAX).unwrap();
            expected.0.extend(ticks);
            expected.1.extend(rows);
        }
        expected.1.sort();
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

    /// A file that is opened by name for each read.
    struct Named(std::sync::Mutex<Vec<u8>>);

    impl ReadFile for Named {
        fn bytes(&self) -> std::io::Result<u64> {
            Ok(self.0.lock().unwrap().len() as u64)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.lock().unwrap();
            let bytes = &bytes[offset as usize..][..buffer.len()];
            buffer.copy_from_slice(bytes);
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_footer_is_not_read_again_from_another_file() {
        let named = Arc::new(Named(sealed_bytes(6).0.into()));
        let path = Path::new("0000000001.tape");
        let open = || {
            let mut block = BlockFile::open(named.clone(), path, &mut Schemas::default()).unwrap();
            block.forget_entries();
            block.parts().next().unwrap()
        };
        assert!(open().ints("tick", "tick").is_ok());
        let part = open();
        *named.0.lock().unwrap() = sealed_bytes(7).0;
        let error = part.ints("tick", "tick").unwrap_err();
        assert_eq!(error.kind, error::Kind::Damaged);
        assert!(open().ints("tick", "tick").is_ok());
    }

    #[test]
    fn a_lost_footer_is_rebuilt_from_the_chunks() {
        let (mut bytes, expected) = sealed_bytes(6);
        let end = bytes.len();
        bytes[end - 10] ^= 1;
        let storage = MemoryStorage::new();
        storage.put("0000000001.tape", &bytes);
        let store = check(&storage, &expected);
        assert_eq!(store.damage().len(), 1);
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
