//! File descriptors that the tapes of a process share. The most recently read files stay open;
//! others are opened again by name when they are read.

use crate::files::storage::{Opener, ReadFile};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Default limit of open files. Each reading thread may hold one more for a moment: with 32 threads
/// a process has 256.
pub(crate) const FILES: usize = 224;

/// The open files by [`SharedFile::number`].
type Open = Cache<u64, Arc<dyn ReadFile>>;

/// The open files.
pub(crate) struct OpenFiles {
    open: Open,
    most: usize,
    numbers: AtomicU64,
}

impl OpenFiles {
    /// Keeps at most `most` files open, at least one.
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(1);
        let mut options = OptionsBuilder::new();
        // With several shards the limit would be rounded up.
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

    /// Maximum number of open files.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A file. It is opened now if `is_opened_now`, otherwise when it is read.
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

/// A file that stays open while it is among the most recently read ones.
struct SharedFile {
    files: Arc<OpenFiles>,
    number: u64,
    opener: Box<dyn Opener>,
    /// Inode of the file when it was first opened.
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
                    "the file was replaced by another one",
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

/// A file that is opened for every operation.
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
