//! `samples`: single samples, newest first, then by process id.

use super::common_columns::{nonzero, some_time};
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::format::table::Column;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::{Window, limit, samples};
use crate::query::rows::scan::Scan;
use crate::query::rows::select::Selected;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary::{self as pg, Scope};
use std::cmp::Reverse;
use std::sync::Arc;

row! {
    /// A row of `samples`.
    SamplesRow of "samples": FIELDS {
        sample_time: Time,
        tick: Int,
        pid: Int,
        backend_start: Time,
        leader: Int,
        backend_type: Text,
        category: Text,
        database: Text,
        username: Text,
        application: Text,
        client_addr: Text,
        state: Text,
        wait_event_type: Text,
        wait_event: Text,
        cpu: Text,
        query_id: Id,
        plan_id: Id,
        tags: Text,
        query_start: Time,
        xact_start: Time,
        state_change: Time,
        xmin_age: Int,
        xid_age: Int,
        progress_command: Text,
        progress_relation: Int,
        blocked_by: Int,
        weight_ms: Int,
        query_text: Text,
    }
}

request! {
    /// Single samples, newest first
    Samples of samples: SamplesRow {
        node,
        since,
        until,
        n("Maximum number of samples, or all", Some("100")),
        scope,
        by_leader,
        filters,
    }
}

fn answer(asked: &Samples, run: Run, emit: Emit<SamplesRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let mut left = limit(asked.n)?;
    let mut scan = Scan::new(run, samples!(asked), window)?;
    scan.selection.marked = scan.selection.scope == Scope::All;
    if window.length() == 0 {
        return Ok(());
    }
    let whole = Buckets::new(window.since, window.until, window.length(), None, 2)?;
    let mut texts = Texts::default();
    for index in newest_first(&scan.parts) {
        if left == 0 {
            break;
        }
        scan.check_cancel()?;
        let part = scan.parts[index];
        let page = Page::read(&scan, part, &whole, left);
        let Some(page) = run.damage.leave_out_part(part, page)? else {
            part.release();
            continue;
        };
        left -= page.rows.len();
        page.find_texts(&scan, index, &mut texts)?;
        for row in &page.rows {
            emit(page.row(*row, &texts)?)?;
        }
        part.release();
    }
    Ok(())
}

/// Order of the parts from new to old. `parts` are sorted by node, the newest node first, and
/// ascend within a node.
fn newest_first(parts: &[&Part]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(parts.len());
    let mut begin = 0;
    for end in 1..=parts.len() {
        if end == parts.len() || parts[end].node() != parts[begin].node() {
            order.extend((begin..end).rev());
            begin = end;
        }
    }
    order
}

/// A sample: row of its tick, row of table `run`.
type Row = (u32, u32);

/// The newest samples of a part.
struct Page<'a> {
    view: View<'a>,
    ticks: Ticks,
    rows: Vec<Row>,
    columns: SampleColumns,
}

/// Columns of a part, read once and not for every cell.
struct SampleColumns {
    run: Named,
    session: Named,
    statement: Named,
    wait: Named,
    next_xid: Vec<i64>,
}

/// Columns of one table by name.
struct Named(Vec<(&'static str, Column)>);

impl Named {
    fn read(part: &Part, table: &str, names: &[&'static str]) -> QueryResult<Named> {
        let columns = names
            .iter()
            .map(|name| Ok((*name, part.ints(table, name)?)));
        Ok(Named(columns.collect::<QueryResult<_>>()?))
    }

    /// A column that was read; empty if it was not.
    fn column(&self, name: &str) -> &[i64] {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map_or(&[], |(_, column)| column)
    }

    /// The value of a row; 0 if there is none.
    fn value(&self, name: &str, row: usize) -> i64 {
        self.column(name).get(row).copied().unwrap_or(0)
    }

    /// A dictionary's value; 0 if there is no such row.
    fn field(&self, name: &str, reference: Reference) -> i64 {
        reference.row().map_or(0, |row| self.value(name, row))
    }
}

/// The columns of `run` that the answer shows.
const OF_RUN: [&str; 14] = [
    "session",
    pg::WAIT,
    "statement",
    "marked",
    pg::BLOCKED_BY,
    pg::STATE,
    pg::CPU,
    "query_start",
    "xact_start",
    "state_change",
    "xmin",
    "xid",
    "progress_command",
    "progress_relation",
];
const OF_SESSION: [&str; 9] = [
    "pid",
    "backend_start",
    pg::LEADER,
    "backend_type",
    pg::CATEGORY,
    "database",
    pg::USERNAME,
    "application",
    "client_addr",
];
const OF_STATEMENT: [&str; 4] = [pg::QUERY_ID, "plan_id", pg::TAGS, "text_key"];

impl SampleColumns {
    fn read(part: &Part, ticks: &Ticks) -> QueryResult<SampleColumns> {
        Ok(SampleColumns {
            run: Named::read(part, RUN, &OF_RUN)?,
            session: Named::read(part, "session", &OF_SESSION)?,
            statement: Named::read(part, "statement", &OF_STATEMENT)?,
            wait: Named::read(part, pg::WAIT, &[pg::WAIT_TYPE, pg::WAIT_EVENT])?,
            next_xid: next_xids(part, ticks)?,
        })
    }
}

impl<'a> Page<'a> {
    fn read(scan: &Scan, part: &'a Part, whole: &Buckets, left: usize) -> QueryResult<Page<'a>> {
        let view = View::new(part, scan.run.decode);
        let ticks = Ticks::read(part, whole, &mut Observed::default())?;
        let selected = Selected::of_single_part(&view, scan.run.catalog, &scan.selection)?;
        let oldest = oldest_tick(&selected, &ticks, left);
        let mut rows: Vec<Row> = Vec::new();
        selected.for_each(|piece| {
            let runs = &selected.runs;
            let (begin, end) = ticks.range(runs.first_tick(piece), runs.ticks(piece));
            let wanted =
                (begin.max(oldest)..end).filter(|tick| ticks.bucket[*tick as usize] != NONE);
            rows.extend(wanted.map(|tick| (tick, runs.row(piece) as u32)));
        });
        let columns = SampleColumns::read(part, &ticks)?;
        // Reads the names now: damage in them must be found before the first row is written.
        view.name(Reference(1))?;
        let sessions = columns.run.column("session");
        let pid = |row: u32| {
            columns
                .session
                .field("pid", Reference(sessions[row as usize]))
        };
        rows.sort_by_cached_key(|(tick, row)| (Reverse(*tick), pid(*row), *row));
        rows.truncate(left);
        Ok(Page {
            view,
            ticks,
            rows,
            columns,
        })
    }

    fn find_texts(&self, scan: &Scan, index: usize, texts: &mut Texts) -> QueryResult<()> {
        let mut wanted = Vec::new();
        for (_, row) in &self.rows {
            wanted.extend(self.text_key(*row));
        }
        let near = [self.view.part];
        let rest = scan.parts.iter().take(index).rev();
        let rest = rest
            .chain(scan.others.iter().rev())
            .chain(scan.parts.iter().skip(index + 1));
        texts.find_more(wanted, near, rest.copied(), scan.run)
    }

    fn text_key(&self, row: u32) -> Option<TextKey> {
        let statement = self.run("statement", row);
        let query_id = self.statement(pg::QUERY_ID, statement);
        TextKey::of(query_id, self.statement("text_key", statement))
    }

    fn statement(&self, column: &str, reference: i64) -> i64 {
        self.columns.statement.field(column, Reference(reference))
    }

    fn tags(&self, statement: i64) -> QueryResult<Option<Arc<str>>> {
        let tags = self.statement(pg::TAGS, statement);
        Ok(self.view.name(Reference(tags))?.map(Arc::from))
    }

    fn session(&self, column: &str, reference: i64) -> i64 {
        self.columns.session.field(column, Reference(reference))
    }

    fn session_key(&self, column: &str, reference: i64) -> QueryResult<Option<Arc<str>>> {
        let value = self.session(column, reference);
        Ok(self.view.key("session", column, value)?.map(Arc::from))
    }

    fn run(&self, column: &str, row: u32) -> i64 {
        self.columns.run.value(column, row as usize)
    }

    fn run_key(&self, column: &str, row: u32) -> QueryResult<Option<Arc<str>>> {
        let value = self.run(column, row);
        Ok(self.view.key(RUN, column, value)?.map(Arc::from))
    }

    fn time(&self, column: &str, row: u32) -> Option<i64> {
        some_time(self.run(column, row), 1000)
    }

    fn age(&self, column: &str, (tick, row): Row) -> Option<i64> {
        let xid = self.run(column, row) as u32;
        let next = self.columns.next_xid[tick as usize] as u32;
        let known = xid != 0 && next != 0;
        known.then(|| i64::from(next.wrapping_sub(xid) as i32))
    }

    fn wait(&self, column: &str, reference: i64) -> QueryResult<Option<Arc<str>>> {
        let name = self.columns.wait.field(column, Reference(reference));
        Ok(self.view.name(Reference(name))?.map(Arc::from))
    }

    fn row(&self, sample: Row, texts: &Texts) -> QueryResult<SamplesRow> {
        let (tick, row) = sample;
        let session = self.run("session", row);
        let statement = self.run("statement", row);
        let counted = self.run("marked", row) & pg::NOT_COUNTED == 0;
        let weight = self.ticks.weight_ms[tick as usize];
        let name = |column: &str| self.session_key(column, session);
        let database = name("database")?;
        let text = self.text_key(row);
        let text = text.and_then(|key| texts.get(key, database.as_deref()));
        let blocker = self.run(pg::BLOCKED_BY, row);
        let wait = self.run(pg::WAIT, row);
        Ok(SamplesRow {
            sample_time: Some(self.ticks.slot_ms[tick as usize] * 1000),
            tick: Some(self.ticks.number(tick as usize)),
            pid: Some(self.session("pid", session)),
            backend_start: some_time(self.session("backend_start", session), 1),
            leader: nonzero(self.session(pg::LEADER, session)),
            backend_type: name("backend_type")?,
            category: name(pg::CATEGORY)?,
            database,
            username: name(pg::USERNAME)?,
            application: name("application")?,
            client_addr: name("client_addr")?,
            state: self.run_key(pg::STATE, row)?,
            wait_event_type: self.wait(pg::WAIT_TYPE, wait)?,
            wait_event: self.wait(pg::WAIT_EVENT, wait)?,
            cpu: self.run_key(pg::CPU, row)?,
            query_id: nonzero(self.statement(pg::QUERY_ID, statement)),
            plan_id: nonzero(self.statement("plan_id", statement)),
            tags: self.tags(statement)?,
            query_start: self.time("query_start", row),
            xact_start: self.time("xact_start", row),
            state_change: self.time("state_change", row),
            xmin_age: self.age("xmin", sample),
            xid_age: self.age("xid", sample),
            progress_command: self.run_key("progress_command", row)?,
            progress_relation: nonzero(self.run("progress_relation", row)),
            blocked_by: nonzero(self.session("pid", blocker)),
            weight_ms: Some(if counted { weight } else { 0 }),
            query_text: text,
        })
    }
}

/// The row of the oldest tick that the newest `left` samples need.
fn oldest_tick(selected: &Selected, ticks: &Ticks, left: usize) -> u32 {
    let mut changes = vec![0_i64; ticks.len() + 1];
    selected.for_each(|piece| {
        let runs = &selected.runs;
        let (begin, end) = ticks.range(runs.first_tick(piece), runs.ticks(piece));
        changes[begin as usize] += 1;
        changes[end as usize] -= 1;
    });
    let mut rows: i64 = changes.iter().sum();
    let mut found = 0;
    for tick in (0..ticks.len()).rev() {
        rows -= changes[tick + 1];
        if ticks.bucket[tick] != NONE {
            found += rows as usize;
        }
        if found >= left {
            return tick as u32;
        }
    }
    0
}

/// Next transaction id for each row of [`Ticks`].
fn next_xids(part: &Part, ticks: &Ticks) -> QueryResult<Vec<i64>> {
    let number = part.ints("tick", "tick")?;
    let next = part.ints("tick", "next_xid")?;
    let mut xids = vec![0; ticks.len()];
    for (number, next) in number.iter().zip(next.iter()) {
        let (row, end) = ticks.range(*number, 1);
        if end > row {
            xids[row as usize] = *next;
        }
    }
    Ok(xids)
}
