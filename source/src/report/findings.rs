//! The first things to know of a window, as sentences of who, what and since when. The report and
//! the headline of the page are made of the same ones.

use super::story::{cut, is_cycle, process, who};
use super::{named, two};
use crate::time::table_time;
use jiff::tz::TimeZone;
use tacho_tape::query::Numeric;
use tacho_tape::query::report::{Blocker, Marker, Time};

/// Kind of the markers of a crash.
const CRASH: &str = "crash recovery";
/// A queue that was seen so shortly before the end of the window goes on, µs.
const RECENT: i64 = 3_000_000;
/// Share of all session time that others waited, from which on a queue is a finding.
const SHARE: i128 = 100;
/// And the least time, in 0.1 ms.
const LEAST: i128 = 20_000;

/// Something that happened in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `crash`, `deadlock` or `queue`.
    pub kind: &'static str,
    /// When it began, µs.
    pub since: i64,
    /// When it was seen last, µs; `None` where it goes on at the end of the window.
    pub until: Option<i64>,
    /// The process that it is about.
    pub pid: Option<i64>,
    /// A sentence without a full stop.
    pub text: String,
}

/// The rows that findings are made of.
pub struct Facts<'a> {
    /// The heads of queues, the longest first.
    pub blockers: &'a [Blocker],
    /// The markers of the window.
    pub markers: &'a [Marker],
    /// Time of all sessions at work, s.
    pub backend_seconds: Option<Numeric>,
    /// The end of the window, µs.
    pub end: i64,
    /// The zone times are shown in.
    pub zone: &'a TimeZone,
}

/// The findings of a window, the most urgent first: crashes, then queues by how long
/// others waited.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let crashes = facts
        .markers
        .iter()
        .rev()
        .filter_map(|marker| facts.crash(marker));
    let queues = facts
        .blockers
        .iter()
        .filter_map(|blocker| facts.queue(blocker));
    crashes.chain(queues).collect()
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
            text: format!("PostgreSQL crashed and recovered at {}", self.clock(at)),
        })
    }

    fn queue(&self, blocker: &Blocker) -> Option<Finding> {
        let (Time(since), Time(last)) = (blocker.first_seen?, blocker.last_seen?);
        if !self.counts(blocker.blocked_seconds?) {
            return None;
        }
        let goes_on = last >= self.end - RECENT;
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
            text,
        })
    }

    /// A wait that is short beside all work is no finding.
    fn counts(&self, blocked: Numeric) -> bool {
        let all = self.backend_seconds.map_or(0, |seconds| seconds.0);
        blocked.0 >= LEAST && blocked.0 * SHARE >= all
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
        // The number of a transaction says nothing that its session does not.
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
                two(blocker.blocked_seconds)
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
            two(blocker.blocked_seconds)
        )
    }

    /// `23:15:56`, of another day than the end of the window with its date.
    fn clock(&self, at: i64) -> String {
        let (text, end) = (table_time(at, self.zone), table_time(self.end, self.zone));
        let text = text.split('.').next().unwrap_or_default();
        match text.get(..10) == end.get(..10) {
            true => text.get(11..19).unwrap_or(text).to_string(),
            false => text.to_string(),
        }
    }
}

/// Objects that are locked by whom they belong to.
const OWN: [&str; 2] = ["transactionid", "virtualxid"];
/// Characters of the name of an object.
const OBJECT: usize = 100;

/// `process 12887 (admin-console, idle in transaction)`
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

/// With a small first letter, as within a sentence.
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
            backend_seconds: Some(Numeric(backend_seconds * 10_000)),
            end: BEGIN + 1000 * SECOND,
            zone: &TimeZone::UTC,
        })
    }

    fn texts(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|finding| finding.text.as_str()).collect()
    }

    #[test]
    fn a_queue_is_told_with_who_what_and_since_when() {
        let found = told(&[head(12887, 956, 999)], &[], 900);
        let text = "Since 23:15:56 process 12887 (admin-console, idle in transaction) blocks 20 sessions on public.vehicle";
        assert_eq!(texts(&found), [text]);
        assert_eq!((found[0].until, found[0].pid), (None, Some(12887)));
        let found = told(&[head(12887, 0, 101)], &[], 900);
        let text = "From 23:00:00 to 23:01:41 process 12887 (admin-console, idle in transaction) blocked up to 20 sessions on public.vehicle, 804.00 s in all";
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
            "From 23:00:10 to 23:00:20 process 7 (admin-console) and others waited for each other, a deadlock: up to 20 sessions, 804.00 s in all",
        ];
        assert_eq!(texts(&found), expected);
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
    fn whom_nobody_knows_has_the_name_of_the_reader() {
        for (kind, name) in [
            ("unknown", "not looked up (unknown)"),
            ("lost", "looked up (lost)"),
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
