//! Buckets: pieces of a window. A bucket begins at a multiple of its width on the clock of a time
//! zone, counted from 1970-01-01 00:00 on that clock. All times are µs since 1970 UTC.
//!
//! Buckets wider than an hour begin when the clock first reaches a multiple, so days have 23 to 25
//! hours. For buckets of an hour or less, each change of the clock also begins a new bucket.
//! Therefore the hour that happens twice in autumn is two buckets.

use super::error::{QueryError, QueryResult};

/// One second in µs.
pub const SECOND: i64 = 1_000_000;
/// One hour in µs.
pub const HOUR: i64 = 3600 * SECOND;
/// One day in µs.
pub const DAY: i64 = 24 * HOUR;

/// The clock of a time zone.
pub trait Zone {
    /// µs that the clock is ahead of UTC at an instant.
    fn offset(&self, at_us: i64) -> i64;
    /// The next instant at which the offset may change, if there is one.
    fn next_change(&self, at_us: i64) -> Option<i64>;
}

/// The buckets that overlap a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    since: i64,
    until: i64,
    width: i64,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// `count` buckets from `origin` on.
    Uniform { origin: i64, count: usize },
    /// Pieces of one offset each; together they have `count` buckets.
    Pieces {
        pieces: Vec<UniformBuckets>,
        count: usize,
    },
    /// Bucket i is `[edges[i], edges[i + 1])`.
    Edges(Vec<i64>),
}

/// Buckets of one width between two changes of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UniformBuckets {
    /// Start of the first bucket of this piece, in µs since 1970.
    start: i64,
    /// The multiple of the width at or before `start`.
    origin: i64,
    /// Index of the first bucket of this piece.
    first: usize,
}

impl Buckets {
    /// Buckets of `width` over `[since, until)`, at most `limit`.
    pub fn new(
        since: i64,
        until: i64,
        width: i64,
        zone: Option<&dyn Zone>,
        limit: usize,
    ) -> QueryResult<Buckets> {
        if width <= 0 {
            return Err(QueryError::invalid("bucket must be greater than zero")
                .detail(format!("The bucket is {width} us."))
                .hint("Use a positive interval such as 1 minute."));
        }
        let estimate = (i128::from(until) - i128::from(since)) / i128::from(width);
        if estimate > limit as i128 {
            return Err(too_many(estimate, limit));
        }
        let kind = kind(since, until, width, zone);
        let buckets = Buckets {
            since,
            until,
            width,
            kind,
        };
        if since < until && buckets.len() > limit {
            return Err(too_many(buckets.len() as i128, limit));
        }
        Ok(buckets)
    }

    /// The window as one bucket.
    pub fn whole(since: i64, until: i64) -> Buckets {
        Buckets {
            since,
            until,
            width: until - since,
            kind: Kind::Edges(vec![since, until]),
        }
    }

    /// Number of buckets.
    pub fn len(&self) -> usize {
        if self.since >= self.until {
            return 0;
        }
        match &self.kind {
            Kind::Uniform { count, .. } | Kind::Pieces { count, .. } => *count,
            Kind::Edges(edges) => edges.len() - 1,
        }
    }

    /// True for an empty window.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when every bucket begins at a multiple of `unit` µs.
    pub fn are_multiples_of(&self, unit: i64) -> bool {
        match &self.kind {
            Kind::Uniform { origin, .. } => self.width % unit == 0 && origin % unit == 0,
            Kind::Pieces { pieces, .. } => {
                let at =
                    |piece: &UniformBuckets| piece.start % unit == 0 && piece.origin % unit == 0;
                self.width % unit == 0 && pieces.iter().all(at)
            }
            Kind::Edges(edges) => edges.iter().all(|edge| edge % unit == 0),
        }
    }

    /// End of the window, exclusive.
    pub fn until(&self) -> i64 {
        self.until
    }

    /// Start of the window.
    pub fn since(&self) -> i64 {
        self.since
    }

    /// The width asked for.
    pub fn width(&self) -> i64 {
        self.width
    }

    /// The aligned start of bucket `i`; it may lie before the window.
    pub fn start(&self, i: usize) -> i64 {
        match &self.kind {
            Kind::Uniform { origin, .. } => origin + i as i64 * self.width,
            Kind::Pieces { pieces, count } if i < *count => {
                let piece = pieces[pieces.partition_point(|piece| piece.first <= i) - 1];
                let begin = piece.origin + (i - piece.first) as i64 * self.width;
                begin.max(piece.start)
            }
            Kind::Pieces { .. } => self.until,
            Kind::Edges(edges) => edges[i],
        }
    }

    /// The part of bucket `i` within the window.
    pub fn clipped(&self, i: usize) -> (i64, i64) {
        (
            self.start(i).max(self.since),
            self.start(i + 1).min(self.until),
        )
    }

    /// The bucket of an instant, if it is in the window.
    pub fn index(&self, at: i64) -> Option<usize> {
        if at < self.since || at >= self.until {
            return None;
        }
        Some(match &self.kind {
            Kind::Uniform { origin, .. } => ((at - origin) / self.width) as usize,
            Kind::Pieces { pieces, .. } => {
                let piece = pieces[pieces.partition_point(|piece| piece.start <= at) - 1];
                piece.first + ((at - piece.origin) / self.width) as usize
            }
            Kind::Edges(edges) => edges.partition_point(|edge| *edge <= at) - 1,
        })
    }
}

fn too_many(count: i128, limit: usize) -> QueryError {
    QueryError::invalid("too many buckets")
        .detail(format!(
            "The window holds {count} buckets; at most {limit} are allowed."
        ))
        .hint("Use a wider bucket or a shorter window.")
}

/// The time between two changes of a clock.
struct Span {
    begin: i64,
    end: i64,
    /// µs that the clock is ahead of UTC.
    offset: i64,
}

/// The spans of constant offset from `from` to `to`.
fn spans(from: i64, to: i64, zone: Option<&dyn Zone>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut begin = from;
    loop {
        let change = zone.and_then(|zone| zone.next_change(begin));
        let end = change.map_or(to, |change| change.min(to));
        let offset = zone.map_or(0, |zone| zone.offset(begin));
        match spans.last_mut() {
            Some(last) if last.offset == offset => last.end = end,
            _ => spans.push(Span { begin, end, offset }),
        }
        if end >= to {
            return spans;
        }
        begin = end;
    }
}

fn kind(since: i64, until: i64, width: i64, zone: Option<&dyn Zone>) -> Kind {
    // The largest possible change of a clock, and one bucket on either side.
    let margin = width.saturating_add(2 * DAY);
    let (from, to) = (since.saturating_sub(margin), until.saturating_add(margin));
    let spans = spans(from, to, zone);
    if keep_step(width, &spans) {
        let origin = multiple(since, width, spans[0].offset);
        let count = (until - origin).max(0) as u64;
        let count = count.div_ceil(width as u64) as usize;
        Kind::Uniform { origin, count }
    } else if width <= HOUR {
        pieces(since, until, width, &spans)
    } else {
        Kind::Edges(long_edges(since, until, width, &spans))
    }
}

/// True if all buckets keep their width when the clock changes. Clocks change by an hour at a full
/// hour, so buckets of a minute keep theirs.
fn keep_step(width: i64, spans: &[Span]) -> bool {
    let is_multiple = |span: &Span| {
        let changed = span.offset - spans[0].offset;
        changed % width == 0 && (span.begin + span.offset) % width == 0
    };
    spans.len() == 1 || (width <= HOUR && spans[1..].iter().all(is_multiple))
}

/// The last instant at or before `at` when a clock shows a multiple of `width`.
fn multiple(at: i64, width: i64, offset: i64) -> i64 {
    (at + offset).div_euclid(width) * width - offset
}

/// Begins a new bucket at each change of the clock.
fn pieces(since: i64, until: i64, width: i64, spans: &[Span]) -> Kind {
    let mut pieces = Vec::new();
    let mut count = 0;
    for span in spans {
        if span.end <= since || (span.begin >= until && span.begin > since) {
            continue;
        }
        let origin = multiple(span.begin.max(since), width, span.offset);
        pieces.push(UniformBuckets {
            start: origin.max(span.begin),
            origin,
            first: count,
        });
        let length = (span.end.min(until) - origin).max(0) as u64;
        count += length.div_ceil(width as u64) as usize;
    }
    Kind::Pieces { pieces, count }
}

/// Edges from the bucket of `since` to the end of the bucket of `until`. An edge is the instant
/// when the clock first reaches a multiple. If the clock leaps over a multiple, the edge is the
/// instant of the leap.
fn long_edges(since: i64, until: i64, width: i64, spans: &[Span]) -> Vec<i64> {
    let mut edges = Vec::new();
    // The latest time that the clock has shown; multiples below it already have an edge.
    let mut reached = spans.first().map_or(since, |span| span.begin + span.offset);
    for span in spans {
        let mut local = multiple(reached, width, 0);
        if local < reached {
            local += width;
        }
        while local < span.end + span.offset {
            push_edge(&mut edges, (local - span.offset).max(span.begin), since);
            if edges.len() > 1 && edges.last().is_some_and(|edge| *edge >= until) {
                return edges;
            }
            local += width;
        }
        reached = reached.max(span.end + span.offset);
    }
    push_edge(&mut edges, until, since);
    edges
}

/// Keeps one edge at or before `since`, and no edge twice.
fn push_edge(edges: &mut Vec<i64>, edge: i64, since: i64) {
    if edge <= since {
        edges.clear();
    }
    if edges.last().is_none_or(|last| *last < edge) {
        edges.push(edge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UTC+1, from day 10, 02:00 local on UTC+2; back on day 20, 03:00.
    const SUMMER: Clock = Clock(&[(10 * DAY + HOUR, 2 * HOUR), (20 * DAY + HOUR, HOUR)]);

    /// UTC+1 until the first change; then each with its offset.
    struct Clock(&'static [(i64, i64)]);

    impl Zone for Clock {
        fn offset(&self, at: i64) -> i64 {
            let past = self.0.iter().rev().find(|change| change.0 <= at);
            past.map_or(HOUR, |change| change.1)
        }
        fn next_change(&self, at: i64) -> Option<i64> {
            let next = self.0.iter().find(|change| change.0 > at);
            next.map(|change| change.0)
        }
    }

    fn edges_of(clock: &Clock, since: i64, until: i64, width: i64) -> Vec<i64> {
        let buckets = Buckets::new(since, until, width, Some(clock), 1000).expect("buckets");
        for i in 0..buckets.len() {
            let (begin, end) = buckets.clipped(i);
            assert_eq!(buckets.index(begin), Some(i));
            assert_eq!(buckets.index(end - 1), Some(i));
        }
        (0..=buckets.len()).map(|i| buckets.start(i)).collect()
    }

    fn edges(since: i64, until: i64, width: i64) -> Vec<i64> {
        edges_of(&SUMMER, since, until, width)
    }

    #[test]
    fn utc_buckets_align_to_the_epoch_and_clip_to_the_window() {
        let buckets = Buckets::new(90, 250, 60, None, 10).expect("buckets");
        assert_eq!(buckets.len(), 4);
        assert_eq!(
            (0..4).map(|i| buckets.start(i)).collect::<Vec<_>>(),
            [60, 120, 180, 240]
        );
        assert_eq!(buckets.clipped(0), (90, 120));
        assert_eq!(buckets.clipped(3), (240, 250));
        assert_eq!(buckets.index(89), None);
        assert_eq!(buckets.index(90), Some(0));
        assert_eq!(buckets.index(120), Some(1));
        assert_eq!(buckets.index(250), None);
    }

    #[test]
    fn days_have_23_and_25_hours() {
        let midnight = 10 * DAY - HOUR;
        assert_eq!(
            edges(midnight, midnight + 23 * HOUR, DAY),
            [midnight, midnight + 23 * HOUR]
        );
        let midnight = 20 * DAY - 2 * HOUR;
        assert_eq!(
            edges(midnight, midnight + 25 * HOUR, DAY),
            [midnight, midnight + 25 * HOUR]
        );
    }

    #[test]
    fn wide_buckets_begin_at_local_times_and_hours_are_counted() {
        let midnight = 20 * DAY - 2 * HOUR;
        let six = edges(midnight, midnight + 25 * HOUR, 6 * HOUR);
        let hours: Vec<i64> = six.windows(2).map(|e| (e[1] - e[0]) / HOUR).collect();
        assert_eq!(hours, [7, 6, 6, 6]);
        let one = edges(midnight, midnight + 25 * HOUR, HOUR);
        assert_eq!(one.len(), 26);
        assert!(one.windows(2).all(|e| e[1] - e[0] == HOUR));
    }

    #[test]
    fn a_zone_bucket_may_begin_before_the_window() {
        let midnight = 10 * DAY - HOUR;
        let buckets = Buckets::new(
            midnight + 5 * HOUR,
            midnight + 30 * HOUR,
            DAY,
            Some(&SUMMER),
            10,
        )
        .expect("buckets");
        assert_eq!(buckets.len(), 2);
        assert_eq!(buckets.start(0), midnight);
        assert_eq!(buckets.clipped(0).0, midnight + 5 * HOUR);
        assert_eq!(buckets.index(midnight + 23 * HOUR), Some(1));
    }

    #[test]
    fn a_bucket_of_any_width_begins_at_its_multiples_on_the_clock() {
        // 36 hours: not every midnight, but every third noon and midnight.
        let origin = 9 * DAY - HOUR;
        assert_eq!(
            edges(origin, origin + 3 * DAY, 36 * HOUR),
            [
                origin,
                origin + 35 * HOUR,
                origin + 71 * HOUR,
                origin + 107 * HOUR
            ]
        );
        // 7 minutes: at the change, 2:00 becomes 3:00 of day 10, 2 minutes behind a
        // multiple and 1 minute before one.
        let minute = HOUR / 60;
        let change = 10 * DAY + HOUR;
        let found = edges(change - 9 * minute, change + 9 * minute, 7 * minute);
        let at = |edge: &i64| (edge - change) / minute;
        assert_eq!(
            found.iter().map(at).collect::<Vec<_>>(),
            [-9, -2, 0, 1, 8, 9]
        );
        // A zone without changes, a quarter of an hour beside the hours.
        const KATHMANDU: Clock = Clock(&[(i64::MIN, 345 * 60 * SECOND)]);
        assert_eq!(
            edges_of(&KATHMANDU, 10 * HOUR, 12 * HOUR, HOUR),
            [555, 615, 675, 735].map(|m| m * minute)
        );
    }

    #[test]
    fn a_day_that_the_clock_leaps_over_has_no_bucket() {
        const LEAP: Clock = Clock(&[(5 * DAY - HOUR, 25 * HOUR)]);
        let days = edges_of(&LEAP, 4 * DAY - HOUR, 6 * DAY - HOUR, DAY);
        assert_eq!(days, [4 * DAY - HOUR, 5 * DAY - HOUR, 6 * DAY - HOUR]);
        let six = edges_of(&LEAP, 5 * DAY - 2 * HOUR, 5 * DAY, 6 * HOUR);
        assert_eq!(
            six,
            [5 * DAY - 7 * HOUR, 5 * DAY - HOUR, 5 * DAY + 5 * HOUR]
        );
    }

    #[test]
    fn whole_and_cut_minutes_differ() {
        let multiples = |clock: &Clock, width| {
            let buckets = Buckets::new(9 * DAY, 11 * DAY, width, Some(clock), 10_000);
            buckets.expect("buckets").are_multiples_of(60 * SECOND)
        };
        assert!(multiples(&SUMMER, 60 * SECOND) && multiples(&SUMMER, DAY));
        assert!(!multiples(&SUMMER, 90 * SECOND));
        const ODD: Clock = Clock(&[(i64::MIN, HOUR + 17 * SECOND)]);
        assert!(!multiples(&ODD, 60 * SECOND) && !multiples(&ODD, DAY));
    }

    #[test]
    fn absurd_widths_are_refused() {
        let zero = Buckets::new(0, 100, 0, None, 10).expect_err("zero");
        assert_eq!(zero.sqlstate, "22023");
        let many = Buckets::new(0, 1000, 1, None, 100).expect_err("many");
        assert_eq!(
            many.detail.as_deref(),
            Some("The window holds 1000 buckets; at most 100 are allowed.")
        );
    }
}
