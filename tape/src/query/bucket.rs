//! Buckets: pieces of a window, aligned to the UTC epoch or to the midnights of
//! a time zone. All times are µs since 1970 UTC.
//!
//! In a time zone buckets start anew at each midnight. Buckets above an hour
//! begin at local times (00:00, 06:00, 12:00 …), so days have 23 to 25 hours;
//! those of an hour or less are counted from midnight, so that the hour that
//! happens twice is two buckets.

use super::error::{QueryError, QueryResult};

/// One second in µs.
pub const SECOND: i64 = 1_000_000;
/// One hour in µs.
pub const HOUR: i64 = 3600 * SECOND;
/// One day in µs.
pub const DAY: i64 = 24 * HOUR;

/// The calendar of a time zone.
pub trait Zone {
    /// Days since 1970-01-01 of the local date at an instant.
    fn day(&self, at_us: i64) -> i64;
    /// The instant of a local time; one that does not exist is moved behind
    /// the gap, of two the first counts.
    fn instant(&self, day: i64, time_us: i64) -> i64;
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
    /// Bucket i is `[edges[i], edges[i + 1])`.
    Edges(Vec<i64>),
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
                .detail(format!("The bucket given is {width} us."))
                .hint("Use a positive interval such as 1 minute."));
        }
        let estimate = (i128::from(until) - i128::from(since)) / i128::from(width);
        if estimate > limit as i128 {
            return Err(too_many(estimate, limit));
        }
        let kind = match zone {
            Some(zone) => Kind::Edges(zone_edges(since, until, width, zone)),
            None => {
                let origin = since.div_euclid(width) * width;
                let count = (until - origin).max(0) as u64;
                let count = count.div_ceil(width as u64) as usize;
                Kind::Uniform { origin, count }
            }
        };
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
            Kind::Uniform { count, .. } => *count,
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
            Kind::Uniform { .. } => self.width % unit == 0,
            Kind::Edges(edges) => edges.iter().all(|edge| edge % unit == 0),
        }
    }

    /// End of the window, exclusive.
    pub fn until(&self) -> i64 {
        self.until
    }

    /// Begin of the window.
    pub fn since(&self) -> i64 {
        self.since
    }

    /// The width asked for.
    pub fn width(&self) -> i64 {
        self.width
    }

    /// The aligned begin of bucket `i`; it may lie before the window.
    pub fn start(&self, i: usize) -> i64 {
        match &self.kind {
            Kind::Uniform { origin, .. } => origin + i as i64 * self.width,
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
            Kind::Edges(edges) => edges.partition_point(|edge| *edge <= at) - 1,
        })
    }
}

fn too_many(count: i128, limit: usize) -> QueryError {
    QueryError::invalid("too many buckets")
        .detail(format!(
            "The window holds {count} buckets, {limit} are allowed."
        ))
        .hint("Use a wider bucket or a shorter window.")
}

/// Edges from the bucket of `since` to the end of the bucket of `until`.
fn zone_edges(since: i64, until: i64, width: i64, zone: &dyn Zone) -> Vec<i64> {
    let days = if width % DAY == 0 { width / DAY } else { 1 };
    let mut day = zone.day(since).div_euclid(days) * days;
    // Clocks that were put forward over its midnight begin the day later.
    if zone.instant(day, 0) > since {
        day -= days;
    }
    let mut edges = Vec::new();
    loop {
        let midnight = zone.instant(day, 0);
        let next = zone.instant(day + days, 0);
        if next <= midnight && midnight > since {
            // The calendar ends here: the last bucket reaches to the end.
            push_edge(&mut edges, until.max(midnight), since);
            return edges;
        }
        let mut k = 0;
        loop {
            let edge = if width > HOUR && width % DAY != 0 {
                if k * width >= DAY {
                    break;
                }
                zone.instant(day, k * width)
            } else {
                midnight.saturating_add(k * width)
            };
            if edge >= next {
                break;
            }
            push_edge(&mut edges, edge, since);
            if edge >= until && edges.len() > 1 {
                return edges;
            }
            k += 1;
            if width % DAY == 0 {
                break;
            }
        }
        day += days;
    }
}

/// Keeps one edge at or before `since`, and each edge once.
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
    struct Summer;

    const ON: i64 = 10 * DAY + HOUR;
    const OFF: i64 = 20 * DAY + HOUR;

    impl Zone for Summer {
        fn day(&self, at: i64) -> i64 {
            let offset = if (ON..OFF).contains(&at) { 2 } else { 1 };
            (at + offset * HOUR).div_euclid(DAY)
        }
        fn instant(&self, day: i64, time: i64) -> i64 {
            let local = day * DAY + time;
            let summer = local - 2 * HOUR;
            let winter = local - HOUR;
            if (ON..OFF).contains(&summer) {
                summer
            } else if !(ON..OFF).contains(&winter) {
                winter
            } else {
                winter.max(ON)
            }
        }
    }

    fn edges(since: i64, until: i64, width: i64) -> Vec<i64> {
        let buckets = Buckets::new(since, until, width, Some(&Summer), 1000).expect("buckets");
        (0..=buckets.len()).map(|i| buckets.start(i)).collect()
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
            Some(&Summer),
            10,
        )
        .expect("buckets");
        assert_eq!(buckets.len(), 2);
        assert_eq!(buckets.start(0), midnight);
        assert_eq!(buckets.clipped(0).0, midnight + 5 * HOUR);
        assert_eq!(buckets.index(midnight + 23 * HOUR), Some(1));
    }

    #[test]
    fn absurd_widths_are_refused() {
        let zero = Buckets::new(0, 100, 0, None, 10).expect_err("zero");
        assert_eq!(zero.sqlstate, "22023");
        let many = Buckets::new(0, 1000, 1, None, 100).expect_err("many");
        assert_eq!(
            many.detail.as_deref(),
            Some("The window holds 1000 buckets, 100 are allowed.")
        );
    }
}
