//! Builds the document: asks the other functions about the same window. Its figures equal theirs to
//! the last digit.

use super::compat::compat;
use super::value::{
    self, Alarming, Bucket, Change, Coverage, Damage, Document, Explanation, Gap, Key, Load,
    METRICS, Marker, Period, Query, Text, Time, Wait, Waiter, alarms,
};
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::changes::LONGEST_WITH_CAUSES;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{
    Aas, AasRow, Blocking, BlockingRow, Changes, CompareRow, Markers, Report, ServerHistory,
    Timeline, Top, TopRow,
};
use crate::query::functions::{aas, compare, markers, timeline, top};
use crate::query::rows::parse::{Samples, Window, samples};
use crate::query::value::bucket::{DAY, HOUR, SECOND};
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;

/// Maximum number of bars in the picture.
const BARS: i64 = 120;
/// Possible widths of a bar in µs.
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
/// Maximum number of wait classes in the picture.
const CLASSES: i64 = 8;
/// Maximum number of rows of the tree.
const TREE_ROWS: usize = 50;

/// The document about a window. If the request has a point in time, the window lies around it.
pub fn document(asked: &Report, run: Run, window: Window) -> QueryResult<Document> {
    let at = asked.at;
    let parts = Parts { asked, run, window };
    let load = parts.load(window)?;
    let before = parts.before()?;
    let (tree, tree_left_out) = parts.tree(at)?;
    let timeline = parts.timeline(&load)?;
    let [waits, queries, databases, users, applications] = parts.largest()?;
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
        timeline,
        load: Load::from(load),
        load_before: Load::from(before.load),
        waits: keys(waits),
        queries: parts.queries(queries)?,
        databases: keys(databases),
        users: keys(users),
        applications: keys(applications),
        blockers: parts.blocking(None)?.into_iter().map(Into::into).collect(),
        tree,
        tree_left_out,
        changes: parts.changes(before.window)?,
        findings: parts.findings()?,
        alarms: parts.alarms()?,
        markers: parts.markers()?,
        compat: compat(run, parts.samples(), window, asked.n)?,
        damage: Vec::new(),
    };
    // All parts are read now, so all damage is known.
    let warnings = run.damage.warnings();
    document.damage = warnings.iter().map(Damage::from).collect();
    Ok(document)
}

/// A request about a window with the report's own node, scope and filters.
macro_rules! asks {
    (
        $parts:ident, $window:expr,
        $request:ident { $($field:ident: $value:expr,)* $(..$rest:expr)? }
    ) => {
        $request {
            node: $parts.asked.node.clone(),
            scope: $parts.asked.scope.clone(),
            by_leader: $parts.asked.by_leader,
            filters: $parts.asked.filters.clone(),
            since: Some($window.since),
            until: Some($window.until),
            $($field: $value,)*
            $(..$rest)?
        }
    };
}

fn keys(rows: Vec<TopRow>) -> Vec<Key> {
    rows.into_iter().map(Key::from).collect()
}

struct Parts<'a> {
    asked: &'a Report,
    run: Run<'a>,
    window: Window,
}

/// The earlier window for the comparison.
struct Before {
    window: Window,
    words: &'static str,
    load: AasRow,
}

impl Parts<'_> {
    /// Asks a function about the same history, without the groups that are already left out.
    fn ask<R: Request>(&self, request: &R) -> QueryResult<Vec<R::Row>> {
        collected(|emit| request.answer(self.run, emit))
    }

    fn samples(&self) -> Samples<'_> {
        samples!(self.asked)
    }

    fn load(&self, window: Window) -> QueryResult<AasRow> {
        let request = asks!(self, window, Aas { ..Aas::default() });
        Ok(self.ask(&request)?.pop().unwrap_or_default())
    }

    /// Window for the comparison: the same time one day before. If that was not observed, the time
    /// just before the window.
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
        let gaps = markers::gaps(self.run, self.asked.node.as_deref(), self.window)?.into_iter();
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
        let request = asks!(
            self,
            self.window,
            Timeline {
                bucket: Some(width),
                by: Some(pg::WAIT_TYPE.to_string()),
                n: Some(CLASSES),
            }
        );
        let [whole, split] = timeline::of_report(self.run, &request)?;
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

    /// Width of a bar: the smallest that holds a tick and makes at most [`BARS`] bars.
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

    /// The largest waits, queries, databases, users and applications.
    fn largest(&self) -> QueryResult<[Vec<TopRow>; 5]> {
        let names = [
            pg::WAIT_EVENT,
            pg::QUERY_ID,
            "database",
            pg::USERNAME,
            "application",
        ];
        top::of_report(self.run, self.samples(), self.window, self.asked.n, names)
    }

    /// The queries, each with its largest waits.
    fn queries(&self, rows: Vec<TopRow>) -> QueryResult<Vec<Query>> {
        let waits = self.waits(&rows)?;
        let wait = |key: &Option<Text>, row: &TopRow| Wait {
            key: key.clone(),
            avg_aas: row.avg_aas,
        };
        let waits_of = |row: &TopRow| match row.key.as_deref() {
            Some(pg::OTHER) => vec![wait(&row.key, row)],
            _ => {
                let own = waits.iter().filter(|part| part.key == row.key);
                own.map(|part| wait(&part.by_key, part)).collect()
            }
        };
        let query = |row: TopRow| Query {
            waits: waits_of(&row),
            ..Query::from(row)
        };
        Ok(rows.into_iter().map(query).collect())
    }

    /// The largest waits of these queries. Other queries are not added up.
    fn waits(&self, queries: &[TopRow]) -> QueryResult<Vec<TopRow>> {
        let mut request = asks!(
            self,
            self.window,
            Top {
                dimension: Some(pg::QUERY_ID.to_string()),
                by: Some(pg::WAIT_EVENT.to_string()),
                n: self.asked.n,
                ..Top::default()
            }
        );
        let keys = || queries.iter().filter_map(|row| row.key.as_deref());
        if keys().any(|key| key == pg::OTHER) {
            let own = keys().filter(|key| *key != pg::OTHER);
            let own: Vec<String> = own.map(|key| format!("\"{key}\"")).collect();
            let filter = (pg::QUERY_ID.to_string(), own.join(","));
            request.filters.push(filter);
        }
        top::of_whole(self.run, &request)
    }

    /// Blockers of the whole server. With the report's filters, a blocker of the selected sessions
    /// could be missing.
    fn blocking(&self, at: Option<i64>) -> QueryResult<Vec<BlockingRow>> {
        let of_window = |us| Some(us).filter(|_| at.is_none());
        self.ask(&Blocking {
            node: self.asked.node.clone(),
            at,
            since: of_window(self.window.since),
            until: of_window(self.window.until),
            n: self.asked.n,
        })
    }

    /// The tree at the requested point in time, and the number of its rows that are left out.
    fn tree(&self, at: Option<i64>) -> QueryResult<(Option<Vec<Waiter>>, usize)> {
        if at.is_none() {
            return Ok((None, 0));
        }
        let rows = self.blocking(at)?;
        let left_out = rows.len().saturating_sub(TREE_ROWS);
        let rows = rows.into_iter().take(TREE_ROWS).map(Waiter::from);
        Ok((Some(rows.collect()), left_out))
    }

    fn changes(&self, before: Window) -> QueryResult<value::Changes> {
        let names = [pg::WAIT_EVENT, pg::QUERY_ID];
        let [waits, queries] = compare::of_report(
            self.run,
            self.samples(),
            [before, self.window],
            self.asked.n,
            names,
        )?;
        let changes = |rows: Vec<CompareRow>| rows.into_iter().map(Change::from).collect();
        Ok(value::Changes {
            note: waits
                .iter()
                .chain(&queries)
                .find_map(|row| row.note.clone()),
            waits: changes(waits),
            queries: changes(queries),
        })
    }

    /// The causes, and the queries, of `changes`. That function knows the whole server only, and
    /// reads all samples of two windows.
    fn findings(&self) -> QueryResult<Vec<Explanation>> {
        if !self.asked.filters.is_empty() || self.window.length() > LONGEST_WITH_CAUSES {
            return Ok(Vec::new());
        }
        let rows = self.ask(&Changes {
            node: self.asked.node.clone(),
            since: Some(self.window.since),
            until: Some(self.window.until),
            n: self.asked.n,
            ..Changes::default()
        })?;
        let is_shown = |row: &Explanation| {
            let dimension = row.dimension.as_deref();
            row.kind.as_deref() != Some("effect") || dimension == Some(pg::QUERY_ID)
        };
        let rows = rows.into_iter().map(Explanation::from);
        Ok(rows.filter(is_shown).collect())
    }

    /// The alarms of the whole server.
    fn alarms(&self) -> QueryResult<Vec<Alarming>> {
        if !self.asked.filters.is_empty() || self.window.length() > LONGEST_WITH_CAUSES {
            return Ok(Vec::new());
        }
        let rows = self.ask(&ServerHistory {
            node: self.asked.node.clone(),
            since: Some(self.window.since),
            until: Some(self.window.until),
            metric: Some(METRICS.join(",")),
            ..ServerHistory::default()
        })?;
        Ok(alarms(&rows).iter().map(Alarming::from).collect())
    }

    fn markers(&self) -> QueryResult<Vec<Marker>> {
        let rows = self.ask(&Markers {
            node: self.asked.node.clone(),
            since: Some(self.window.since),
            until: Some(self.window.until),
        })?;
        Ok(rows.into_iter().map(Marker::from).collect())
    }
}
