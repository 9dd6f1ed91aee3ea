//! The dictionary entries in use, as the sampler sent them. A new log begins with them, because the
//! sampler does not know that the log is new. An entry counts as in use for a while after it was
//! last defined or referred to. The sampler repeats its definitions far more often.

use crate::format::frame::{DEFINE, FrameBuilder, Header};
use crate::format::schema::{ColumnType, Schema};
use crate::format::section::Values;
use crate::format::section::{Section, from_stored, to_stored};
use std::collections::{BTreeMap, HashMap};

/// An entry stays in use for this many frames. The sampler repeats definitions once a minute and
/// sends at most one frame a second.
const FRAMES_IN_USE: u64 = 600;
/// Maximum number of entries in one frame.
const ENTRIES_PER_FRAME: usize = 20_000;
/// Maximum length of the strings in one frame, in bytes. A single string may be longer.
const BYTES_PER_FRAME: usize = 4 << 20;

/// The entries in use, by table and id.
#[derive(Default)]
pub struct LiveDefinitions {
    tables: HashMap<usize, BTreeMap<u64, Entry>>,
    /// Sequence of the newest frame.
    sequence: u64,
}

struct Entry {
    /// Stored numbers by column. TIMEs are relative to 1970.
    ints: Vec<u64>,
    bytes: Vec<u8>,
    /// Sequence of the last frame that defined the entry or referred to it.
    used: u64,
}

impl LiveDefinitions {
    /// Takes the definitions and references of a frame.
    pub fn frame(&mut self, schema: &Schema, sections: &[Section<'_>], header: &Header) {
        self.sequence = header.sequence;
        let base_ms = header.base_ms;
        for section in sections {
            let Some(t) = schema.index_of_id(section.table) else {
                continue;
            };
            if is_carried(schema, t) {
                self.define(schema, t, section, base_ms);
            } else {
                self.refer(schema, t, section);
            }
        }
    }

    fn define(&mut self, schema: &Schema, t: usize, section: &Section<'_>, base_ms: i64) {
        let def = &schema.tables[t];
        let mut ints = Vec::new();
        let mut strings = None;
        for column in &def.columns {
            match column.ty {
                ColumnType::Bytes => {
                    strings = Some(section.strings(column.id));
                    ints.push(Vec::new());
                }
                ColumnType::Time => {
                    let stored = section.stored(column.id);
                    let absolute = stored.iter().map(|&v| {
                        let value = from_stored(column.ty, v, base_ms);
                        to_stored(column.ty, value, 0)
                    });
                    ints.push(absolute.collect());
                }
                _ => ints.push(section.stored(column.id)),
            }
        }
        let Some(id_column) = def.index("id") else {
            return;
        };
        let entries = self.tables.entry(t).or_default();
        for row in 0..section.rows {
            let entry = Entry {
                ints: ints
                    .iter()
                    .map(|v| v.get(row).copied().unwrap_or(0))
                    .collect(),
                bytes: strings.as_ref().map_or_else(Vec::new, |s| s[row].to_vec()),
                used: self.sequence,
            };
            entries.insert(entry.ints[id_column], entry);
        }
    }

    fn refer(&mut self, schema: &Schema, t: usize, section: &Section<'_>) {
        for column in &schema.tables[t].columns {
            let Some(target) = target_of(schema, t, column.ty, &column.target) else {
                continue;
            };
            let (Some(entries), Some(raw)) =
                (self.tables.get_mut(&target), section.column(column.id))
            else {
                continue;
            };
            let mut last = 0;
            for id in raw.stored(section.rows) {
                if id != last
                    && let Some(entry) = entries.get_mut(&id)
                {
                    entry.used = self.sequence;
                }
                last = id;
            }
        }
    }

    /// Forgets entries that are no longer in use; returns define frames for the others.
    pub fn next_log(&mut self, schema: &Schema, incarnation: u64, sequence: u64) -> Vec<u8> {
        self.forget(schema);
        let mut tables: Vec<usize> = self.tables.keys().copied().collect();
        // Names come first.
        tables.sort_by_key(|&t| schema.tables[t].id);
        let mut frames = Vec::new();
        for t in tables {
            let entries: Vec<&Entry> = self.tables[&t].values().collect();
            for part in in_frames(&entries) {
                let mut frame = FrameBuilder::new(DEFINE, incarnation, sequence, 0);
                write_entries(&mut frame, schema, t, part);
                frames.extend(frame.finish());
            }
        }
        frames
    }

    /// Forgets entries that are not in use. Entries that kept ones refer to stay.
    fn forget(&mut self, schema: &Schema) {
        let now = self.sequence;
        let in_use = |entry: &Entry| entry.used + FRAMES_IN_USE >= now;
        let mut referred: Vec<(usize, u64, u64)> = Vec::new();
        for (&t, entries) in &mut self.tables {
            if schema.tables[t].name != "name" {
                entries.retain(|_, e| in_use(e));
            }
            for (c, column) in schema.tables[t].columns.iter().enumerate() {
                if let Some(target) = target_of(schema, t, column.ty, &column.target) {
                    referred.extend(entries.values().map(|e| (target, e.ints[c], e.used)));
                }
            }
        }
        for (target, id, used) in referred {
            if let Some(entry) = self.tables.get_mut(&target).and_then(|e| e.get_mut(&id)) {
                entry.used = entry.used.max(used);
            }
        }
        for entries in self.tables.values_mut() {
            entries.retain(|_, e| in_use(e));
        }
    }

    /// Forgets all entries, because another life of the sampler has other ids.
    pub fn clear(&mut self) {
        self.tables.clear();
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.tables.values().map(BTreeMap::len).sum()
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn is_carried(schema: &Schema, t: usize) -> bool {
    schema.is_dictionary(t) && schema.tables[t].index("id").is_some()
}

fn target_of(schema: &Schema, t: usize, ty: ColumnType, target: &str) -> Option<usize> {
    match ty {
        ColumnType::Name => schema.index("name").filter(|&n| n != t),
        ColumnType::Ref => schema.index(target),
        _ => None,
    }
}

/// Splits entries into parts that each fit into a frame.
fn in_frames<'a, 'b>(entries: &'a [&'b Entry]) -> Vec<&'a [&'b Entry]> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut bytes = 0;
    for (at, entry) in entries.iter().enumerate() {
        if at > begin && (at - begin >= ENTRIES_PER_FRAME || bytes > BYTES_PER_FRAME) {
            parts.push(&entries[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += entry.bytes.len();
    }
    if begin < entries.len() {
        parts.push(&entries[begin..]);
    }
    parts
}

fn write_entries(frame: &mut FrameBuilder, schema: &Schema, t: usize, entries: &[&Entry]) {
    let def = &schema.tables[t];
    let columns: Vec<(u8, Values)> = def
        .columns
        .iter()
        .enumerate()
        .map(|(c, column)| {
            let values = match column.ty {
                ColumnType::Bytes => {
                    Values::Bytes(entries.iter().map(|e| e.bytes.clone()).collect())
                }
                _ => Values::Ints(entries.iter().map(|e| e.ints[c]).collect()),
            };
            (column.id, values)
        })
        .collect();
    frame.section(def.id, entries.len(), &columns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame::Frame;
    use crate::format::ingest::Ingest;
    use crate::format::part::Identity;
    use crate::testing::{Load, Sampler, difference, read, schema};

    fn take(live_definitions: &mut LiveDefinitions, bytes: &[u8]) {
        let frame = Frame::parse(bytes).unwrap().unwrap();
        live_definitions.frame(&schema(), &frame.all_sections().unwrap(), &frame.header);
    }

    #[test]
    fn a_log_that_begins_with_the_entries_in_use_reads_whole() {
        let mut live_definitions = LiveDefinitions::default();
        let load = Load {
            sessions: 20,
            ..Load::default()
        };
        let mut sampler = Sampler::new(1, load);
        live_definitions.next_log(&schema(), 1, 1);
        for _ in 0..50 {
            take(&mut live_definitions, &sampler.frame().0);
        }
        let define = live_definitions.next_log(&schema(), 1, 51);
        let mut ingest = Ingest::new(schema(), 0).unwrap();
        let mut seen = Vec::new();
        let mut bytes = define;
        // Frame 60 begins to repeat all definitions.
        for _ in 50..59 {
            let (frame, _, rows) = sampler.frame();
            bytes.extend(frame);
            seen.extend(rows);
        }
        let mut at = 0;
        while let Some(frame) = Frame::parse(&bytes[at..]).unwrap() {
            ingest.sections(&frame.all_sections().unwrap(), frame.header.base_ms);
            at += frame.bytes.len();
        }
        let part = ingest.finish(Identity::default());
        assert_eq!(part.lost_definitions(), 0);
        seen.sort();
        assert_eq!(difference(&read([&part]).1, &seen), None);
    }

    #[test]
    fn unused_entries_are_forgotten_after_ten_minutes() {
        let mut live_definitions = LiveDefinitions::default();
        take(
            &mut live_definitions,
            &Sampler::new(2, Load::default()).frame().0,
        );
        let define = live_definitions.next_log(&schema(), 1, 2);
        let nobody = Load {
            active: 0,
            ..Load::default()
        };
        let mut nobody = Sampler::new(3, nobody);
        for kept in [true, false] {
            nobody.sequence = if kept {
                FRAMES_IN_USE + 1
            } else {
                FRAMES_IN_USE + 2
            };
            take(&mut live_definitions, &nobody.frame().0);
            let now = live_definitions.next_log(&schema(), 1, 2);
            assert_eq!(now == define, kept);
            assert_eq!(live_definitions.is_empty(), !kept);
        }
    }
}
