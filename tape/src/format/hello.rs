//! The sections of the hello frame: schema, labels, and `meta`. Sealed files
//! store schema and labels in the same form.

use crate::error::{Error, Result};
use crate::format::frame::FrameBuilder;
use crate::format::schema::{ColumnDef, ColumnType, Label, Role, Schema, TableDef};
use crate::format::section::Section;
use crate::format::section::Values;

const SCHEMA: u8 = 1;
const LABEL: u8 = 2;
const META: u8 = 3;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads the schema from the sections of a hello frame. Columns of an unknown type are left out.
///
/// # Errors
/// There is no schema among them.
pub fn read_schema(sections: &[Section<'_>]) -> Result<Schema> {
    let mut schema = Schema::default();
    for section in sections {
        match section.table {
            SCHEMA => read_columns(section, &mut schema),
            LABEL => read_labels(section, &mut schema),
            _ => (),
        }
    }
    if schema.tables.is_empty() {
        return Err(Error::damaged("hello frame has no schema"));
    }
    schema.tables.sort_by_key(|t| t.id);
    for table in &mut schema.tables {
        table.columns.sort_by_key(|c| c.id);
    }
    Ok(schema)
}

fn read_columns(section: &Section<'_>, schema: &mut Schema) {
    let [table_ids, ids, types, flags] = [1, 2, 3, 4].map(|id| section.stored(id));
    let [tables, names, targets] = [5, 6, 7].map(|id| section.strings(id));
    for row in 0..section.rows {
        let (table_id, id) = (table_ids[row] as u8, ids[row] as u8);
        let Some(ty) = ColumnType::from_code(types[row] as u8) else {
            continue;
        };
        let found = schema.index_of_id(table_id);
        let index = found.unwrap_or_else(|| {
            schema.tables.push(TableDef {
                id: table_id,
                name: text(tables[row]),
                columns: Vec::new(),
            });
            schema.tables.len() - 1
        });
        let table = &mut schema.tables[index];
        if table.index_of_id(id).is_none() {
            table.columns.push(ColumnDef {
                id,
                name: text(names[row]),
                ty,
                role: Role::from_flags(flags[row] as u8),
                target: text(targets[row]),
            });
        }
    }
}

fn read_labels(section: &Section<'_>, schema: &mut Schema) {
    let values = section.stored(1);
    let [enumerations, labels] = [2, 3].map(|id| section.strings(id));
    for row in 0..section.rows {
        schema.labels.push(Label {
            enumeration: text(enumerations[row]),
            value: values[row] as i64,
            label: text(labels[row]),
        });
    }
}

/// Reads the keys and values of `meta` from the sections of any frame.
pub fn read_meta(sections: &[Section<'_>]) -> Vec<(String, String)> {
    let mut meta = Vec::new();
    for section in sections.iter().filter(|s| s.table == META) {
        let keys = section.strings(1);
        let values = section.strings(2);
        meta.extend(keys.iter().zip(&values).map(|(k, v)| (text(k), text(v))));
    }
    meta
}

/// Adds the sections `schema` and `label` to a frame.
pub fn write_schema(frame: &mut FrameBuilder, schema: &Schema) {
    let columns: Vec<(&TableDef, &ColumnDef)> = schema
        .tables
        .iter()
        .flat_map(|t| t.columns.iter().map(move |c| (t, c)))
        .collect();
    let ints = |get: &dyn Fn(&TableDef, &ColumnDef) -> u8| {
        Values::Ints(columns.iter().map(|(t, c)| u64::from(get(t, c))).collect())
    };
    let strings = |get: &dyn Fn(&TableDef, &ColumnDef) -> String| {
        Values::Bytes(columns.iter().map(|(t, c)| get(t, c).into()).collect())
    };
    let section = [
        (1, ints(&|t, _| t.id)),
        (2, ints(&|_, c| c.id)),
        (3, ints(&|_, c| c.ty.code())),
        (4, ints(&|_, c| c.role.flags())),
        (5, strings(&|t, _| t.name.clone())),
        (6, strings(&|_, c| c.name.clone())),
        (7, strings(&|_, c| c.target.clone())),
    ];
    frame.section(SCHEMA, columns.len(), &section);
    let labels = &schema.labels;
    let strings =
        |get: fn(&Label) -> &str| Values::Bytes(labels.iter().map(|l| get(l).into()).collect());
    let section = [
        (
            1,
            Values::Ints(labels.iter().map(|l| l.value as u64).collect()),
        ),
        (2, strings(|l| &l.enumeration)),
        (3, strings(|l| &l.label)),
    ];
    frame.section(LABEL, labels.len(), &section);
}

/// Adds the section `meta` to a frame.
pub fn write_meta(frame: &mut FrameBuilder, meta: &[(&str, &str)]) {
    let strings = |get: fn(&(&str, &str)) -> Vec<u8>| Values::Bytes(meta.iter().map(get).collect());
    let section = [(1, strings(|m| m.0.into())), (2, strings(|m| m.1.into()))];
    frame.section(META, meta.len(), &section);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame::{Frame, HELLO};

    #[test]
    fn the_hello_frame_carries_schema_labels_and_meta() {
        let schema = crate::catalog::samples();
        let mut frame = FrameBuilder::new(HELLO, 1, 1, 0);
        write_schema(&mut frame, &schema);
        write_meta(&mut frame, &[("host", "db1"), ("timeline", "3")]);
        let bytes = frame.finish();
        let sections = Frame::parse(&bytes)
            .unwrap()
            .unwrap()
            .all_sections()
            .unwrap();
        assert_eq!(read_schema(&sections).unwrap(), schema);
        let meta = read_meta(&sections);
        assert_eq!(meta[1], ("timeline".to_string(), "3".to_string()));
    }
}
