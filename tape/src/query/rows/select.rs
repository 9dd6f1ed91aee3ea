//! Finds the runs of a part that match. Each test is a table by the value of one column, made from
//! the rows of its dictionary once for all parts of a file. If all values between the bounds of a
//! column pass, the test costs nothing. If none of them passes, the part is left out.

use super::dimension::Dimension;
use super::integers::Code;
use super::keys::{Codes, Keys, View};
use super::parse::Selection;
use super::register::Atom;
use super::runs::Runs;
use super::ticks::Ticks;
use crate::format::codec::Span;
use crate::format::part::Part;
use crate::format::schema::{RUN, Schema};
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use crate::query::value::vocabulary::{self as pg, Scope};
use std::rc::Rc;

/// The matching pieces of a part's runs.
pub struct Selected {
    /// All pieces, matching or not.
    pub runs: Runs,
    /// Indexes of the matching pieces; `None` means all.
    pub pieces: Option<Vec<u32>>,
}

impl Selected {
    /// Applies a selection to a part. `tests` were made for the part's file. Runs are cut where the
    /// key of a filter or of `dimensions` changes within them.
    pub fn of(
        view: &View,
        tests: &Tests,
        selection: &Selection,
        dimensions: &[&Dimension],
    ) -> QueryResult<Selected> {
        let Some(mut tests) = tests.narrowed(view.part) else {
            return Ok(Selected::nothing());
        };
        if !selection.marked {
            tests.marked(view.part)?;
        }
        let own: Vec<_> = own_filters(view, selection).collect();
        view.check_cancel()?;
        let mut runs = Runs::whole(view.part)?;
        let mut cut: Vec<&Dimension> = Vec::new();
        for dimension in own.iter().map(|(d, _)| d).chain(dimensions.iter().copied()) {
            if !cut.contains(&dimension) {
                cut.push(dimension);
                runs = dimension.cut(view, &runs)?.unwrap_or(runs);
            }
        }
        for (dimension, filter) in own {
            view.check_cancel()?;
            let keys = dimension.resolve(view, &runs)?;
            tests.add(view, &keys, wanted(view, filter))?;
        }
        let pieces = tests.apply(view, &runs)?;
        Ok(Selected { runs, pieces })
    }

    /// Same as [`Selected::of`], for a single part.
    pub fn of_single_part(
        view: &View,
        catalog: &Schema,
        selection: &Selection,
    ) -> QueryResult<Selected> {
        let tests = Tests::of(view, catalog, selection)?;
        Selected::of(view, &tests, selection, &[])
    }

    /// A selection without pieces.
    pub fn nothing() -> Selected {
        Selected {
            runs: Runs::pieces(Vec::new(), Vec::new(), Vec::new()),
            pieces: None,
        }
    }

    /// Sets `ranges` to the rows in `ticks` of every matching piece.
    pub fn ranges(&self, ticks: &Ticks, ranges: &mut Vec<(u32, u32)>) {
        ranges.clear();
        ranges.reserve(self.len());
        let pieces = self.pieces.as_deref();
        self.runs.ranges(pieces, ticks, ranges);
    }

    /// Removes pieces without a tick that counts, and their ranges.
    pub fn drop_uncounted(&mut self, ticks: &Ticks, ranges: &mut Vec<(u32, u32)>) {
        let before = ticks.before();
        let counts = |range: &(u32, u32)| before[range.0 as usize].0 < before[range.1 as usize].0;
        let kept: Vec<bool> = ranges.iter().map(counts).collect();
        self.retain(&kept, ranges);
    }

    /// Removes matching pieces, and their ranges. `kept` has a value for each matching piece.
    pub fn retain(&mut self, kept: &[bool], ranges: &mut Vec<(u32, u32)>) {
        let mut own = kept.iter();
        let mut is_kept = || own.next().is_some_and(|kept| *kept);
        let mut pieces = Vec::new();
        self.for_each(|piece| {
            if is_kept() {
                pieces.push(piece as u32);
            }
        });
        let mut own = kept.iter();
        ranges.retain(|_| own.next().is_some_and(|kept| *kept));
        self.pieces = Some(pieces);
    }

    /// Calls `each` with every matching piece.
    pub fn for_each(&self, mut each: impl FnMut(usize)) {
        match &self.pieces {
            Some(pieces) => pieces.iter().for_each(|piece| each(*piece as usize)),
            None => (0..self.runs.len()).for_each(each),
        }
    }

    /// Number of matching pieces.
    pub fn len(&self) -> usize {
        self.pieces.as_ref().map_or(self.runs.len(), Vec::len)
    }
}

/// Filters whose keys differ from part to part.
fn own_filters<'s>(
    view: &View,
    selection: &'s Selection,
) -> impl Iterator<Item = &'s (Dimension, Filter)> {
    let filters = selection.filters.iter();
    filters.filter(|(dimension, _)| !dimension.is_shared(view.part))
}

/// A test for dictionary keys. A number is a number in some dictionaries and a text in others.
fn wanted(view: &View, filter: &Filter) -> impl Fn(Atom) -> bool + use<> {
    let atoms = |items: &[Option<String>]| -> Vec<Atom> {
        let number = |text: &String| {
            let number = text.parse::<i64>().ok();
            number.filter(|number| number.to_string() == *text)
        };
        let both = |item: &Option<String>| {
            let text = view.register.atom(item.as_deref());
            let number = item.as_ref().and_then(number);
            [Some(text), number.map(Atom::Number)]
        };
        items.iter().flat_map(both).flatten().collect()
    };
    let (any, none) = (atoms(&filter.any), atoms(&filter.none));
    move |key| (any.is_empty() || any.contains(&key)) && !none.contains(&key)
}

/// The dimensions that decide whether a row is in a scope.
const OF_SCOPE: [&str; 3] = [pg::CATEGORY, pg::STATE, pg::WAIT_EVENT];

/// The columns that a selection tests. Some of them are read only if they decide.
pub fn columns(
    part: &Part,
    catalog: &Schema,
    selection: &Selection,
) -> QueryResult<Vec<(String, String)>> {
    let mut names = Vec::new();
    if selection.by_leader {
        names.push(pg::LEADER);
    }
    if selection.scope != Scope::All {
        names.extend(OF_SCOPE);
    }
    let mut columns = Vec::new();
    for name in names {
        let dimension = Dimension::find(catalog, "dimension", name)?;
        columns.extend(dimension.columns(part));
    }
    let filters = selection.filters.iter();
    columns.extend(filters.flat_map(|(dimension, _)| dimension.columns(part)));
    if !selection.marked {
        columns.push((RUN.to_string(), "marked".to_string()));
    }
    Ok(columns)
}

/// Tests that the rows of a part must pass.
#[derive(Clone, Default)]
pub struct Tests {
    /// For each tested column of `run`: a table that has true for each value that passes.
    columns: Vec<(String, Rc<Vec<bool>>)>,
    /// For each other test: the keys, and a table that has true for each code that passes.
    others: Vec<(Rc<Keys>, Rc<Vec<bool>>)>,
    /// True if no row passes.
    never: bool,
}

impl Tests {
    /// The tests that all parts of the view's file share.
    pub fn of(view: &View, catalog: &Schema, selection: &Selection) -> QueryResult<Tests> {
        let mut tests = Tests::default();
        let none = Selected::nothing().runs;
        if selection.by_leader {
            let leader = Dimension::find(catalog, "dimension", pg::LEADER)?;
            let keys = leader.resolve(view, &none)?;
            tests.add(view, &keys, |key| key == Atom::Null)?;
        }
        if selection.scope != Scope::All {
            for name in OF_SCOPE {
                let dimension = Dimension::find(catalog, "dimension", name)?;
                let keys = dimension.resolve(view, &none)?;
                let has = |key| {
                    selection
                        .scope
                        .has(name, view.register.shown(key).as_deref())
                };
                tests.add(view, &keys, has)?;
            }
        }
        for (dimension, filter) in &selection.filters {
            if dimension.is_shared(view.part) {
                let keys = dimension.resolve(view, &none)?;
                tests.add(view, &keys, wanted(view, filter))?;
            }
        }
        Ok(tests)
    }

    /// Drops each test of a column that all rows of the part pass. The least and the greatest value
    /// of the column in the part show this. `None` if no row can pass.
    fn narrowed(&self, part: &Part) -> Option<Tests> {
        let mut tests = Tests {
            others: self.others.clone(),
            ..Tests::default()
        };
        if self.never {
            return None;
        }
        for (column, table) in &self.columns {
            let values = between(table, part.bounds(RUN, column));
            if !values.iter().any(|ok| *ok) {
                return None;
            }
            if !values.iter().all(|ok| *ok) {
                tests.columns.push((column.clone(), table.clone()));
            }
        }
        Some(tests)
    }

    /// Excludes rows that were recorded only because they block others.
    fn marked(&mut self, part: &Part) -> QueryResult<()> {
        if part.bounds(RUN, "marked") == Some((0, 0)) {
            return Ok(());
        }
        let marked = part.ints(RUN, "marked")?;
        let ok = |value: &i64| value & pg::NOT_COUNTED == 0;
        if !marked.iter().all(ok) {
            let most = marked.iter().copied().max().unwrap_or(0).clamp(0, 255);
            let table = (0..=most + 1).map(|value| ok(&value));
            self.columns
                .push(("marked".to_string(), Rc::new(table.collect())));
        }
        Ok(())
    }

    /// Adds a test of a dimension's keys.
    fn add(
        &mut self,
        view: &View,
        keys: &Rc<Keys>,
        accepts: impl Fn(Atom) -> bool,
    ) -> QueryResult<()> {
        let ok = keys.test(view, accepts)?;
        if ok.iter().all(|ok| *ok) {
            return Ok(());
        }
        self.never |= ok.iter().all(|ok| !ok);
        let (column, table) = match &keys.codes {
            Codes::Reference { column, .. } => (column, ok),
            Codes::Lookup { column, map } => {
                let table = map.iter().map(|code| ok[code.index()]);
                (column, table.collect())
            }
            _ => {
                self.others.push((keys.clone(), Rc::new(ok)));
                return Ok(());
            }
        };
        let same =
            |test: &&mut (String, Rc<Vec<bool>>)| test.0 == *column && test.1.len() == table.len();
        match self.columns.iter_mut().find(same) {
            Some(test) => {
                for (a, b) in Rc::make_mut(&mut test.1).iter_mut().zip(table) {
                    *a &= b;
                }
            }
            None => self.columns.push((column.clone(), Rc::new(table))),
        }
        Ok(())
    }

    fn apply(&self, view: &View, runs: &Runs) -> QueryResult<Option<Vec<u32>>> {
        let part = view.part;
        if self.never {
            return Ok(Some(Vec::new()));
        }
        let mut selected: Option<Vec<u32>> = None;
        for (name, table) in &self.columns {
            view.check_cancel()?;
            let last = table.len() - 1;
            let passes = |value: i64| table[(value as usize).min(last)];
            if selected.is_none()
                && runs.rows().is_none()
                && let Some(spans) = part.spans(name)
            {
                selected = Some(rows_of(&spans, passes));
                continue;
            }
            let column = part.ints(RUN, name)?;
            let column: &[i64] = &column;
            let ok = |row: usize| passes(column[row]);
            let found = match (selected, runs.rows()) {
                (None, None) => matching(0..runs.len() as u32, |piece| ok(piece as usize)),
                (None, Some(rows)) => {
                    let ok = |piece: u32| ok(rows[piece as usize] as usize);
                    matching(0..runs.len() as u32, ok)
                }
                (Some(pieces), _) => {
                    matching(pieces.into_iter(), |piece| ok(runs.row(piece as usize)))
                }
            };
            selected = Some(found);
        }
        for (keys, ok) in &self.others {
            view.check_cancel()?;
            let mut passing = Vec::new();
            let accepted = |code: Code| ok[code.index()];
            keys.codes
                .of_pieces(part, runs, selected.as_deref(), &mut passing, accepted)?;
            let mut passing = passing.into_iter();
            let passes = |_| passing.next().unwrap_or(false);
            selected = Some(match selected {
                None => matching(0..runs.len() as u32, passes),
                Some(pieces) => matching(pieces.into_iter(), passes),
            });
        }
        Ok(selected.filter(|found| found.len() < runs.len()))
    }
}

/// The rows of the spans whose value passes.
fn rows_of(spans: &[Span], ok: impl Fn(i64) -> bool) -> Vec<u32> {
    let (mut found, mut row) = (Vec::new(), 0);
    for span in spans {
        let end = row + span.rows as u32;
        if ok(span.value) {
            found.extend(row..end);
        }
        row = end;
    }
    found
}

/// Pieces (rows of runs) are tested in batches of this number. The numbers of those that pass are
/// copied once per batch, so that the loop needs no branch for each piece.
const TESTED: usize = 256;

/// The pieces that pass a test, without a branch for each.
fn matching(pieces: impl Iterator<Item = u32>, mut ok: impl FnMut(u32) -> bool) -> Vec<u32> {
    let mut found = Vec::new();
    let (mut buffer, mut count) = ([0; TESTED], 0);
    for piece in pieces {
        buffer[count] = piece;
        count += usize::from(ok(piece));
        if count == TESTED {
            found.extend_from_slice(&buffer);
            count = 0;
        }
    }
    found.extend_from_slice(&buffer[..count]);
    found
}

/// The entries of a table for the values between two bounds. Values beyond the table have its last
/// entry.
fn between(table: &[bool], bounds: Option<(i64, i64)>) -> &[bool] {
    let last = table.len() - 1;
    match bounds {
        Some((least, greatest)) if 0 <= least && least <= greatest => {
            let at = |value: i64| usize::try_from(value).map_or(last, |value| value.min(last));
            &table[at(least)..=at(greatest)]
        }
        _ => table,
    }
}
