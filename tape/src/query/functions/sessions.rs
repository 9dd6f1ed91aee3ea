//! `sessions`: the lives of sessions. Each span has what the session did and when; the time between
//! spans is idle, a gap or unknown.

use super::common_columns::{nonzero, seconds, some_time};
use super::lifeline::{ActivitySpan, Clock, Gap, SpanOrGap, life};
use crate::fast::FastMap;
use crate::format::schema::RUN;
use crate::format::table::Column;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::{View, field};
use crate::query::rows::parse::{Window, limit, samples};
use crate::query::rows::scan::Scan;
use crate::query::rows::select::Selected;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary::{self as pg, Scope};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

row! {
    /// A row of `sessions`.
    SessionsRow of "sessions": FIELDS {
        pid: Int,
        backend_start: Time,
        backend_type: Text,
        database: Text,
        username: Text,
        application: Text,
        client_addr: Text,
        span_start: Time,
        span_end: Time,
        kind: Text,
        seconds: Numeric,
        ticks: Int,
        state: Text,
        wait_event_type: Text,
        wait_event: Text,
        cpu: Text,
        query_id: Id,
        plan_id: Id,
        blocked_by: Int,
        query_start: Time,
        xact_start: Time,
        query_text: Text,
    }
}

request! {
    /// Sessions as spans of state, wait and query, with the gaps between them
    Sessions of sessions: SessionsRow {
        node,
        since,
        until,
        n("Maximum number of sessions, or all", Some("10")),
        scope("load, foreground or all", Some("all")),
        by_leader,
        filters,
    }
}

/// A session: its node, process id, and start in µs.
type SessionKey = (u64, i64, i64);

/// A session's names, which never change, and its spans.
#[derive(Default)]
struct SessionLife {
    names: [Option<Arc<str>>; 5],
    spans: Vec<ActivitySpan>,
}

/// The columns of `session` that [`SessionLife`] has.
const NAMES: [&str; 5] = [
    "backend_type",
    "database",
    pg::USERNAME,
    "application",
    "client_addr",
];

/// Activity of a session at a tick. The kind of on-CPU activity is not part of it, because it
/// changes from tick to tick while a query computes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Activity {
    state: Option<Arc<str>>,
    wait: [Option<Arc<str>>; 2],
    query_id: i64,
    plan_id: i64,
    blocked_by: i64,
    text: Option<TextKey>,
}

/// The dictionaries of a part that describe activities.
struct Dictionaries {
    /// Type and event.
    wait: [Column; 2],
    /// Query id, plan id and key of the text.
    statement: [Column; 3],
}

impl Dictionaries {
    fn read(view: &View) -> QueryResult<Dictionaries> {
        let wait = |column: &str| view.part.ints(pg::WAIT, column);
        let statement = |column: &str| view.part.ints("statement", column);
        Ok(Dictionaries {
            wait: [wait(pg::WAIT_TYPE)?, wait(pg::WAIT_EVENT)?],
            statement: [
                statement(pg::QUERY_ID)?,
                statement("plan_id")?,
                statement("text_key")?,
            ],
        })
    }
}

fn answer(asked: &Sessions, run: Run, emit: Emit<SessionsRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let most = limit(asked.n)?;
    let mut scan = Scan::new(run, samples!(asked), window)?;
    scan.selection.marked = scan.selection.scope == Scope::All;
    if window.length() == 0 {
        return Ok(());
    }
    let mut lives = SessionLives::default();
    let whole = Buckets::new(window.since, window.until, window.length(), None, 2)?;
    for part in 0..scan.parts.len() {
        scan.check_cancel()?;
        let added = lives.add_seen_time(&scan, part, &whole);
        run.damage.note_and_continue(added)?;
        scan.release(part);
    }
    run.damage.check()?;
    let ranks = lives.keep(most);
    for part in 0..scan.parts.len() {
        scan.check_cancel()?;
        let read = lives.read(&scan, part, &whole, &ranks);
        run.damage.note_and_continue(read)?;
        scan.release(part);
    }
    run.damage.check()?;
    let wanted = lives.activities.iter().filter_map(|activity| activity.text);
    let (near, far) = (scan.parts.iter().rev(), scan.others.iter().rev());
    let texts = Texts::find(wanted, near.copied(), far.copied(), run)?;
    let complete = is_complete(&scan);
    let gaps = lives
        .clocks
        .iter()
        .map(|(node, clock)| (*node, clock.gaps()));
    let gaps: HashMap<u64, Vec<Gap>> = gaps.collect();
    for (key, life) in &lives.ranked {
        scan.check_cancel()?;
        let gaps = gaps.get(&key.0).map_or(&[][..], Vec::as_slice);
        lives.rows(key, life, (gaps, complete), &texts, emit)?;
    }
    Ok(())
}

/// True if every sample of the shown sessions matches. Then a tick without a sample was idle.
fn is_complete(scan: &Scan) -> bool {
    let filters = &scan.selection.filters;
    scan.selection.scope == Scope::All && filters.iter().all(|(d, _)| d.is_of_session())
}

/// Collects the spans of sessions in two passes. The first adds up the time that each session was
/// seen; the second reads the spans of the sessions that were seen longest.
#[derive(Default)]
struct SessionLives {
    /// Time that each session was seen, in ms.
    sampled_ms: FastMap<SessionKey, i64>,
    ranked: Vec<(SessionKey, SessionLife)>,
    clocks: HashMap<u64, Clock>,
    activities: Vec<Activity>,
    activity_ids: FastMap<Activity, usize>,
    /// Kinds of on-CPU activity.
    kinds: Vec<Arc<str>>,
}

/// The session of each entry in a part's dictionary.
fn entries(view: &View) -> QueryResult<Vec<SessionKey>> {
    let pid = view.part.ints("session", "pid")?;
    let start = view.part.ints("session", "backend_start")?;
    let both = pid.iter().zip(start.iter());
    Ok(both.map(|(p, s)| (view.part.node(), *p, *s)).collect())
}

impl SessionLives {
    /// Adds up the time that each session was seen.
    fn add_seen_time(&mut self, scan: &Scan, part: usize, whole: &Buckets) -> QueryResult<()> {
        let view = View::new(scan.parts[part], scan.run.decode);
        let ticks = Ticks::read(view.part, whole, &mut Observed::default())?;
        scan.check_cancel()?;
        let selected = Selected::of_single_part(&view, scan.run.catalog, &scan.selection)?;
        scan.check_cancel()?;
        let session = view.part.ints(RUN, "session")?;
        let mut sums = vec![0_i64; view.part.rows("session")];
        selected.for_each(|piece| {
            let runs = &selected.runs;
            let (begin, end) = ticks.range(runs.first_tick(piece), runs.ticks(piece));
            let entry = usize::try_from(session[runs.row(piece)] - 1).ok();
            if let Some(sum) = entry.and_then(|entry| sums.get_mut(entry)) {
                ticks.pieces(begin, end, |_, ms| *sum += ms);
            }
        });
        for (entry, key) in entries(&view)?.into_iter().enumerate() {
            if sums[entry] > 0 {
                *self.sampled_ms.entry(key).or_default() += sums[entry];
            }
        }
        Ok(())
    }

    /// Keeps the `most` sessions that were seen longest; returns their ranks.
    fn keep(&mut self, most: usize) -> FastMap<SessionKey, usize> {
        let seen = std::mem::take(&mut self.sampled_ms);
        let mut order: Vec<(i64, SessionKey)> =
            seen.into_iter().map(|(key, ms)| (ms, key)).collect();
        let longest = |(ms, key): &(i64, SessionKey)| (Reverse(*ms), key.1, key.2, key.0);
        if most < order.len() {
            order.select_nth_unstable_by_key(most, longest);
            order.truncate(most);
        }
        order.sort_unstable_by_key(longest);
        let ranks = order.iter().map(|(_, key)| *key).zip(0..).collect();
        let lives = order
            .into_iter()
            .map(|(_, key)| (key, SessionLife::default()));
        self.ranked = lives.collect();
        ranks
    }

    /// Reads the spans of the kept sessions.
    fn read(
        &mut self,
        scan: &Scan,
        part: usize,
        whole: &Buckets,
        rank: &FastMap<SessionKey, usize>,
    ) -> QueryResult<()> {
        let view = View::new(scan.parts[part], scan.run.decode);
        let ticks = Ticks::read(view.part, whole, &mut Observed::default())?;
        let breaks = self.breaks(&view, &ticks);
        let entries = entries(&view)?;
        let ranks: Vec<Option<usize>> = entries.iter().map(|w| rank.get(w).copied()).collect();
        let selected = Selected::of_single_part(&view, scan.run.catalog, &scan.selection)?;
        let column = |name: &str| {
            scan.check_cancel()?;
            QueryResult::Ok(view.part.ints(RUN, name)?)
        };
        let session = column("session")?;
        let starts = [column("query_start")?, column("xact_start")?];
        let cpu = column(pg::CPU)?;
        let columns = [pg::STATE, pg::WAIT, "statement", pg::BLOCKED_BY];
        let [state, wait, statement, blocker] = columns.map(column);
        let columns = [state?, wait?, statement?, blocker?];
        // The activity is found once for all rows with the same values.
        let (mut activities, mut kinds) = (FastMap::default(), FastMap::default());
        let mut pieces = Vec::new();
        selected.for_each(|piece| {
            let row = selected.runs.row(piece);
            let entry = usize::try_from(session[row] - 1).unwrap_or(usize::MAX);
            if let Some(rank) = ranks.get(entry).copied().flatten() {
                pieces.push((rank, entry, piece));
            }
        });
        if pieces.is_empty() {
            return Ok(());
        }
        let dictionaries = Dictionaries::read(&view)?;
        let mut named = vec![usize::MAX; self.ranked.len()];
        for (number, (rank, entry, piece)) in pieces.into_iter().enumerate() {
            if number % 1_024 == 0 {
                scan.check_cancel()?;
            }
            let runs = &selected.runs;
            let row = runs.row(piece);
            if named[rank] != entry {
                named[rank] = entry;
                self.name(&view, rank, entry)?;
            }
            let activity_values = columns.each_ref().map(|column| column[row]);
            let activity = match activities.entry(activity_values) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    *new.insert(self.activity_id(&view, &dictionaries, activity_values)?)
                }
            };
            let kind: Option<usize> = match kinds.entry(cpu[row]) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(self.kind(&view, row)?),
            };
            let starts = starts.each_ref().map(|column| column[row]);
            let (begin, end) = ticks.range(runs.first_tick(piece), runs.ticks(piece));
            let spans = &mut self.ranked[rank].1.spans;
            stretches(&ticks, &breaks, begin..end, |begin, end, ticks| {
                spans.push(ActivitySpan {
                    begin,
                    end,
                    ticks,
                    activity,
                    cpu: kind.map(|kind| (kind, ticks)).into_iter().collect(),
                    starts,
                });
            });
        }
        Ok(())
    }

    /// For each row of `ticks`: true if its tick does not follow the one before without a gap, or
    /// does not count.
    fn breaks(&mut self, view: &View, ticks: &Ticks) -> Vec<bool> {
        let clock = self.clocks.entry(view.part.node()).or_default();
        let rows = 0..ticks.len();
        let tick = |row: usize| {
            let begin = ticks.slot_ms[row];
            ticks.bucket[row] == NONE || !clock.tick(begin, begin + ticks.weight_ms[row])
        };
        rows.map(tick).collect()
    }

    fn name(&mut self, view: &View, rank: usize, entry: usize) -> QueryResult<()> {
        let names = &mut self.ranked[rank].1.names;
        if names.iter().any(Option::is_some) {
            return Ok(());
        }
        for (name, column) in names.iter_mut().zip(NAMES) {
            let value = view.part.ints("session", column)?[entry];
            *name = view.key("session", column, value)?.map(Arc::from);
        }
        Ok(())
    }

    /// The number of the activity in a row of `run`.
    fn activity_id(
        &mut self,
        view: &View,
        dictionaries: &Dictionaries,
        [state, wait, statement, blocker]: [i64; 4],
    ) -> QueryResult<usize> {
        let [class, event] = dictionaries
            .wait
            .each_ref()
            .map(|column| field(column, Reference(wait)));
        let [query_id, plan_id, text_key] = dictionaries
            .statement
            .each_ref()
            .map(|column| field(column, Reference(statement)));
        let activity = Activity {
            state: view.key(RUN, pg::STATE, state)?.map(Arc::from),
            wait: [view.name(Reference(class))?, view.name(Reference(event))?]
                .map(|name| name.map(Arc::from)),
            query_id,
            plan_id,
            blocked_by: view.pid(Reference(blocker))?.unwrap_or(0),
            text: TextKey::of(query_id, text_key),
        };
        let next = self.activities.len();
        let number = *self.activity_ids.entry(activity.clone()).or_insert(next);
        if number == next {
            self.activities.push(activity);
        }
        Ok(number)
    }

    /// The number of a row's kind of on-CPU activity.
    fn kind(&mut self, view: &View, row: usize) -> QueryResult<Option<usize>> {
        let value = view.part.ints(RUN, pg::CPU)?[row];
        Ok(view.key(RUN, pg::CPU, value)?.map(|name| {
            let known = self.kinds.iter().position(|kind| **kind == *name);
            known.unwrap_or_else(|| {
                self.kinds.push(name.into());
                self.kinds.len() - 1
            })
        }))
    }

    /// The kinds of on-CPU activity in a span, most frequent first.
    fn kinds(&self, span: &ActivitySpan) -> Option<Arc<str>> {
        if let [(kind, _)] = span.cpu[..] {
            return Some(Arc::clone(&self.kinds[kind]));
        }
        let mut kinds: Vec<(i64, &str)> = Vec::new();
        kinds.extend(span.cpu.iter().map(|c| (-c.1, &*self.kinds[c.0])));
        kinds.sort_unstable();
        let names: Vec<&str> = kinds.into_iter().map(|kind| kind.1).collect();
        (!names.is_empty()).then(|| names.join(", ").into())
    }

    /// Emits the rows of a session. If its samples are complete, time without samples is idle.
    fn rows(
        &self,
        key: &SessionKey,
        session: &SessionLife,
        (gaps, complete): (&[Gap], bool),
        texts: &Texts,
        emit: Emit<SessionsRow>,
    ) -> QueryResult<()> {
        let mut spans = session.spans.clone();
        spans.sort_by_key(|span| span.begin);
        let kinds: [Arc<str>; 4] = ["sampled", "idle", "no match", "gap"].map(Arc::from);
        let [sampled, idle, no_match, gap] = kinds;
        for piece in life(spans, gaps) {
            let (begin, end, kind) = match &piece {
                SpanOrGap::Seen(span) => (span.begin, span.end, &sampled),
                SpanOrGap::Unseen(begin, end) if complete => (*begin, *end, &idle),
                SpanOrGap::Unseen(begin, end) => (*begin, *end, &no_match),
                SpanOrGap::Gap(begin, end) => (*begin, *end, &gap),
            };
            let columns = match &piece {
                SpanOrGap::Seen(span) => {
                    self.activity_columns(span, texts, session.names[1].as_deref())
                }
                _ => SessionsRow::default(),
            };
            let [backend_type, database, username, application, client_addr] =
                session.names.clone();
            emit(SessionsRow {
                pid: Some(key.1),
                backend_start: some_time(key.2, 1),
                backend_type,
                database,
                username,
                application,
                client_addr,
                span_start: some_time(begin, 1000),
                span_end: some_time(end, 1000),
                kind: Some(Arc::clone(kind)),
                seconds: seconds(end - begin),
                ..columns
            })?;
        }
        Ok(())
    }

    /// The columns from `ticks` on: the activity of the session in a span.
    fn activity_columns(
        &self,
        span: &ActivitySpan,
        texts: &Texts,
        database: Option<&str>,
    ) -> SessionsRow {
        let activity = &self.activities[span.activity];
        let [wait_event_type, wait_event] = activity.wait.clone();
        SessionsRow {
            ticks: Some(span.ticks),
            state: activity.state.clone(),
            wait_event_type,
            wait_event,
            cpu: self.kinds(span),
            query_id: nonzero(activity.query_id),
            plan_id: nonzero(activity.plan_id),
            blocked_by: nonzero(activity.blocked_by),
            query_start: some_time(span.starts[0], 1000),
            xact_start: some_time(span.starts[1], 1000),
            query_text: activity.text.and_then(|key| texts.get(key, database)),
            ..SessionsRow::default()
        }
    }
}

/// Calls `each` with start, end and number of ticks of each stretch of rows that was observed
/// without a break.
fn stretches(
    ticks: &Ticks,
    breaks: &[bool],
    rows: std::ops::Range<u32>,
    mut each: impl FnMut(i64, i64, i64),
) {
    let mut open: Option<(i64, i64, i64)> = None;
    for row in rows.map(|row| row as usize) {
        if breaks[row]
            && let Some((begin, end, count)) = open.take()
        {
            each(begin, end, count);
        }
        if ticks.bucket[row] == NONE {
            continue;
        }
        let slot = ticks.slot_ms[row];
        let end = slot + ticks.weight_ms[row];
        open = Some(match open {
            Some((begin, _, count)) => (begin, end, count + 1),
            None => (slot, end, 1),
        });
    }
    if let Some((begin, end, count)) = open {
        each(begin, end, count);
    }
}
