//! Measures the file systems that the server uses: their size, and the space that is left.
//!
//! A file system that does not answer blocks whoever asks it. Therefore a thread for each directory
//! asks. No second thread asks about a directory before the first has its answer. Meanwhile other
//! directories are measured, and frames are written. The lines go to standard error, where the
//! sampler reads them.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tacho_tape::write::settings::Settings;

/// Most directories that are measured, as many as the sampler keeps (`extension/src/history/disks.h`).
const MOST: usize = 64;
const STACK_BYTES: usize = 64 << 10;
/// Shortest pause between two measurements.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest wait for the answers of all file systems.
const PATIENCE: Duration = Duration::from_secs(2);

/// The directories to measure, and the pause between two measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Order {
    interval_ms: u64,
    data_directory: PathBuf,
    history: PathBuf,
}

/// The thread that asks for measurements. It starts with the first order for some.
pub(super) struct Disks {
    orders: Option<Sender<Order>>,
    last: Order,
}

impl Disks {
    /// Measures nothing yet.
    pub(super) fn new(history: PathBuf) -> Disks {
        Disks {
            orders: None,
            last: Order {
                history,
                ..Order::default()
            },
        }
    }

    /// Gives the thread a new order if the settings have changed. Without a thread nothing is
    /// measured, and nothing else fails.
    pub(super) fn obey(&mut self, settings: &Settings) {
        let is_known = settings.disk_interval_ms == self.last.interval_ms
            && settings.data_directory == self.last.data_directory;
        if is_known || (self.orders.is_none() && settings.disk_interval_ms == 0) {
            return;
        }
        self.last.interval_ms = settings.disk_interval_ms;
        self.last
            .data_directory
            .clone_from(&settings.data_directory);
        let orders = self.orders.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            start(move || measure(&receiver));
            sender
        });
        let _ = orders.send(self.last.clone());
    }
}

/// Starts a thread that ends by itself; false if it cannot start.
fn start(work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(work).is_ok()
}

/// Measures until the sender of orders is gone.
fn measure(orders: &Receiver<Order>) {
    let mut order = Order::default();
    let mut asking = Asking::default();
    loop {
        let next = match order.interval_ms {
            0 => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            ms => orders.recv_timeout(Duration::from_millis(ms).max(PAUSE)),
        };
        match next {
            Ok(new) => order = new,
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if order.interval_ms > 0 {
            report(&asking.round(places(&order), PATIENCE));
        }
    }
}

/// A file system: its device number, its free bytes and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    device: u64,
    free: u64,
    size: u64,
}

fn ask(path: &Path) -> Option<Answer> {
    let device = std::fs::metadata(path).ok()?.dev();
    let space = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Some(Answer {
        device,
        free: bytes(space.f_bavail),
        size: bytes(space.f_blocks),
    })
}

/// The directories whose threads have not answered yet.
#[derive(Default)]
struct Asking(HashMap<PathBuf, Receiver<Option<Answer>>>);

impl Asking {
    /// Asks each directory that is not being asked. Returns the names of the directories that answer
    /// within `patience`, in their order.
    fn round(
        &mut self,
        places: Vec<(String, PathBuf)>,
        patience: Duration,
    ) -> Vec<(String, Answer)> {
        for (_, path) in places.iter().take(MOST) {
            if !self.0.contains_key(path) {
                let (sender, receiver) = channel();
                let asked = path.clone();
                let work = move || {
                    let _ = sender.send(ask(&asked));
                };
                if start(work) {
                    self.0.insert(path.clone(), receiver);
                }
            }
        }
        let end = Instant::now() + patience;
        let places = places.into_iter();
        let answer = |(name, path): (String, PathBuf)| {
            let left = end.saturating_duration_since(Instant::now());
            match self.0.get(&path)?.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => None,
                answer => {
                    self.0.remove(&path);
                    Some((name, answer.ok()??))
                }
            }
        };
        places.filter_map(answer).collect()
    }
}

/// Prints a line for each file system. Several directories on one have the name of the first.
fn report(answers: &[(String, Answer)]) {
    let mut seen = Vec::new();
    for (name, answer) in answers {
        if seen.contains(&answer.device) {
            continue;
        }
        seen.push(answer.device);
        let name = name.replace('\n', " ");
        let line = format!("DISK:  {} {} {name}\n", answer.free, answer.size);
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// The directories that the server writes to, with their names in the history.
fn places(order: &Order) -> Vec<(String, PathBuf)> {
    let data = &order.data_directory;
    let mut places = vec![
        ("data directory".to_string(), data.clone()),
        ("write-ahead log".to_string(), data.join("pg_wal")),
        ("history".to_string(), order.history.clone()),
    ];
    let links = std::fs::read_dir(data.join("pg_tblspc"));
    let links = links
        .into_iter()
        .flatten()
        .flatten()
        .map(|link| link.path());
    let mut tablespaces: Vec<PathBuf> = links.map(|link| target(&link)).collect();
    tablespaces.sort();
    places.extend(
        tablespaces
            .into_iter()
            .map(|path| (path.display().to_string(), path)),
    );
    places
}

/// The directory of a tablespace. A tablespace that is no link is in the data directory.
fn target(link: &Path) -> PathBuf {
    std::fs::read_link(link).unwrap_or_else(|_| link.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_directories_that_the_server_writes_to() {
        let data = std::env::temp_dir().join(format!("tacho-disks-{}", std::process::id()));
        std::fs::create_dir_all(data.join("pg_tblspc")).unwrap();
        std::os::unix::fs::symlink("/mnt/fast", data.join("pg_tblspc/16400")).unwrap();
        let order = Order {
            interval_ms: 1,
            data_directory: data.clone(),
            history: "/var/lib/tacho".into(),
        };
        let expected = [
            ("data directory", data.clone()),
            ("write-ahead log", data.join("pg_wal")),
            ("history", "/var/lib/tacho".into()),
            ("/mnt/fast", "/mnt/fast".into()),
        ];
        let expected = expected.map(|(name, path)| (name.to_string(), path));
        let found = places(&order);
        std::fs::remove_dir_all(&data).unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_directory_that_does_not_answer_hinders_no_other() {
        let temp = std::env::temp_dir();
        let places = || {
            vec![
                ("stuck".into(), "/stuck".into()),
                ("well".into(), temp.clone()),
            ]
        };
        let (sender, receiver) = channel();
        let mut asking = Asking(HashMap::from([("/stuck".into(), receiver)]));
        let names = |answers: Vec<(String, Answer)>| -> Vec<String> {
            answers.into_iter().map(|(name, _)| name).collect()
        };
        let long = Duration::from_secs(60);
        let mut round = |patience| names(asking.round(places(), patience));
        assert!(!round(Duration::ZERO).contains(&"stuck".to_string()));
        // The next round takes the late answer. The one after it asks about a path that does not exist.
        let late = Answer {
            device: 1,
            free: 2,
            size: 3,
        };
        sender.send(Some(late)).unwrap();
        assert_eq!(round(long), ["stuck", "well"]);
        assert_eq!(round(long), ["well"]);
    }
}
