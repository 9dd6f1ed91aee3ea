//! What a sealed file says of its chunks: where each column and pack is. A day
//! of ten-minute groups says it of 14,000, 48 bytes each; so it is kept among
//! the columns (`cache.rs`) and read again when there was no room.

use crate::format::footer::Gap;
use crate::format::log::LogDamage;
use crate::format::sealed_write::Entry;
use crate::store::cache::Key;

/// Which chunks are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Listing {
    /// Those that the footer names: dictionaries, totals and the index.
    Footer,
    /// Those that the index names: columns of groups.
    Index,
}

/// What a footer or an index says of chunks.
#[derive(Default)]
pub(crate) struct Chunks {
    /// By kind and place.
    entries: Vec<Entry>,
    /// Of the index, where the entries were gathered for it.
    pub(crate) damage: Option<LogDamage>,
    /// Between the chunks that were gathered.
    pub(crate) gaps: Vec<Gap>,
}

impl Chunks {
    pub(crate) fn new(entries: Vec<Entry>) -> Chunks {
        Chunks::gathered(entries, None, Vec::new())
    }

    /// What was gathered from a file whose footer or index is damaged.
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

    /// The chunk that has a kind and a place; of several the last.
    pub(crate) fn find(&self, kind: u8, key: Key) -> Option<Entry> {
        let end = self.entries.partition_point(|e| place(e) <= (kind, key));
        let last = &self.entries[end.checked_sub(1)?];
        (place(last) == (kind, key)).then_some(*last)
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

fn place(entry: &Entry) -> (u8, Key) {
    (entry.kind, (entry.group, entry.table, entry.column))
}
