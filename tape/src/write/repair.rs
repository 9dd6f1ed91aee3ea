//! Repair: writes the readable contents of damaged files to new files in another directory; the
//! damaged files are not touched. Losses stay visible: a reference whose column is lost reads as
//! `?`, ticks without their samples count as unobserved, and a marker names each loss and its time.

use crate::error::{self, Error, Result};
use crate::files::directory::{self, HistoryFile, Kind};
use crate::files::storage::{Storage, read_all};
use crate::format::log::LogContents;
use crate::format::part::{LogDamage, Memory, Part};
use crate::format::part_builder::bounds;
use crate::format::schema::{ColumnType, RUN, Schema, TableDef};
use crate::format::sealed_write::FrameRange;
use crate::format::table::{Data, Strings, Table};
use crate::query::value::vocabulary as pg;
use crate::store::open::Repeats;
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::write::merge::rewrite;
use crate::write::seal::{convert, read_readable_log};
use std::sync::Arc;

/// PostgreSQL's id of UTF-8.
const UTF8: i64 = 6;

/// Columns without which a tick's samples mean nothing.
const ESSENTIAL: [(&str, &[&str]); 3] = [
    ("tick", &["tick", "slot_time", "interval_ms", "status"]),
    (
        RUN,
        &["session", "first_tick", "ticks", pg::STATE, "marked"],
    ),
    ("session", &["pid", pg::CATEGORY]),
];

/// Result of repairing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is whole and was copied.
    Copied,
    /// The readable contents were written to a new file.
    Repaired {
        /// Damaged ranges of bytes.
        damage: Vec<LogDamage>,
        /// Losses, in words.
        lost: Vec<String>,
    },
    /// Nothing of the file can be read.
    Lost(String),
}

/// A file and the result of repairing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// Name of the file.
    pub name: String,
    /// Result.
    pub outcome: Outcome,
}

/// Writes the files of a directory, or only the file named `only`, to another directory. Whole
/// files are copied, damaged files are repaired. `known` is a schema for files whose own is
/// unreadable.
///
/// # Errors
/// A directory could not be read or written.
pub fn repair(
    from: &dyn Storage,
    to: &dyn Storage,
    only: Option<&str>,
    known: &Schema,
) -> Result<Vec<Repaired>> {
    let mut files = directory::list(from)?;
    files.retain(|f| f.kind != Kind::Temporary);
    let mut repair = Repair {
        from,
        to,
        schemas: Schemas::default(),
        later: Repeats::default(),
    };
    repair.schemas.learn(known);
    repair.learn_schemas(&files);
    let chosen = |f: &HistoryFile| only.is_none_or(|only| f.name() == only);
    let has_parents = |f: &HistoryFile| files.iter().any(|other| f.numbers.replaces(other.numbers));
    let mut done = Vec::new();
    // Newest first: a later log may repeat frames of an earlier one.
    for file in files.iter().rev().filter(|f| chosen(f)) {
        let name = file.name();
        // Not repaired if its parents are still there: a repaired merged file would hide these
        // whole files.
        let outcome = match has_parents(file) {
            true => match repair.bytes(file) {
                Ok(bytes) => repair.copy(file, &bytes)?,
                Err(error) => Outcome::Lost(error.to_string()),
            },
            false => repair.file(file)?,
        };
        done.push(Repaired { name, outcome });
    }
    done.reverse();
    to.sync_directory()
        .map_err(|e| Error::io("synchronize directory", to.directory(), e))?;
    Ok(done)
}

struct Repair<'a> {
    from: &'a dyn Storage,
    to: &'a dyn Storage,
    schemas: Schemas,
    later: Repeats,
}

impl Repair<'_> {
    /// Learns the schemas and frames of all sealed files. A file may have the schema that another
    /// file lost.
    fn learn_schemas(&mut self, files: &[HistoryFile]) {
        for file in files.iter().filter(|f| f.kind == Kind::Sealed) {
            if let Ok(block) = self.open(file) {
                self.later.sealed(file.numbers.first, &block);
            }
        }
    }

    fn open(&mut self, file: &HistoryFile) -> Result<BlockFile> {
        let path = self.from.directory().join(file.name());
        let opened = self.from.open(&file.name());
        let opened = opened.map_err(|e| Error::io("open file", &path, e))?;
        BlockFile::open_whole(opened, &path, &mut self.schemas)
    }

    fn file(&mut self, file: &HistoryFile) -> Result<Outcome> {
        let read = match file.kind {
            Kind::Log => self.log(file),
            _ => self.sealed(file),
        };
        match read {
            Ok(found) => self.write(file, found),
            Err(error) => Ok(Outcome::Lost(error.to_string())),
        }
    }

    fn log(&mut self, file: &HistoryFile) -> Result<Readable> {
        let number = file.numbers.first;
        let contents = read_readable_log(self.from, number, u64::MAX)?;
        let until = self.later.log(number, &contents.header);
        match (contents.damage.is_empty(), until) {
            (true, _) => Ok(Readable::Whole(self.bytes(file)?)),
            (_, u64::MAX) => Ok(Readable::Log(Box::new(contents))),
            _ => {
                let contents = read_readable_log(self.from, number, until)?;
                Ok(Readable::Log(Box::new(contents)))
            }
        }
    }

    fn sealed(&mut self, file: &HistoryFile) -> Result<Readable> {
        let block = self.open(file)?;
        let damage = block.verify()?;
        if damage.is_empty() {
            return Ok(Readable::Whole(self.bytes(file)?));
        }
        let mut lost = Vec::new();
        let mut parts = Vec::new();
        for (part, frames) in block.parts().zip(block.frames()) {
            let (part, gone) = salvage(&part);
            lost.extend(gone);
            parts.push((part, frames));
        }
        lost.dedup();
        Ok(Readable::Groups {
            parts,
            damage,
            lost,
        })
    }

    fn bytes(&self, file: &HistoryFile) -> Result<Vec<u8>> {
        let name = file.name();
        let path = self.from.directory().join(&name);
        let read = self.from.open(&name).and_then(|f| read_all(&*f));
        read.map_err(|e| Error::io("read file", &path, e))
    }

    fn write(&self, file: &HistoryFile, found: Readable) -> Result<Outcome> {
        let damage = match found {
            Readable::Whole(bytes) => return self.copy(file, &bytes),
            Readable::Log(contents) => {
                let sealed = convert(self.to, file.numbers.first, *contents)?;
                let lost = sealed.damage.iter();
                let lost = lost.map(|d| format!("{} bytes of frames were lost", d.bytes));
                return Ok(Outcome::Repaired {
                    lost: lost.collect(),
                    damage: sealed.damage,
                });
            }
            Readable::Groups {
                parts,
                damage,
                lost,
            } => match rewrite(self.to, file.numbers, &parts) {
                Ok(()) => return Ok(Outcome::Repaired { damage, lost }),
                Err(error) if error.kind == error::Kind::Damaged => error,
                Err(error) => return Err(error),
            },
        };
        Ok(Outcome::Lost(damage.to_string()))
    }

    fn copy(&self, file: &HistoryFile, bytes: &[u8]) -> Result<Outcome> {
        let name = file.name();
        let write = || {
            let mut copy = self.to.create(&name)?;
            copy.append(bytes)?;
            copy.sync()
        };
        let path = self.to.directory().join(&name);
        write().map_err(|e| Error::io("write file", &path, e))?;
        Ok(Outcome::Copied)
    }
}

/// The readable contents of a file.
enum Readable {
    Whole(Vec<u8>),
    Log(Box<LogContents>),
    Groups {
        parts: Vec<(Part, FrameRange)>,
        damage: Vec<LogDamage>,
        lost: Vec<String>,
    },
}

/// The readable contents of a group, and its losses in words.
fn salvage(part: &Part) -> (Part, Vec<String>) {
    let schema = part.schema();
    let mut salvage = Salvage {
        part,
        schema,
        tables: schema.tables.iter().map(Table::new).collect(),
        lost: Vec::new(),
        no_samples: false,
        lost_references: 0,
    };
    // Totals are computed again from the remaining data.
    for t in (0..schema.tables.len()).filter(|t| !schema.is_totals(*t)) {
        salvage.table(t);
    }
    salvage.no_samples |= part.rows(RUN) > 0 && part.rows("session") == 0;
    if salvage.no_samples {
        salvage.drop_samples();
    }
    salvage.mark();
    salvage.mend_references();
    let mut info = bounds(schema, &salvage.tables);
    info.identity = part.info().identity.clone();
    info.lost_definitions = part.info().lost_definitions + salvage.lost_references;
    info.dropped_rows = part.info().dropped_rows;
    let source = Arc::new(Memory::new(salvage.tables));
    let part = Part::new(info, Arc::new(schema.clone()), source);
    (part, salvage.lost)
}

struct Salvage<'a> {
    part: &'a Part,
    schema: &'a Schema,
    tables: Vec<Table>,
    lost: Vec<String>,
    /// True if an essential column is lost, so the group keeps no ticks.
    no_samples: bool,
    lost_references: u64,
}

impl Salvage<'_> {
    fn table(&mut self, t: usize) {
        let def = &self.schema.tables[t];
        let rows = self.part.rows(&def.name);
        self.tables[t].rows = rows;
        for (c, column) in def.columns.iter().enumerate() {
            let read = match column.ty {
                ColumnType::Bytes => self
                    .part
                    .bytes(&def.name, &column.name)
                    .map(|strings| Data::Bytes((*strings.0).clone())),
                _ => self
                    .part
                    .ints(&def.name, &column.name)
                    .map(|numbers| Data::Ints(numbers.to_vec())),
            };
            match read {
                Ok(data) => self.tables[t].columns[c] = data,
                Err(_) => self.lose(t, c, rows),
            }
        }
        let lost = |name: &str| {
            let lost = format!("column {name} of {rows} rows of {} was lost", def.name);
            self.lost.contains(&lost)
        };
        if lost("at") || lost("time") {
            self.tables[t] = Table::new(def);
        }
    }

    fn lose(&mut self, t: usize, c: usize, rows: usize) {
        let def = &self.schema.tables[t];
        let column = &def.columns[c];
        let (table, name) = (def.name.as_str(), column.name.as_str());
        self.lost
            .push(format!("column {name} of {rows} rows of {table} was lost"));
        let essential = ESSENTIAL.iter().find(|e| e.0 == table);
        self.no_samples |= essential.is_some_and(|e| e.1.contains(&name));
        match column.ty {
            // A reference beyond the end of every table reads as `?`.
            ColumnType::Name | ColumnType::Ref => {
                self.tables[t].columns[c] = Data::Ints(vec![i64::MAX; rows]);
            }
            ColumnType::Bytes => {
                let mut unknown = Strings::default();
                (0..rows).for_each(|_| unknown.push(b"?"));
                self.tables[t].columns[c] = Data::Bytes(unknown);
            }
            _ => (),
        }
    }

    /// Drops the ticks, and all rows that belong to ticks.
    fn drop_samples(&mut self) {
        let ticks = self.part.rows("tick");
        self.lost
            .push(format!("{ticks} ticks with their samples were lost"));
        for (t, def) in self.schema.tables.iter().enumerate() {
            if def.name == "tick" || def.name == RUN || def.index("at").is_some() {
                self.tables[t] = Table::new(def);
            }
        }
    }

    /// Adds a marker for each loss.
    fn mark(&mut self) {
        let schema = self.schema;
        let (Some(markers), Some(names)) = (schema.index("marker"), schema.index("name")) else {
            return;
        };
        let info = self.part.info();
        let (since, until) = match info.min_ms <= info.max_ms {
            true => (info.min_ms, info.max_ms),
            false => (0, 0),
        };
        let kind = schema.value("marker", "damage").unwrap_or(0);
        for lost in &self.lost {
            let detail = add_row(
                &mut self.tables[names],
                &schema.tables[names],
                &[("encoding", UTF8)],
                lost.as_bytes(),
            );
            let values = [
                ("time", until),
                ("kind", kind),
                ("since", since),
                ("until", until),
                ("detail", detail),
            ];
            add_row(
                &mut self.tables[markers],
                &schema.tables[markers],
                &values,
                b"",
            );
        }
    }

    /// Points references to lost rows at a row `?`. Names come last, because the new rows refer to
    /// names.
    fn mend_references(&mut self) {
        let names = self.schema.index("name");
        let others = (0..self.tables.len()).filter(|t| Some(*t) != names);
        for target in others.chain(names) {
            let mut unknown = None;
            for t in 0..self.tables.len() {
                for c in 0..self.tables[t].columns.len() {
                    if self.target(t, c, names) == Some(target) {
                        self.mend_column(t, c, target, &mut unknown);
                    }
                }
            }
        }
    }

    fn mend_column(&mut self, t: usize, c: usize, target: usize, unknown: &mut Option<i64>) {
        let rows = self.tables[target].rows as i64;
        let Data::Ints(mut values) = self.tables[t].columns[c].clone() else {
            return;
        };
        let broken = values.iter_mut().filter(|v| !(0..=rows).contains(*v));
        for value in broken {
            let def = &self.schema.tables[target];
            let table = &mut self.tables[target];
            *value = *unknown.get_or_insert_with(|| {
                let names = def.columns.iter().filter(|c| c.ty == ColumnType::Name);
                let names: Vec<(&str, i64)> = names.map(|c| (c.name.as_str(), i64::MAX)).collect();
                add_row(table, def, &names, b"?")
            });
            self.lost_references += 1;
        }
        self.tables[t].columns[c] = Data::Ints(values);
    }

    fn target(&self, t: usize, c: usize, names: Option<usize>) -> Option<usize> {
        let column = &self.schema.tables[t].columns[c];
        match column.ty {
            ColumnType::Name => names,
            ColumnType::Ref => self.schema.index(&column.target),
            _ => None,
        }
    }
}

/// Adds a row to a table; returns its reference.
fn add_row(table: &mut Table, def: &TableDef, values: &[(&str, i64)], bytes: &[u8]) -> i64 {
    table.pad();
    let row = table.add_row();
    for (name, value) in values {
        if let Some(c) = def.index(name) {
            table.set(c, row, *value);
        }
    }
    for (c, column) in def.columns.iter().enumerate() {
        if column.ty == ColumnType::Bytes {
            table.set_bytes(c, bytes);
        }
    }
    row as i64 + 1
}
