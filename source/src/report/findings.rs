//! The first things to know about a window, as sentences with who, what and since when. The report
//! and the headline of the page consist of these sentences.

use super::named;
use super::story::{cut, is_cycle, process, who};
use crate::time::table_time;
use jiff::tz::TimeZone;
use std::cmp::Reverse;
use tacho_tape::query::Numeric;
use tacho_tape::query::report::{Blocker, Explanation, Marker, Time};

/// Kind of the markers of a crash.
const CRASH: &str = "crash recovery";
/// Kind of a row of `changes` that explains a difference.
const CAUSE: &str = "cause";
/// Dimensions of causes that go on; all others happened at a moment.
const GOES_ON: [&str; 2] = ["clients", "blocker"];
/// A queue that was seen less than this many µs before the end of the window still goes on.
const RECENT: i64 = 3_000_000;
/// A queue is a finding if others waited for at least 1/100 of the time that all sessions were at
/// work ...
const SHARE: i128 = 100;
/// ... and for at least 2 s, in units of 0.1 ms.
const LEAST: i128 = 20_000;
/// One second in µs.
const SECOND: i128 = 1_000_000;

/// A crash, a deadlock, a queue, or the cause of a change, found in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `crash`, `deadlock`, `queue` or `cause`.
    pub kind: &'static str,
    /// Time at which it began, µs since 1970.
    pub since: i64,
    /// Time at which the crash, deadlock, queue or cause was last seen, µs since 1970. `None` if it
    /// goes on at the end of the window.
    pub until: Option<i64>,
    /// Process id of the blocker, for a queue or a deadlock.
    pub pid: Option<i64>,
    /// Ids of the queries that a cause explains, the largest first.
    pub explains: Option<String>,
    /// A sentence without a full stop.
    pub text: String,
    /// Time of waiting or additional work that it caused, summed over sessions, in 0.1 ms.
    cost: i128,
}

/// The rows that findings are made of.
pub struct Facts<'a> {
    /// The heads of queues, the longest first.
    pub blockers: &'a [Blocker],
    /// The markers of the window.
    pub markers: &'a [Marker],
    /// The answer of `changes`; empty if the source has no such function.
    pub changes: &'a [Explanation],
    /// Time of all sessions at work, s.
    pub backend_seconds: Option<Numeric>,
    /// The begin and the end of the window, µs.
    pub window: (i64, i64),
    /// The zone times are shown in.
    pub zone: &'a TimeZone,
}

/// The findings of a window, the most urgent first: crashes, queues that go on, then causes and
/// other queues by the session time that they cost.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let crashes = facts.markers.iter().rev();
    let mut all: Vec<Finding> = crashes.filter_map(|marker| facts.crash(marker)).collect();
    let blockers = facts.blockers.iter();
    let queues: Vec<Finding> = blockers.filter_map(|row| facts.queue(row)).collect();
    let causes = facts.changes.iter().filter_map(|row| facts.cause(row));
    let is_other = |cause: &Finding| cause.pid.is_none() || !is_told(&queues, cause.pid);
    let mut others: Vec<Finding> = causes.filter(is_other).collect();
    others.extend(queues);
    others.sort_by_key(|one| (one.until.is_some(), Reverse(one.cost)));
    all.extend(others);
    all
}

/// True if a queue behind this process is a finding already.
fn is_told(queues: &[Finding], pid: Option<i64>) -> bool {
    queues.iter().any(|queue| queue.pid == pid)
}

impl Facts<'_> {
    fn crash(&self, marker: &Marker) -> Option<Finding> {
        if marker.kind.as_deref() != Some(CRASH) {
            return None;
        }
        let Time(at) = marker.marker_time?;
        Some(Finding {
            kind: "crash",
            since: at,
            until: Some(at),
            pid: None,
            explains: None,
            cost: 0,
            text: format!("PostgreSQL crashed and recovered at {}", self.clock(at)),
        })
    }

    fn queue(&self, blocker: &Blocker) -> Option<Finding> {
        let (Time(since), Time(last)) = (blocker.first_seen?, blocker.last_seen?);
        let cost = blocker.blocked_seconds?.0;
        if !self.counts(cost) {
            return None;
        }
        // Holders without a name are different ones at different times.
        let is_known = blocker.pid.is_some() || blocker.prepared_gid.is_some();
        let goes_on = is_known && last >= self.window.1 - RECENT;
        let text = match is_cycle(blocker) {
            true => self.deadlock(blocker, (since, last), goes_on),
            false => self.blocks(blocker, (since, last), goes_on),
        };
        Some(Finding {
            kind: if is_cycle(blocker) {
                "deadlock"
            } else {
                "queue"
            },
            since,
            until: (!goes_on).then_some(last),
            pid: blocker.pid,
            explains: None,
            cost,
            text,
        })
    }

    /// The finding for a row of `changes` with a cause; `None` for other rows and small costs. If
    /// the earlier window was not recorded, all load looks like more than before, and nothing is a
    /// cause.
    fn cause(&self, row: &Explanation) -> Option<Finding> {
        let is_known = row.before_coverage_pct.is_some_and(|pct| pct.0 > 0);
        if row.kind.as_deref() != Some(CAUSE) || !is_known {
            return None;
        }
        let length = i128::from(self.window.1.saturating_sub(self.window.0));
        let cost = row.difference?.0.checked_mul(length)? / SECOND;
        let Time(since) = row.started?;
        if !self.counts(cost) {
            return None;
        }
        let dimension = row.dimension.as_deref().unwrap_or_default();
        let of_holder = row.key.as_deref().filter(|_| dimension == "blocker");
        let begin = if GOES_ON.contains(&dimension) {
            "Since"
        } else {
            "At"
        };
        let sentence = self.with_texts(row.explanation.as_deref().unwrap_or_default());
        let text = cut(&sentence, SENTENCE);
        Some(Finding {
            kind: CAUSE,
            since,
            until: Some(row.ended.map_or(since, |Time(ended)| ended)),
            pid: of_holder.and_then(|key| key.parse().ok()),
            explains: row.explains.as_deref().map(str::to_string),
            text: format!("{begin} {} {text}", self.clock(since)),
            cost,
        })
    }

    /// A sentence of `changes` with texts instead of ids: `query 81 got slower` becomes
    /// `"select …" got slower`.
    fn with_texts(&self, sentence: &str) -> String {
        let mut parts = sentence.split("query ");
        let mut named = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let is_id = |letter: char| letter.is_ascii_digit() || letter == '-';
            let end = part.find(|letter| !is_id(letter)).unwrap_or(part.len());
            match self.text_of(&part[..end]) {
                Some(text) => {
                    named += &format!("\"{}\"{}", cut(text, QUERY), &part[end..]);
                }
                None => named += &format!("query {part}"),
            }
        }
        named
    }

    /// The text of a query that `changes` has a row of.
    fn text_of(&self, id: &str) -> Option<&str> {
        let is_query = |row: &&Explanation| row.dimension.as_deref() == Some("query_id");
        let mut rows = self.changes.iter().filter(is_query);
        rows.find(|row| row.key.as_deref() == Some(id))?
            .query_text
            .as_deref()
    }

    /// True if the time is long enough for a finding: 2 s, and 1/100 of the time that all sessions
    /// were at work.
    fn counts(&self, cost: i128) -> bool {
        let all = self.backend_seconds.map_or(0, |seconds| seconds.0);
        cost >= LEAST && cost * SHARE >= all
    }

    /// `Since 23:15:56`, or `From 23:15:56 to 23:20:01`.
    fn when(&self, (since, last): (i64, i64), goes_on: bool) -> String {
        match goes_on {
            true => format!("Since {}", self.clock(since)),
            false => format!("From {} to {}", self.clock(since), self.clock(last)),
        }
    }

    fn blocks(&self, blocker: &Blocker, times: (i64, i64), goes_on: bool) -> String {
        let when = self.when(times, goes_on);
        let head = subject(blocker);
        let waiters = blocker.waiters.unwrap_or(0);
        let sessions = if waiters == 1 { "session" } else { "sessions" };
        // The number of a transaction only identifies the session that holds it, which is named
        // already.
        let is_number = |object: &&str| OWN.iter().any(|own| object.starts_with(own));
        let object = match blocker
            .object
            .as_deref()
            .filter(|object| !is_number(object))
        {
            Some(object) => format!(" on {}", cut(object, OBJECT)),
            None => String::new(),
        };
        match goes_on {
            true => format!("{when} {head} blocks {waiters} {sessions}{object}"),
            false => format!(
                "{when} {head} blocked up to {waiters} {sessions}{object}, {} s in all",
                short(blocker.blocked_seconds)
            ),
        }
    }

    fn deadlock(&self, blocker: &Blocker, times: (i64, i64), goes_on: bool) -> String {
        let wait = if goes_on { "wait" } else { "waited" };
        let waiters = blocker.waiters.map(|waiters| waiters.to_string());
        format!(
            "{} {} and others {wait} for each other, a deadlock: up to {} sessions, {} s in all",
            self.when(times, goes_on),
            lower(&process(blocker)),
            named(&waiters),
            short(blocker.blocked_seconds)
        )
    }

    /// The time of day, such as `23:15:56`; with the date if it is another day than the end of the
    /// window.
    fn clock(&self, at: i64) -> String {
        let (text, end) = (
            table_time(at, self.zone),
            table_time(self.window.1, self.zone),
        );
        let text = text.split('.').next().unwrap_or_default();
        match text.get(..10) == end.get(..10) {
            true => text.get(11..19).unwrap_or(text).to_string(),
            false => text.to_string(),
        }
    }
}

/// Types of locked objects that belong to one session.
const OWN: [&str; 2] = ["transactionid", "virtualxid"];
/// Maximum number of characters of a cause's sentence.
const SENTENCE: usize = 400;
/// Maximum number of characters of a query's text.
const QUERY: usize = 60;
/// Maximum number of characters of an object's name.
const OBJECT: usize = 100;

/// The blocker as the subject of a sentence: `process 12887 (admin-console, idle in transaction)`.
fn subject(blocker: &Blocker) -> String {
    let who = lower(&who(blocker));
    let Some(state) = blocker.state.as_deref() else {
        return who;
    };
    match who.strip_suffix(')') {
        Some(named) => format!("{named}, {state})"),
        None => format!("{who} ({state})"),
    }
}

/// A number as text: from 100 on and for whole numbers without decimals, otherwise with one
/// decimal.
fn short(number: Option<Numeric>) -> String {
    let places = match number.map_or(0, |number| number.0) {
        1_000_000.. => 0,
        whole if whole % 10_000 == 0 => 0,
        _ => 1,
    };
    number.map_or_else(|| "unknown".into(), |n| format!("{:.places$}", n.to_f64()))
}

/// The text with a small first letter, as within a sentence.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::query::report::Interval;

    const SECOND: i64 = 1_000_000;
    /// 2026-11-22 23:00:00 UTC.
    const BEGIN: i64 = 1_795_388_400 * SECOND;

    fn head(pid: i64, since: i64, last: i64) -> Blocker {
        Blocker {
            kind: Some("session".into()),
            pid: Some(pid),
            application: Some("admin-console".into()),
            state: Some("idle in transaction".into()),
            xact_age: None::<Interval>,
            blocked_seconds: Some(Numeric(8_040_000)),
            waiters: Some(20),
            object: Some("public.vehicle".into()),
            first_seen: Some(Time(BEGIN + since * SECOND)),
            last_seen: Some(Time(BEGIN + last * SECOND)),
            ..Blocker::default()
        }
    }

    fn told(blockers: &[Blocker], markers: &[Marker], backend_seconds: i128) -> Vec<Finding> {
        findings(&Facts {
            blockers,
            markers,
            changes: &[],
            backend_seconds: Some(Numeric(backend_seconds * 10_000)),
            window: (BEGIN, BEGIN + 1000 * SECOND),
            zone: &TimeZone::UTC,
        })
    }

    fn texts(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|finding| finding.text.as_str()).collect()
    }

    #[test]
    fn a_queue_is_described_by_blocker_query_and_begin() {
        let found = told(&[head(12887, 956, 999)], &[], 900);
        let text = "Since 23:15:56 process 12887 (admin-console, idle in transaction) blocks 20 sessions on public.vehicle";
        assert_eq!(texts(&found), [text]);
        assert_eq!((found[0].until, found[0].pid), (None, Some(12887)));
        let found = told(&[head(12887, 0, 101)], &[], 900);
        let text = "From 23:00:00 to 23:01:41 process 12887 (admin-console, idle in transaction) blocked up to 20 sessions on public.vehicle, 804 s in all";
        assert_eq!(texts(&found), [text]);
    }

    #[test]
    fn the_number_of_a_transaction_is_no_object() {
        let head = Blocker {
            object: Some("transactionid 777".into()),
            ..head(1, 956, 999)
        };
        let text =
            "Since 23:15:56 process 1 (admin-console, idle in transaction) blocks 20 sessions";
        assert_eq!(texts(&told(&[head], &[], 900)), [text]);
    }

    #[test]
    fn a_deadlock_is_none_of_these_and_a_crash_comes_first() {
        let cycle = Blocker {
            kind: Some("cycle".into()),
            ..head(7, 10, 20)
        };
        let crash = Marker {
            marker_time: Some(Time(BEGIN + 30 * SECOND)),
            kind: Some("crash recovery".into()),
            ..Marker::default()
        };
        let found = told(&[cycle], &[crash], 900);
        let expected = [
            "PostgreSQL crashed and recovered at 23:00:30",
            "From 23:00:10 to 23:00:20 process 7 (admin-console) and others waited for each other, a deadlock: up to 20 sessions, 804 s in all",
        ];
        assert_eq!(texts(&found), expected);
    }

    /// A change that cost 3 sessions in 1000 s.
    fn dropped() -> Explanation {
        Explanation {
            kind: Some("cause".into()),
            dimension: Some("schema changed".into()),
            key: Some("app.orders_customer".into()),
            started: Some(Time(BEGIN + 727 * SECOND)),
            difference: Some(Numeric(30_000)),
            explains: Some("81".into()),
            explanation: Some("DROP INDEX app.orders_customer on app.orders, 1 s before query 81 got slower, from 0.02 to 3.10 sessions".into()),
            before_coverage_pct: Some(Numeric(1_000_000)),
            ..Explanation::default()
        }
    }

    fn with(changes: &[Explanation], blockers: &[Blocker]) -> Vec<Finding> {
        findings(&Facts {
            blockers,
            markers: &[],
            changes,
            backend_seconds: Some(Numeric(4_000 * 10_000)),
            window: (BEGIN, BEGIN + 1000 * SECOND),
            zone: &TimeZone::UTC,
        })
    }

    const DROPPED: &str = "At 23:12:07 DROP INDEX app.orders_customer on app.orders, 1 s before query 81 got slower, from 0.02 to 3.10 sessions";

    #[test]
    fn a_cause_is_a_finding_with_its_second_and_its_queries() {
        let found = with(&[dropped()], &[]);
        assert_eq!(texts(&found), [DROPPED]);
        assert_eq!(
            (found[0].kind, found[0].since),
            ("cause", BEGIN + 727 * SECOND)
        );
        assert_eq!(found[0].explains.as_deref(), Some("81"));
    }

    #[test]
    fn a_cause_names_its_query_by_text() {
        let slower = Explanation {
            kind: Some("effect".into()),
            dimension: Some("query_id".into()),
            key: Some("81".into()),
            query_text: Some("select *\n  from orders where customer = $1".into()),
            ..Explanation::default()
        };
        let text = DROPPED.replace("query 81", "\"select * from orders where customer = $1\"");
        assert_eq!(texts(&with(&[dropped(), slower.clone()], &[])), [text]);
        let other = Explanation {
            key: Some("812".into()),
            ..slower
        };
        assert_eq!(texts(&with(&[dropped(), other], &[])), [DROPPED]);
    }

    #[test]
    fn seconds_have_the_decimals_that_say_something() {
        let of = |seconds| short(Some(Numeric(seconds)));
        assert_eq!(of(14_400_000), "1440");
        assert_eq!(of(1_234_567), "123");
        assert_eq!(of(73_456), "7.3");
        assert_eq!(of(70_000), "7");
    }

    #[test]
    fn a_queue_that_goes_on_comes_before_a_cause_and_an_ended_one_by_what_it_cost() {
        let kinds = |found: &[Finding]| found.iter().map(|one| one.kind).collect::<Vec<_>>();
        assert_eq!(
            kinds(&with(&[dropped()], &[head(1, 956, 999)])),
            ["queue", "cause"]
        );
        assert_eq!(
            kinds(&with(&[dropped()], &[head(1, 0, 101)])),
            ["cause", "queue"]
        );
        let less = Explanation {
            difference: Some(Numeric(7_000)),
            ..dropped()
        };
        assert_eq!(
            kinds(&with(&[less], &[head(1, 0, 101)])),
            ["queue", "cause"]
        );
    }

    #[test]
    fn a_holder_that_causes_a_queue_is_one_finding() {
        let holder = Explanation {
            dimension: Some("blocker".into()),
            key: Some("12887".into()),
            explanation: Some("session 12887, idle in transaction, holds ShareLock".into()),
            ..dropped()
        };
        let found = with(std::slice::from_ref(&holder), &[head(12887, 0, 101)]);
        assert_eq!(
            found.iter().map(|one| one.kind).collect::<Vec<_>>(),
            ["queue"]
        );
        let text = "Since 23:12:07 session 12887, idle in transaction, holds ShareLock";
        assert_eq!(texts(&with(&[holder], &[])), [text]);
    }

    #[test]
    fn nothing_is_a_cause_beside_a_window_that_was_not_recorded_or_without_a_share() {
        let [unknown, second] = [
            Explanation {
                before_coverage_pct: Some(Numeric(0)),
                ..dropped()
            },
            Explanation {
                difference: None,
                ..dropped()
            },
        ];
        assert_eq!(with(&[unknown, second], &[]), []);
    }

    #[test]
    fn a_wait_that_is_short_or_little_beside_all_work_is_none() {
        let short = Blocker {
            blocked_seconds: Some(Numeric(19_999)),
            ..head(1, 0, 1)
        };
        assert_eq!(told(&[short], &[], 2), []);
        assert_eq!(told(&[head(1, 0, 900)], &[], 81_000), []);
    }

    #[test]
    fn holders_without_a_name_are_no_queue_that_goes_on() {
        let unknown = Blocker {
            kind: Some("unknown".into()),
            pid: None,
            state: None,
            blocked_seconds: Some(Numeric(100_000)),
            ..head(1, 0, 999)
        };
        let found = told(&[unknown, head(2, 800, 900)], &[], 900);
        let since: Vec<_> = found.iter().map(|one| (one.pid, one.until)).collect();
        let end = |second: i64| Some(BEGIN + second * SECOND);
        assert_eq!(since, [(Some(2), end(900)), (None, end(999))]);
    }

    #[test]
    fn an_unknown_session_has_the_name_of_the_reader() {
        for (kind, name) in [
            ("unknown", "not looked up (unknown)"),
            ("lost", "look them up (lost)"),
        ] {
            let blocker = Blocker {
                kind: Some(kind.into()),
                pid: None,
                state: None,
                ..head(1, 0, 10)
            };
            assert!(texts(&told(&[blocker], &[], 0))[0].contains(name));
        }
    }
}
