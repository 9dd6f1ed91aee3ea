//! A writer takes over a directory, as the same node or as a new one. A copied directory becomes a
//! new node; `files/node.rs` explains how a copy is recognized.

use crate::error::{self, Error, Result};
use crate::files::directory::NODE;
use crate::files::node::{self, Place, Recorded, recorded_node};
use crate::files::storage::Storage;
use crate::write::message::Message;

const NODE_TEMPORARY: &str = "node.tmp";

/// Relation of a directory to the one that its file `node` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The same directory.
    Same,
    /// The same directory, but its path, machine or device number has changed.
    Elsewhere,
    /// The directory replaced its original, which is gone.
    Restored,
    /// The directory is a copy; the original still exists.
    Copied,
}

/// Finds the relation. The original still exists if the directory at its path still has this node.
/// An original on another machine counts as existing.
fn found(storage: &dyn Storage, known: &Recorded, here: &Place) -> Relation {
    let was = &known.place;
    let born = |place: &Place| Some(place.born_ns).filter(|ns| *ns != 0);
    let other_birth = born(was).zip(born(here)).is_some_and(|(a, b)| a != b);
    let same = was.inode == here.inode && !other_birth;
    if same && was.device == here.device {
        return match was == here {
            true => Relation::Same,
            false => Relation::Elsewhere,
        };
    }
    let moved = !was.path.is_empty() && was.path != here.path;
    let beside = moved && node::is_at(storage, &was.path, known.node);
    let other_host = !was.host.is_empty() && was.host != here.host;
    match same {
        _ if beside => Relation::Copied,
        true => Relation::Elsewhere,
        false if other_host => Relation::Copied,
        false => Relation::Restored,
    }
}

/// The node of a directory that a writer takes over.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    pub(crate) node: u64,
    /// The node whose history the new node continues.
    pub(crate) before: Option<u64>,
    /// Reason for a new node in place of the recorded one, for a marker.
    pub(crate) new_node: Option<String>,
    /// Messages for the server's log.
    pub(crate) messages: Vec<Message>,
}

/// The node of a directory that a writer takes over. It is the recorded node if the directory is
/// the same; otherwise it is `random`, and the file `node` is written.
///
/// # Errors
/// The file `node` could not be read or written.
pub(crate) fn claim_node(storage: &dyn Storage, random: u64) -> Result<Claim> {
    let place = storage.place();
    let place = place.map_err(|e| Error::io("stat", storage.directory(), e))?;
    let mut claim = Claim {
        node: random.max(1),
        ..Claim::default()
    };
    let mut other_servers = Vec::new();
    match recorded_node(storage) {
        Ok(None) => (),
        Ok(Some(known)) => {
            other_servers.clone_from(&known.other_servers);
            match found(storage, &known, &place) {
                Relation::Same => {
                    claim.node = known.node;
                    return Ok(claim);
                }
                Relation::Elsewhere => {
                    claim.keep(storage, &known, place);
                    return Ok(claim);
                }
                Relation::Restored => claim.continue_history_of(&known),
                Relation::Copied => {
                    other_servers.push(known.node);
                    claim.separate_from(&known);
                }
            }
        }
        Err(error) if error.kind == error::Kind::Damaged => {
            claim.messages.push(Message::Error(error.to_string()));
            claim.new_node = Some("the file \"node\" was damaged".into());
        }
        Err(error) => return Err(error),
    }
    let recorded = Recorded {
        node: claim.node,
        place,
        other_servers,
    };
    write(storage, &recorded)?;
    if let Some(why) = &claim.new_node {
        let message = format!("history starts as node {:016x}: {why}", claim.node);
        claim.messages.push(Message::Warning(message));
    }
    Ok(claim)
}

impl Claim {
    /// Keeps the node of a directory at another place, with a message. If the new place cannot be
    /// recorded, that does no harm.
    fn keep(&mut self, storage: &dyn Storage, known: &Recorded, place: Place) {
        self.node = known.node;
        let noted = Recorded {
            place,
            ..known.clone()
        };
        let message = format!(
            "the history directory was moved from \"{}\" (device {}): it remains node {:016x}",
            known.place.path, known.place.device, known.node
        );
        self.messages.push(Message::Log(message));
        if let Err(error) = write(storage, &noted) {
            self.messages.push(Message::Warning(error.to_string()));
        }
    }

    fn continue_history_of(&mut self, known: &Recorded) {
        self.before = Some(known.node);
        self.new_node = Some(format!(
            "the directory was restored or moved; its previous node is {:016x}",
            known.node
        ));
    }

    fn separate_from(&mut self, known: &Recorded) {
        let path = &known.place.path;
        self.new_node = Some(format!(
            "the directory was copied from \"{path}\"; the copied history is node {:016x}",
            known.node
        ));
    }
}

fn write(storage: &dyn Storage, recorded: &Recorded) -> Result<()> {
    let write = || {
        let _ = storage.remove(NODE_TEMPORARY);
        let mut file = storage.create(NODE_TEMPORARY)?;
        file.append(recorded.text().as_bytes())?;
        file.sync()?;
        storage.rename(NODE_TEMPORARY, NODE)?;
        storage.sync_directory()
    };
    let path = storage.directory().join(NODE);
    write().map_err(|e| Error::io("write file", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc::crc32c;
    use crate::testing::memory::MemoryStorage;

    fn place(device: u64, inode: u64, born_ns: u64, host: &str, path: &str) -> Place {
        Place {
            device,
            inode,
            born_ns,
            host: host.into(),
            path: path.into(),
        }
    }

    /// Moves a directory of node 0xAB to another place while the original is still at `originals`.
    /// Returns its node, the node before it, and the nodes apart.
    fn moved(to: Place, originals: &[&str]) -> (u64, Option<u64>, Vec<u64>) {
        let storage = MemoryStorage::new();
        storage.set_place(place(1, 2, 3, "a", "/pg/tacho"), &[]);
        claim_node(&storage, 0xAB).unwrap();
        storage.set_place(to, originals);
        let claim = claim_node(&storage, 0xCD).unwrap();
        let messages: Vec<&Message> = claim.messages.iter().collect();
        assert_eq!(messages.len(), 1, "{messages:?}");
        let again = claim_node(&storage, 0xEF).unwrap();
        assert_eq!((again.node, again.messages), (claim.node, vec![]));
        let other_servers = recorded_node(&storage).unwrap().unwrap().other_servers;
        (claim.node, claim.before, other_servers)
    }

    #[test]
    fn a_directory_is_itself_on_any_device_and_path() {
        let same = (0xAB, None, vec![]);
        // The directory stays the same after a reboot, with its volume on another machine, and
        // after a rename.
        assert_eq!(moved(place(9, 2, 3, "a", "/pg/tacho"), &[]), same);
        assert_eq!(moved(place(9, 2, 3, "b", "/mnt/tacho"), &[]), same);
        assert_eq!(moved(place(1, 2, 3, "a", "/pg/old"), &["/pg/tacho"]), same);
        // A file system that does not record when an inode was made.
        assert_eq!(moved(place(9, 2, 0, "a", "/pg/tacho"), &[]), same);
    }

    #[test]
    fn a_directory_restored_or_moved_goes_on_with_its_history() {
        let goes_on = (0xCD, Some(0xAB), vec![]);
        assert_eq!(moved(place(1, 7, 8, "a", "/pg/tacho"), &[]), goes_on);
        assert_eq!(moved(place(5, 7, 8, "a", "/data/tacho"), &[]), goes_on);
        // A new file system may use the same inode number.
        assert_eq!(moved(place(5, 2, 8, "a", "/pg/tacho"), &[]), goes_on);
    }

    #[test]
    fn a_copy_beside_the_original_or_on_another_machine_is_another_one() {
        let other_servers = (0xCD, None, vec![0xAB]);
        let original = ["/pg/tacho"];
        assert_eq!(
            moved(place(1, 7, 8, "a", "/copy/tacho"), &original),
            other_servers
        );
        // A snapshot of the volume, mounted next to it, has the same inode number.
        assert_eq!(
            moved(place(9, 2, 3, "a", "/snap/tacho"), &original),
            other_servers
        );
        assert_eq!(moved(place(1, 7, 8, "b", "/pg/tacho"), &[]), other_servers);
    }

    #[test]
    fn a_file_of_an_earlier_version_is_understood() {
        let storage = MemoryStorage::new();
        let text = "node 00000000000000ab\ndevice 1\ninode 2\n";
        let crc = crc32c(text.as_bytes());
        storage.put(NODE, format!("{text}crc {crc:08x}\n").as_bytes());
        storage.set_place(place(9, 2, 3, "a", "/pg/tacho"), &[]);
        assert_eq!(claim(&storage, 0xCD), (0xAB, None));
        storage.set_place(place(9, 4, 3, "a", "/pg/tacho"), &[]);
        assert_eq!(claim(&storage, 0xCD), (0xCD, None));
    }

    /// The node, and the kind of reported damage.
    fn claim(storage: &MemoryStorage, random: u64) -> (u64, Option<error::Kind>) {
        let claim = claim_node(storage, random).unwrap();
        let damaged = |m: &Message| matches!(m, Message::Error(_));
        let damage = claim.messages.iter().any(damaged);
        (claim.node, damage.then_some(error::Kind::Damaged))
    }

    #[test]
    fn a_directory_keeps_its_node_and_a_copy_gets_a_new_one() {
        let storage = MemoryStorage::new();
        assert_eq!(claim(&storage, 0xAB), (0xAB, None));
        assert_eq!(claim(&storage, 0xCD), (0xAB, None));
        let copy = storage.copied();
        assert_eq!(claim(&copy, 0xCD), (0xCD, None));
        assert_eq!(recorded_node(&storage).unwrap().unwrap().node, 0xAB);
    }

    #[test]
    fn any_damage_of_the_file_node_is_reported_and_begins_a_new_node() {
        let storage = MemoryStorage::new();
        claim_node(&storage, 0xAB).unwrap();
        let whole = storage.bytes_of(NODE).unwrap();
        let check = |bytes: &[u8], what: String| {
            storage.put(NODE, bytes);
            let damaged = Some(error::Kind::Damaged);
            let error = recorded_node(&storage).unwrap_err();
            assert_eq!(Some(error.kind), damaged, "{what}");
            assert_eq!(claim(&storage, 0xCD), (0xCD, damaged), "{what}");
            assert_eq!(claim(&storage, 0xEF), (0xCD, None), "{what}");
        };
        for end in 0..whole.len() {
            check(&whole[..end], format!("end {end}"));
        }
        for bit in 0..whole.len() * 8 {
            let mut copy = whole.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            check(&copy, format!("bit {bit}"));
        }
    }

    #[test]
    fn a_crash_while_the_node_is_recorded_leaves_the_old_one_or_the_new() {
        use crate::testing::memory::Crash;
        let first = MemoryStorage::new();
        claim_node(&first, 0xAB).unwrap();
        for (storage, was) in [(MemoryStorage::new(), None), (first.copied(), Some(0xAB))] {
            let probe = storage.after(Crash::Process);
            claim_node(&probe, 0xCD).unwrap();
            for operation in storage.operations()..=probe.operations() {
                for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
                    let crashed = storage.after(Crash::Process);
                    crashed.stop_at(operation);
                    let _ = claim_node(&crashed, 0xCD);
                    let after = crashed.after(crash);
                    let found = recorded_node(&after).unwrap().map(|r| r.node);
                    assert!(found == was || found == Some(0xCD), "{operation} {crash:?}");
                    let (node, damage) = claim(&after, 0xEF);
                    assert!([0xCD, 0xEF].contains(&node) && damage.is_none());
                }
            }
        }
    }
}
