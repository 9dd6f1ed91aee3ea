//! Lists of the chunks of a sealed file: the place of each column and pack. A day of ten-minute
//! groups has 14,000 chunks with 48 bytes each. Therefore the lists are kept in the cache of
//! columns (`cache.rs`) and read again if there was no room.

use crate::format::entry::Entry;
use crate::format::footer::Gap;
use crate::format::part::LogDamage;

/// Group, table and column.
pub(crate) type Key = (u32, u8, u8);

/// Kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Listing {
    /// Chunks in the footer: dictionaries, totals and the index.
    Footer,
    /// Chunks in the index: columns of groups.
    Index,
}

/// A list of chunks.
#[derive(Default)]
pub(crate) struct Chunks {
    /// Sorted by kind and place.
    entries: Vec<Entry>,
    /// Damage of the index, if the entries were gathered from the chunks.
    pub(crate) damage: Option<LogDamage>,
    /// Damaged bytes between the gathered chunks.
    pub(crate) gaps: Vec<Gap>,
}

impl Chunks {
    pub(crate) fn new(entries: Vec<Entry>) -> Chunks {
        Chunks::gathered(entries, None, Vec::new())
    }

    /// A list gathered from the chunks of a file whose footer or index is damaged.
    pub(crate) fn gathered(
        mut entries: Vec<Entry>,
        damage: Option<LogDamage>,
        gaps: Vec<Gap>,
    ) -> Chunks {
        entries.sort_by_key(place);
        Chunks {
            entries,
            damage,
            gaps,
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The chunk of this kind with the given group, table and column; the last one if there are
    /// several.
    pub(crate) fn find(&self, kind: u8, key: Key) -> Option<Entry> {
        let end = self.entries.partition_point(|e| place(e) <= (kind, key));
        let last = &self.entries[end.checked_sub(1)?];
        (place(last) == (kind, key)).then_some(*last)
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

fn place(entry: &Entry) -> (u8, Key) {
    (entry.kind, (entry.group, entry.table, entry.column))
}
