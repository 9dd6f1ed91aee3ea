//! Measures the file systems that the server uses: their size, and the space that is left.
//!
//! A file system that does not answer blocks whoever asks it. Therefore a thread of its own asks,
//! and prints what it learns to standard error, where the sampler reads it. Frames are written
//! meanwhile, and the file system has no reading.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Most file systems that are measured, as many as the sampler keeps (`extension/src/history/disks.h`).
const MOST: usize = 64;
const STACK_BYTES: usize = 64 << 10;
/// Shortest pause between two measurements.
const PAUSE: Duration = Duration::from_millis(100);

/// The directories to measure, and the pause between two measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) interval_ms: u64,
    pub(super) data_directory: PathBuf,
    pub(super) history: PathBuf,
}

/// The thread, which starts with the first order that asks for measurements.
#[derive(Default)]
pub(super) struct Disks {
    orders: Option<Sender<Order>>,
    last: Order,
}

impl Disks {
    /// Gives the thread a new order. Without a thread nothing is measured, and nothing else fails.
    pub(super) fn obey(&mut self, order: Order) {
        if order == self.last {
            return;
        }
        let orders = self.orders.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let _ = thread.spawn(move || measure(&receiver));
            sender
        });
        let _ = orders.send(order.clone());
        self.last = order;
    }
}

/// Measures until the sender of orders is gone.
fn measure(orders: &Receiver<Order>) {
    let mut order = Order::default();
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
            report(&order);
        }
    }
}

/// Prints a line for each file system as soon as it has answered.
fn report(order: &Order) {
    let mut seen = Vec::new();
    for (name, path) in places(order) {
        let Ok(device) = std::fs::metadata(&path).map(|m| m.dev()) else {
            continue;
        };
        if seen.len() >= MOST || seen.contains(&device) {
            continue;
        }
        seen.push(device);
        let Ok(space) = rustix::fs::statvfs(&path) else {
            continue;
        };
        let [free, size] =
            [space.f_bavail, space.f_blocks].map(|n| n.saturating_mul(space.f_frsize));
        let line = format!("DISK:  {free} {size} {}\n", name.replace('\n', " "));
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
}
