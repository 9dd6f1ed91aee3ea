//! A made-up history with a tick each second, for tests of `changes`.

use std::sync::Arc;
use tacho_tape::query::{Changes, ChangesRow, Context};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

pub const ACTIVE: i64 = 1;
pub const SECOND: i64 = 1_000_000;

pub fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

/// A history with a tick each second.
pub struct Tape {
    pub builder: PartBuilder,
    pub schema: Schema,
}

impl Tape {
    pub fn new(seconds: i64) -> Tape {
        Tape::of(0..seconds, |_| Vec::new())
    }

    /// Ticks at some seconds, with further columns.
    pub fn of(
        seconds: impl Iterator<Item = i64>,
        more: impl Fn(i64) -> Vec<(&'static str, i64)>,
    ) -> Tape {
        let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
        for second in seconds {
            let values = [
                ("tick", second),
                ("slot_time", second * 1000),
                ("interval_ms", 1000),
                ("status", 1),
            ];
            let values = [&values[..], &more(second)].concat();
            builder.row("tick", &values).unwrap();
        }
        let schema = catalog();
        Tape { builder, schema }
    }

    pub fn name(&mut self, name: &str) -> i64 {
        self.builder.name(name).unwrap()
    }

    pub fn session(&mut self, pid: i64, application: &str) -> i64 {
        let values = [
            ("pid", pid),
            ("category", 1),
            ("database", self.name("shop")),
            ("username", self.name("app")),
            ("application", self.name(application)),
            ("client_addr", self.name("10.0.0.7")),
        ];
        self.builder.intern("session", &values).unwrap()
    }

    pub fn wait(&mut self, class: &str, event: &str) -> i64 {
        let values = [
            ("wait_event_type", self.name(class)),
            ("wait_event", self.name(event)),
        ];
        self.builder.intern("wait", &values).unwrap()
    }

    pub fn query(&mut self, id: i64, text: &str) -> i64 {
        let values = [("query_id", id)];
        if !text.is_empty() {
            let key = [("text_key", id), ("query_id", id), ("encoding", 6)];
            let bytes = [("bytes", text.as_bytes())];
            self.builder.row_bytes("text", &key, &bytes).unwrap();
        }
        self.builder.intern("statement", &values).unwrap()
    }

    /// A session is seen at each second of a range, at every `step`th.
    pub fn seen(
        &mut self,
        session: i64,
        seconds: std::ops::Range<i64>,
        step: usize,
        values: &[(&str, i64)],
    ) {
        let all = [&[("state", ACTIVE)], values].concat();
        for second in seconds.step_by(step) {
            self.builder.sample(second as u64, session, &all).unwrap();
        }
    }

    pub fn marker(&mut self, second: i64, kind: &str, values: &[(&str, &str)]) {
        let kind = self.schema.value("marker", kind).unwrap();
        let mut row = vec![("time", second * 1000), ("kind", kind)];
        for (column, text) in values {
            row.push((column, self.name(text)));
        }
        self.builder.row("marker", &row).unwrap();
    }

    pub fn changed(&mut self, second: i64, command: &str, class: &str, object: &str, rest: &str) {
        let all = [
            ("command", command),
            ("object_class", class),
            ("object_name", object),
            ("detail", rest),
            ("username", "deploy"),
        ];
        let given: Vec<_> = all
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .collect();
        self.marker(second, "schema changed", &given);
    }

    pub fn setting(&mut self, second: i64, name: &str, old: &str, new: &str) {
        let values = [
            ("object_class", "setting"),
            ("object_name", name),
            ("old_value", old),
            ("new_value", new),
        ];
        self.marker(second, "settings changed", &values);
    }

    /// A query has some calls of some ms, and of some blocks, in each minute of a range.
    pub fn counted(
        &mut self,
        query: i64,
        minutes: std::ops::Range<i64>,
        [calls, ms, blocks]: [i64; 3],
    ) {
        let entry = [("query_id", query), ("toplevel", 1)];
        let entry = self.builder.intern("entry", &entry).unwrap();
        for minute in minutes {
            let row = [
                ("time", minute * 60_000),
                ("elapsed_ms", 60_000),
                ("entry", entry),
                ("calls", calls),
                ("total_exec_time", calls * ms * 100),
                ("shared_blks_hit", calls * blocks),
            ];
            self.builder.row("statement_stats", &row).unwrap();
            // Statements were recorded in this minute.
            self.builder.row("statement_stats", &row[..2]).unwrap();
        }
    }

    /// Measurements of the server each second; the stored number is the value plus one.
    pub fn measured(&mut self, seconds: i64, of: impl Fn(i64) -> Vec<(&'static str, i64)>) {
        for second in 0..seconds {
            let times = [("time", second * 1000), ("elapsed_ms", 1000)];
            let row = [&times[..], &of(second)].concat();
            self.builder.row("server", &row).unwrap();
        }
    }

    pub fn finish(self) -> Snapshot {
        Snapshot::from_parts(vec![self.builder.finish(Identity::default())])
    }
}

/// A query is seen now and then until second 300, and then all the time with a wait.
pub fn slower_from_300(tape: &mut Tape, query: i64, wait: i64) {
    for pid in 1..=3 {
        let session = tape.session(pid, "web");
        tape.seen(session, pid..300, 40, &[("statement", query)]);
        let values = [("statement", query), ("wait", wait)];
        tape.seen(session, 300..600, 1, &values);
    }
}

/// Asks `changes` at a second.
pub fn ask(snapshot: &Snapshot, request: &Changes, now_s: i64) -> Vec<ChangesRow> {
    let catalog = catalog();
    let context = Context::new(&catalog, now_s * SECOND);
    snapshot.changes(request, &context).unwrap().rows
}

/// The window of these seconds.
pub fn window(since: i64, until: i64) -> Changes {
    Changes {
        since: Some(since * SECOND),
        until: Some(until * SECOND),
        ..Changes::default()
    }
}

/// Rule, key and second of the causes.
pub fn causes(rows: &[ChangesRow]) -> Vec<(String, String, i64)> {
    let causes = rows
        .iter()
        .filter(|row| row.kind.as_deref() == Some("cause"));
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or("").to_string();
    causes
        .map(|row| {
            (
                text(&row.rule),
                text(&row.key),
                row.started.unwrap() / SECOND,
            )
        })
        .collect()
}

/// A cause as [`causes`] has it.
pub fn cause(rule: &str, key: &str, second: i64) -> (String, String, i64) {
    (rule.to_string(), key.to_string(), second)
}
