//! The values of a field in a part as they are stored. `export` writes them as
//! text, `ship` into columns.

use crate::exchange::{Field, Place};
use std::collections::HashMap;
use tacho_tape::format::schema::{ColumnDef, ColumnType};
use tacho_tape::{BytesColumn, Column, Part, Result};

/// The meaning of a field's numbers.
pub enum Form<'a> {
    /// The number itself.
    Number,
    /// The number plus one.
    Measured,
    /// Hundredths.
    Fraction,
    /// A time in units of `us` µs.
    Time {
        /// Length of the unit in µs.
        us: i64,
    },
    /// A row of the dictionary of names.
    Name,
    /// A label, by number.
    Label(HashMap<i64, &'a str>),
    /// No numbers: the values are texts, each with its encoding.
    Text(BytesColumn, Column),
}

/// A column, with the references that lead to it.
pub struct Stored<'a> {
    place: Place,
    reference: Option<Column>,
    /// Numbers of the column; empty for texts.
    pub numbers: Column,
    /// The meaning of the numbers.
    pub form: Form<'a>,
}

impl<'a> Stored<'a> {
    /// Reads the field of a table's rows. `column` is its column, from the part's
    /// or the field's schema.
    ///
    /// # Errors
    /// The column is damaged.
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

    /// The row with the value for a row `own` and its tick; `None` for a null
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
