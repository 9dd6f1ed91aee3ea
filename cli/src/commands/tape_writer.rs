//! `tacho tape-writer`: the only process that writes history files. It takes
//! frames from standard input and answers on standard output
//! (`docs/format.md`). Lines for the server's log go to standard error.
//!
//! It ends when its input ends. Signals of a terminal or the postmaster do not
//! end it, so that the rest of the pipe gets written. Logs are sealed in a
//! thread of their own: acknowledgements never wait for that.

mod disks;

use disks::Disks;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tacho_tape::error::Kind;
use tacho_tape::format::frame::DATA;
use tacho_tape::format::pipe::FrameBuffer;
use tacho_tape::write::clock::now;
use tacho_tape::write::message::Message;
use tacho_tape::write::recording::Recording;
use tacho_tape::write::writer::Code;

/// Exit code if another writer holds the directory.
const LOCKED: u8 = 5;
/// Exit code if the directory is no longer the one that was opened.
const MOVED: u8 = 6;
/// Pause in ms before a frame that could not be written is tried again.
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
    match Recording::open(&args.directory, Duration::from_secs(args.wait)) {
        Ok(recording) => Session::new(recording, args.directory.clone()).run(),
        Err(error) if error.kind == Kind::Locked => {
            print(&Message::Trouble(error.to_string()));
            ExitCode::from(LOCKED)
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(message: &str) -> ExitCode {
    print(&Message::Trouble(message.into()));
    ExitCode::FAILURE
}

/// Prints a line per message. Errors are ignored: a missing reader must not end
/// the writer.
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

/// A connection of the sampler.
struct Session {
    recording: Recording,
    disks: Disks,
    buffer: FrameBuffer,
    /// Set if the first frame of the buffer could not be written: time of the last attempt (ms of
    /// the monotonic clock), and the code of the acknowledgement.
    unwritten: Option<(i64, Code)>,
    /// True while acknowledgements have a reader.
    reader_alive: bool,
    /// True if the directory is gone or replaced.
    lost: bool,
}

impl Session {
    fn new(recording: Recording, directory: PathBuf) -> Self {
        Session {
            recording,
            disks: Disks::new(directory),
            buffer: FrameBuffer::default(),
            unwritten: None,
            reader_alive: true,
            lost: false,
        }
    }

    fn run(mut self) -> ExitCode {
        let stdin = io::stdin();
        let end = self.serve(stdin.as_fd());
        if self.lost {
            // The directory is lost, so nothing in it can be sealed any more.
            return ExitCode::from(MOVED);
        }
        self.recording.finish().iter().for_each(print);
        match end {
            Err(error) => fail(&format!("could not read frames: {error}")),
            Ok(()) if self.unwritten.is_some() => fail("some frames could not be written"),
            Ok(()) => ExitCode::SUCCESS,
        }
    }

    /// Serves until the input ends.
    fn serve(&mut self, stdin: BorrowedFd<'_>) -> io::Result<()> {
        let mut piece = vec![0; READ_BYTES];
        loop {
            if self.lost {
                return Ok(());
            }
            self.housekeeping();
            let (readable, closed) = self.wait(stdin)?;
            if self.unwritten.is_some() {
                self.take_frames();
                self.recording.flush(false);
                if closed && self.unwritten.is_some() {
                    return Ok(());
                }
                continue;
            }
            if !readable && !closed {
                self.recording.flush(false);
                continue;
            }
            match rustix::io::read(stdin, &mut piece) {
                Ok(0) => return Ok(()),
                Ok(n) => self.buffer.extend(&piece[..n]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            }
            self.take_frames();
            self.recording.flush(false);
        }
    }

    /// Waits for input, the next flush, or the next attempt to write the
    /// waiting frame. While a frame waits, nothing is read.
    fn wait(&self, stdin: BorrowedFd<'_>) -> io::Result<(bool, bool)> {
        let retry = |unwritten: (i64, Code)| unwritten.0 + RETRY_MS - now().mono_ms;
        let retry = self.unwritten.map(retry);
        let timeout = [self.recording.flush_in_ms(), retry, Some(RETRY_MS)];
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
        let wanted = match self.unwritten {
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
            // Frames written to a lost directory must not be acknowledged: the
            // next writer gets them again.
            self.lost = self.recording.is_lost();
            if self.lost {
                return;
            }
            code = self.recording.push(&frame);
            if code != Code::Written {
                break;
            }
            // A hello frame does not count, because it has no content that could be lost.
            took |= frame.header.kind == DATA;
            self.buffer.advance();
        }
        let skipped = self.buffer.skipped();
        if skipped > 0 {
            let message = format!("skipped {skipped} bytes between frames");
            print(&Message::Warning(message));
        }
        let was_held = self.unwritten.map(|(_, code)| code);
        self.unwritten = (code != Code::Written).then(|| (now().mono_ms, code));
        if took || was_held != self.unwritten.map(|(_, code)| code) {
            // Messages are printed first, so that a reader of both learns the cause before the
            // code.
            self.housekeeping();
            self.acknowledge(code);
        }
    }

    fn acknowledge(&mut self, code: Code) {
        if !self.reader_alive || !self.recording.writer().is_connected() {
            return;
        }
        let code: u32 = match code {
            Code::Written => 0,
            Code::Paused => 1,
            Code::Failed => 2,
        };
        let writer = self.recording.writer();
        let (incarnation, sequence) = writer.written();
        let mut ack = ACK_MAGIC.to_vec();
        ack.extend_from_slice(&code.to_le_bytes());
        for field in [incarnation, sequence, writer.bytes()] {
            ack.extend_from_slice(&field.to_le_bytes());
        }
        self.reader_alive = write_all(io::stdout().as_fd(), &ack);
    }

    /// Seals and merges what is due, prints messages, and has the disks measured.
    fn housekeeping(&mut self) {
        self.disks.obey(self.recording.writer().settings());
        self.recording.housekeeping().iter().for_each(print);
    }
}

/// False if the reader is gone.
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
