//! Descriptors that the tapes of a process share. The files that were read last
//! stay open; the others are opened again by name when they are read.

use crate::files::storage::{Opener, ReadFile};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Most files that stay open unless told otherwise. Each thread that reads may
/// hold one more for a moment: with 32 of them a process has 256.
pub(crate) const FILES: usize = 224;

/// Files by a number of their own.
type Open = Cache<u64, Arc<dyn ReadFile>>;

/// The files that are open.
pub(crate) struct OpenFiles {
    open: Open,
    most: usize,
    numbers: AtomicU64,
}

impl OpenFiles {
    /// Keeps so many files open at most, one at least.
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(1);
        let mut options = OptionsBuilder::new();
        // Shards would round the limit up.
        options.shards(1).estimated_items_capacity(most);
        let open = match options.weight_capacity(most as u64).build() {
            Ok(options) => Open::with_options(
                options,
                UnitWeighter,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            Err(_) => Open::new(most),
        };
        OpenFiles {
            open,
            most,
            numbers: AtomicU64::new(0),
        }
    }

    /// How many files stay open at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A file, opened now if it is to be; otherwise when it is read.
    pub(crate) fn file(
        self: &Arc<Self>,
        opener: Box<dyn Opener>,
        is_opened_now: bool,
    ) -> io::Result<Arc<dyn ReadFile>> {
        let file = SharedFile {
            files: self.clone(),
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            opener,
            inode: OnceLock::new(),
        };
        if is_opened_now {
            file.opened()?;
        }
        Ok(Arc::new(file))
    }
}

/// A file that is open as long as it is among those read last.
struct SharedFile {
    files: Arc<OpenFiles>,
    number: u64,
    opener: Box<dyn Opener>,
    /// The inode of the file when it was opened first.
    inode: OnceLock<u64>,
}

impl SharedFile {
    fn opened(&self) -> io::Result<Arc<dyn ReadFile>> {
        let open = || {
            let file = self.opener.open()?;
            let inode = file.number()?;
            match *self.inode.get_or_init(|| inode) == inode {
                true => Ok(file),
                false => Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    "another file has its name",
                )),
            }
        };
        self.files.open.get_or_insert_with(&self.number, open)
    }
}

impl ReadFile for SharedFile {
    fn bytes(&self) -> io::Result<u64> {
        self.opened()?.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.opened()?.read_at(offset, buffer)
    }

    fn number(&self) -> io::Result<u64> {
        self.opened()?.number()
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        self.files.open.remove(&self.number);
    }
}

/// A file that is opened by every operation.
pub(crate) struct LaterFile(pub(crate) Box<dyn Opener>);

impl ReadFile for LaterFile {
    fn bytes(&self) -> io::Result<u64> {
        self.0.open()?.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.open()?.read_at(offset, buffer)
    }

    fn number(&self) -> io::Result<u64> {
        self.0.open()?.number()
    }
}
