//! The file `node`: the node of a directory, and the data that distinguishes the directory from its
//! copies.
//!
//! A directory counts as the same while its inode and the creation time of the inode are the same.
//! Its device may differ: a reboot or another mount gives the file system another device number.
//!
//! A copied directory becomes a new node. If the original is gone, readers take the copied history
//! as history of the same server. If the original still exists, they take it as history of another
//! server, because the original goes on by itself. An original on another machine counts as
//! existing.

use crate::crc::crc32c;
use crate::error::{Error, Result};
pub use crate::files::storage::Place;
use crate::files::storage::{NODE, Storage, read_all};
use std::fmt::Write as _;
use std::io;

/// Contents of the file `node`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The node.
    pub node: u64,
    /// Place of the node's directory when a writer last looked.
    pub place: Place,
    /// Nodes of other servers whose histories are in this directory.
    pub other_servers: Vec<u64>,
}

impl Recorded {
    /// The bytes of the file.
    pub fn text(&self) -> String {
        let Place {
            device,
            inode,
            born_ns,
            host,
            path,
        } = &self.place;
        let mut text = format!("node {:016x}\ndevice {device}\ninode {inode}\n", self.node);
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                let _ = writeln!(text, "{name} {value}");
            }
        };
        if *born_ns != 0 {
            line("born", &born_ns.to_string());
        }
        line("host", host);
        line("path", path);
        self.other_servers
            .iter()
            .for_each(|n| line("apart", &format!("{n:016x}")));
        let crc = crc32c(text.as_bytes());
        format!("{text}crc {crc:08x}\n")
    }

    fn parse(bytes: &[u8]) -> Option<Recorded> {
        let text = std::str::from_utf8(bytes).ok()?;
        let fields = |name: &'static str| {
            let lines = text.lines();
            lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let field = |name| fields(name).next();
        let text_of = |name| field(name).unwrap_or_default().to_string();
        let node = |text| u64::from_str_radix(text, 16).ok();
        let recorded = Recorded {
            node: node(field("node")?)?,
            place: Place {
                device: field("device")?.parse().ok()?,
                inode: field("inode")?.parse().ok()?,
                born_ns: field("born").map_or(Some(0), |t| t.parse().ok())?,
                host: text_of("host"),
                path: text_of("path"),
            },
            other_servers: fields("apart").map(node).collect::<Option<_>>()?,
        };
        (recorded.node != 0 && recorded.text() == text).then_some(recorded)
    }
}

/// True if another directory is at this path and belongs, or may belong, to this node.
pub fn is_at(storage: &dyn Storage, path: &str, node: u64) -> bool {
    let other = match storage.other_at(path) {
        Ok(Some(other)) => other,
        Ok(None) => return false,
        Err(_) => return true,
    };
    match recorded_node(&*other) {
        Ok(found) => found.is_some_and(|found| found.node == node),
        Err(_) => true,
    }
}

/// The recorded node of a directory, whether it was copied or not. `None` if it has none yet.
///
/// # Errors
/// The file `node` could not be read or is damaged.
pub fn recorded_node(storage: &dyn Storage) -> Result<Option<Recorded>> {
    let path = storage.directory().join(NODE);
    let file = match storage.open(NODE) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| Error::io("open file", &path, e))?,
    };
    let bytes = read_all(&*file).map_err(|e| Error::io("read file", &path, e))?;
    match Recorded::parse(&bytes) {
        Some(recorded) => Ok(Some(recorded)),
        None => Err(Error::damaged("invalid contents").at(&path)),
    }
}
