//! A storage in memory for tests. It fails on demand at any operation, and shows the state after a
//! crash of the process or of the machine.

use crate::files::node::Place;
use crate::files::storage::{AppendFile, Entry, Name, Opener, ReadFile, Space, Stamp, Storage};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, Default)]
struct Inode {
    data: Vec<u8>,
    synced: usize,
    /// Bytes that the device cannot read.
    bad: Range<usize>,
}

#[derive(Clone)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    /// Names that are synced to disk.
    durable: BTreeMap<String, usize>,
    operations: usize,
    fail_at: Option<(usize, io::ErrorKind)>,
    stop_at: Option<usize>,
    place: Place,
    /// Paths at which originals of the directory still exist.
    originals: Vec<String>,
    free: u64,
    /// Number of changes of names.
    changes: usize,
    /// Number of listings.
    lists: usize,
    /// Number of reading calls: lists, opens, lengths, bytes.
    reads: usize,
    /// Number of the reading call that fails.
    fail_read_at: Option<usize>,
    /// Bytes that were read: file, offset, length.
    spans: BTreeSet<(usize, u64, usize)>,
    /// Opening this file causes a panic.
    panic_on: Option<String>,
    /// Runs before this reading call and changes files.
    meanwhile: Option<(usize, Meanwhile)>,
}

/// An action of another process.
type Meanwhile = Arc<dyn Fn(&MemoryStorage) + Send + Sync>;

/// The storage. Clones share the files.
#[derive(Clone)]
pub struct MemoryStorage(Arc<Mutex<State>>);

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

/// Kind of crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed: all its operations are done.
    Process,
    /// The machine fails: only synced data is left.
    Machine,
    /// The machine fails, but names and half of the unsynced bytes had reached the disk.
    MachineHalf,
}

impl MemoryStorage {
    /// An empty directory.
    pub fn new() -> Self {
        MemoryStorage(Arc::new(Mutex::new(State {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            operations: 0,
            fail_at: None,
            stop_at: None,
            place: Place {
                device: 1,
                inode: 2,
                path: "/memory".into(),
                ..Place::default()
            },
            originals: Vec::new(),
            free: 1 << 40,
            changes: 0,
            lists: 0,
            reads: 0,
            fail_read_at: None,
            spans: BTreeSet::new(),
            panic_on: None,
            meanwhile: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of changes so far: creations, appends, syncs, renames, removals.
    pub fn operations(&self) -> usize {
        self.state().operations
    }

    /// Makes one operation fail. A failing append writes half of its bytes.
    pub fn fail_at(&self, operation: usize, kind: io::ErrorKind) {
        self.state().fail_at = Some((operation, kind));
    }

    /// Makes every operation after this one fail: the process is dead.
    pub fn stop_at(&self, operation: usize) {
        self.state().stop_at = Some(operation);
    }

    /// Number of reading calls so far.
    pub fn reads(&self) -> usize {
        self.state().reads
    }

    /// Number of listings so far.
    pub fn lists(&self) -> usize {
        self.state().lists
    }

    /// Reads since the last call: name of the file, offset, length in bytes.
    pub fn take_spans(&self) -> Vec<(String, u64, usize)> {
        let mut state = self.state();
        let spans = std::mem::take(&mut state.spans);
        let name = |inode| state.names.iter().find(|(_, known)| **known == inode);
        let named = spans.into_iter();
        let named = named.filter_map(|(inode, at, n)| Some((name(inode)?.0.clone(), at, n)));
        named.collect()
    }

    /// Makes one reading call fail.
    pub fn fail_read_at(&self, read: usize) {
        self.state().fail_read_at = Some(read);
    }

    /// Makes opening this file panic, as a bug in reading it would.
    pub fn panic_on(&self, name: Option<&str>) {
        self.state().panic_on = name.map(String::from);
    }

    /// Lets another process act just before a reading call.
    pub fn meanwhile(&self, read: usize, what: impl Fn(&MemoryStorage) + Send + Sync + 'static) {
        self.state().meanwhile = Some((read, Arc::new(what)));
    }

    fn read(&self) -> io::Result<()> {
        let mut state = self.state();
        state.reads += 1;
        let now = state.reads;
        if state.fail_read_at == Some(now) {
            return Err(io::Error::other("injected failure of a read"));
        }
        let due = state.meanwhile.take_if(|m| m.0 == now);
        drop(state);
        if let Some((_, what)) = due {
            what(self);
        }
        Ok(())
    }

    /// Sets the free space of the file system.
    pub fn set_free(&self, bytes: u64) {
        self.state().free = bytes;
    }

    /// The directory that a new process finds after a crash.
    pub fn after(&self, crash: Crash) -> MemoryStorage {
        let mut state = self.state().clone();
        (state.fail_at, state.stop_at) = (None, None);
        (state.reads, state.fail_read_at, state.meanwhile) = (0, None, None);
        if crash == Crash::Machine {
            state.names.clone_from(&state.durable);
        }
        for inode in &mut state.inodes {
            let kept = match crash {
                Crash::Process => inode.data.len(),
                Crash::Machine => inode.synced,
                Crash::MachineHalf => inode.synced + (inode.data.len() - inode.synced) / 2,
            };
            inode.data.truncate(kept);
        }
        MemoryStorage(Arc::new(Mutex::new(state)))
    }

    /// A copy of the directory at another path.
    pub fn copied(&self) -> MemoryStorage {
        let copy = self.after(Crash::Process);
        let mut place = self.state().place.clone();
        let original = std::mem::replace(&mut place.path, "/copy".into());
        (place.device, place.inode) = (3, 4);
        copy.set_place(place, &[&original]);
        copy
    }

    /// A directory that replaced this one, as after a restore.
    pub fn restored(&self) -> MemoryStorage {
        let copy = self.after(Crash::Process);
        copy.state().place.inode += 1;
        copy
    }

    /// Moves the directory. Its originals still exist at these paths.
    pub fn set_place(&self, place: Place, originals: &[&str]) {
        let mut state = self.state();
        state.place = place;
        state.originals = originals.iter().map(|o| o.to_string()).collect();
    }

    /// The bytes of a file.
    pub fn bytes_of(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = *state.names.get(name)?;
        Some(state.inodes[inode].data.clone())
    }

    /// Appends to an existing file, as another process would.
    pub fn append_to(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        if let Some(&inode) = state.names.get(name) {
            state.inodes[inode].data.extend_from_slice(bytes);
        }
    }

    /// Makes the device lose these bytes of a file: reading them fails with EIO.
    pub fn lose_bytes(&self, name: &str, bad: Range<usize>) {
        let mut state = self.state();
        if let Some(&inode) = state.names.get(name) {
            state.inodes[inode].bad = bad;
        }
    }

    /// Puts a synced file with these bytes.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let inode = state.inodes.len();
        state.inodes.push(Inode {
            data: bytes.to_vec(),
            synced: bytes.len(),
            bad: 0..0,
        });
        state.changes += 1;
        state.names.insert(name.into(), inode);
        state.durable.insert(name.into(), inode);
    }
}

impl State {
    fn operation(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.stop_at.is_some_and(|n| self.operations > n) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.fail_at {
            Some((at, kind)) if at == self.operations => Err(kind.into()),
            _ => Ok(()),
        }
    }
}

struct MemoryFile {
    storage: MemoryStorage,
    inode: usize,
}

impl ReadFile for MemoryFile {
    fn bytes(&self) -> io::Result<u64> {
        self.storage.read()?;
        Ok(self.storage.state().inodes[self.inode].data.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.storage.read()?;
        let mut state = self.storage.state();
        state.spans.insert((self.inode, offset, buffer.len()));
        let Inode { data, bad, .. } = &state.inodes[self.inode];
        let wanted = offset as usize..offset as usize + buffer.len();
        if wanted.start.max(bad.start) < wanted.end.min(bad.end) {
            return Err(Errno::IO.into());
        }
        let rest = data.get(offset as usize..).unwrap_or(&[]);
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn number(&self) -> io::Result<u64> {
        Ok(self.inode as u64)
    }
}

struct MemoryOpener {
    storage: MemoryStorage,
    name: String,
}

impl Opener for MemoryOpener {
    fn open(&self) -> io::Result<Arc<dyn ReadFile>> {
        self.storage.open(&self.name)
    }
}

impl AppendFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.storage.state();
        let done = state.operation();
        let kept = match &done {
            Ok(()) => bytes.len(),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => 0,
            Err(_) => bytes.len() / 2,
        };
        state.inodes[self.inode]
            .data
            .extend_from_slice(&bytes[..kept]);
        done
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.storage.state();
        state.operation()?;
        let inode = &mut state.inodes[self.inode];
        inode.synced = inode.data.len();
        Ok(())
    }
}

impl Storage for MemoryStorage {
    fn directory(&self) -> &Path {
        Path::new("/memory")
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.read()?;
        let state = self.state();
        let entry = |(name, &inode): (&String, &usize)| Entry {
            name: name.clone(),
            bytes: state.inodes[inode].data.len() as u64,
        };
        Ok(state.names.iter().map(entry).collect())
    }

    fn stamp(&self) -> Option<Stamp> {
        self.read().ok()?;
        Some(Stamp {
            place: (0, 0),
            changed_ns: self.state().changes as i128,
        })
    }

    fn names(&self) -> io::Result<Vec<Name>> {
        self.read()?;
        let mut state = self.state();
        state.lists += 1;
        let name = |(name, &inode): (&String, &usize)| Name {
            name: name.clone(),
            file: inode as u64,
        };
        Ok(state.names.iter().map(name).collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadFile>> {
        self.read()?;
        let poisoned = self.state().panic_on.as_deref() == Some(name);
        assert!(!poisoned, "injected panic");
        let inode = self.state().names.get(name).copied();
        let inode = inode.ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryFile {
            storage: self.clone(),
            inode,
        }))
    }

    fn opener(&self, name: &str) -> Box<dyn Opener> {
        Box::new(MemoryOpener {
            storage: self.clone(),
            name: name.into(),
        })
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn AppendFile>> {
        let mut state = self.state();
        state.operation()?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.changes += 1;
        state.names.insert(name.into(), inode);
        Ok(Box::new(MemoryFile {
            storage: self.clone(),
            inode,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.changes += 1;
        state.names.insert(to.into(), inode);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.operation()?;
        state.changes += 1;
        state.names.remove(name);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        state.durable = state.names.clone();
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        let free = self.state().free;
        Ok(Space {
            free,
            total: 1 << 40,
        })
    }

    fn place(&self) -> io::Result<Place> {
        Ok(self.state().place.clone())
    }

    fn other_at(&self, path: &str) -> io::Result<Option<Box<dyn Storage>>> {
        // A caller that cannot look at an original takes it as one.
        match self.state().originals.iter().any(|o| o == path) {
            true => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            false => Ok(None),
        }
    }

    fn set_file_mode(&self, _mode: u32) -> io::Result<()> {
        Ok(())
    }
}
