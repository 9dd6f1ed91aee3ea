//! `GET /api/v1/lanes`: the lives of sessions, for a picture. A busy day has more
//! spans than anyone can see, and than a browser can process in time. The picture is
//! therefore divided into columns; each shows what a session mostly did in it. If a
//! column is a second or less, the answer has the spans themselves.
//!
//! `blocking` says which sessions are heads of queues, and how long others waited for them.

use crate::api::{Api, answered, given, is_over, notices};
use crate::desk::Taking;
use crate::problem::Problem;
use crate::texts::end_of;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::sync::Arc;
use tacho_source::{Arguments, time};
use tacho_tape::fast::FastMap;
use tacho_tape::query::json::{Object, array, quote, value};
use tacho_tape::query::{
    BlockingRow, Field, QueryError, QueryResult, SessionsRow, Sink, Taken, Value,
};

/// Largest value and default of the argument `width`, which is the number of columns.
pub const WIDTH: (i64, i64) = (4_000, 900);
/// Largest value and default of the argument `n`, which is the number of lanes.
pub const N: (i64, i64) = (200, 30);
/// `sessions` is limited to this many sessions for each lane that is shown. Some sessions have no
/// lane, because they were idle.
const ASKED: i64 = 2;
/// Arguments of `sessions` that `blocking` has, too.
const WINDOW: [&str; 4] = ["since", "until", "tz", "node"];
/// Columns of at most this length, µs, are not merged: they hide nothing visible.
const EXACT: i64 = 1_000_000;
/// Maximum length of a text or a name, in bytes; `sessions` has all of it.
const TEXT_BYTES: usize = 400;

/// Answers with a row per session: heads of queues first, then the busiest.
pub async fn lanes(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (server, mut arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let now = Timestamp::now().as_microsecond();
    let over = is_over(&arguments, now);
    let mut lanes = Lanes::of(&mut arguments, now).map_err(Problem::of)?;
    lanes.held = heads(&api, server.clone(), &arguments).await?;
    let ask = api.question("sessions", server.clone(), arguments.clone());
    let mut lanes = api.desk().ask_into(ask, lanes).await?;
    if let (Some(pids), false) = (lanes.heads_without_a_lane(), arguments.contains_key("pid")) {
        arguments.insert("pid".to_string(), pids);
        arguments.insert("n".to_string(), "all".to_string());
        let ask = api.question("sessions", server, arguments);
        lanes = api.desk().ask_into(ask, lanes).await?;
    }
    Ok(answered(lanes.told(), over, &headers))
}

/// A session: process id, and start in µs since 1970.
type Session = (i64, Option<i64>);

/// How long others waited for each head of a queue, µs. A source without `blocking`
/// has none.
async fn heads(
    api: &Api,
    server: Option<String>,
    arguments: &Arguments,
) -> Result<HashMap<Session, i64>, Problem> {
    let window = WINDOW.iter().filter_map(|name| {
        let value = arguments.get(*name)?;
        Some((name.to_string(), value.clone()))
    });
    // More heads are read than there are lanes: some heads are deadlocks, or have ended.
    let n = [("n".to_string(), N.0.to_string())];
    let ask = api.question("blocking", server, window.chain(n).collect());
    let rows: Vec<BlockingRow> = match api.desk().ask_in_turn(ask).await {
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => Vec::new(),
        rows => rows?,
    };
    let heads = rows.into_iter().filter_map(|row| {
        let is_session = row.kind.as_deref() == Some("session");
        let held = row.blocked_seconds.map_or(0, |seconds| seconds.0 * 100);
        let pid = row.pid.filter(|_| is_session)?;
        Some(((pid, row.backend_start), i64::try_from(held).ok()?))
    });
    Ok(heads.collect())
}

/// An activity of a session, as far as the picture shows it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Doing {
    /// State, wait class, wait event, CPU, text.
    names: [Option<Arc<str>>; 5],
    query_id: Option<i64>,
    blocked_by: Option<i64>,
}

/// A part of a lane: an activity by its index, with begin and end in µs since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    begin: i64,
    end: i64,
    doing: usize,
    /// Time of work and of waits in the piece, µs.
    busy: i64,
}

#[derive(Default)]
struct Lane {
    pid: i64,
    /// Start of the session's process, µs since 1970.
    backend_start: Option<i64>,
    /// Backend type, application, user.
    names: [Option<Arc<str>>; 3],
    pieces: Vec<Piece>,
    busy: i64,
    /// Time that others waited for the session, µs; 0 if it is no head of a queue.
    held: i64,
}

/// The current column: time by activity, µs.
#[derive(Default)]
struct Column {
    number: i64,
    by_doing: Vec<(usize, i64)>,
}

/// Takes rows of `sessions`.
struct Lanes {
    since: i64,
    until: i64,
    /// Length of a column, µs; 0 = spans are not merged.
    step: i64,
    most: usize,
    /// The current row of `sessions`.
    taken: Taken<SessionsRow>,
    lanes: Vec<Lane>,
    /// Sessions of an earlier answer; later rows of them are passed over.
    known: HashSet<Session>,
    /// For each head of a queue the time in µs that others waited.
    held: HashMap<Session, i64>,
    column: Column,
    doings: Vec<Doing>,
    numbers: FastMap<Doing, usize>,
    /// For each activity the number of its colour.
    kinds: Vec<usize>,
    names_of_kinds: Vec<String>,
    notices: Vec<QueryError>,
}

/// Removes a number from the arguments.
fn number(arguments: &mut Arguments, name: &str, (most, default): (i64, i64)) -> QueryResult<i64> {
    let Some(text) = arguments.remove(name) else {
        return Ok(default);
    };
    let number = text.parse().ok().filter(|n| (1..=most).contains(n));
    number
        .ok_or_else(|| QueryError::invalid(format!("{name} of lanes must be between 1 and {most}")))
}

impl Lanes {
    /// Creates the lanes from their own arguments and removes these; `sessions` gets the rest.
    fn of(arguments: &mut Arguments, now: i64) -> QueryResult<Lanes> {
        let width = number(arguments, "width", WIDTH)?;
        let most = number(arguments, "n", N)?;
        let zone = time::zone(arguments.get("tz").map_or("UTC", String::as_str))?;
        let moment = |name: &str| match arguments.get(name) {
            Some(text) => time::moment(text, now, &zone),
            None => Err(
                QueryError::invalid(format!("argument \"{name}\" of lanes is missing"))
                    .hint("Specify both since and until."),
            ),
        };
        let (since, until) = (moment("since")?, moment("until")?);
        arguments.insert("n".to_string(), (ASKED * most).to_string());
        Ok(Lanes::new(since, until, width, most))
    }

    fn new(since: i64, until: i64, width: i64, most: i64) -> Lanes {
        // The length is cut to whole ms, because the times of spans are whole ms.
        let length = until.saturating_sub(since).max(0) / 1_000;
        let step = (length.saturating_add(width - 1) / width) * 1_000;
        Lanes {
            since,
            until,
            step: if step > EXACT { step } else { 0 },
            most: usize::try_from(most).unwrap_or(0),
            taken: Taken::default(),
            lanes: Vec::new(),
            known: HashSet::new(),
            held: HashMap::new(),
            column: Column::default(),
            doings: Vec::new(),
            numbers: FastMap::default(),
            kinds: Vec::new(),
            names_of_kinds: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// The lane of a row. Rows of a session follow each other.
    fn lane(&mut self, pid: i64, row: &mut SessionsRow) {
        let is_same = |lane: &Lane| lane.pid == pid && lane.backend_start == row.backend_start;
        if self.lanes.last().is_some_and(is_same) {
            return;
        }
        self.end_column();
        self.lanes.push(Lane {
            pid,
            backend_start: row.backend_start,
            names: [
                &mut row.backend_type,
                &mut row.application,
                &mut row.username,
            ]
            .map(|name| {
                shorten(name);
                take(name)
            }),
            ..Lane::default()
        });
        self.column = Column::default();
    }

    fn doing(&mut self, doing: Doing) -> usize {
        if let Some(number) = self.numbers.get(&doing) {
            return *number;
        }
        let kind = kind(&doing);
        let known = self.names_of_kinds.iter().position(|name| name == kind);
        self.kinds.push(known.unwrap_or(self.names_of_kinds.len()));
        if known.is_none() {
            self.names_of_kinds.push(kind.to_string());
        }
        let number = self.doings.len();
        self.numbers.insert(doing.clone(), number);
        self.doings.push(doing);
        number
    }

    fn add(&mut self, begin: i64, end: i64, doing: usize) {
        if let Some(lane) = self.lanes.last_mut() {
            lane.busy += end - begin;
        }
        if self.step == 0 {
            let busy = end - begin;
            return self.push(Piece {
                begin,
                end,
                doing,
                busy,
            });
        }
        let mut at = begin;
        while at < end {
            let number = (at - self.since).div_euclid(self.step);
            if number != self.column.number {
                self.end_column();
                self.column.number = number;
            }
            let next = (self.since + (number + 1) * self.step).min(end);
            add_to(&mut self.column.by_doing, doing, next - at);
            at = next;
        }
    }

    /// Ends the current column: its main activity becomes a piece.
    fn end_column(&mut self) {
        let all = take(&mut self.column.by_doing);
        let mut by_kind: Vec<(usize, i64)> = Vec::new();
        for (doing, time) in &all {
            add_to(&mut by_kind, self.kinds[*doing], *time);
        }
        let Some((kind, _)) = largest(by_kind.iter()) else {
            return;
        };
        let same = all.iter().filter(|one| self.kinds[one.0] == kind);
        let Some((doing, _)) = largest(same) else {
            return;
        };
        let begin = self.since + self.column.number * self.step;
        self.push(Piece {
            begin,
            end: (begin + self.step).min(self.until),
            doing,
            busy: all.iter().map(|one| one.1).sum(),
        });
    }

    /// Adds a piece to the lane, or extends the last piece if it continues that.
    fn push(&mut self, piece: Piece) {
        let continues = self.step > 0;
        let Some(lane) = self.lanes.last_mut() else {
            return;
        };
        match lane.pieces.last_mut() {
            Some(last) if continues && last.end == piece.begin && last.doing == piece.doing => {
                last.end = piece.end;
                last.busy += piece.busy;
            }
            _ => lane.pieces.push(piece),
        }
    }

    /// Numbers the activities of the lanes in order of appearance; only these are in the
    /// answer.
    fn number_shown(&self, lanes: &mut [Lane]) -> Vec<String> {
        let (mut shown, mut numbers) = (Vec::new(), HashMap::new());
        for piece in lanes.iter_mut().flat_map(|lane| &mut lane.pieces) {
            piece.doing = *numbers.entry(piece.doing).or_insert_with_key(|doing| {
                shown.push(self.doings[*doing].json());
                shown.len() - 1
            });
        }
        shown
    }

    fn json(&self, lane: &Lane) -> String {
        let mut object = Object::default();
        let start = lane.backend_start.map_or(Value::Null, Value::Time);
        object
            .put("pid", &lane.pid.to_string())
            .put("backend_start", &value(&start));
        put_texts(
            &mut object,
            ["backend_type", "application", "username"],
            &lane.names,
        );
        let seconds = |us: i64| value(&Value::Numeric(i128::from(us) / 100));
        let ms = |piece: &Piece| {
            let Piece {
                begin,
                end,
                doing,
                busy,
            } = piece;
            let times = [begin - self.since, end - begin, *busy].map(|us| us / 1_000);
            format!("[{},{},{doing},{}]", times[0], times[1], times[2])
        };
        object
            .put("busy_seconds", &seconds(lane.busy))
            .put("held_seconds", &seconds(lane.held))
            .put("spans", &array(lane.pieces.iter().map(ms)));
        object.json()
    }
}

/// Cuts the text at `TEXT_BYTES` and appends "…".
fn shorten(text: &mut Option<Arc<str>>) {
    if let Some(text) = text
        && let Some(end) = end_of(text, TEXT_BYTES)
    {
        *text = [&text[..end], "…"].concat().into();
    }
}

/// The name of an activity's colour.
fn kind(doing: &Doing) -> &str {
    let [state, class, ..] = &doing.names;
    match state.as_deref() {
        Some(state) if state.starts_with("idle in transaction") => "idle in transaction",
        _ => class.as_deref().unwrap_or("CPU"),
    }
}

fn add_to(sums: &mut Vec<(usize, i64)>, key: usize, time: i64) {
    match sums.iter_mut().find(|sum| sum.0 == key) {
        Some(sum) => sum.1 += time,
        None => sums.push((key, time)),
    }
}

/// The first of the largest sums, with its index (an activity, or the number of a colour); `None`
/// without sums.
fn largest<'a>(sums: impl Iterator<Item = &'a (usize, i64)>) -> Option<(usize, i64)> {
    sums.copied().min_by_key(|sum| Reverse(sum.1))
}

/// Puts texts under the names of their columns.
fn put_texts<const N: usize>(object: &mut Object, names: [&str; N], texts: &[Option<Arc<str>>; N]) {
    for (name, text) in names.iter().zip(texts) {
        object.put(name, &text.as_deref().map_or("null".into(), quote));
    }
}

impl Doing {
    fn json(&self) -> String {
        let mut object = Object::default();
        let names = [
            "state",
            "wait_event_type",
            "wait_event",
            "cpu",
            "query_text",
        ];
        put_texts(&mut object, names, &self.names);
        object
            .put("query_id", &value(&Value::id(self.query_id)))
            .put("blocked_by", &value(&Value::int(self.blocked_by)));
        object.json()
    }
}

impl Sink for Lanes {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.taken = Taken::new(fields);
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.taken.add(values);
        let Some(mut row) = self.taken.rows.pop() else {
            return Ok(());
        };
        let (Some(begin), Some(end), Some(pid)) = (row.span_start, row.span_end, row.pid) else {
            return Ok(());
        };
        if self.known.contains(&(pid, row.backend_start)) {
            return Ok(());
        }
        self.lane(pid, &mut row);
        let is_seen = row.kind.as_deref() == Some("sampled");
        if !is_seen || row.state.as_deref() == Some("idle") {
            return Ok(());
        }
        shorten(&mut row.query_text);
        let doing = self.doing(Doing {
            names: [
                row.state,
                row.wait_event_type,
                row.wait_event,
                row.cpu,
                row.query_text,
            ],
            query_id: row.query_id,
            blocked_by: row.blocked_by,
        });
        self.add(begin, end, doing);
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        self.notices.push(notice);
    }
}

impl Taking for Lanes {
    type Taken = Lanes;

    fn finish(mut self) -> QueryResult<Lanes> {
        self.end_column();
        self.column = Column::default();
        self.known = self.lanes.iter().map(Lane::session).collect();
        Ok(self)
    }
}

impl Lane {
    fn session(&self) -> Session {
        (self.pid, self.backend_start)
    }
}

impl Lanes {
    /// Process ids as a filter; `None` if every head has a lane.
    fn heads_without_a_lane(&self) -> Option<String> {
        let heads = self.held.keys().filter(|head| !self.known.contains(head));
        let mut pids: Vec<i64> = heads.map(|head| head.0).collect();
        pids.sort_unstable();
        pids.dedup();
        let pids: Vec<String> = pids.iter().map(i64::to_string).collect();
        (!pids.is_empty()).then(|| pids.join(","))
    }

    /// The answer.
    fn told(mut self) -> String {
        let mut lanes = take(&mut self.lanes);
        lanes.retain(|lane| !lane.pieces.is_empty());
        for lane in &mut lanes {
            lane.held = self.held.get(&lane.session()).copied().unwrap_or(0);
        }
        lanes.sort_by_key(|lane| (Reverse(lane.held), Reverse(lane.busy), lane.pid));
        let found = lanes.len();
        lanes.truncate(self.most);
        let doings = self.number_shown(&mut lanes);
        let mut object = Object::default();
        object
            .put("rows", &array(lanes.iter().map(|lane| self.json(lane))))
            .put("doings", &array(doings))
            .put("step_ms", &(self.step / 1_000).to_string())
            .put("sessions", &found.to_string())
            .put("notices", &notices(&self.notices));
        object.json() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    const SECOND: i64 = 1_000_000;

    /// Columns of [`row`], in its order.
    const COLUMNS: [&str; 15] = [
        "pid",
        "backend_start",
        "backend_type",
        "application",
        "username",
        "span_start",
        "span_end",
        "kind",
        "state",
        "wait_event_type",
        "wait_event",
        "cpu",
        "query_id",
        "blocked_by",
        "query_text",
    ];

    /// A span of a session: PID, begin and end in seconds, state, wait class, blocker.
    type Span = (i64, i64, i64, &'static str, Option<&'static str>, i64);

    fn row((pid, since, until, state, class, blocker): &Span) -> Vec<Value> {
        let time = |seconds: i64| Value::Time(seconds * SECOND);
        vec![
            Value::Int(*pid),
            time(-1),
            Value::text(Some("client backend")),
            Value::text(Some(format!("app {pid}"))),
            Value::Null,
            time(*since),
            time(*until),
            Value::text(Some("sampled")),
            Value::text(Some(*state)),
            Value::text(*class),
            Value::text(class.map(|class| format!("{class} event"))),
            Value::Null,
            Value::Id(7),
            Value::int((*blocker != 0).then_some(*blocker)),
            Value::text(Some("é".repeat(500))),
        ]
    }

    /// The lanes of a window from 0 to `until` seconds.
    fn lanes(until: i64, width: i64, most: i64, spans: &[Span]) -> Json {
        held_lanes(until, width, most, spans, &[])
    }

    /// Same as [`lanes`], with the time in seconds that others waited for each process.
    fn held_lanes(until: i64, width: i64, most: i64, spans: &[Span], held: &[(i64, i64)]) -> Json {
        let mut lanes = Lanes::new(0, until * SECOND, width, most);
        let held = held.iter();
        lanes.held = held
            .map(|(pid, seconds)| ((*pid, Some(-SECOND)), seconds * SECOND))
            .collect();
        let fields = COLUMNS.map(|name| (name, tacho_tape::query::Type::Text));
        lanes.begin(&fields).unwrap();
        for span in spans {
            lanes.row(row(span)).unwrap();
        }
        serde_json::from_str(&lanes.finish().unwrap().told()).unwrap()
    }

    fn of<'a>(answer: &'a Json, member: &str) -> Vec<&'a Json> {
        let rows = answer["rows"].as_array().unwrap();
        rows.iter().map(|row| &row[member]).collect()
    }

    const IDLE: &str = "idle in transaction";

    #[test]
    fn heads_of_queues_come_first_by_how_long_others_waited() {
        let all = [
            (1, 0, 100, "active", None, 0),
            (2, 0, 3, IDLE, None, 0),
            (3, 0, 4, IDLE, None, 0),
            (4, 10, 20, "active", Some("Lock"), 3),
            (5, 10, 18, "active", Some("Lock"), 4),
            (6, 10, 30, "active", Some("Lock"), 2),
            (7, 10, 12, "active", Some("Lock"), 3),
            (8, 0, 90, "idle", None, 0),
        ];
        for width in [100, 7] {
            let answer = held_lanes(100, width, 6, &all, &[(3, 12), (2, 20)]);
            assert_eq!(of(&answer, "pid"), [2, 3, 1, 6, 4, 5]);
            let held = of(&answer, "held_seconds");
            assert_eq!(held, [20.0, 12.0, 0.0, 0.0, 0.0, 0.0]);
            let busy = of(&answer, "busy_seconds");
            assert_eq!(busy, [3.0, 4.0, 100.0, 20.0, 10.0, 8.0]);
            assert_eq!(answer["sessions"], 7, "the idle one has no lane");
        }
    }

    #[test]
    fn columns_of_a_second_or_less_leave_the_spans_as_they_are() {
        let all = [
            (1, 0, 2, "active", None, 0),
            (1, 2, 3, "active", Some("IO"), 0),
            (1, 3, 4, "idle", None, 0),
            (1, 9, 10, "active", None, 0),
        ];
        let answer = lanes(10, 10, 30, &all);
        assert_eq!(answer["step_ms"], 0);
        let spans = json!([
            [0, 2000, 0, 2000],
            [2000, 1000, 1, 1000],
            [9000, 1000, 0, 1000]
        ]);
        assert_eq!(of(&answer, "spans"), [&spans]);
        let waits: Vec<&Json> = answer["doings"].as_array().unwrap().iter().collect();
        assert_eq!(waits[1]["wait_event"], "IO event");
        let text = waits[1]["query_text"].as_str().unwrap();
        assert_eq!(text, format!("{}…", "é".repeat(TEXT_BYTES / 2)));
    }

    #[test]
    fn a_wide_column_has_the_class_with_most_time_and_all_time_at_work() {
        let all = [
            (1, 0, 4, "active", Some("IO"), 0),
            (1, 4, 9, "active", Some("Lock"), 9),
            (1, 11, 12, "active", Some("Lock"), 9),
            (1, 12, 13, "active", Some("Lock"), 0),
            (1, 15, 100, "active", None, 0),
        ];
        let answer = lanes(100, 10, 30, &all);
        assert_eq!(answer["step_ms"], 10_000);
        let spans = json!([[0, 10_000, 0, 9_000], [10_000, 90_000, 1, 87_000],]);
        assert_eq!(of(&answer, "spans"), [&spans]);
        assert_eq!(of(&answer, "busy_seconds"), [96.0]);
    }

    #[test]
    fn a_session_begins_in_a_column_of_its_own() {
        let all = [
            (1, 0, 5, "active", None, 0),
            (2, 6, 7, "active", Some("IO"), 0),
        ];
        let answer = lanes(100, 10, 30, &all);
        let (first, second) = (
            json!([[0, 10_000, 0, 5_000]]),
            json!([[0, 10_000, 1, 1_000]]),
        );
        assert_eq!(of(&answer, "spans"), [&first, &second]);
    }
}
