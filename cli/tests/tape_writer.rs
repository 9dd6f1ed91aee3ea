//! The real writer process: killed at any moment, asked to end, refused.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tacho_tape::Snapshot;
use tacho_tape::testing::{Load, Random, Sampler, Seen, difference, read, rows_difference};

const META: [(&str, &str); 2] = [("min_free_space_mb", "0"), ("flush_interval_ms", "100")];

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A writer process, and the sequence it has acknowledged.
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    acknowledged: Arc<AtomicU64>,
    /// Sequence of the first acknowledgement; `u64::MAX` before it.
    first: Arc<AtomicU64>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["tape-writer", "--wait", "0", "--directory"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let acknowledged = Arc::new(AtomicU64::new(0));
        let first = Arc::new(AtomicU64::new(u64::MAX));
        let (seen, first_seen) = (acknowledged.clone(), first.clone());
        let mut stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut ack = [0; 32];
            while stdout.read_exact(&mut ack).is_ok() {
                assert_eq!(ack[..8], [0xF1, 0x54, 0x43, 0x41, 0, 0, 0, 0]);
                let sequence = u64::from_le_bytes(ack[16..24].try_into().unwrap());
                first_seen.fetch_min(sequence, Ordering::SeqCst);
                seen.store(sequence, Ordering::SeqCst);
            }
        });
        Process {
            stdin: child.stdin.take(),
            child,
            acknowledged,
            first,
            reader: Some(reader),
        }
    }

    /// False if the process is gone.
    fn send(&mut self, frame: &[u8]) -> bool {
        self.stdin.as_mut().unwrap().write_all(frame).is_ok()
    }

    fn wait_for(&self, sequence: u64) {
        while self.acknowledged.load(Ordering::SeqCst) < sequence {
            std::thread::yield_now();
        }
    }

    /// Kills the process. Returns the last acknowledged sequence.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Exit code and messages after the end of the input.
    fn end(mut self) -> (i32, String) {
        drop(self.stdin.take());
        let mut messages = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut messages).unwrap();
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        (status.code().unwrap(), messages)
    }
}

/// Sent frames, and the ticks that must be found.
#[derive(Default)]
struct Sent {
    frames: Vec<(u64, Vec<u8>)>,
    ticks: Vec<(u64, i64)>,
    seen: Vec<Seen>,
}

impl Sent {
    fn make(&mut self, sampler: &mut Sampler) -> Vec<u8> {
        let sequence = sampler.sequence;
        let (bytes, ticks, seen) = sampler.frame();
        self.frames.push((sequence, bytes.clone()));
        self.ticks.extend(ticks);
        self.seen.extend(seen);
        bytes
    }

    fn check(mut self, directory: &Path) {
        let store = Snapshot::open(directory).unwrap();
        let nodes = store.nodes();
        assert_eq!(nodes.len(), 1);
        let (ticks, seen) = read(store.parts(nodes[0].id));
        self.seen.sort();
        assert_eq!(difference(&ticks, &self.ticks), None);
        assert_eq!(rows_difference(&seen, &self.seen), None);
        assert_eq!(store.damage(), []);
    }
}

#[test]
fn fifty_kills_lose_nothing_and_double_nothing() {
    let directory = Directory::new("kills");
    let load = Load {
        sessions: 6,
        ..Load::default()
    };
    let mut sampler = Sampler::new(1, load);
    let mut sent = Sent::default();
    let mut random = Random(4_711);
    let mut acknowledged = 0;
    for _ in 0..50 {
        let mut process = Process::start(&directory.0);
        process.send(&sampler.hello(&META));
        sent.frames.retain(|(sequence, _)| *sequence > acknowledged);
        let again: Vec<Vec<u8>> = sent.frames.iter().map(|f| f.1.clone()).collect();
        again.iter().all(|frame| process.send(frame));
        let wanted = sampler.sequence + random.below(250);
        while sampler.sequence < wanted {
            let frame = sent.make(&mut sampler);
            process.send(&frame);
        }
        // The writer is killed at once, or after a part of the frames was acknowledged.
        if random.chance(70) {
            let behind = random.below(sent.frames.len() as u64 + 1);
            process.wait_for((sampler.sequence - 1).saturating_sub(behind));
        }
        acknowledged = acknowledged.max(process.kill());
    }
    let mut process = Process::start(&directory.0);
    process.send(&sampler.hello(&META));
    for (_, frame) in sent.frames.iter().filter(|f| f.0 > acknowledged) {
        process.send(frame);
    }
    process.send(&sent.make(&mut sampler));
    let (code, messages) = process.end();
    assert_eq!((code, messages.as_str()), (0, ""));
    // All logs of the killed writers are sealed.
    let names = fs::read_dir(&directory.0).unwrap();
    let names = names.map(|e| e.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    let count = |suffix| names.iter().filter(|n| n.ends_with(suffix)).count();
    assert_eq!((count(".open"), count(".tmp")), (1, 0));
    assert!(count(".tape") >= 10);
    sent.check(&directory.0);
}

/// Readers during appends and sealing see everything acknowledged before, each
/// tick once and none left out.
#[test]
fn readers_beside_the_writer_see_every_tick_once() {
    let directory = Directory::new("readers");
    let mut sampler = Sampler::new(6, Load::default());
    let mut sent = Sent::default();
    let mut process = Process::start(&directory.0);
    process.send(&sampler.hello(&META));
    let frames: Vec<Vec<u8>> = (0..6_000).map(|_| sent.make(&mut sampler)).collect();
    process.send(&frames[0]);
    process.wait_for(1);
    let mut opened = 0;
    for piece in frames[1..].chunks(40) {
        process.send(&piece.concat());
        let before = process.acknowledged.load(Ordering::SeqCst) as usize;
        let store = Snapshot::open(&directory.0).unwrap();
        let ticks = store.parts(store.nodes()[0].id).flat_map(|part| {
            let ticks = part.ints("tick", "tick").unwrap();
            ticks.iter().map(|&t| t as u64).collect::<Vec<_>>()
        });
        let ticks: Vec<u64> = ticks.collect();
        let expected: Vec<u64> = sent.ticks.iter().map(|t| t.0).take(ticks.len()).collect();
        assert!(ticks.len() >= before, "{} of {before}", ticks.len());
        assert_eq!(difference(&ticks, &expected), None);
        assert_eq!(store.damage(), []);
        opened += 1;
    }
    assert_eq!(opened, 150);
    assert_eq!(process.end(), (0, String::new()));
    sent.check(&directory.0);
}

#[test]
fn signals_do_not_end_it_before_its_input_does() {
    use rustix::process::{Pid, Signal, kill_process};
    let directory = Directory::new("signals");
    let mut sampler = Sampler::new(2, Load::default());
    let mut sent = Sent::default();
    let mut process = Process::start(&directory.0);
    process.send(&sampler.hello(&META));
    process.send(&sent.make(&mut sampler));
    process.wait_for(1);
    let pid = Pid::from_child(&process.child);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(pid, signal).unwrap();
        let frame = sent.make(&mut sampler);
        process.send(&frame);
        process.wait_for(sampler.sequence - 1);
    }
    assert_eq!(process.end(), (0, String::new()));
    sent.check(&directory.0);
}

#[test]
fn a_second_writer_is_refused_and_the_next_one_is_not() {
    let directory = Directory::new("locked");
    let mut sampler = Sampler::new(3, Load::default());
    let mut process = Process::start(&directory.0);
    process.send(&sampler.hello(&META));
    process.send(&sampler.frame().0);
    process.wait_for(1);
    let path = directory.0.display().to_string();
    let refused = format!("TROUBLE:  directory \"{path}\" is in use by another writer\n");
    assert_eq!(Process::start(&directory.0).end(), (5, refused));
    process.kill();
    assert_eq!(Process::start(&directory.0).end(), (0, String::new()));
}

/// Frames after the loss of the directory are not acknowledged, and the next
/// writer makes the directory and its lock again.
#[test]
fn a_directory_that_is_removed_or_replaced_is_noticed_at_the_next_frame() {
    let directory = Directory::new("moved");
    let aside = Directory::new("moved-aside");
    let meta = [META[0], ("postmaster_start", "5000000")];
    let mut sampler = Sampler::new(8, Load::default());
    for away in ["removed", "renamed", "replaced"] {
        let mut process = Process::start(&directory.0);
        process.send(&sampler.hello(&meta));
        process.send(&sampler.frame().0);
        let sequence = sampler.sequence - 1;
        process.wait_for(sequence);
        match away {
            "removed" => fs::remove_dir_all(&directory.0).unwrap(),
            _ => fs::rename(&directory.0, &aside.0).unwrap(),
        }
        if away == "replaced" {
            fs::create_dir(&directory.0).unwrap();
            fs::write(directory.0.join("lock"), "").unwrap();
        }
        sampler.forget();
        let (frame, ticks, _) = sampler.frame();
        process.send(&frame);
        let status = process.child.wait().unwrap();
        assert_eq!(status.code(), Some(6), "{away}");
        assert_eq!(process.acknowledged.load(Ordering::SeqCst), sequence);
        assert_eq!(process.end(), (6, String::new()));
        let mut process = Process::start(&directory.0);
        process.send(&sampler.hello(&meta));
        process.send(&frame);
        process.wait_for(sequence + 1);
        let refused = Process::start(&directory.0).end();
        assert_eq!(refused.0, 5, "{away}: the new directory is locked");
        assert_eq!(process.end(), (0, String::new()));
        let store = Snapshot::open(&directory.0).unwrap();
        let got = read(store.parts(store.own_node().unwrap())).0;
        assert_eq!(difference(&got, &ticks), None, "{away}");
        for gone in [&directory.0, &aside.0] {
            let _ = fs::remove_dir_all(gone);
        }
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let path = Path::new("/proc/tacho");
    let (code, messages) = Process::start(path).end();
    assert_eq!(code, 1);
    let expected = "TROUBLE:  could not create directory \"/proc/tacho\": ";
    assert!(messages.starts_with(expected), "{messages}");
}

#[test]
fn files_have_the_mode_of_the_server() {
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (file_mode, file, directory_mode) in [("0600", 0o600, 0o700), ("0640", 0o640, 0o750)] {
        let directory = Directory::new(&format!("mode-{file_mode}"));
        let mut sampler = Sampler::new(4, Load::default());
        let mut process = Process::start(&directory.0);
        process.send(&sampler.hello(&[("file_mode", file_mode), META[0]]));
        process.send(&sampler.frame().0);
        process.wait_for(1);
        assert_eq!(process.end(), (0, String::new()));
        assert_eq!(mode(directory.0.join("0000000001.open")), file);
        assert_eq!(mode(directory.0.clone()), directory_mode);
    }
}

/// The sampler takes an acknowledgement as a written frame.
#[test]
fn hello_is_not_acknowledged_however_long_the_first_frame_takes() {
    let directory = Directory::new("hello");
    let mut sampler = Sampler::new(7, Load::default());
    let mut process = Process::start(&directory.0);
    process.send(&sampler.hello(&[("file_mode", "0640"), META[0]]));
    let mode = || fs::metadata(&directory.0).map_or(0, |m| m.permissions().mode() & 0o777);
    while mode() != 0o750 {
        std::thread::yield_now();
    }
    process.send(&sampler.frame().0);
    process.wait_for(1);
    assert_eq!(process.first.load(Ordering::SeqCst), 1);
    assert_eq!(process.end(), (0, String::new()));
}

#[test]
fn bytes_that_are_no_frame_are_skipped_with_a_warning() {
    let directory = Directory::new("rubbish");
    let mut sampler = Sampler::new(5, Load::default());
    let mut sent = Sent::default();
    let mut process = Process::start(&directory.0);
    process.send(&sampler.hello(&META));
    process.send(&[b'x'; 100]);
    process.send(&sent.make(&mut sampler));
    process.wait_for(1);
    let warning = "WARNING:  skipped 100 bytes between frames\n";
    assert_eq!(process.end(), (0, warning.to_string()));
    sent.check(&directory.0);
}
