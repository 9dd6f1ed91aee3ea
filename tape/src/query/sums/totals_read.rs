//! Reads the columns of totals: the wanted groups of a file, their keys and their buckets.

use super::cells::{Bin, Cell};
use super::choice::Choice;
use super::measure::Cube;
use crate::fast::FastMap;
use crate::format::schema::FAR_MS;
use crate::format::table::Column;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{Code, Id, NULL, Number, Reference};
use crate::query::rows::keys::{Keys, View};
use crate::query::rows::select::Selected;
use crate::query::rows::ticks::NONE;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::{QueryError, QueryResult};
use std::ops::Range;
use std::rc::Rc;

/// One minute in µs.
pub(in crate::query) const MINUTE: i64 = 60 * SECOND;
/// Columns whose values are added up.
const SUMMED: [&str; 5] = [
    "observed_ms",
    "failed_ms",
    "ticks_observed",
    "ticks_failed",
    "sum_ms",
];

/// A part that totals may answer.
pub(super) struct WantedPart {
    /// First and last slot time in µs.
    pub first: i64,
    pub last: i64,
    /// The bucket that contains the whole part, if there is one.
    pub bucket: Option<u32>,
}

impl WantedPart {
    /// True if the part may have ticks in this minute.
    pub fn may_have(&self, minute: i64) -> bool {
        (self.first.div_euclid(MINUTE)..=self.last.div_euclid(MINUTE)).contains(&minute)
    }
}

/// The groups of a file that totals may answer, by group number.
pub(super) struct Groups(pub FastMap<i64, WantedPart>);

impl Groups {
    /// The part of a group, if totals may answer it.
    pub fn get(&self, group: i64) -> Option<&WantedPart> {
        self.0.get(&group)
    }

    /// The groups that lie in several buckets.
    pub fn spanning_buckets(&self) -> impl Iterator<Item = &i64> {
        let spanning = self.0.iter().filter(|(_, part)| part.bucket.is_none());
        spanning.map(|(group, _)| group)
    }

    /// The rows of a table of totals from the first to the last of these groups.
    pub fn rows(&self, view: &View, table: &str) -> QueryResult<Range<usize>> {
        if let Some((first, last)) = view.part.bounds(table, "group") {
            let groups = last.saturating_sub(first);
            let are_few = usize::try_from(groups).is_ok_and(|n| n < self.0.len());
            if are_few && (first..=last).all(|group| self.0.contains_key(&group)) {
                return Ok(0..view.part.rows(table));
            }
        }
        let is_wanted = |group| self.0.contains_key(&group);
        Ok(view.part.rows_with(table, "group", is_wanted)?)
    }
}

/// Keys by reference.
pub(super) struct Lookup {
    keys: Rc<Keys>,
    /// For each code: the key's id, or `None` if no cells of it are needed.
    ids: Vec<Option<Id>>,
}

impl Lookup {
    /// Looks up the keys of the references in a part's totals. With `chosen`, only keys of that
    /// choice get an id; cells of other keys are not needed.
    pub fn of<'r>(
        view: &View,
        dimension: &Dimension,
        chosen: Option<&Choice>,
        references: impl Iterator<Item = &'r i64>,
    ) -> QueryResult<Lookup> {
        let keys = dimension.resolve(view, &Selected::nothing().runs)?;
        let mut lookup = Lookup {
            ids: vec![None; keys.width()],
            keys,
        };
        let mut codes = Vec::new();
        for reference in references {
            let code = lookup.code(Reference(*reference));
            if lookup.ids[code.index()].is_none() {
                lookup.ids[code.index()] = Some(NULL);
                codes.push(code);
            }
        }
        let is_asked = |id: &Id| chosen.is_none_or(|chosen| chosen.has((*id, NULL)));
        for (code, id) in codes.iter().zip(lookup.keys.ids(view, &codes)?) {
            lookup.ids[code.index()] = Some(id).filter(is_asked);
        }
        Ok(lookup)
    }

    /// The code of a reference's key.
    fn code(&self, reference: Reference) -> Code {
        self.keys.codes.of_reference(reference).unwrap_or_default()
    }

    /// The id of a reference's key, if cells of it are needed.
    pub fn id(&self, reference: Reference) -> Option<Id> {
        self.ids[self.code(reference).index()]
    }
}

/// Number in a cube by code, filled when a code first occurs.
pub(super) struct KeyNumbers<'k>(&'k Lookup, Vec<Option<Number>>);

impl<'k> KeyNumbers<'k> {
    pub fn new(keys: &'k Lookup) -> Self {
        KeyNumbers(keys, vec![None; keys.ids.len()])
    }

    /// The number of a reference's key, if cells of it are needed.
    #[inline]
    pub fn of(&mut self, reference: Reference, cube: &mut Cube<impl Bin>) -> Option<Number> {
        let code = self.0.code(reference).index();
        let id = self.0.ids[code]?;
        Some(*self.1[code].get_or_insert_with(|| cube.number((id, NULL))))
    }
}

/// The buckets of rows and minutes.
pub(super) struct Places {
    /// The first row of table `minute` that was read.
    pub first: usize,
    /// Bucket of each of these rows, or [`NONE`].
    pub rows: Vec<u32>,
    pub by_minute: ByMinute,
}

/// Each group number with the range of its consecutive rows.
pub(super) fn rows_by_group(groups: &[i64]) -> impl Iterator<Item = (i64, Range<usize>)> {
    let mut begin = 0;
    groups.chunk_by(|a, b| a == b).map(move |rows| {
        let own = begin..begin + rows.len();
        begin = own.end;
        (rows[0], own)
    })
}

pub(super) fn read_columns<const N: usize>(
    view: &View,
    table: &str,
    names: &[&str; N],
    rows: Range<usize>,
) -> QueryResult<[Column; N]> {
    let mut columns = Vec::with_capacity(N);
    for name in names {
        view.check_cancel()?;
        let column = view.part.ints_of(table, name, rows.clone())?;
        if !are_possible(name, &column) {
            return Err(impossible());
        }
        columns.push(column);
    }
    let columns: Result<[Column; N], _> = columns.try_into();
    columns.map_err(|_| QueryError::new("XX000", "columns of totals are missing"))
}

pub(super) fn impossible() -> QueryError {
    crate::Error::damaged("totals have impossible values").into()
}

/// True if the values can be added up and multiplied without overflow. Each value must be nearer to
/// 0 than [`FAR_MS`]; in columns that are added up, the sum must be, too.
fn are_possible(name: &str, values: &[i64]) -> bool {
    // The bitwise or of all values is at least as large as each, unless some are negative.
    let most = values.iter().fold(0, |all, v| all | *v as u64);
    if !SUMMED.contains(&name) {
        let most_abs = || values.iter().fold(0, |all, v| all | v.unsigned_abs());
        return most < FAR_MS || most_abs() < FAR_MS;
    }
    let at_most = most.saturating_mul(values.len() as u64);
    let sum = || {
        let values = values.iter().map(|v| u64::try_from(*v).unwrap_or(u64::MAX));
        values.fold(0, u64::saturating_add)
    };
    at_most < FAR_MS || sum() < FAR_MS
}

pub(super) fn cell(bucket: u32, sum_ms: i64, most: i64) -> Cell {
    Cell {
        bucket,
        sessions: u32::try_from(most).unwrap_or(0),
        sum_ms,
    }
}

/// Bucket of each minute.
#[derive(Default)]
pub(super) struct ByMinute {
    first: i64,
    buckets: Vec<u32>,
}

impl ByMinute {
    /// Sets the bucket of a minute. Minutes come in any order, mostly ascending.
    pub fn put(&mut self, minute: i64, bucket: u32) {
        if self.buckets.is_empty() {
            self.first = minute;
        }
        while minute < self.first {
            self.first -= 1;
            self.buckets.insert(0, NONE);
        }
        let at = (minute - self.first) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, NONE);
        }
        self.buckets[at] = bucket;
    }

    /// For ascending minutes whose buckets also differ by one each: the first bucket, and the
    /// difference between minute and bucket. `None` for all others.
    pub fn constant_offset(&self, minutes: &[i64]) -> Option<(u32, i64)> {
        let (first, last) = (*minutes.first()?, *minutes.last()?);
        let bucket = self.bucket(first);
        let ends = (bucket, self.bucket(last));
        let apart = i64::from(ends.1) - i64::from(ends.0);
        let is_constant = bucket != NONE
            && ends.1 != NONE
            && apart == last - first
            && minutes.is_sorted_by(|a, b| a < b);
        is_constant.then(|| (bucket, first - i64::from(bucket)))
    }

    #[inline]
    pub fn bucket(&self, minute: i64) -> u32 {
        let at = minute.wrapping_sub(self.first) as usize;
        self.buckets.get(at).copied().unwrap_or(NONE)
    }
}
