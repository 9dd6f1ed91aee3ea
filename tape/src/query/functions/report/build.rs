//! Asks the other functions for the parts of the document, each about the same
//! window: its figures are theirs to the last digit.

use super::compat::compat;
use super::value::{
    self, Bucket, Change, Changes, Coverage, Damage, Document, Gap, Key, Load, Marker, Period,
    Query, Text, Time, Wait, Waiter,
};
use crate::query::bucket::{DAY, HOUR, SECOND};
use crate::query::error::QueryResult;
use crate::query::functions::structs::{
    Aas, AasRow, Blocking, BlockingRow, Compare, CompareRow, Markers, Timeline, Top, TopRow,
};
use crate::query::functions::{Call, aas, find, markers, timeline};
use crate::query::parse::Window;
use crate::query::request::Request;
use crate::query::row::{Row, Taken};
use crate::query::spec::{Sink, Spec};
use crate::query::vocabulary as pg;

/// Most bars of the picture.
const BARS: i64 = 120;
/// Widths of a bar.
const WIDTHS: [i64; 10] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    aas::MINUTE,
    5 * aas::MINUTE,
    15 * aas::MINUTE,
    HOUR,
    6 * HOUR,
    DAY,
];
/// Classes of waits in the picture.
const CLASSES: i64 = 8;
/// Most rows of the tree.
const TREE_ROWS: usize = 50;

/// The document about a window, around a moment where one is asked for.
pub fn document(call: &Call, window: Window, at: Option<i64>) -> QueryResult<Document> {
    let parts = Parts { call, window };
    let load = parts.load(window)?;
    let before = parts.before()?;
    let (tree, tree_left_out) = parts.tree(at)?;
    let mut document = Document {
        period: Period {
            at: at.map(Time),
            period_start: Some(Time(window.since)),
            period_end: Some(Time(window.until)),
            before: Some(before.words.into()),
            before_start: Some(Time(before.window.since)),
            before_end: Some(Time(before.window.until)),
        },
        coverage: parts.coverage(&load)?,
        timeline: parts.timeline(&load)?,
        load: Load::from(load),
        load_before: Load::from(before.load),
        waits: parts.keys(pg::WAIT_EVENT)?,
        queries: parts.queries()?,
        databases: parts.keys("database")?,
        users: parts.keys(pg::USERNAME)?,
        applications: parts.keys("application")?,
        blockers: parts.blocking(None)?.into_iter().map(Into::into).collect(),
        tree,
        tree_left_out,
        changes: parts.changes(before.window)?,
        markers: parts.markers()?,
        compat: compat(call, window)?,
        damage: Vec::new(),
    };
    // What is known when all parts were read.
    let warnings = call.spec.damage.warnings();
    document.damage = warnings.iter().map(Damage::from).collect();
    Ok(document)
}

/// A question of a window, with what the report's own selects.
macro_rules! asks {
    (
        $parts:ident, $window:expr,
        $request:ident { $($field:ident: $value:expr,)* $(..$rest:expr)? }
    ) => {
        $request {
            node: $parts.call.spec.node.clone(),
            scope: $parts.call.spec.scope.clone(),
            by_leader: $parts.call.spec.by_leader,
            filters: $parts.call.spec.filters.clone(),
            since: Some($window.since),
            until: Some($window.until),
            $($field: $value,)*
            $(..$rest)?
        }
    };
}

struct Parts<'a> {
    call: &'a Call<'a>,
    window: Window,
}

/// What the window is compared with.
struct Before {
    window: Window,
    words: &'static str,
    load: AasRow,
}

impl Parts<'_> {
    /// Asks a function.
    fn ask<R: Request>(&self, request: &R) -> QueryResult<Vec<R::Row>> {
        self.ask_with(find(R::Row::FUNCTION)?.run, request)
    }

    /// Asks about the same history, without the same damaged groups.
    fn ask_with<R: Request>(
        &self,
        run: fn(&Call, &mut dyn Sink) -> QueryResult<()>,
        request: &R,
    ) -> QueryResult<Vec<R::Row>> {
        let mut spec = Spec::asking(request, self.call.spec.context.clone());
        spec.damage = self.call.spec.damage.clone();
        let call = Call {
            spec: &spec,
            store: self.call.store,
        };
        let mut taken = Taken::default();
        run(&call, &mut taken)?;
        Ok(taken.rows)
    }

    fn load(&self, window: Window) -> QueryResult<AasRow> {
        let request = asks!(self, window, Aas { ..Aas::default() });
        Ok(self.ask(&request)?.pop().unwrap_or_default())
    }

    /// The same time the day before, or the time just before when that was not
    /// observed.
    fn before(&self) -> QueryResult<Before> {
        let earlier = |by: i64, words| {
            let window = Window {
                since: self.window.since.saturating_sub(by),
                until: self.window.until.saturating_sub(by),
            };
            let load = self.load(window)?;
            Ok(Before {
                window,
                words,
                load,
            })
        };
        let day = earlier(DAY, "the same time the day before")?;
        match day.load.ticks_observed {
            Some(1..) => Ok(day),
            _ => earlier(self.window.length(), "the time just before"),
        }
    }

    fn coverage(&self, load: &AasRow) -> QueryResult<Coverage> {
        let gaps = markers::gaps(self.call, self.window)?.into_iter();
        let gap = |(since, until, cause): (i64, i64, String)| Gap {
            since: Some(Time(since)),
            until: Some(Time(until)),
            cause: Some(cause.into()),
        };
        Ok(Coverage {
            gaps: gaps.map(gap).collect(),
            ..Coverage::from(load.clone())
        })
    }

    fn timeline(&self, load: &AasRow) -> QueryResult<value::Timeline> {
        let width = self.bucket(load);
        let rows = |by: Option<&str>| {
            let request = asks!(
                self,
                self.window,
                Timeline {
                    bucket: Some(width),
                    by: by.map(str::to_string),
                    n: Some(CLASSES),
                }
            );
            self.ask_with(timeline::of_report, &request)
        };
        let (whole, split) = (rows(None)?, rows(Some(pg::WAIT_TYPE))?);
        let keys = split.len() / whole.len().max(1);
        let of_bucket = |i: usize| split.iter().skip(i * keys).take(keys);
        let buckets = whole.into_iter().enumerate().map(|(i, row)| Bucket {
            by: of_bucket(i).map(|part| part.avg_aas).collect(),
            ..Bucket::from(row)
        });
        Ok(value::Timeline {
            bucket_seconds: Some(width / SECOND),
            keys: of_bucket(0).map(|part| part.key.clone()).collect(),
            buckets: buckets.collect(),
        })
    }

    /// Width of a bar: the least that holds a tick and leaves not too many.
    fn bucket(&self, load: &AasRow) -> i64 {
        let length = self.window.length();
        let interval = match (load.ticks_observed, load.coverage_pct) {
            (Some(ticks @ 1..), Some(percent)) => {
                i128::from(length) * percent.0 / 1_000_000 / i128::from(ticks)
            }
            _ => 0,
        };
        let fits =
            |width: &&i64| length / **width <= BARS && i128::from(**width) * 100 >= interval * 99;
        WIDTHS.iter().find(fits).copied().unwrap_or(7 * DAY)
    }

    fn top(&self, dimension: &str, by: Option<&str>) -> QueryResult<Vec<TopRow>> {
        self.ask(&asks!(
            self,
            self.window,
            Top {
                dimension: Some(dimension.to_string()),
                by: by.map(str::to_string),
                n: self.call.spec.n,
                ..Top::default()
            }
        ))
    }

    fn keys(&self, dimension: &str) -> QueryResult<Vec<Key>> {
        let rows = self.top(dimension, None)?;
        Ok(rows.into_iter().map(Key::from).collect())
    }

    /// The largest queries, each with its largest waits.
    fn queries(&self) -> QueryResult<Vec<Query>> {
        let rows = self.top(pg::QUERY_ID, None)?;
        let waits = self.top(pg::QUERY_ID, Some(pg::WAIT_EVENT))?;
        let waits_of = |key: &Option<Text>| {
            let own = waits.iter().filter(|part| part.key == *key);
            let wait = |part: &TopRow| Wait {
                key: part.by_key.clone(),
                avg_aas: part.avg_aas,
            };
            own.map(wait).collect()
        };
        let query = |row: TopRow| Query {
            waits: waits_of(&row.key),
            ..Query::from(row)
        };
        Ok(rows.into_iter().map(query).collect())
    }

    /// Of the whole server: who blocks those that filters let through may be left
    /// out by them.
    fn blocking(&self, at: Option<i64>) -> QueryResult<Vec<BlockingRow>> {
        let of_window = |us| Some(us).filter(|_| at.is_none());
        self.ask(&Blocking {
            node: self.call.spec.node.clone(),
            at,
            since: of_window(self.window.since),
            until: of_window(self.window.until),
            n: self.call.spec.n,
        })
    }

    /// Who waited for whom at the moment asked for, and how many rows of that
    /// are left out.
    fn tree(&self, at: Option<i64>) -> QueryResult<(Option<Vec<Waiter>>, usize)> {
        if at.is_none() {
            return Ok((None, 0));
        }
        let rows = self.blocking(at)?;
        let left_out = rows.len().saturating_sub(TREE_ROWS);
        let rows = rows.into_iter().take(TREE_ROWS).map(Waiter::from);
        Ok((Some(rows.collect()), left_out))
    }

    fn changes(&self, before: Window) -> QueryResult<Changes> {
        let rows = |dimension: &str| {
            self.ask(&Compare {
                node: self.call.spec.node.clone(),
                dimension: Some(dimension.to_string()),
                since_1: Some(before.since),
                until_1: Some(before.until),
                since_2: Some(self.window.since),
                until_2: Some(self.window.until),
                n: self.call.spec.n,
                bucket: None,
                scope: self.call.spec.scope.clone(),
                by_leader: self.call.spec.by_leader,
                filters: self.call.spec.filters.clone(),
            })
        };
        let (waits, queries) = (rows(pg::WAIT_EVENT)?, rows(pg::QUERY_ID)?);
        let changes = |rows: Vec<CompareRow>| rows.into_iter().map(Change::from).collect();
        Ok(Changes {
            note: waits
                .iter()
                .chain(&queries)
                .find_map(|row| row.note.clone()),
            waits: changes(waits),
            queries: changes(queries),
        })
    }

    fn markers(&self) -> QueryResult<Vec<Marker>> {
        let rows = self.ask(&Markers {
            node: self.call.spec.node.clone(),
            since: Some(self.window.since),
            until: Some(self.window.until),
        })?;
        Ok(rows.into_iter().map(Marker::from).collect())
    }
}
