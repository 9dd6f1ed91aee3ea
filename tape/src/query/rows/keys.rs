//! The keys of a part. Each run has a code, and each code has a key.
//!
//! `group.rs` gives a code its number in the part, and [`Register`] gives a key its id in the
//! question (`integers.rs` has an example). A view finds a key once for each file, and only if a
//! run of the window has its code. [`View`] also reads the texts of dictionaries.

use super::integers::{Code, Id, Reference};
use super::register::{Atom, Register};
use super::runs::Runs;
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::{ColumnType, RUN};
use crate::format::table::{BytesColumn, Column};
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::vocabulary as pg;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The keys of a part by code, and the code of each run.
pub struct Keys {
    source: Source,
    /// How to find the code of a run.
    pub codes: Codes,
    /// Id of each code, or [`UNKNOWN`].
    ids: RefCell<Vec<Id>>,
}

/// Source of the keys.
enum Source {
    /// Key of each code; no two are equal.
    Atoms(Vec<Atom>),
    /// A column of a dictionary; the code is the reference to its row. A value becomes a key when a
    /// run has it, so several codes may have the same key.
    Column(DictionaryColumn),
    /// Number of codes. Their keys are not shown.
    Codes(usize),
}

/// A column of a dictionary.
struct DictionaryColumn {
    table: String,
    column: String,
    values: Column,
    /// Values in this range, except 0, are shown as decimal numbers.
    numbers: RangeInclusive<i64>,
    /// Keys of all other values, filled as they occur.
    others: RefCell<FastMap<i64, Atom>>,
}

/// Id of a code that was not yet looked up.
const UNKNOWN: Id = Id::MAX;

impl Keys {
    fn new(source: Source, codes: Codes) -> Keys {
        Keys {
            source,
            codes,
            ids: RefCell::default(),
        }
    }

    /// Codes below `width` without keys.
    pub fn of_codes(width: usize, codes: Codes) -> Keys {
        Keys::new(Source::Codes(width), codes)
    }

    /// Every code is below this number.
    pub fn width(&self) -> usize {
        match &self.source {
            Source::Atoms(atoms) => atoms.len(),
            Source::Column(column) => column.values.len() + 2,
            Source::Codes(width) => *width,
        }
    }

    /// True if no two codes have the same key.
    pub fn are_distinct(&self) -> bool {
        !matches!(self.source, Source::Column(_))
    }

    /// The key of a code.
    fn atom(&self, view: &View, code: Code) -> QueryResult<Atom> {
        match &self.source {
            Source::Atoms(atoms) => Ok(atoms[code.index()]),
            Source::Column(column) => column.atom(view, code),
            // No answer prints these keys. Therefore any ids serve, if no two are equal.
            Source::Codes(_) => Ok(Atom::Text(Id::at(code.index()))),
        }
    }

    /// The ids of the keys of these codes.
    pub fn ids(&self, view: &View, codes: &[Code]) -> QueryResult<Vec<Id>> {
        let mut ids = self.ids.borrow_mut();
        let mut new = Vec::new();
        for code in codes {
            let at = code.index();
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
        Ok(codes.iter().map(|code| ids[code.index()]).collect())
    }

    /// For each code: true if `accepts` is true for its key.
    pub fn test(&self, view: &View, accepts: impl Fn(Atom) -> bool) -> QueryResult<Vec<bool>> {
        match &self.source {
            Source::Atoms(atoms) => Ok(atoms.iter().map(|atom| accepts(*atom)).collect()),
            Source::Column(column) => column.test(view, accepts),
            Source::Codes(width) => Ok(vec![true; *width]),
        }
    }
}

impl DictionaryColumn {
    /// For each code: true if `accepts` is true for its value.
    fn test(&self, view: &View, accepts: impl Fn(Atom) -> bool) -> QueryResult<Vec<bool>> {
        let mut ok = Vec::with_capacity(self.values.len() + 2);
        let mut known: FastMap<i64, bool> = FastMap::default();
        // Neighbouring values are often equal.
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
    fn atom(&self, view: &View, code: Code) -> QueryResult<Atom> {
        let Some(row) = code.index().checked_sub(1) else {
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

/// How to find the code of a run. Columns are named here, not read: a column that decides nothing
/// is never decoded.
#[derive(Clone)]
pub enum Codes {
    /// The code is the value of a column of `run`.
    Reference {
        /// The column.
        column: String,
        /// The largest code; larger values in a damaged file also get it.
        last: Code,
    },
    /// The code follows from the value of a column of `run`.
    Lookup {
        /// The column.
        column: String,
        /// Code of each value. Larger values in a damaged file get the last code.
        map: Vec<Code>,
    },
    /// The code follows from the wait event, or without one from the kind of on-CPU activity.
    Wait {
        /// Code of each wait event.
        wait_map: Vec<Code>,
        /// Code of each kind of on-CPU activity.
        cpu_map: Vec<Code>,
    },
    /// One code per row of table `run`.
    Rows(Vec<Code>),
    /// One code per piece of [`Runs`].
    Pieces(Vec<Code>),
}

impl Codes {
    /// For each code below `width`, one reference that has this code. The kind of an on-CPU
    /// activity is negated. `None` if codes belong to one part only.
    pub fn references(&self, width: usize) -> Option<Vec<Reference>> {
        let mut references = vec![Reference(0); width];
        let mut put = |map: &[Code], sign: i64| {
            let last = map.len() - 1;
            for (value, code) in map.iter().enumerate().rev() {
                let value = if value == last {
                    Reference::LOST.0
                } else {
                    value as i64
                };
                references[code.index()] = Reference(sign * value);
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

    /// The code of a reference from [`Codes::references`]; `None` if codes belong to one part only.
    pub fn of_reference(&self, reference: Reference) -> Option<Code> {
        let Reference(reference) = reference;
        match self {
            Codes::Reference { last, .. } => Some(clamped(reference, *last)),
            Codes::Lookup { map, .. } => Some(at(map, reference)),
            Codes::Wait { wait_map, .. } if reference > 0 => Some(at(wait_map, reference)),
            Codes::Wait { cpu_map, .. } => Some(at(cpu_map, -reference)),
            _ => None,
        }
    }

    /// The column of `run` that alone has the codes, and its largest value; larger values count as
    /// this one. `None` if codes have another source.
    pub fn column(&self) -> Option<(&str, usize)> {
        match self {
            Codes::Reference { column, last } => Some((column, last.index())),
            Codes::Lookup { column, map } => Some((column, map.len() - 1)),
            _ => None,
        }
    }

    /// The code of a value of [`Codes::column`].
    pub fn of_value(&self, value: i64) -> Code {
        match self {
            Codes::Lookup { map, .. } => at(map, value),
            _ => Code::at(value as usize),
        }
    }

    /// Sets `out` to `of(code)` of each of the `pieces`, in their order; `None` means all pieces.
    pub fn of_pieces<T>(
        &self,
        part: &Part,
        runs: &Runs,
        pieces: Option<&[u32]>,
        out: &mut Vec<T>,
        mut of: impl FnMut(Code) -> T,
    ) -> QueryResult<()> {
        out.clear();
        match self {
            Codes::Reference { column, last } => {
                let column = part.ints(RUN, column)?;
                over_column(runs, pieces, &column, out, |value| {
                    of(clamped(value, *last))
                });
            }
            Codes::Lookup { column, map } => {
                let column = part.ints(RUN, column)?;
                over_column(runs, pieces, &column, out, |value| of(at(map, value)));
            }
            Codes::Wait { wait_map, cpu_map } => {
                let wait = part.ints(RUN, pg::WAIT)?;
                let wait: &[i64] = &wait;
                if part.bounds(RUN, pg::CPU) == Some((0, 0)) {
                    let none = at(cpu_map, 0);
                    over_column(runs, pieces, wait, out, |wait| {
                        of(match wait {
                            0 => none,
                            wait => at(wait_map, wait),
                        })
                    });
                    return Ok(());
                }
                let cpu = part.ints(RUN, pg::CPU)?;
                let cpu: &[i64] = &cpu;
                over(runs, pieces, out, |_, row| {
                    of(match wait[row] {
                        0 => at(cpu_map, cpu[row]),
                        wait => at(wait_map, wait),
                    })
                });
            }
            Codes::Rows(own) => over(runs, pieces, out, |_, row| of(own[row])),
            Codes::Pieces(own) => over(runs, pieces, out, |piece, _| of(own[piece])),
        }
        Ok(())
    }
}

/// Appends `of(piece, row)` to `out` for every wanted piece, `row` being its row in table `run`.
/// `pieces` are the numbers of the wanted pieces; `None` = all.
#[inline]
fn over<T>(
    runs: &Runs,
    pieces: Option<&[u32]>,
    out: &mut Vec<T>,
    mut of: impl FnMut(usize, usize) -> T,
) {
    match (pieces, runs.rows()) {
        (None, None) => out.extend((0..runs.len()).map(|p| of(p, p))),
        (None, Some(rows)) => {
            let rows = rows.iter().enumerate();
            out.extend(rows.map(|(p, row)| of(p, *row as usize)));
        }
        (Some(pieces), _) => {
            let pieces = pieces.iter().map(|p| *p as usize);
            out.extend(pieces.map(|p| of(p, runs.row(p))));
        }
    }
}

/// Appends `of(value)` to `out` for every wanted piece, `value` being the value of `column` in the
/// piece's row of table `run`. For `pieces` see [`over`].
#[inline]
fn over_column<T>(
    runs: &Runs,
    pieces: Option<&[u32]>,
    column: &[i64],
    out: &mut Vec<T>,
    mut of: impl FnMut(i64) -> T,
) {
    match (pieces, runs.rows()) {
        (None, None) => out.extend(column.iter().map(|value| of(*value))),
        _ => over(runs, pieces, out, |_, row| of(column[row])),
    }
}

/// The code of a value. Values beyond the map, in a damaged file, get its last code.
#[inline]
fn at(map: &[Code], value: i64) -> Code {
    let last = map.len() - 1;
    map[(value as usize).min(last)]
}

/// The code of a value if each value is its own code. Larger values, in a damaged file, get the
/// last code.
#[inline]
fn clamped(value: i64, last: Code) -> Code {
    u32::try_from(value).map_or(last, |value| Code::new(value).min(last))
}

/// A dictionary's value; 0 if there is no such row.
pub fn field(column: &Column, reference: Reference) -> i64 {
    let row = reference.row();
    row.and_then(|row| column.get(row)).copied().unwrap_or(0)
}

/// Key of a reference without a definition.
pub(in crate::query) const LOST: &str = "?";

/// Collects distinct keys.
#[derive(Default)]
pub struct KeySet {
    atoms: Vec<Atom>,
    codes: FastMap<Atom, Code>,
}

impl KeySet {
    /// The code of a key.
    pub fn code(&mut self, atom: Atom) -> Code {
        let next = Code::at(self.atoms.len());
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

/// A part whose strings are decoded on demand. A view that turns to another part of the same file
/// keeps the decoded dictionaries.
pub struct View<'a> {
    /// The part.
    pub part: &'a Part,
    decode: fn(i64, &[u8]) -> String,
    names: OnceCell<(Column, BytesColumn)>,
    /// Keys of shared dimensions, by name of the dimension.
    pub(in crate::query) keys: RefCell<HashMap<String, Rc<Keys>>>,
    /// Gives keys their ids.
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

    /// The same view with a cancel flag for [`View::check_cancel`].
    pub fn canceled_by(self, cancel: &'a AtomicBool) -> Self {
        View {
            cancel: Some(cancel),
            ..self
        }
    }

    /// The same view with the register of a question.
    pub fn registered(self, register: &Register) -> Self {
        View {
            register: register.clone(),
            ..self
        }
    }

    /// Fails if the cancel flag is set. Call it before each column that is decoded.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(QueryError::canceled()),
            _ => Ok(()),
        }
    }

    /// Turns to another part of the same file; returns false if it belongs to another file.
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

    /// The string that a reference refers to; `None` for null, [`LOST`] without a definition.
    pub fn name(&self, reference: Reference) -> QueryResult<Option<String>> {
        let Ok(reference) = usize::try_from(reference.0) else {
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

    /// The key for a value of a column, by the column's type.
    pub fn key(&self, table: &str, column: &str, value: i64) -> QueryResult<Option<String>> {
        let schema = self.part.schema();
        let Some(def) = schema.table(table).and_then(|t| t.column(column)) else {
            return Ok(None);
        };
        if value == 0 {
            return Ok(None);
        }
        match def.ty {
            ColumnType::Name => self.name(Reference(value)),
            ColumnType::Enum => Ok(Some(
                schema.label(&def.target, value).unwrap_or(LOST).to_string(),
            )),
            ColumnType::Ref => self
                .pid(Reference(value))
                .map(|pid| pid.map(|p| p.to_string())),
            ColumnType::Uint => Ok(Some((value as u64).to_string())),
            _ => Ok(Some(value.to_string())),
        }
    }

    /// The process id of a session; `None` for null.
    pub fn pid(&self, session: Reference) -> QueryResult<Option<i64>> {
        let pids = self.part.ints("session", "pid")?;
        Ok(session.row().and_then(|row| pids.get(row).copied()))
    }

    /// Keys from a dictionary's column that a column of `run` refers to.
    pub(in crate::query) fn references(
        &self,
        table: &str,
        column: &str,
        reference: String,
    ) -> QueryResult<Keys> {
        let values = self.part.ints(table, column)?;
        let table_def = self.part.schema().table(table);
        let numbers = match table_def.and_then(|t| t.column(column)).map(|c| c.ty) {
            Some(ColumnType::Uint) => 0..=i64::MAX,
            Some(ColumnType::Int | ColumnType::Time | ColumnType::TimeUs | ColumnType::Span) => {
                i64::MIN..=i64::MAX
            }
            _ => RangeInclusive::new(1, 0),
        };
        let last = Code::at(values.len() + 1);
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
