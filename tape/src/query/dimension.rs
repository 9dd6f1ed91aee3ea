//! Dimensions: what rows are filtered and grouped by. A run has a code, mostly
//! its reference to a dictionary; the key of a code is looked up once a file,
//! when a run of the window has it.

use super::error::{QueryError, QueryResult};
use super::register::{Atom, Id, Register};
use super::root_blocker;
use super::runs::Runs;
use super::vocabulary as pg;
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::{ColumnType, RUN, Role, SAMPLE, Schema};
use crate::format::table::{BytesColumn, Column};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

mod columns;

/// A dimension of the catalog, or one derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name of the argument.
    pub name: String,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Class or name of the wait event, or the kind of CPU activity.
    WaitEvent,
    WaitType,
    /// Column of a table that a column of `run` refers to.
    Dictionary {
        table: String,
        column: String,
    },
    /// Column of `run` itself.
    Run {
        column: String,
    },
    Root,
}

/// Names of all dimensions of a catalog, in its order.
pub fn names(catalog: &Schema) -> Vec<&str> {
    let columns = catalog.tables.iter().flat_map(|t| &t.columns);
    columns
        .filter(|c| c.role == Role::Dimension)
        .map(|c| c.name.as_str())
        .chain([pg::ROOT_BLOCKER])
        .collect()
}

impl Dimension {
    /// Finds a dimension by name; `what` names the argument in the error.
    pub fn find(catalog: &Schema, what: &str, name: &str) -> QueryResult<Dimension> {
        let place = match name {
            pg::WAIT_EVENT => Some(Place::WaitEvent),
            pg::WAIT_TYPE => Some(Place::WaitType),
            pg::ROOT_BLOCKER => Some(Place::Root),
            _ => catalog_place(catalog, name),
        };
        let place = place.ok_or_else(|| {
            QueryError::undefined(format!("{what} \"{name}\" does not exist"))
                .hint(format!("Available are {}.", names(catalog).join(", ")))
        })?;
        Ok(Dimension {
            name: name.to_string(),
            place,
        })
    }

    /// True when keys are numbers.
    pub fn is_number(&self, catalog: &Schema) -> bool {
        let (table, column) = match &self.place {
            Place::Root => return true,
            Place::WaitEvent | Place::WaitType => return false,
            Place::Dictionary { table, column } => (table.as_str(), column.as_str()),
            Place::Run { column } => (run_table(catalog), column.as_str()),
        };
        catalog
            .table(table)
            .and_then(|t| t.column(column))
            .is_some_and(|c| !matches!(c.ty, ColumnType::Name | ColumnType::Enum))
    }

    /// True when a session keeps its key as long as it lives.
    pub fn is_of_session(&self) -> bool {
        matches!(&self.place, Place::Dictionary { table, .. } if table == "session")
    }

    /// The labels its keys are made of, when they are an enumeration.
    pub fn labels<'c>(&self, catalog: &'c Schema) -> Option<Vec<&'c str>> {
        let (table, column) = match &self.place {
            Place::Dictionary { table, column } => (table.as_str(), column),
            Place::Run { column } => (run_table(catalog), column),
            _ => return None,
        };
        let column = catalog.table(table)?.column(column)?;
        let labels = catalog.labels(&column.target);
        (column.ty == ColumnType::Enum).then(|| labels.map(|l| l.label.as_str()).collect())
    }

    /// True when the keys follow from what all parts of a file share.
    pub fn is_shared(&self, part: &Part) -> bool {
        match &self.place {
            Place::Root => false,
            Place::Run { column } => {
                let def = part.schema().table(RUN).and_then(|t| t.column(column));
                def.is_some_and(|d| matches!(d.ty, ColumnType::Ref | ColumnType::Enum))
            }
            _ => true,
        }
    }

    /// Most keys that a part can have, as far as its dictionaries tell.
    pub fn rows(&self, part: &Part) -> usize {
        match &self.place {
            Place::Dictionary { table, .. } => part.rows(table),
            Place::WaitEvent | Place::WaitType => part.rows(pg::WAIT),
            Place::Run { column } => {
                let def = part.schema().table(RUN).and_then(|t| t.column(column));
                match def.map(|d| d.ty) {
                    Some(ColumnType::Enum) => 0,
                    Some(ColumnType::Ref) => part.rows("session"),
                    _ => part.rows(RUN),
                }
            }
            Place::Root => part.rows("session"),
        }
    }

    /// The key of every run of a part. Shared ones are made once for a view.
    pub fn resolve(&self, view: &View, runs: &Runs) -> QueryResult<Rc<Keys>> {
        if let Some(known) = view.keys.borrow().get(&self.name) {
            return Ok(known.clone());
        }
        let keys = Rc::new(self.find_keys(view, runs)?);
        if self.is_shared(view.part) {
            let mut known = view.keys.borrow_mut();
            known.insert(self.name.clone(), keys.clone());
        }
        Ok(keys)
    }

    /// The column of `run` that refers to its dictionary, and the numbers
    /// there by row; `None` when its keys are no numbers of a dictionary.
    pub fn numbers(&self, part: &Part) -> QueryResult<Option<(String, Column)>> {
        match &self.place {
            Place::Dictionary { table, column } if self.is_number(part.schema()) => {
                Ok(Some((reference_to(part, table), part.ints(table, column)?)))
            }
            _ => Ok(None),
        }
    }

    fn find_keys(&self, view: &View, runs: &Runs) -> QueryResult<Keys> {
        match &self.place {
            Place::WaitEvent => wait_keys(view, pg::wait_key, pg::cpu_key),
            Place::WaitType => wait_keys(
                view,
                |class, _| class.map(str::to_string),
                |_| pg::CPU_CLASS.to_string(),
            ),
            Place::Dictionary { table, column } => {
                view.references(table, column, reference_to(view.part, table))
            }
            Place::Run { column } => run_keys(view, column),
            Place::Root => root_blocker::keys(view, runs),
        }
    }
}

/// Name of the table of samples in a schema.
fn run_table(catalog: &Schema) -> &'static str {
    if catalog.table(SAMPLE).is_some() {
        SAMPLE
    } else {
        RUN
    }
}

fn catalog_place(catalog: &Schema, name: &str) -> Option<Place> {
    let samples = run_table(catalog);
    let table = catalog.tables.iter().find(|t| {
        t.columns
            .iter()
            .any(|c| c.role == Role::Dimension && c.name == name)
    })?;
    let column = name.to_string();
    Some(if table.name == samples {
        Place::Run { column }
    } else {
        let table = table.name.clone();
        Place::Dictionary { table, column }
    })
}

/// The column of `run` that refers to a dictionary: named like it, or the
/// first with that target.
fn reference_to(part: &Part, table: &str) -> String {
    let columns = part.schema().table(RUN).map(|t| t.columns.as_slice());
    let columns = columns.unwrap_or_default();
    let named = columns.iter().find(|c| c.name == table);
    let found = named.or_else(|| columns.iter().find(|c| c.target == table));
    found.map_or_else(|| table.to_string(), |c| c.name.clone())
}

/// The keys of a part by code, and the code of each run.
pub struct Keys {
    source: Source,
    /// How codes are found.
    pub codes: Codes,
    /// Id by code, or [`UNKNOWN`].
    ids: RefCell<Vec<Id>>,
}

/// Where keys come from.
enum Source {
    /// By code; each occurs once.
    Atoms(Vec<Atom>),
    /// Codes are references to a dictionary of which this is a column. They
    /// become keys when they are met: several may have the same.
    Column(DictionaryColumn),
    /// So many codes, of keys that no answer shows.
    Codes(usize),
}

/// A column of a dictionary.
struct DictionaryColumn {
    table: String,
    column: String,
    values: Column,
    /// Values but 0 that are in this range are shown in decimal.
    numbers: RangeInclusive<i64>,
    /// What others are, once they were met.
    others: RefCell<FastMap<i64, Atom>>,
}

/// Stands for an id that was not asked for yet.
const UNKNOWN: Id = Id::MAX;

impl Keys {
    fn new(source: Source, codes: Codes) -> Keys {
        Keys {
            source,
            codes,
            ids: RefCell::default(),
        }
    }

    /// So many keys of which only the codes matter.
    pub fn of_codes(width: usize, codes: Codes) -> Keys {
        Keys::new(Source::Codes(width), codes)
    }

    /// Codes are below this.
    pub fn width(&self) -> usize {
        match &self.source {
            Source::Atoms(atoms) => atoms.len(),
            Source::Column(column) => column.values.len() + 2,
            Source::Codes(width) => *width,
        }
    }

    /// No two codes have the same key.
    pub fn are_distinct(&self) -> bool {
        !matches!(self.source, Source::Column(_))
    }

    /// The key of a code.
    fn atom(&self, view: &View, code: u32) -> QueryResult<Atom> {
        match &self.source {
            Source::Atoms(atoms) => Ok(atoms[code as usize]),
            Source::Column(column) => column.atom(view, code),
            Source::Codes(_) => Ok(Atom::Text(code)),
        }
    }

    /// The keys of some codes.
    pub fn ids(&self, view: &View, codes: &[u32]) -> QueryResult<Vec<Id>> {
        let mut ids = self.ids.borrow_mut();
        let mut new = Vec::new();
        for code in codes {
            let at = *code as usize;
            if at >= ids.len() {
                ids.resize(at + 1, UNKNOWN);
            }
            if ids[at] == UNKNOWN {
                new.push((at, self.atom(view, *code)?));
            }
        }
        if !new.is_empty() {
            let mut known = view.register.ids();
            new.iter().for_each(|(at, atom)| ids[*at] = known.of(*atom));
        }
        Ok(codes.iter().map(|code| ids[*code as usize]).collect())
    }

    /// Whether a test accepts the key of each code.
    pub fn test(&self, view: &View, accepts: impl Fn(Atom) -> bool) -> QueryResult<Vec<bool>> {
        match &self.source {
            Source::Atoms(atoms) => Ok(atoms.iter().map(|atom| accepts(*atom)).collect()),
            Source::Column(column) => column.test(view, accepts),
            Source::Codes(width) => Ok(vec![true; *width]),
        }
    }
}

impl DictionaryColumn {
    /// Whether a test accepts what each code stands for.
    fn test(&self, view: &View, accepts: impl Fn(Atom) -> bool) -> QueryResult<Vec<bool>> {
        let mut ok = Vec::with_capacity(self.values.len() + 2);
        let mut known: FastMap<i64, bool> = FastMap::default();
        // Neighbours are often equal.
        let mut last = (0, accepts(Atom::Null));
        ok.push(last.1);
        for value in self.values.iter() {
            if *value != last.0 {
                let found = match known.get(value) {
                    Some(found) => *found,
                    None => match self.of_value(view, *value)? {
                        number @ Atom::Number(_) => accepts(number),
                        other => *known.entry(*value).or_insert_with(|| accepts(other)),
                    },
                };
                last = (*value, found);
            }
            ok.push(last.1);
        }
        ok.push(accepts(view.register.atom(Some(LOST))));
        Ok(ok)
    }

    #[inline]
    fn atom(&self, view: &View, code: u32) -> QueryResult<Atom> {
        let Some(row) = (code as usize).checked_sub(1) else {
            return Ok(Atom::Null);
        };
        match self.values.get(row) {
            None => Ok(view.register.atom(Some(LOST))),
            Some(value) => self.of_value(view, *value),
        }
    }

    #[inline]
    fn of_value(&self, view: &View, value: i64) -> QueryResult<Atom> {
        match value {
            0 => Ok(Atom::Null),
            number if self.numbers.contains(&number) => Ok(Atom::Number(number)),
            value => self.other(view, value),
        }
    }

    fn other(&self, view: &View, value: i64) -> QueryResult<Atom> {
        if let Some(atom) = self.others.borrow().get(&value) {
            return Ok(*atom);
        }
        let key = view.key(&self.table, &self.column, value)?;
        let atom = view.register.atom(key.as_deref());
        self.others.borrow_mut().insert(value, atom);
        Ok(atom)
    }
}

/// How the code of a run is found. Columns are named and not held: one that
/// decides nothing is never decoded.
#[derive(Clone)]
pub enum Codes {
    /// The value of a column of `run`.
    Reference {
        /// The column.
        column: String,
        /// The greatest code, which stands for values beyond it.
        last: u32,
    },
    /// By the value of a column of `run`.
    Lookup {
        /// The column.
        column: String,
        /// Code by value. The last stands for values beyond it.
        map: Vec<u32>,
    },
    /// By the wait event, or the kind of CPU activity when there is none.
    Wait {
        /// Code by wait event.
        wait_map: Vec<u32>,
        /// Code by kind.
        cpu_map: Vec<u32>,
    },
    /// One code per row of table `run`.
    Rows(Vec<u32>),
    /// One code per piece of [`Runs`].
    Pieces(Vec<u32>),
}

/// Stands for a reference without a definition; no dictionary is that long.
pub(super) const LOST_REFERENCE: i64 = i32::MAX as i64;

impl Codes {
    /// For each code below `width` something in the dictionaries that has it: a
    /// reference, or a kind of CPU activity with a minus. `None` when the codes
    /// are those of one part.
    pub fn references(&self, width: usize) -> Option<Vec<i64>> {
        let mut references = vec![0; width];
        let mut put = |map: &[u32], sign: i64| {
            let last = map.len() - 1;
            for (value, code) in map.iter().enumerate().rev() {
                let value = if value == last {
                    LOST_REFERENCE
                } else {
                    value as i64
                };
                references[*code as usize] = sign * value;
            }
        };
        match self {
            Codes::Lookup { map, .. } => put(map, 1),
            Codes::Wait { wait_map, cpu_map } => {
                put(cpu_map, -1);
                put(wait_map, 1);
            }
            _ => return None,
        }
        Some(references)
    }

    /// The code of something found by [`Codes::references`].
    pub fn of_reference(&self, reference: i64) -> Option<u32> {
        match self {
            Codes::Reference { last, .. } => Some(within(reference, *last)),
            Codes::Lookup { map, .. } => Some(at(map, reference)),
            Codes::Wait { wait_map, .. } if reference > 0 => Some(at(wait_map, reference)),
            Codes::Wait { cpu_map, .. } => Some(at(cpu_map, -reference)),
            _ => None,
        }
    }

    /// The code of every piece of `pieces` (`None` is all), in their order.
    pub fn of_pieces(
        &self,
        part: &Part,
        runs: &Runs,
        pieces: Option<&[u32]>,
        codes: &mut Vec<u32>,
    ) -> QueryResult<()> {
        codes.clear();
        match self {
            Codes::Reference { column, last } => {
                let column = part.ints(RUN, column)?;
                over_column(runs, pieces, &column, codes, |value| within(value, *last));
            }
            Codes::Lookup { column, map } => {
                let column = part.ints(RUN, column)?;
                over_column(runs, pieces, &column, codes, |value| at(map, value));
            }
            Codes::Wait { wait_map, cpu_map } => {
                let wait = part.ints(RUN, pg::WAIT)?;
                let wait: &[i64] = &wait;
                if part.bounds(RUN, pg::CPU) == Some((0, 0)) {
                    let none = at(cpu_map, 0);
                    over_column(runs, pieces, wait, codes, |wait| match wait {
                        0 => none,
                        wait => at(wait_map, wait),
                    });
                    return Ok(());
                }
                let cpu = part.ints(RUN, pg::CPU)?;
                let cpu: &[i64] = &cpu;
                over(runs, pieces, codes, |_, row| match wait[row] {
                    0 => at(cpu_map, cpu[row]),
                    wait => at(wait_map, wait),
                });
            }
            Codes::Rows(own) => over(runs, pieces, codes, |_, row| own[row]),
            Codes::Pieces(own) => over(runs, pieces, codes, |piece, _| own[piece]),
        }
        Ok(())
    }
}

/// Appends a code for every piece and its row.
#[inline]
fn over(
    runs: &Runs,
    pieces: Option<&[u32]>,
    codes: &mut Vec<u32>,
    code: impl Fn(usize, usize) -> u32,
) {
    match (pieces, runs.rows()) {
        (None, None) => codes.extend((0..runs.len()).map(|p| code(p, p))),
        (None, Some(rows)) => {
            let rows = rows.iter().enumerate();
            codes.extend(rows.map(|(p, row)| code(p, *row as usize)));
        }
        (Some(pieces), _) => {
            let pieces = pieces.iter().map(|p| *p as usize);
            codes.extend(pieces.map(|p| code(p, runs.row(p))));
        }
    }
}

/// The same for a code that follows from the value of a column of `run`.
#[inline]
fn over_column(
    runs: &Runs,
    pieces: Option<&[u32]>,
    column: &[i64],
    codes: &mut Vec<u32>,
    code: impl Fn(i64) -> u32,
) {
    match (pieces, runs.rows()) {
        (None, None) => codes.extend(column.iter().map(|value| code(*value))),
        _ => over(runs, pieces, codes, |_, row| code(column[row])),
    }
}

/// The last entry of a map stands for values beyond it (a damaged file).
#[inline]
fn at(map: &[u32], value: i64) -> u32 {
    let last = map.len() - 1;
    map[(value as usize).min(last)]
}

/// The same for values that are codes themselves.
#[inline]
fn within(value: i64, last: u32) -> u32 {
    u32::try_from(value).map_or(last, |value| value.min(last))
}

/// Key of a reference whose definition is missing.
const LOST: &str = "?";

/// Collects distinct keys.
#[derive(Default)]
pub struct KeySet {
    atoms: Vec<Atom>,
    codes: FastMap<Atom, u32>,
}

impl KeySet {
    /// The code of a key.
    pub fn code(&mut self, atom: Atom) -> u32 {
        let next = self.atoms.len() as u32;
        let code = *self.codes.entry(atom).or_insert(next);
        if code == next {
            self.atoms.push(atom);
        }
        code
    }

    /// The keys with the codes of the runs.
    pub fn with(self, codes: Codes) -> Keys {
        Keys::new(Source::Atoms(self.atoms), codes)
    }
}

/// A part with its strings decoded on demand. What is known of the
/// dictionaries stays known when the view turns to another part of the file.
pub struct View<'a> {
    /// The part.
    pub part: &'a Part,
    decode: fn(i64, &[u8]) -> String,
    names: OnceCell<(Column, BytesColumn)>,
    keys: RefCell<HashMap<String, Rc<Keys>>>,
    /// Where its keys are looked up.
    pub register: Register,
    cancel: Option<&'a AtomicBool>,
}

impl<'a> View<'a> {
    /// A view of a part; `decode` turns bytes in an encoding into text.
    pub fn new(part: &'a Part, decode: fn(i64, &[u8]) -> String) -> Self {
        View {
            part,
            decode,
            names: OnceCell::new(),
            keys: RefCell::default(),
            register: Register::default(),
            cancel: None,
        }
    }

    /// The same view, whose [`View::check_cancel`] asks this.
    pub fn canceled_by(self, cancel: &'a AtomicBool) -> Self {
        View {
            cancel: Some(cancel),
            ..self
        }
    }

    /// The same view, whose keys are those of a question.
    pub fn registered(self, register: &Register) -> Self {
        View {
            register: register.clone(),
            ..self
        }
    }

    /// Ends the query when that was asked for: to be called before each
    /// column that is decoded.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(QueryError::canceled()),
            _ => Ok(()),
        }
    }

    /// Turns to another part of the same file; false when it is of another.
    pub fn turn_to(&mut self, part: &'a Part) -> bool {
        let same = self.part.is_of_same_file(part);
        if same {
            self.part = part;
        }
        same
    }

    /// Text of bytes in an encoding.
    pub fn text(&self, encoding: i64, bytes: &[u8]) -> String {
        (self.decode)(encoding, bytes)
    }

    /// A string by its reference (row + 1, 0 = null).
    pub fn name(&self, reference: i64) -> QueryResult<Option<String>> {
        let Ok(reference) = usize::try_from(reference) else {
            return Ok(Some(LOST.to_string()));
        };
        if reference == 0 {
            return Ok(None);
        }
        if self.names.get().is_none() {
            let encoding = self.part.ints("name", "encoding")?;
            let bytes = self.part.bytes("name", "bytes")?;
            let _ = self.names.set((encoding, bytes));
        }
        let Some((encoding, bytes)) = self.names.get() else {
            return Ok(None);
        };
        Ok(Some(match encoding.get(reference - 1) {
            Some(encoding) => (self.decode)(*encoding, bytes.get(reference - 1)),
            None => LOST.to_string(),
        }))
    }

    /// The key of a value of a column, by the column's type.
    pub fn key(&self, table: &str, column: &str, value: i64) -> QueryResult<Option<String>> {
        let schema = self.part.schema();
        let Some(def) = schema.table(table).and_then(|t| t.column(column)) else {
            return Ok(None);
        };
        if value == 0 {
            return Ok(None);
        }
        match def.ty {
            ColumnType::Name => self.name(value),
            ColumnType::Enum => Ok(Some(
                schema.label(&def.target, value).unwrap_or(LOST).to_string(),
            )),
            ColumnType::Ref => self.pid(value).map(|pid| pid.map(|p| p.to_string())),
            ColumnType::Uint => Ok(Some((value as u64).to_string())),
            _ => Ok(Some(value.to_string())),
        }
    }

    /// The process id of a session.
    pub fn pid(&self, session: i64) -> QueryResult<Option<i64>> {
        let pids = self.part.ints("session", "pid")?;
        let row = usize::try_from(session - 1).ok();
        Ok(row.and_then(|row| pids.get(row).copied()))
    }

    /// Keys of a column of a dictionary that a column of `run` refers to.
    fn references(&self, table: &str, column: &str, reference: String) -> QueryResult<Keys> {
        let values = self.part.ints(table, column)?;
        let table_def = self.part.schema().table(table);
        let numbers = match table_def.and_then(|t| t.column(column)).map(|c| c.ty) {
            Some(ColumnType::Uint) => 0..=i64::MAX,
            Some(ColumnType::Int | ColumnType::Time | ColumnType::TimeUs | ColumnType::Span) => {
                i64::MIN..=i64::MAX
            }
            _ => RangeInclusive::new(1, 0),
        };
        let last = values.len() as u32 + 1;
        let source = Source::Column(DictionaryColumn {
            table: table.to_string(),
            column: column.to_string(),
            values,
            numbers,
            others: RefCell::default(),
        });
        let column = reference;
        Ok(Keys::new(source, Codes::Reference { column, last }))
    }
}

/// Keys made of the class and the name of a wait event.
fn wait_keys(
    view: &View,
    wait_key: impl Fn(Option<&str>, Option<&str>) -> Option<String>,
    cpu_key: impl Fn(&str) -> String,
) -> QueryResult<Keys> {
    let (mut keys, register) = (KeySet::default(), &view.register);
    let mut wait_map = vec![keys.code(Atom::Null)];
    for (class, event) in wait_events(view)? {
        let key = wait_key(class.as_deref(), event.as_deref());
        wait_map.push(keys.code(register.atom(key.as_deref())));
    }
    let lost = keys.code(register.atom(Some(LOST)));
    wait_map.push(lost);
    let mut cpu_map = vec![keys.code(Atom::Null)];
    for label in view.part.schema().labels(pg::CPU) {
        let value = usize::try_from(label.value).unwrap_or(0);
        cpu_map.resize(cpu_map.len().max(value + 1), lost);
        cpu_map[value] = keys.code(register.atom(Some(&cpu_key(&label.label))));
    }
    cpu_map.push(lost);
    Ok(keys.with(Codes::Wait { wait_map, cpu_map }))
}

/// Class and name of each wait event of a part.
pub fn wait_events(view: &View) -> QueryResult<Vec<(Option<String>, Option<String>)>> {
    let class = view.part.ints(pg::WAIT, pg::WAIT_TYPE)?;
    let event = view.part.ints(pg::WAIT, pg::WAIT_EVENT)?;
    let pairs = class.iter().zip(event.iter());
    pairs
        .map(|(c, e)| Ok((view.name(*c)?, view.name(*e)?)))
        .collect()
}

/// Keys of a column of `run` itself.
fn run_keys(view: &View, name: &str) -> QueryResult<Keys> {
    let def = view.part.schema().table(RUN).and_then(|t| t.column(name));
    let (mut keys, register) = (KeySet::default(), &view.register);
    let column = name.to_string();
    match def.map(|d| d.ty) {
        Some(ColumnType::Ref) => view.references("session", "pid", column),
        Some(ColumnType::Enum) => {
            let target = def.map_or("", |d| d.target.as_str());
            let lost = keys.code(register.atom(Some(LOST)));
            let mut map = vec![keys.code(Atom::Null)];
            for label in view.part.schema().labels(target) {
                let value = usize::try_from(label.value).unwrap_or(0);
                map.resize(map.len().max(value + 1), lost);
                map[value] = keys.code(register.atom(Some(&label.label)));
            }
            map.push(lost);
            Ok(keys.with(Codes::Lookup { column, map }))
        }
        _ => {
            let values = view.part.ints(RUN, name)?;
            let mut known: FastMap<i64, u32> = FastMap::default();
            let mut codes = Vec::with_capacity(values.len());
            for &value in values.iter() {
                let code = match known.get(&value) {
                    Some(code) => *code,
                    None => {
                        let key = view.key(RUN, name, value)?;
                        let code = keys.code(register.atom(key.as_deref()));
                        known.insert(value, code);
                        code
                    }
                };
                codes.push(code);
            }
            Ok(keys.with(Codes::Rows(codes)))
        }
    }
}
