//! The columns that the keys of a dimension are made of, for plans.

use super::{Dimension, Place, reference_to};
use crate::format::part::Part;
use crate::format::schema::{ColumnType, RUN};
use crate::query::{root_blocker, vocabulary as pg};

/// What texts of names are read from.
const NAMES: [(&str, &str); 2] = [("name", "encoding"), ("name", "bytes")];

impl Dimension {
    /// The columns that its keys are made of: of dictionaries, and of the runs
    /// of a part; some are read only where they decide.
    pub fn columns(&self, part: &Part) -> Vec<(String, String)> {
        let mut columns: Vec<(&str, String)> = Vec::new();
        let of_type = |table: &str| {
            let columns = part.schema().table(table);
            match columns.and_then(|t| t.column(&self.name)).map(|c| c.ty) {
                Some(ColumnType::Name) => NAMES.to_vec(),
                Some(ColumnType::Ref) => vec![("session", "pid")],
                _ => Vec::new(),
            }
        };
        let others = match &self.place {
            Place::WaitEvent | Place::WaitType => {
                columns.extend([pg::WAIT, pg::CPU].map(|column| (RUN, column.to_string())));
                let wait = [pg::WAIT_TYPE, pg::WAIT_EVENT].map(|column| (pg::WAIT, column));
                [&wait[..], &NAMES].concat()
            }
            Place::Dictionary { table, column } => {
                columns.push((RUN, reference_to(part, table)));
                columns.push((table, column.clone()));
                of_type(table)
            }
            Place::Run { column } => {
                columns.push((RUN, column.clone()));
                of_type(RUN)
            }
            Place::Root => [&root_blocker::COLUMNS[..], &NAMES].concat(),
        };
        let others = others.into_iter();
        columns.extend(others.map(|(table, column)| (table, column.to_string())));
        let columns = columns.into_iter();
        columns
            .map(|(table, column)| (table.to_string(), column))
            .collect()
    }
}
