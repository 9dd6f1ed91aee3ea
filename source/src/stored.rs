//! The values of a field in a part as they are stored: what `export` writes as text
//! and `ship` into columns.

use crate::exchange::{Field, Place};
use std::collections::HashMap;
use tacho_tape::format::schema::{ColumnDef, ColumnType};
use tacho_tape::{BytesColumn, Column, Part, Result};

/// What the numbers of a field stand for.
pub enum Form<'a> {
    /// Themselves.
    Number,
    /// Themselves and one.
    Measured,
    /// Hundredths.
    Fraction,
    /// A time in units of so many µs.
    Time {
        /// The unit.
        us: i64,
    },
    /// A row of the names.
    Name,
    /// A label by number.
    Label(HashMap<i64, &'a str>),
    /// Nothing: the values are texts, each with its encoding.
    Text(BytesColumn, Column),
}

/// A column with the references that lead to it.
pub struct Stored<'a> {
    place: Place,
    reference: Option<Column>,
    /// Its numbers; none of texts.
    pub numbers: Column,
    /// What they stand for.
    pub form: Form<'a>,
}

impl<'a> Stored<'a> {
    /// Reads the field of a table's rows; `column` is its column, of the part or as
    /// the field has it.
    ///
    /// # Errors
    /// It is damaged.
    pub fn read(
        part: &'a Part,
        table: &str,
        field: &Field,
        column: &ColumnDef,
    ) -> Result<Stored<'a>> {
        let name = &field.column.name;
        let form = match column.ty {
            ColumnType::Bytes => Form::Text(
                part.bytes(&field.table, name)?,
                part.ints(&field.table, "encoding")?,
            ),
            ColumnType::Name => Form::Name,
            ColumnType::Time => Form::Time { us: 1_000 },
            ColumnType::TimeUs => Form::Time { us: 1 },
            ColumnType::Enum => {
                let labels = part.schema().labels(&column.target);
                Form::Label(labels.map(|l| (l.value, l.label.as_str())).collect())
            }
            _ if field.is_measured() => Form::Measured,
            _ if field.is_fraction() => Form::Fraction,
            _ => Form::Number,
        };
        let reference = match &field.place {
            Place::Reference(name) => Some(part.ints(table, name)?),
            _ => None,
        };
        Ok(Stored {
            numbers: match column.ty {
                ColumnType::Bytes => Column::default(),
                _ => part.ints(&field.table, name)?,
            },
            place: field.place.clone(),
            reference,
            form,
        })
    }

    /// The row that holds the value of a row and its tick; `None` for a null
    /// reference.
    pub fn row(&self, tick: Option<usize>, own: Option<usize>) -> Option<usize> {
        match (&self.place, &self.reference) {
            (Place::Tick, _) => tick,
            (_, None) => own,
            (_, Some(references)) => {
                let reference = usize::try_from(*references.get(own?)?).ok()?;
                reference.checked_sub(1)
            }
        }
    }
}
