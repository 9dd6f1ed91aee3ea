//! Reads the loads of a window in two passes. Totals answer the first one where a file has them. It
//! finds the queries that grew. The second one reads samples, which is expensive, so it reads all
//! other loads at once.

use super::loads::{By, DIMENSIONS, Side, WITH_TOTALS};
use crate::fast::{FastMap, FastSet};
use crate::query::ask::context::Run;
use crate::query::pass::plan::Narrow;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{Id, Key};
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::register::{Atom, Register};
use crate::query::rows::scan::Scan;
use crate::query::rows::tags;
use crate::query::sums::cells::Cells;
use crate::query::sums::measure::Cube;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;

/// Sum of the weights of each key's samples, in ms.
pub type Sums = FastMap<Id, i64>;

/// Sums of queries by the keys of a second dimension.
pub type Pairs = Vec<(Key, i64)>;

/// Reads one window.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    pub run: Run<'r>,
    pub samples: Samples<'r>,
    pub window: Window,
    /// Gives keys the same ids in both windows.
    pub register: &'r Register,
}

impl<'r> Reader<'r> {
    fn scan(&self) -> QueryResult<Scan<'r>> {
        let scan = Scan::new(self.run, self.samples, self.window)?;
        Ok(scan.registered(self.register))
    }

    /// True if a statement of the parts has tags. A plan is made without reading, so it has no tags.
    pub fn has_tags(&self) -> QueryResult<bool> {
        if self.run.explained.is_some() {
            return Ok(false);
        }
        let scan = self.scan()?;
        for part in &scan.parts {
            scan.check_cancel()?;
            let range = part.range(tags::STATEMENT, pg::TAGS);
            let damage = &self.run.damage;
            let range = damage.note_and_continue(range.map_err(Into::into))?;
            if range.flatten().is_some_and(|(_, most)| most > 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The observed time, and the sums by each dimension that has totals.
    pub fn totals(&self) -> QueryResult<(Side, Vec<Sums>)> {
        let dimensions = self.dimensions(&DIMENSIONS[..WITH_TOTALS])?;
        let groups: Vec<Vec<&Dimension>> = dimensions.iter().map(|one| vec![one]).collect();
        let scanned = self.scan()?.weights(&groups)?;
        let side = Side {
            window: self.window,
            total: scanned.observed.total(),
        };
        Ok((side, scanned.cubes.into_iter().map(by_one).collect()))
    }

    /// The sums by each of these dimensions, and the sums of some queries by second dimensions.
    pub fn samples(
        &self,
        names: &[&str],
        queries: &[Id],
        by: &[By],
    ) -> QueryResult<(Vec<Sums>, Vec<Pairs>)> {
        let dimensions = self.dimensions(names)?;
        let query = self.dimension(pg::QUERY_ID)?;
        let second: Vec<&str> = by.iter().map(|by| by.dimension()).collect();
        let second = self.dimensions(&second)?;
        let one = dimensions.iter().map(|one| vec![one]);
        let pairs = second.iter().map(|second| vec![&query, second]);
        let groups: Vec<Vec<&Dimension>> = one.chain(pairs).collect();
        let narrow = Narrow {
            from: dimensions.len(),
            keys: self.atoms(queries),
        };
        let scanned = self.scan()?.weights_narrowed(&groups, &narrow)?;
        let mut cubes = scanned.cubes;
        let pairs = cubes.split_off(dimensions.len()).into_iter();
        let sums = cubes.into_iter().map(by_one).collect();
        Ok((sums, pairs.map(|cube| sums_of(cube).collect()).collect()))
    }

    fn dimension(&self, name: &str) -> QueryResult<Dimension> {
        Dimension::find(self.run.catalog, "dimension", name)
    }

    fn dimensions(&self, names: &[&str]) -> QueryResult<Vec<Dimension>> {
        names.iter().map(|name| self.dimension(name)).collect()
    }

    /// The keys of query ids.
    fn atoms(&self, queries: &[Id]) -> FastSet<Atom> {
        let number = |id: &Id| match self.register.text(*id) {
            None => Some(Atom::Null),
            Some(text) => text.parse().ok().map(Atom::Number),
        };
        queries.iter().filter_map(number).collect()
    }
}

fn by_one(cube: Cube<Cells>) -> Sums {
    sums_of(cube).map(|(key, ms)| (key.0, ms)).collect()
}

fn sums_of(cube: Cube<Cells>) -> impl Iterator<Item = (Key, i64)> {
    cube.into_cells().map(|(key, cells)| (key, cells.sum_ms()))
}
