//! One object: an hour's rows of one table as Parquet. Values are gathered by
//! column and written in row groups of bounded size. The encoded object stays in
//! memory until it is put, because a conditional put takes it as a whole.

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as Node};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of rows of a row group. Only one group is in memory unencoded.
pub const GROUP: usize = 1 << 16;
/// Compression level of zstd. Up to 9 it takes no more time than the encoding
/// itself.
const LEVEL: i32 = 9;
/// Number of digits of a decimal that fits into 64 bits.
const DIGITS: i32 = 18;

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed number of 64 bits.
    Number,
    /// A number that grows from row to row.
    Rising,
    /// µs since 1970 UTC; grows from row to row.
    Time,
    /// µs since 1970 UTC; many rows have the same.
    Start,
    /// A decimal number with two digits after the point, stored in hundredths.
    Hundredths,
    /// Text in UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Id of the column in Parquet. It stays the same when the name changes, and is unique within
    /// the table.
    pub id: i32,
    pub name: String,
    pub kind: Kind,
}

impl Column {
    pub fn new(id: i32, name: impl Into<String>, kind: Kind) -> Column {
        Column {
            id,
            name: name.into(),
            kind,
        }
    }

    fn node(&self) -> Result<Arc<Node>> {
        let (physical, logical) = match self.kind {
            Kind::Number | Kind::Rising => (Type::INT64, None),
            Kind::Time | Kind::Start => {
                let time = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Type::INT64, Some(time))
            }
            Kind::Hundredths => (Type::INT64, Some(LogicalType::decimal(2, DIGITS))),
            Kind::Text => (Type::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let mut node = Node::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .with_id(Some(self.id));
        if self.kind == Kind::Hundredths {
            node = node.with_precision(DIGITS).with_scale(2);
        }
        Ok(Arc::new(node.build()?))
    }
}

/// Values of a column that are not written yet.
#[derive(Debug, Default)]
pub struct Values {
    /// 1 = a value, 0 = null.
    present: Vec<i16>,
    /// Values that are not null; a text is stored as its index in `pool`.
    numbers: Vec<i64>,
    pool: Vec<ByteArray>,
    places: HashMap<String, i64>,
}

impl Values {
    /// Adds a number, or null.
    pub fn number(&mut self, value: Option<i64>) {
        self.present.push(i16::from(value.is_some()));
        self.numbers.extend(value);
    }

    /// Adds a number `times` times.
    pub fn repeat(&mut self, value: Option<i64>, times: usize) {
        (0..times).for_each(|_| self.number(value));
    }

    /// Adds a text, or null.
    pub fn text(&mut self, text: Option<&str>) {
        let place = text.map(|text| self.place(text));
        self.number(place);
    }

    /// Index of a text in `pool`, to be added as a number.
    pub fn place(&mut self, text: &str) -> i64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.pool.len() as i64;
        self.pool.push(ByteArray::from(text));
        self.places.insert(text.to_string(), place);
        place
    }

    /// Number of values, nulls included.
    pub fn rows(&self) -> usize {
        self.present.len()
    }

    fn texts(&self) -> Vec<ByteArray> {
        let texts = self.numbers.iter().map(|place| &self.pool[*place as usize]);
        texts.cloned().collect()
    }
}

/// A value that is the same in all rows of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A number or a time.
    Number(i64),
    /// A text.
    Text(String),
}

impl Constant {
    fn values(&self, rows: usize) -> Values {
        let mut values = Values::default();
        let number = match self {
            Constant::Number(number) => *number,
            Constant::Text(text) => values.place(text),
        };
        values.repeat(Some(number), rows);
        values
    }
}

/// An object under construction.
pub struct Object {
    columns: Vec<Column>,
    /// Values of the first columns.
    constants: Vec<Constant>,
    /// Values of the other columns, by column.
    pub values: Vec<Values>,
    writer: SerializedFileWriter<Vec<u8>>,
    rows: u64,
}

/// A finished object.
#[derive(Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Number of rows.
    pub rows: u64,
    pub bytes: Vec<u8>,
}

impl Object {
    /// Creates an object without rows.
    ///
    /// # Errors
    /// Two columns contradict each other.
    pub fn new(
        table: &str,
        constants: &[(Column, Constant)],
        others: Vec<Column>,
    ) -> Result<Object> {
        let mut columns: Vec<Column> = constants.iter().map(|c| c.0.clone()).collect();
        columns.extend(others);
        let fields = columns.iter().map(Column::node).collect::<Result<_>>()?;
        let schema = Node::group_type_builder(table).with_fields(fields);
        let writer = SerializedFileWriter::new(
            Vec::new(),
            Arc::new(schema.build()?),
            Arc::new(properties(&columns)?),
        )?;
        Ok(Object {
            constants: constants.iter().map(|c| c.1.clone()).collect(),
            values: columns[constants.len()..]
                .iter()
                .map(|_| Values::default())
                .collect(),
            columns,
            writer,
            rows: 0,
        })
    }

    /// Number of rows that fit into the current row group.
    pub fn room(&self) -> usize {
        GROUP - self.values.first().map_or(0, Values::rows)
    }

    /// Writes a row group when it is full.
    ///
    /// # Errors
    /// The columns have different numbers of rows.
    pub fn flush_full(&mut self) -> Result<()> {
        match self.room() {
            0 => self.flush(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let rows = self.values.first().map_or(0, Values::rows);
        if self.values.iter().any(|values| values.rows() != rows) {
            return Err(ParquetError::General("columns differ in rows".into()));
        }
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows as u64;
        let mut group = self.writer.next_row_group()?;
        let constants = self.constants.iter().map(|c| c.values(rows));
        let others = self.values.iter_mut().map(std::mem::take);
        for (column, values) in self.columns.iter().zip(constants.chain(others)) {
            let Some(mut writer) = group.next_column()? else {
                break;
            };
            let present = Some(&values.present[..]);
            match column.kind {
                Kind::Text => {
                    let texts = values.texts();
                    let writer = writer.typed::<ByteArrayType>();
                    writer.write_batch(&texts, present, None)?
                }
                _ => {
                    let writer = writer.typed::<Int64Type>();
                    writer.write_batch(&values.numbers, present, None)?
                }
            };
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Finishes the object; `None` without rows.
    ///
    /// # Errors
    /// The columns have different numbers of rows.
    pub fn finish(mut self) -> Result<Option<Encoded>> {
        self.flush()?;
        let (rows, bytes) = (self.rows, self.writer.into_inner()?);
        Ok((rows > 0).then_some(Encoded { rows, bytes }))
    }
}

/// Dictionaries for columns with few, repeated values; differences for rising
/// columns.
fn properties(columns: &[Column]) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_created_by(concat!("tacho-ship ", env!("CARGO_PKG_VERSION")).into())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // One page per column: zstd compresses each page separately.
        .set_data_page_row_count_limit(GROUP)
        .set_max_row_group_row_count(Some(GROUP));
    for column in columns {
        if matches!(column.kind, Kind::Time | Kind::Rising) {
            let path = ColumnPath::from(column.name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}
