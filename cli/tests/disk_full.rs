//! A full disk that has space again, for the real writer on a real file system:
//! a small tmpfs in a mount namespace of its own. If mounting is not permitted,
//! the test prints that and is skipped.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tacho_tape::testing::{Load, Sampler, difference, read, rows_difference};
use tacho_tape::{Part, Snapshot};

const WRITTEN: u32 = 0;
const PAUSED: u32 = 1;
const META: [(&str, &str); 3] = [
    ("min_free_space_mb", "0"),
    ("retention_size_mb", "0"),
    ("flush_interval_ms", "100"),
];

/// A writer whose directory is a tmpfs, visible only in its namespace.
struct Writer {
    child: Child,
    place: PathBuf,
}

impl Writer {
    /// `None` if mounting is not permitted.
    fn start(place: &Path) -> Option<Writer> {
        std::fs::create_dir_all(place).unwrap();
        let script = "mount -t tmpfs -o size=512k,mode=755 none \"$1\" && echo && exec \"$2\" tape-writer --directory \"$1/tape\"";
        let mut child = Command::new("unshare")
            .args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .args([place, Path::new(env!("CARGO_BIN_EXE_tacho"))])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut mounted = [0];
        if child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut mounted)
            .is_err()
        {
            child.wait().unwrap();
            return None;
        }
        let root = PathBuf::from(format!("/proc/{}/root", child.id()));
        let place = root.join(place.strip_prefix("/").unwrap());
        Some(Writer { child, place })
    }

    fn send(&mut self, frame: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(frame).unwrap();
    }

    /// Code and sequence of the next acknowledgement.
    fn acknowledgement(&mut self) -> (u32, u64) {
        let mut ack = [0; 32];
        self.child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut ack)
            .unwrap();
        let code = u32::from_le_bytes(ack[4..8].try_into().unwrap());
        (code, u64::from_le_bytes(ack[16..24].try_into().unwrap()))
    }

    fn filler(&self) -> PathBuf {
        self.place.join("filler")
    }

    /// Fills the disk.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let full = (0..1_000).find_map(|_| file.write_all(&[0; 4_096]).err());
        assert_eq!(full.unwrap().kind(), std::io::ErrorKind::StorageFull);
    }

    fn store(&self) -> Snapshot {
        Snapshot::open(&self.place.join("tape")).unwrap()
    }

    fn files(&self) -> usize {
        let names = std::fs::read_dir(self.place.join("tape")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name());
        names.filter(|name| !is_mark(name)).count()
    }

    fn end(mut self) -> (bool, String) {
        drop(self.child.stdin.take());
        let mut messages = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut messages).unwrap();
        (self.child.wait().unwrap().success(), messages)
    }
}

/// True for the mark of paused recording, which the next writer finds.
fn is_mark(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("paused-")
}

/// Kind, since, until and detail of the markers.
fn markers(part: &Part) -> Vec<(String, i64, i64, String)> {
    let column = |name| part.ints("marker", name).unwrap();
    let names = part.bytes("name", "bytes").unwrap();
    let (kinds, since, until) = (column("kind"), column("since"), column("until"));
    let details = column("detail");
    let rows = (0..kinds.len()).map(|row| {
        let kind = part.schema().label("marker", kinds[row]).unwrap();
        let detail = names.get(usize::try_from(details[row]).unwrap().wrapping_sub(1));
        let detail = String::from_utf8_lossy(detail).into_owned();
        (kind.to_string(), since[row], until[row], detail)
    });
    rows.collect()
}

#[test]
fn a_full_disk_is_a_gap_with_exact_bounds() {
    let place = std::env::temp_dir().join(format!("tacho-full-{}", std::process::id()));
    let Some(mut writer) = Writer::start(&place) else {
        let _ = std::fs::remove_dir(&place);
        // Not through the macro, whose output appears only for failed tests.
        let skipped =
            b"skipped: a_full_disk_is_a_gap_with_exact_bounds: mounting is not permitted\n";
        std::io::stderr().write_all(skipped).unwrap();
        return;
    };
    let load = Load {
        trouble: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(8, load);
    let (mut ticks, mut seen) = (Vec::new(), Vec::new());
    writer.send(&sampler.hello(&META));
    for number in 1..=20 {
        let frame = sampler.frame();
        writer.send(&frame.0);
        assert_eq!(writer.acknowledgement(), (WRITTEN, number));
        ticks.extend(frame.1);
        seen.extend(frame.2);
    }
    let files = writer.files();
    writer.fill();
    // The last page of the log has room for some more frames.
    let mut last = 20;
    loop {
        let frame = sampler.frame();
        writer.send(&frame.0);
        ticks.extend(frame.1);
        seen.extend(frame.2);
        match writer.acknowledgement() {
            (WRITTEN, number) => assert_eq!(number, last + 1),
            paused => {
                assert_eq!(paused, (PAUSED, last));
                break;
            }
        }
        last += 1;
        assert!(last < 1_000);
    }
    // Acknowledged frames are on disk; failed attempts leave no files behind.
    let store = writer.store();
    let node = store.nodes()[0].id;
    let written = read(store.parts(node)).0;
    assert_eq!(difference(&written, &ticks[..last as usize]), None);
    assert!(writer.files() <= files + 1, "{}", writer.files());
    // While the sampler waits, it has to drop nine frames.
    let gap_since = sampler.slot_ms;
    (0..9).for_each(|_| drop(sampler.frame()));
    let gap_until = sampler.slot_ms;
    assert_eq!(gap_until - gap_since, 9_000);
    std::fs::remove_file(writer.filler()).unwrap();
    assert_eq!(writer.acknowledgement(), (WRITTEN, last + 1));
    sampler.forget();
    for number in 1..=20 {
        let frame = sampler.frame();
        writer.send(&frame.0);
        assert_eq!(writer.acknowledgement(), (WRITTEN, last + 10 + number));
        ticks.extend(frame.1);
        seen.extend(frame.2);
    }
    let store = writer.store();
    assert_eq!(store.damage(), []);
    let (is, rows) = read(store.parts(node));
    seen.sort();
    assert_eq!(difference(&is, &ticks), None);
    assert_eq!(rows_difference(&rows, &seen), None);
    let markers: Vec<_> = store.parts(node).flat_map(markers).collect();
    let kinds: Vec<&str> = markers.iter().map(|m| m.0.as_str()).collect();
    assert_eq!(kinds, ["recording paused", "recording resumed", "gap"]);
    let paused = &markers[0];
    assert_eq!(paused.3, "no space left for history");
    assert!(paused.1 < paused.2, "{paused:?}");
    assert_eq!((markers[1].1, markers[1].2), (paused.1, paused.2));
    let gap = (
        "gap".to_string(),
        gap_since,
        gap_until,
        "9 frames were lost".to_string(),
    );
    assert_eq!(markers[2], gap);
    let messages = "TROUBLE:  no space left on the file system\n";
    assert_eq!(writer.end(), (true, messages.to_string()));
    std::fs::remove_dir(&place).unwrap();
}
