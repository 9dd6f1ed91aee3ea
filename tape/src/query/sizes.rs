//! Use of the bytes in history files. Each byte is counted once, so the sum is the length of the
//! files.

use crate::error::{Error, Result};
use crate::files::directory::Kind;
use crate::files::storage::read_readable;
use crate::format::codec;
use crate::format::entry::Entry;
use crate::format::entry::{CHUNK_BYTES, COLUMN, FOOTER, GROUP, INDEX, PACK, SCHEMA};
use crate::format::footer::Chunks;
use crate::format::frame::{CRC_BYTES, Frame, HEADER_BYTES, HELLO};
use crate::format::hello;
use crate::format::log::{FRAMES_AT, LogHeader, Scan, Stretch};
use crate::format::packs::{PACK_BYTES, Pack};
use crate::format::schema::Schema;
use crate::format::sealed_write::{HEAD_BYTES, TAIL_BYTES};
use crate::query::inspect::open_history_file;
use crate::store::sealed_read::{BlockFile, Schemas};
use std::collections::BTreeMap;
use std::path::Path;

/// Use of some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The values of a column. If the file does not describe the column, its number replaces the
    /// name.
    Column {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// Data that finds and checks the values, such as heads and indexes.
    Framing(&'static str),
    /// Unreadable bytes.
    Unreadable(&'static str),
}

/// The bytes of files by use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Number of files.
    pub files: u64,
    /// Length of the files: the sum of all uses.
    pub bytes: u64,
    /// Bytes by use.
    pub uses: BTreeMap<Use, u64>,
}

impl Sizes {
    /// Adds the bytes of a file by its path.
    ///
    /// # Errors
    /// It is no history file, or could not be read, or nothing of it is valid;
    /// then nothing was added.
    pub fn add(&mut self, path: &Path) -> Result<()> {
        let (_, kind, file) = open_history_file(path)?;
        let failed = |e| Error::io("read file", path, e);
        let length = file.bytes().map_err(failed)?;
        let all = read_readable(&*file, 0, length).map_err(failed)?;
        if kind == Kind::Log {
            LogHeader::parse(&all).map_err(|e| e.at(path))?;
            self.add_log(&all);
        } else {
            let block = BlockFile::open(file, path, &mut Schemas::default())?;
            self.add_sealed(&all, &block.schema());
        }
        self.files += 1;
        Ok(())
    }

    fn count(&mut self, used: Use, bytes: usize) {
        if bytes > 0 {
            *self.uses.entry(used).or_default() += bytes as u64;
            self.bytes += bytes as u64;
        }
    }

    fn add_log(&mut self, log: &[u8]) {
        self.count(Use::Framing("head"), FRAMES_AT.min(log.len()));
        let mut schema = Schema::default();
        for stretch in Scan::new(log) {
            match stretch {
                Stretch::Frame(frame) => self.add_frame(&frame, &mut schema),
                Stretch::Damaged { bytes, .. } => self.count(Use::Unreadable("damaged"), bytes),
                Stretch::Torn { bytes, .. } => self.count(Use::Unreadable("cut off"), bytes),
            }
        }
    }

    fn add_frame(&mut self, frame: &Frame<'_>, schema: &mut Schema) {
        let all = frame.bytes.len();
        let Ok(sections) = frame.all_sections() else {
            return self.count(Use::Unreadable("damaged"), all);
        };
        if frame.header.kind == HELLO {
            *schema = hello::read_schema(&sections).unwrap_or_default();
            return self.count(Use::Framing("schema"), all);
        }
        let heads = HEADER_BYTES + CRC_BYTES;
        self.count(Use::Framing("frame heads"), heads);
        let mut left = all - heads;
        for section in &sections {
            for column in &section.columns {
                let bytes = column.data_bytes();
                self.count(column_use(schema, section.table, column.id), bytes);
                left -= bytes;
            }
        }
        self.count(Use::Framing("section heads"), left);
    }

    /// Counts a compressed pack: divides its `bytes` in proportion to the uncompressed sizes.
    fn add_pack(&mut self, pack: &Pack, bytes: usize, schema: &Schema) {
        let columns = || pack.columns().map(|(_, data)| data.len());
        let plain = pack.directory_bytes + columns().sum::<usize>();
        let (mut before, mut counted) = (0, 0);
        let mut share = |own: usize| {
            before += own;
            let share = bytes * before / plain.max(1) - counted;
            counted += share;
            share
        };
        self.count(Use::Framing("heads of packs"), share(pack.directory_bytes));
        for (entry, data) in pack.columns() {
            let used = column_use(schema, entry.table, entry.column);
            self.count(used, share(data.len()));
        }
    }

    fn add_sealed(&mut self, all: &[u8], schema: &Schema) {
        let mut chunks = Chunks::new(all);
        let mut end = HEAD_BYTES.min(all.len());
        self.count(Use::Framing("head"), end);
        while let Some((entry, data)) = chunks.next_valid() {
            let begin = entry.offset as usize;
            self.count(Use::Unreadable("damaged"), begin - end);
            let used = match entry.kind {
                SCHEMA => Use::Framing("schema"),
                GROUP => Use::Framing("groups"),
                COLUMN => column_use(schema, entry.table, entry.column),
                PACK => Use::Framing("packs"),
                FOOTER => Use::Framing("footer"),
                INDEX => Use::Framing("index"),
                _ => Use::Framing("of a later version"),
            };
            match unpacked(&entry, data) {
                Some(pack) => self.add_pack(&pack, data.len(), schema),
                None => self.count(used, data.len()),
            }
            self.count(Use::Framing("chunk heads"), CHUNK_BYTES + CRC_BYTES);
            end = begin + entry.chunk_bytes() as usize;
        }
        let rest = all.len() - end;
        match rest == TAIL_BYTES {
            true => self.count(Use::Framing("tail"), rest),
            false => self.count(Use::Unreadable("damaged"), rest),
        }
    }
}

/// The pack in a chunk, if it is a valid pack.
fn unpacked(entry: &Entry, data: &[u8]) -> Option<Pack> {
    if entry.kind != PACK || entry.plain_bytes > PACK_BYTES {
        return None;
    }
    let plain = codec::decompress(data, entry.plain_bytes).ok()?;
    Pack::parse(plain, entry)
}

fn column_use(schema: &Schema, table: u8, column: u8) -> Use {
    let def = schema.index_of_id(table).map(|t| &schema.tables[t]);
    let name = def.and_then(|def| Some(&def.columns[def.index_of_id(column)?].name));
    Use::Column {
        table: def.map_or_else(|| table.to_string(), |def| def.name.clone()),
        column: name.map_or_else(|| column.to_string(), String::clone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::storage::{OsStorage, Storage};
    use crate::testing::{Load, Sampler, log_bytes};
    use crate::write::seal::seal_log;
    use std::fs;
    use std::path::PathBuf;

    fn directory(name: &str) -> PathBuf {
        let name = format!("tacho-sizes-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        directory
    }

    /// A log of 20 frames.
    fn log() -> Vec<u8> {
        let mut sampler = Sampler::new(1, Load::default());
        let mut frames = vec![sampler.hello(&[])];
        frames.extend((0..20).map(|_| sampler.frame().0));
        log_bytes(&LogHeader::default(), &frames)
    }

    fn of(path: &Path) -> Sizes {
        let mut sizes = Sizes::default();
        sizes.add(path).unwrap();
        assert_eq!(sizes.bytes, sizes.uses.values().sum::<u64>());
        assert_eq!(sizes.bytes, fs::metadata(path).unwrap().len());
        sizes
    }

    #[test]
    fn every_byte_of_a_damaged_file_is_counted_once() {
        let directory = directory("whole");
        let (open, tape) = (
            directory.join("0000000001.open"),
            directory.join("0000000001.tape"),
        );
        let log = log();
        fs::write(&open, &log).unwrap();
        let logged = of(&open);
        assert_eq!(logged.uses[&Use::Framing("head")], 160);
        assert_eq!(logged.uses[&Use::Framing("frame heads")], 20 * 44);
        seal_log(&OsStorage::new(&directory), 1, u64::MAX).unwrap();
        let sealed = of(&tape);
        let ticks = Use::Column {
            table: "tick".into(),
            column: "slot_time".into(),
        };
        assert!(sealed.uses[&ticks] > 0 && logged.uses[&ticks] > 0);
        let whole = fs::read(&tape).unwrap();
        for (path, bytes) in [(&open, &log), (&tape, &whole)] {
            let at = bytes.len() / 2;
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(path, &damaged).unwrap();
            assert!(of(path).uses[&Use::Unreadable("damaged")] > 0);
            fs::write(path, [&bytes[..], &[9; 3]].concat()).unwrap();
            assert!(of(path).uses[&Use::Unreadable("damaged")] >= 3);
        }
        fs::write(&open, &log[..log.len() - 5]).unwrap();
        assert!(of(&open).uses[&Use::Unreadable("cut off")] > 0);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_column_has_the_bytes_of_its_chunk_or_its_share_of_a_pack() {
        let directory = directory("columns");
        fs::write(directory.join("0000000001.open"), log()).unwrap();
        seal_log(&OsStorage::new(&directory), 1, u64::MAX).unwrap();
        let path = directory.join("0000000001.tape");
        let found = of(&path).uses;
        let file = OsStorage::new(&directory).open("0000000001.tape").unwrap();
        let block = BlockFile::open_whole(file, &path, &mut Schemas::default()).unwrap();
        let mut own = BTreeMap::new();
        for chunk in block.chunks() {
            let (entry, data) = chunk.unwrap();
            let used = column_use(&block.schema(), entry.table, entry.column);
            if is_of_runs(&used) {
                *own.entry(used).or_insert(0) += data.len() as u64;
            }
        }
        let mut packed = found.clone();
        packed.retain(|used, _| matches!(used, Use::Column { .. }) && !is_of_runs(used));
        let in_packs = packed.values().sum::<u64>() + found[&Use::Framing("heads of packs")];
        let packs = block.packs().into_iter().map(|e| u64::from(e.data_bytes));
        assert_eq!(in_packs, packs.sum::<u64>());
        let of_runs = found.into_iter().filter(|(used, _)| is_of_runs(used));
        assert_eq!(of_runs.collect::<BTreeMap<_, _>>(), own);
        fs::remove_dir_all(&directory).unwrap();
    }

    fn is_of_runs(used: &Use) -> bool {
        matches!(used, Use::Column { table, .. } if table == "run")
    }
}
