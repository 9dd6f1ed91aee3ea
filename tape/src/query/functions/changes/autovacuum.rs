//! Finds autovacuum workers that were at work in the window and not in the normal one: other queries
//! wait for the blocks and the write-ahead log that a worker reads and writes.

use super::effects::{Effect, Mechanism};
use super::loads::Loads;
use super::windows::Windows;
use super::words::length;
use crate::format::schema::RUN;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::{View, field};
use crate::query::rows::parse::Samples;
use crate::query::rows::scan::Scan;
use crate::query::rows::select::Selected;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::collections::{BTreeMap, HashMap};

/// A worker is unusual if samples saw it this many times as long as all workers of the same table in
/// the normal window.
const TIMES: i64 = 4;
/// A worker whose table the query mentions must be seen for this many ms.
const SHORTEST: i64 = 2_000;
/// A worker of another table must work for this many ms, without pauses, and half of its time.
const HEAVY: i64 = 10_000;
/// A third of the query's difference must be waits for blocks or the write-ahead log.
const PART: i128 = 3;

/// A command of an autovacuum worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autovacuum {
    pub pid: i64,
    pub database: Option<String>,
    /// Such as `VACUUM ANALYZE`.
    pub command: String,
    /// Name of the table with its schema.
    pub table: String,
    pub prevents_wraparound: bool,
    /// Begin of the command, in µs since 1970. The server reports it.
    pub since: i64,
    /// End of the last tick that saw it, in µs since 1970.
    pub until: i64,
    /// Time in ms for which samples saw it after the normal window.
    seen_ms: i64,
    /// The same without pauses and waits for locks.
    busy_ms: i64,
}

impl Autovacuum {
    /// True if the query was slower while the worker ran, because it waited for blocks or for the
    /// write-ahead log.
    pub fn may_slow(&self, effect: &Effect) -> bool {
        let is_own = effect.names.mentions(&self.table) && self.seen_ms >= SHORTEST;
        let is_heavy = self.busy_ms >= HEAVY && 2 * self.busy_ms >= self.seen_ms;
        let waits = PART * effect.part(Mechanism::Blocks) >= effect.line.difference();
        let is_slower = effect.change.is_slower() && !effect.reads_more();
        is_slower && waits && (is_own || is_heavy) && self.is_beside(effect)
    }

    /// True if the worker ran for half of the time in which the query was slower, and the other way
    /// round.
    fn is_beside(&self, effect: &Effect) -> bool {
        effect.stretch.is_some_and(|(began, ended)| {
            let both = self.until.min(ended) - self.since.max(began);
            2 * both >= ended - began && 2 * both >= self.until - self.since
        })
    }

    pub fn sentence(&self) -> String {
        let reason = match self.prevents_wraparound {
            true => " to prevent wraparound",
            false => "",
        };
        format!(
            "autovacuum ran {} of {}{reason} for {}",
            self.command,
            self.table,
            length(self.until - self.since)
        )
    }
}

/// The commands of workers from which an effect can follow, in order of time.
pub fn autovacuums(
    run: Run,
    samples: Samples,
    windows: &Windows,
    loads: &Loads,
    effects: &[Effect],
) -> QueryResult<Vec<Autovacuum>> {
    let is_wanted = |effect: &Effect| effect.is_notable && effect.change.is_slower();
    if loads.observed_ms()[0] == 0 || !effects.iter().any(is_wanted) {
        return Ok(Vec::new());
    }
    let filters = [("backend_type".to_string(), "autovacuum worker".to_string())];
    let samples = Samples {
        scope: Some("all"),
        filters: &filters,
        ..samples
    };
    let mut all = Vec::new();
    let mut normal_ms: HashMap<(Option<String>, String), i64> = HashMap::new();
    for (seen, found) in commands(run, samples, windows)? {
        let key = (found.database.clone(), found.table.clone());
        *normal_ms.entry(key).or_default() += seen;
        all.push(found);
    }
    let is_unusual = |one: &Autovacuum| {
        let normal = normal_ms.get(&(one.database.clone(), one.table.clone()));
        one.seen_ms >= TIMES * normal.copied().unwrap_or(0)
    };
    all.retain(|one| is_unusual(one) && effects.iter().any(|effect| one.may_slow(effect)));
    all.sort_by_key(|one| (one.since, one.pid));
    Ok(all)
}

/// A command: its worker, its begin in ms and the hash of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Command {
    node: u64,
    pid: i64,
    backend_start: i64,
    begin_ms: i64,
    text: i64,
}

/// The samples of a command: begin of the first tick and end of the last one, in µs since 1970, and
/// times in ms.
#[derive(Default)]
struct Seen {
    database: Option<String>,
    since: i64,
    until: i64,
    normal_ms: i64,
    later_ms: i64,
    busy_ms: i64,
}

/// All commands of workers in both windows, and the time in ms for which samples of the normal
/// window saw each.
fn commands(run: Run, samples: Samples, windows: &Windows) -> QueryResult<Vec<(i64, Autovacuum)>> {
    let mut all: BTreeMap<Command, Seen> = BTreeMap::new();
    let mut texts = Texts::default();
    for window in windows.pieces() {
        let scan = Scan::new(run, samples, window)?;
        for part in 0..scan.parts.len() {
            scan.check_cancel()?;
            let read = read(&scan, part, windows, &mut all);
            run.damage.note_and_continue(read)?;
            scan.release(part);
        }
        run.damage.check()?;
        let wanted = all.keys().map(|command| TextKey::Hash(command.text));
        let (near, far) = (scan.parts.iter().rev(), scan.others.iter().rev());
        texts.find_more(wanted, near.copied(), far.copied(), run)?;
    }
    let named = |(command, seen): (Command, Seen)| {
        let text = texts.get(TextKey::Hash(command.text), seen.database.as_deref())?;
        let (words, table, prevents_wraparound) = parsed(&text)?;
        let began = command.begin_ms.saturating_mul(1000);
        let found = Autovacuum {
            pid: command.pid,
            command: words.to_string(),
            table: table.to_string(),
            prevents_wraparound,
            database: seen.database,
            since: if began == 0 { seen.since } else { began },
            until: seen.until,
            seen_ms: seen.later_ms,
            busy_ms: seen.busy_ms,
        };
        Some((seen.normal_ms, found))
    };
    Ok(all.into_iter().filter_map(named).collect())
}

/// Adds the samples of a part.
fn read(
    scan: &Scan,
    part: usize,
    windows: &Windows,
    all: &mut BTreeMap<Command, Seen>,
) -> QueryResult<()> {
    let part = scan.parts[part];
    let view = View::new(part, scan.run.decode);
    let selected = Selected::of_single_part(&view, scan.run.catalog, &scan.selection)?;
    if selected.len() == 0 {
        return Ok(());
    }
    let ticks = Ticks::read(part, &scan.whole(), &mut Observed::default())?;
    let columns = ["session", "statement", pg::WAIT, "query_start"];
    let [session, statement, wait, start] = columns.map(|column| part.ints(RUN, column));
    let (session, statement, wait, start) = (session?, statement?, wait?, start?);
    let names = ["pid", "backend_start", "database"].map(|column| part.ints("session", column));
    let [pid, backend_start, database] = names;
    let (pid, backend_start, database) = (pid?, backend_start?, database?);
    let text = part.ints("statement", "text_key")?;
    let pauses = pauses(&view)?;
    let mut pieces = Vec::new();
    selected.for_each(|piece| pieces.push(piece));
    for piece in pieces {
        let row = selected.runs.row(piece);
        let own = |column| field(column, Reference(session[row]));
        let command = Command {
            node: part.node(),
            pid: own(&pid),
            backend_start: own(&backend_start),
            begin_ms: start[row],
            text: field(&text, Reference(statement[row])),
        };
        let runs = &selected.runs;
        let (begin, end) = ticks.range(runs.first_tick(piece), runs.ticks(piece));
        let is_pause = pauses.contains(&wait[row]);
        for tick in (begin as usize..end as usize).filter(|tick| ticks.bucket[*tick] != NONE) {
            let seen = all.entry(command).or_default();
            seen.add(
                ticks.slot_ms[tick],
                ticks.weight_ms[tick],
                is_pause,
                windows,
            );
            if seen.database.is_none() {
                seen.database = view.name(Reference(own(&database)))?;
            }
        }
    }
    Ok(())
}

impl Seen {
    /// Adds a tick at `slot_ms` that stands for `weight_ms`.
    fn add(&mut self, slot_ms: i64, weight_ms: i64, is_pause: bool, windows: &Windows) {
        let time = slot_ms.saturating_mul(1000);
        if self.until == 0 {
            self.since = time;
        }
        self.since = self.since.min(time);
        self.until = self
            .until
            .max(time.saturating_add(weight_ms.saturating_mul(1000)));
        if (windows.before.since..windows.before.until).contains(&time) {
            self.normal_ms += weight_ms;
        } else if time >= windows.may_begin() {
            self.later_ms += weight_ms;
            self.busy_ms += if is_pause { 0 } else { weight_ms };
        }
    }
}

/// The references to wait events in which a worker does no work: it pauses, or waits for a lock.
fn pauses(view: &View) -> QueryResult<Vec<i64>> {
    let [class, event] =
        [pg::WAIT_TYPE, pg::WAIT_EVENT].map(|column| view.part.ints(pg::WAIT, column));
    let (class, event) = (class?, event?);
    let mut pauses = Vec::new();
    for row in 0..event.len() {
        let class = view.name(Reference(class[row]))?;
        if matches!(class.as_deref(), Some("Timeout" | "Lock")) {
            pauses.push(row as i64 + 1);
        }
    }
    Ok(pauses)
}

/// The command and the table in the text that a worker reports, and true if it must prevent
/// wraparound. `None` for other work, such as the summary of a BRIN index.
///
/// Example: `autovacuum: VACUUM ANALYZE public.orders (to prevent wraparound)`.
fn parsed(text: &str) -> Option<(&str, &str, bool)> {
    let text = text.strip_prefix("autovacuum: ")?;
    let prevents = text.strip_suffix(" (to prevent wraparound)");
    let rest = prevents.unwrap_or(text);
    let commands = ["VACUUM ANALYZE", "VACUUM", "ANALYZE"];
    let command = commands.into_iter().find(|command| {
        let table = rest.strip_prefix(command);
        table.is_some_and(|table| table.starts_with(' '))
    })?;
    Some((command, &rest[command.len() + 1..], prevents.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_reports_its_command_and_its_table() {
        for (text, expected) in [
            (
                "VACUUM public.orders",
                Some(("VACUUM", "public.orders", false)),
            ),
            ("ANALYZE app.Lines", Some(("ANALYZE", "app.Lines", false))),
            (
                "VACUUM ANALYZE public.a b (to prevent wraparound)",
                Some(("VACUUM ANALYZE", "public.a b", true)),
            ),
            ("BRIN summarize public.i 7", None),
            ("VACUUM", None),
        ] {
            assert_eq!(parsed(&format!("autovacuum: {text}")), expected, "{text}");
        }
        assert_eq!(parsed("VACUUM public.orders"), None);
    }
}
