//! Columns that follow from the catalog. Names and units are the same as in
//! `tacho export`; references are resolved, and unknown values are null.

use crate::redact::Redaction;
use crate::table::{Column, Kind, Values};
use std::collections::HashMap;
use tacho_source::encoding;
use tacho_source::exchange::{Field, Place};
use tacho_source::stored::{Form, Stored};
use tacho_tape::format::schema::{ColumnType, TableDef};
use tacho_tape::{BytesColumn, Column as Numbers, Part, Result};

/// Columns in which 0 means none.
const NONE_IS_0: [&str; 18] = [
    "query_id",
    "plan_id",
    "leader",
    "database_oid",
    "user_oid",
    "xmin",
    "xid",
    "next_xid",
    "oldest_xmin",
    "oldest_xmin_pid",
    "progress_relation",
    "vcpus_x100",
    "cost_step",
    "blocker_xid",
    "mode_requested",
    "length",
    "object_oid",
    "left_out",
];
/// First column id for a tick's columns in the rows of its samples.
const TICK_ID_BASE: i32 = 400;
/// First column id for the table's own columns. Smaller ids are derived
/// columns.
const OWN_ID_BASE: i32 = 100;
/// First column id for columns of a referenced row, multiplied by the id of the column that refers
/// to it.
const REFERENCE_ID_BASE: i32 = 1_000;
/// Text in place of a referenced row that is lost.
const LOST: &str = "?";

/// The column for a field. Its id follows from the ids of the catalog.
pub fn column(table: &TableDef, field: &Field) -> Column {
    let id = i32::from(field.column.id);
    let id = match &field.place {
        Place::Own => OWN_ID_BASE + id,
        Place::Tick => TICK_ID_BASE + id,
        Place::Reference(name) => {
            let reference = table.column(name).map_or(0, |c| i32::from(c.id));
            REFERENCE_ID_BASE * reference + id
        }
    };
    let kind = match field.column.ty {
        ColumnType::Time | ColumnType::TimeUs => match field.place {
            Place::Reference(_) => Kind::Start,
            _ => Kind::Time,
        },
        ColumnType::Name | ColumnType::Enum | ColumnType::Bytes => Kind::Text,
        _ if is_hundredths(field) => Kind::Hundredths,
        _ if field.name == "tick" => Kind::Rising,
        _ => Kind::Number,
    };
    let name = field.name.strip_suffix("_x100").unwrap_or(&field.name);
    Column::new(id, name, kind)
}

fn is_hundredths(field: &Field) -> bool {
    field.is_fraction() || field.column.target == "hundredths"
}

/// The dictionary of names of a part.
pub struct Names {
    bytes: BytesColumn,
    encodings: Numbers,
}

impl Names {
    /// Reads the names.
    ///
    /// # Errors
    /// The names are damaged.
    pub fn read(part: &Part) -> Result<Names> {
        Ok(Names {
            bytes: part.bytes("name", "bytes")?,
            encodings: part.ints("name", "encoding")?,
        })
    }

    /// A name by reference; `None` for 0.
    pub fn get(&self, reference: i64) -> Option<String> {
        let row = usize::try_from(reference).ok()?.checked_sub(1)?;
        let encoding = self.encodings.get(row).copied();
        let text = encoding.map(|encoding| encoding::decode(encoding, self.bytes.get(row)));
        Some(text.unwrap_or_else(|| LOST.to_string()))
    }
}

/// The source of an object's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Row in table `tick`.
    pub tick: Option<usize>,
    /// Row in the table itself.
    pub own: Option<usize>,
}

/// A field's values in a part.
pub struct FieldReader<'a> {
    stored: Stored<'a>,
    /// The stored number that means none, if there is one.
    none: Option<i64>,
    hidden: bool,
}

impl<'a> FieldReader<'a> {
    /// Reads the values; `None` if the part does not have the column.
    ///
    /// # Errors
    /// The column is damaged.
    pub fn read(
        part: &'a Part,
        table: &str,
        field: &Field,
        redaction: &Redaction,
    ) -> Result<Option<FieldReader<'a>>> {
        let name = &field.column.name;
        let known = part.schema().column(&field.table, name);
        let Some((t, c)) = known else {
            return Ok(None);
        };
        let column = &part.schema().tables[t].columns[c];
        Ok(Some(FieldReader {
            stored: Stored::read(part, table, field, column)?,
            none: NONE_IS_0.contains(&name.as_str()).then_some(0),
            hidden: redaction.hides_field(field),
        }))
    }

    /// Adds the field's values for some rows.
    pub fn write(&self, rows: &[Row], names: &Names, redaction: &Redaction, values: &mut Values) {
        let redacted = |text: &str| {
            let text = redaction.redacted_or_plain(self.hidden, text);
            text.map(|text| text.into_owned())
        };
        // A text is decoded once: `known` maps its number to its index in `values`.
        let mut known: HashMap<i64, Option<i64>> = HashMap::new();
        for row in rows {
            let Some(at) = self.stored.row(row.tick, row.own) else {
                values.number(None);
                continue;
            };
            let number = self.stored.numbers.get(at).copied().unwrap_or(0);
            let value = match &self.stored.form {
                Form::Number | Form::Fraction => (Some(number) != self.none).then_some(number),
                Form::Measured => (number != 0).then(|| number - 1),
                Form::Time { us } => (number != 0).then(|| number.saturating_mul(*us)),
                Form::Text(bytes, encodings) => {
                    let encoding = encodings.get(at).copied().unwrap_or(0);
                    let text = redacted(&encoding::decode(encoding, bytes.get(at)));
                    text.map(|text| values.place(&text))
                }
                Form::Name | Form::Label(_) if number == 0 => None,
                Form::Name => *known.entry(number).or_insert_with(|| {
                    let text = redacted(&names.get(number)?)?;
                    Some(values.place(&text))
                }),
                Form::Label(labels) => *known.entry(number).or_insert_with(|| {
                    let label = labels.get(&number);
                    let text = label.map_or_else(|| number.to_string(), |l| l.to_string());
                    Some(values.place(&text))
                }),
            };
            values.number(value);
        }
    }
}
