//! A directory that is being recorded into: its lock, its writer, and the thread that seals and
//! merges. The source of frames drives it: `tacho tape-writer` reads frames from a pipe,
//! `tacho-record` makes its own.

use crate::error::{Error, Kind, Result};
use crate::files::directory::LOCK;
use crate::files::storage::{OsStorage, Storage, open_regular};
use crate::format::frame::Frame;
use crate::write::background::{self, Done, Work};
use crate::write::clock::{now, random};
use crate::write::message::Message;
use crate::write::writer::{Code, Writer};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause between two attempts to take the lock. The previous writer may still be ending.
const LOCK_STEP: Duration = Duration::from_millis(50);

/// A directory that is being recorded into.
pub struct Recording {
    writer: Writer,
    sealer: Sealer,
    lock: Lock,
    /// A message for the next call of [`Recording::housekeeping`].
    trouble: Option<Message>,
}

impl Recording {
    /// Takes a directory and creates it if it is missing. If another writer has it, waits up to
    /// `wait` for that writer to end.
    ///
    /// # Errors
    /// Another writer holds it ([`Kind::Locked`]), or it could not be made,
    /// locked or read.
    pub fn open(directory: &Path, wait: Duration) -> Result<Recording> {
        let made = OsStorage::create_directory(directory);
        made.map_err(|e| Error::io("create directory", directory, e))?;
        let lock = lock(directory, wait)?;
        let storage = Arc::new(OsStorage::new(directory));
        let writer = Writer::open(storage.clone(), random())?;
        let (sealer, trouble) = Sealer::start(storage);
        Ok(Recording {
            writer,
            sealer,
            lock,
            trouble,
        })
    }

    /// True if the directory was removed or replaced by another one of this name. Frames would go
    /// to no directory, or to one whose lock another writer can take.
    pub fn is_lost(&self) -> bool {
        self.lock.is_lost()
    }

    /// Takes a frame. After any code except [`Code::Written`], the caller must send the frame again
    /// later.
    pub fn push(&mut self, frame: &Frame<'_>) -> Code {
        self.writer.push(frame, now())
    }

    /// Syncs the log if that is due, or if `force`.
    pub fn flush(&mut self, force: bool) {
        self.writer.flush(now(), force);
    }

    /// ms until the log must be synced with [`Recording::flush`]; `None` if all frames are on disk.
    pub fn flush_in_ms(&self) -> Option<i64> {
        self.writer.flush_in_ms(now())
    }

    /// Hands out jobs for sealing and merging and takes their results. Returns messages for the log
    /// since the last call.
    pub fn housekeeping(&mut self) -> Vec<Message> {
        for done in self.sealer.done.try_iter() {
            self.writer.done(done);
        }
        for work in self.writer.jobs() {
            self.sealer.give(work);
        }
        let mut messages = self.writer.messages();
        messages.extend(self.trouble.take());
        messages
    }

    /// Writes everything to disk and ends the thread. Returns messages for the log.
    pub fn finish(&mut self) -> Vec<Message> {
        self.flush(true);
        let mut messages = self.housekeeping();
        self.sealer.finish();
        messages.extend(self.housekeeping());
        messages
    }

    /// The writer.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }
}

/// A held lock.
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// True if another file, or none, has the path of the lock. An error other than "not found"
    /// does not mean that the lock is lost.
    fn is_lost(&self) -> bool {
        let Ok(own) = self.file.metadata() else {
            return false;
        };
        match std::fs::metadata(&self.path) {
            Ok(found) => (found.dev(), found.ino()) != (own.dev(), own.ino()),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

fn lock(directory: &Path, wait: Duration) -> Result<Lock> {
    let path = directory.join(LOCK);
    match try_lock(&path, wait) {
        Ok(Some(file)) => Ok(Lock { path, file }),
        Ok(None) => {
            let message = format!(
                "directory \"{}\" is in use by another writer",
                directory.display()
            );
            Err(Error::new(Kind::Locked, message))
        }
        Err(error) => Err(Error::io("lock file", &path, error)),
    }
}

/// `None` if another process still holds the lock after `wait`.
fn try_lock(path: &Path, wait: Duration) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = open_regular(&options, path)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begin.elapsed() >= wait => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_STEP),
        }
    }
}

/// The thread that seals logs and merges sealed files.
struct Sealer {
    work: Option<Sender<Work>>,
    done: Receiver<Done>,
    /// Stops merging, which the next writer can do as well.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Does the work if there is no thread.
    alone: Option<(Arc<dyn Storage>, Sender<Done>)>,
}

impl Sealer {
    fn start(storage: Arc<dyn Storage>) -> (Self, Option<Message>) {
        let (work, todo) = channel::<Work>();
        let (report, done) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let own = (storage.clone(), report.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            for work in todo {
                if report
                    .send(background::work(&*storage, work, &stopped))
                    .is_err()
                {
                    break;
                }
            }
        });
        let trouble = thread.as_ref().err().map(|error| {
            let what = "could not start the thread that seals logs";
            Message::Warning(format!("{what}: {error}"))
        });
        let sealer = Sealer {
            work: Some(work),
            done,
            stop,
            alone: thread.is_err().then_some(own),
            thread: thread.ok(),
        };
        (sealer, trouble)
    }

    fn give(&self, work: Work) {
        if let Some((storage, report)) = &self.alone {
            let _ = report.send(background::work(&**storage, work, &self.stop));
            return;
        }
        if let Some(sender) = &self.work {
            let _ = sender.send(work);
        }
    }

    /// Ends the thread after its logs are sealed.
    fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread ends before the lock is released: the next writer of the directory writes files of the
/// same names.
impl Drop for Sealer {
    fn drop(&mut self) {
        self.finish();
    }
}
