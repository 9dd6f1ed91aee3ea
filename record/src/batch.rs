//! Rows on their way into a frame, and the dictionaries that give them ids.

use std::collections::{BTreeMap, HashMap};
use tacho_source::catalog;
use tacho_tape::format::frame::FrameBuilder;
use tacho_tape::format::schema::ColumnType;
use tacho_tape::format::section::Values;
use tacho_tape::format::section::to_stored;

/// A definition is repeated after this time, so that every stretch of the log
/// can be read by itself.
const REPEAT_MS: i64 = 60_000;
/// The dictionary is emptied before a frame if it has more entries than this, which limits its
/// memory.
const MOST_ENTRIES: usize = 100_000;
/// PostgreSQL's ids of the encodings UTF-8 and SQL_ASCII (bytes of unknown encoding).
const UTF8: i64 = 6;
pub const SQL_ASCII: i64 = 0;

/// Name of a column, and its value in a row.
pub type Field = (&'static str, i64);

struct Rows {
    count: usize,
    /// Stored numbers of the rows, by index of the table's columns.
    numbers: Vec<Vec<u64>>,
    strings: Vec<Vec<u8>>,
}

/// Rows of one frame.
pub struct Batch {
    base_ms: i64,
    /// Rows by index of the schema's tables.
    tables: BTreeMap<usize, Rows>,
}

impl Batch {
    /// Creates an empty batch. Times are stored relative to `base_ms`.
    pub fn new(base_ms: i64) -> Batch {
        Batch {
            base_ms,
            tables: BTreeMap::new(),
        }
    }

    /// Adds a row. Skips fields that the catalog does not have.
    pub fn add(&mut self, table: &str, fields: &[Field]) {
        self.add_text(table, fields, &[]);
    }

    /// Adds a row. `text` is the value of the only column of type `Bytes`.
    pub fn add_text(&mut self, table: &str, fields: &[Field], text: &[u8]) {
        let Some(t) = catalog::schema().index(table) else {
            return;
        };
        let columns = &catalog::schema().tables[t].columns;
        let base_ms = self.base_ms;
        let rows = self.tables.entry(t).or_insert_with(|| Rows {
            count: 0,
            numbers: vec![Vec::new(); columns.len()],
            strings: Vec::new(),
        });
        rows.count += 1;
        rows.strings.push(text.to_vec());
        for &(name, value) in fields.iter().filter(|field| field.1 != 0) {
            if let Some(c) = columns.iter().position(|column| column.name == name) {
                let numbers = &mut rows.numbers[c];
                numbers.resize(rows.count, 0);
                numbers[rows.count - 1] = to_stored(columns[c].ty, value, base_ms);
            }
        }
    }

    /// Number of rows of a table.
    #[cfg(test)]
    pub fn rows(&self, table: &str) -> usize {
        let table = catalog::schema()
            .index(table)
            .and_then(|t| self.tables.get(&t));
        table.map_or(0, |rows| rows.count)
    }

    /// True if there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The time in ms since 1970 that the rows' times are relative to.
    pub fn base_ms(&self) -> i64 {
        self.base_ms
    }

    /// Adds all rows to a frame.
    pub fn write(self, frame: &mut FrameBuilder) {
        for (t, rows) in self.tables {
            let table = &catalog::schema().tables[t];
            let mut strings = Some(rows.strings);
            let columns = table.columns.iter().zip(rows.numbers);
            let columns = columns.filter_map(|(column, mut numbers)| {
                if column.ty == ColumnType::Bytes {
                    return strings.take().map(|s| (column.id, Values::Bytes(s)));
                }
                numbers.resize(rows.count, 0);
                Some((column.id, Values::Ints(numbers)))
            });
            let columns: Vec<(u8, Values)> = columns.collect();
            frame.section(table.id, rows.count, &columns);
        }
    }
}

struct Defined {
    id: i64,
    at_ms: i64,
}

/// Ids of strings and entries that rows refer to.
#[derive(Default)]
pub struct Dictionary {
    /// PostgreSQL's id of the encoding of names that are not valid UTF-8.
    pub encoding: i64,
    entries: HashMap<(&'static str, Vec<i64>, Vec<u8>), Defined>,
    next_id: i64,
    /// Time of the current frame in ms, on this process's monotonic clock.
    now_ms: i64,
}

impl Dictionary {
    /// Begins a frame; forgets all entries if there are too many.
    pub fn begin_frame(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        if self.entries.len() > MOST_ENTRIES {
            self.entries.clear();
        }
    }

    /// Forgets all entries, because frames with their definitions were lost.
    pub fn forget(&mut self) {
        self.entries.clear();
    }

    /// The id of a string; 0 for an empty one.
    pub fn name(&mut self, batch: &mut Batch, bytes: &[u8]) -> i64 {
        if bytes.is_empty() {
            return 0;
        }
        let encoding = encoding(bytes, self.encoding);
        self.refer(batch, "name", &[("encoding", encoding)], bytes)
    }

    /// The id of an entry of `table`.
    pub fn entry(&mut self, batch: &mut Batch, table: &'static str, fields: &[Field]) -> i64 {
        self.refer(batch, table, fields, &[])
    }

    fn refer(
        &mut self,
        batch: &mut Batch,
        table: &'static str,
        fields: &[Field],
        text: &[u8],
    ) -> i64 {
        let values = fields.iter().map(|field| field.1).collect();
        let key = (table, values, text.to_vec());
        let next_id = self.next_id + 1;
        let fresh = || Defined {
            id: next_id,
            at_ms: i64::MIN,
        };
        let defined = self.entries.entry(key).or_insert_with(fresh);
        self.next_id = self.next_id.max(defined.id);
        if defined.at_ms == i64::MIN || self.now_ms - defined.at_ms >= REPEAT_MS {
            defined.at_ms = self.now_ms;
            let row = [&[("id", defined.id)], fields].concat();
            batch.add_text(table, &row, text);
        }
        defined.id
    }
}

/// Encoding id of bytes whose encoding the server does not name: UTF-8 if they are valid UTF-8,
/// else `database`. SQL_ASCII if `database` is UTF-8 and the bytes are not.
pub fn encoding(bytes: &[u8], database: i64) -> i64 {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF8,
        Err(_) if database == UTF8 => SQL_ASCII,
        Err(_) => database,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::format::frame::{DATA, Frame};

    fn sections(batch: Batch) -> Vec<(u8, usize)> {
        let mut frame = FrameBuilder::new(DATA, 1, 1, 0);
        batch.write(&mut frame);
        let bytes = frame.finish();
        let sections = Frame::parse(&bytes)
            .unwrap()
            .unwrap()
            .all_sections()
            .unwrap();
        sections.iter().map(|s| (s.table, s.rows)).collect()
    }

    #[test]
    fn an_entry_is_defined_when_it_is_new_and_once_a_minute() {
        let mut dictionary = Dictionary::default();
        let mut defined_at = |ms: i64| {
            let mut batch = Batch::new(0);
            dictionary.begin_frame(ms);
            assert_eq!(dictionary.name(&mut batch, b"app"), 1);
            assert_eq!(dictionary.name(&mut batch, b""), 0);
            batch.rows("name")
        };
        assert_eq!(
            [0, 1_000, 59_999, 60_000, 60_001].map(&mut defined_at),
            [1, 0, 0, 1, 0]
        );
        dictionary.forget();
        let mut batch = Batch::new(0);
        assert_eq!(dictionary.name(&mut batch, b"\xff"), 2);
        assert_eq!(sections(batch), [(10, 1)]);
    }

    #[test]
    fn text_outside_utf8_has_the_encoding_of_the_database() {
        let latin1 = 8;
        let of = |bytes| [UTF8, latin1].map(|database| encoding(bytes, database));
        assert_eq!(of("größe".as_bytes()), [UTF8, UTF8]);
        assert_eq!(of(b"gr\xf6\xdfe"), [SQL_ASCII, latin1]);
    }

    #[test]
    fn rows_of_a_table_have_all_its_columns() {
        let mut batch = Batch::new(1_000);
        batch.add("tick", &[("tick", 1), ("slot_time", 2_000)]);
        batch.add("tick", &[("tick", 2), ("no_such_column", 7)]);
        let mut frame = FrameBuilder::new(DATA, 1, 1, 1_000);
        batch.write(&mut frame);
        let bytes = frame.finish();
        let sections = Frame::parse(&bytes)
            .unwrap()
            .unwrap()
            .all_sections()
            .unwrap();
        assert_eq!((sections[0].stored(1), sections[0].rows), (vec![1, 2], 2));
        let time =
            |stored| tacho_tape::format::section::from_stored(ColumnType::Time, stored, 1_000);
        let times: Vec<i64> = sections[0].stored(2).into_iter().map(time).collect();
        assert_eq!(times, [2_000, 0]);
    }
}
