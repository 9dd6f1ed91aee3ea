//! `tacho tape-writer`: the only process that writes history files. Takes
//! frames from standard input and answers on standard output
//! (`docs/format.md`); lines for the server's log go to standard error.
//!
//! It ends when its input ends; signals that a terminal or the postmaster may
//! send do not end it, so that what is in the pipe gets written. Logs are
//! sealed in a thread of their own: acknowledgements never wait for that.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tacho_tape::background::{self, Done, Work};
use tacho_tape::directory::LOCK;
use tacho_tape::frame::DATA;
use tacho_tape::pipe::FrameBuffer;
use tacho_tape::storage::{OsStorage, Storage, open_regular};
use tacho_tape::writer::{Code, Message, Now, Writer};

/// Exit code when another writer holds the directory.
const LOCKED: u8 = 5;
/// Exit code when the directory is no more the one that was opened.
const MOVED: u8 = 6;
/// How often the lock is tried: the writer before may still be ending.
const LOCK_STEP: Duration = Duration::from_millis(50);
/// A frame that could not be written is tried again after this time.
const RETRY_MS: i64 = 1_000;
const ACK_MAGIC: [u8; 4] = [0xF1, 0x54, 0x43, 0x41];
const READ_BYTES: usize = 1 << 18;

/// Arguments of `tacho tape-writer`.
#[derive(clap::Args)]
pub struct Args {
    /// Directory of the history files
    #[arg(long)]
    directory: PathBuf,

    /// Seconds to wait for another writer to end
    #[arg(long, default_value_t = 10, hide = true)]
    wait: u64,
}

/// Reads frames until the end of standard input.
pub fn run(args: &Args) -> ExitCode {
    if let Err(error) = outlive_signals() {
        return fail(&format!("could not install signal handlers: {error}"));
    }
    let directory = &args.directory;
    if let Err(error) = OsStorage::create_directory(directory) {
        let what = format!("could not create directory \"{}\"", directory.display());
        return fail(&format!("{what}: {error}"));
    }
    let lock = match lock(directory, Duration::from_secs(args.wait)) {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            let path = directory.display();
            print(&Message::Trouble(format!(
                "another writer holds directory \"{path}\""
            )));
            return ExitCode::from(LOCKED);
        }
        Err(error) => {
            let path = directory.join(LOCK);
            return fail(&format!(
                "could not lock file \"{}\": {error}",
                path.display()
            ));
        }
    };
    let storage = Arc::new(OsStorage::new(directory));
    match Writer::open(storage.clone(), random()) {
        Ok(writer) => Session::new(writer, storage, lock).run(),
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(message: &str) -> ExitCode {
    print(&Message::Trouble(message.into()));
    ExitCode::FAILURE
}

/// One line a message; nobody to read it is no reason to end.
fn print(message: &Message) {
    use std::io::Write;
    let (severity, text) = match message {
        Message::Log(text) => ("LOG", text),
        Message::Warning(text) => ("WARNING", text),
        Message::Error(text) => ("ERROR", text),
        Message::Trouble(text) => ("TROUBLE", text),
    };
    let line = format!("{severity}:  {}\n", text.replace('\n', " "));
    let _ = io::stderr().write_all(line.as_bytes());
}

fn outlive_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// A lock that is held.
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// The directory was removed, or another one has its name: what is written
    /// is in no directory, or in one whose lock another writer can take. What
    /// the system does not tell is no reason to think so.
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

/// The lock of a directory; `None` when another process keeps holding it.
fn lock(directory: &Path, wait: Duration) -> io::Result<Option<Lock>> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let path = directory.join(LOCK);
    let file = open_regular(&options, &path)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(Lock { path, file })),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begin.elapsed() >= wait => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_STEP),
        }
    }
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => now().wall_ms as u64 ^ (u64::from(std::process::id()) << 44),
    }
}

fn now() -> Now {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mono = BEGIN.get_or_init(Instant::now).elapsed();
    Now {
        wall_ms: wall.map_or(0, |d| d.as_millis() as i64),
        mono_ms: mono.as_millis() as i64,
    }
}

/// The thread that seals logs and merges sealed files.
struct Sealer {
    work: Option<Sender<Work>>,
    done: Receiver<Done>,
    /// Merging can wait for the next writer.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sealer {
    fn start(storage: Arc<dyn Storage>) -> Self {
        let (work, todo) = channel::<Work>();
        let (report, done) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
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
        if let Err(error) = &thread {
            let what = "could not start a thread: logs are not sealed";
            print(&Message::Warning(format!("{what}: {error}")));
        }
        Sealer {
            work: Some(work),
            done,
            stop,
            thread: thread.ok(),
        }
    }

    fn give(&self, work: Work) {
        if let Some(sender) = &self.work {
            let _ = sender.send(work);
        }
    }

    /// Ends the thread when its logs are sealed.
    fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection of the sampler.
struct Session {
    writer: Writer,
    sealer: Sealer,
    buffer: FrameBuffer,
    /// The frame at the head of the buffer waits: since when, and why.
    held: Option<(i64, Code)>,
    /// Acknowledgements still reach somebody.
    heard: bool,
    lock: Lock,
    /// It is lost.
    lost: bool,
}

impl Session {
    fn new(writer: Writer, storage: Arc<dyn Storage>, lock: Lock) -> Self {
        Session {
            writer,
            sealer: Sealer::start(storage),
            buffer: FrameBuffer::default(),
            held: None,
            heard: true,
            lock,
            lost: false,
        }
    }

    fn run(mut self) -> ExitCode {
        let stdin = io::stdin();
        let end = self.serve(stdin.as_fd());
        if self.lost {
            // Nothing of this directory can be sealed any more.
            return ExitCode::from(MOVED);
        }
        self.writer.flush(now(), true);
        self.housekeeping();
        self.sealer.finish();
        self.housekeeping();
        match end {
            Err(error) => fail(&format!("could not read frames: {error}")),
            Ok(()) if self.held.is_some() => fail("frames were left unwritten"),
            Ok(()) => ExitCode::SUCCESS,
        }
    }

    /// Until the input ends.
    fn serve(&mut self, stdin: BorrowedFd<'_>) -> io::Result<()> {
        let mut piece = vec![0; READ_BYTES];
        loop {
            if self.lost {
                return Ok(());
            }
            self.housekeeping();
            let (readable, closed) = self.wait(stdin)?;
            if self.held.is_some() {
                self.take_frames();
                self.writer.flush(now(), false);
                if closed && self.held.is_some() {
                    return Ok(());
                }
                continue;
            }
            if !readable && !closed {
                self.writer.flush(now(), false);
                continue;
            }
            match rustix::io::read(stdin, &mut piece) {
                Ok(0) => return Ok(()),
                Ok(n) => self.buffer.extend(&piece[..n]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            }
            self.take_frames();
            self.writer.flush(now(), false);
        }
    }

    /// Waits for input, the next flush, or the next attempt with the frame
    /// that waits; while one waits, nothing is read.
    fn wait(&self, stdin: BorrowedFd<'_>) -> io::Result<(bool, bool)> {
        let now = now();
        let retry = self.held.map(|(since, _)| since + RETRY_MS - now.mono_ms);
        let timeout = [self.writer.flush_in_ms(now), retry, Some(RETRY_MS)];
        let timeout = timeout
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(RETRY_MS)
            .max(0);
        let timeout = Timespec {
            tv_sec: timeout / 1_000,
            tv_nsec: timeout % 1_000 * 1_000_000,
        };
        let wanted = match self.held {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let mut fds = [PollFd::from_borrowed_fd(stdin, wanted)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
        let events = fds[0].revents();
        let closed = events.intersects(PollFlags::HUP | PollFlags::ERR);
        Ok((events.contains(PollFlags::IN), closed))
    }

    /// Gives all complete frames to the writer and acknowledges them.
    fn take_frames(&mut self) {
        let mut took = false;
        let mut code = Code::Written;
        while self.buffer.find() {
            let Some(frame) = self.buffer.frame() else {
                break;
            };
            // What goes into a directory that is gone must not be
            // acknowledged: the next writer gets it again.
            self.lost = self.lock.is_lost();
            if self.lost {
                return;
            }
            code = self.writer.push(&frame, now());
            if code != Code::Written {
                break;
            }
            // A hello says nothing that could be lost.
            took |= frame.header.kind == DATA;
            self.buffer.advance();
        }
        let skipped = self.buffer.skipped();
        if skipped > 0 {
            let message = format!("skipped {skipped} bytes between frames");
            print(&Message::Warning(message));
        }
        let was_held = self.held.map(|(_, code)| code);
        self.held = (code != Code::Written).then(|| (now().mono_ms, code));
        if took || was_held != self.held.map(|(_, code)| code) {
            // The cause before the code, for whoever reports both.
            self.print_messages();
            self.acknowledge(code);
        }
    }

    fn acknowledge(&mut self, code: Code) {
        if !self.heard || !self.writer.is_connected() {
            return;
        }
        let code: u32 = match code {
            Code::Written => 0,
            Code::Paused => 1,
            Code::Failed => 2,
        };
        let (incarnation, sequence) = self.writer.written();
        let mut ack = ACK_MAGIC.to_vec();
        ack.extend_from_slice(&code.to_le_bytes());
        for field in [incarnation, sequence, self.writer.bytes()] {
            ack.extend_from_slice(&field.to_le_bytes());
        }
        self.heard = write_all(io::stdout().as_fd(), &ack);
    }

    /// Hands over what is to seal and to merge, takes the results, prints messages.
    fn housekeeping(&mut self) {
        for done in self.sealer.done.try_iter() {
            self.writer.done(done);
        }
        for work in self.writer.jobs() {
            self.sealer.give(work);
        }
        self.print_messages();
    }

    fn print_messages(&mut self) {
        for message in self.writer.messages() {
            print(&message);
        }
    }
}

/// False when nobody reads any more.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::INTR) => (),
            Err(_) => return false,
        }
    }
    true
}
