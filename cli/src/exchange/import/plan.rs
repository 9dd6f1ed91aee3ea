//! The use of each column in lines of sessions, looked up once.

use super::ImportResult;
use super::part::Fields;
use super::value::Header;
use tacho_source::exchange::{Field, Place};
use tacho_tape::Schema;
use tacho_tape::format::part_builder::{PartBuilder, RowPlan};
use tacho_tape::format::schema::{ColumnType, RUN};

/// Columns of the input that form a row, followed by derived columns.
pub struct RowFields {
    /// Columns of the input.
    pub fields: Vec<(usize, Field)>,
    /// Places of all values in the row.
    pub row: RowPlan,
    columns: Vec<String>,
}

impl RowFields {
    fn new(
        builder: &PartBuilder,
        table: &str,
        fields: Vec<(usize, Field)>,
        derived: &[&str],
    ) -> ImportResult<Self> {
        let own = fields.iter().map(|f| f.1.column.name.as_str());
        let mut columns: Vec<&str> = own.collect();
        for name in derived {
            if !columns.contains(name) {
                columns.push(name);
            }
        }
        let row = builder.plan(table, columns.iter().copied())?;
        let columns = columns.into_iter().map(String::from).collect();
        Ok(RowFields {
            fields,
            row,
            columns,
        })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Index of a column's value among the values; `None` if the row lacks the column.
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|c| c == column)
    }

    /// Position of a column in the line; `None` if the input lacks it.
    pub fn has(&self, name: &str) -> Option<usize> {
        has(&self.fields, name)
    }
}

fn has(fields: &Fields, name: &str) -> Option<usize> {
    fields.iter().find(|f| f.1.name == name).map(|f| f.0)
}

/// A column of a sample: its position in the line, its field, and its index
/// among the sample's values.
pub type SampleField = (usize, Field, usize);

/// Indexes of values in a session and in a sample.
pub struct ValueIndexes {
    /// Indexes of `pid`, `start` and `category` among the values of a session.
    pub pid: Option<usize>,
    pub start: Option<usize>,
    pub category: Option<usize>,
    /// Number of a sample's values.
    pub count: usize,
    /// Indexes of the references to wait, statement and blocker among the values of a
    /// sample.
    pub wait: Option<usize>,
    pub statement: Option<usize>,
    pub blocked_by: Option<usize>,
    /// Index of the state among the values of a sample, and true if the input has a column for it.
    pub state: Option<(usize, bool)>,
    /// Index of the kind of on-CPU activity among the values of a sample, if the input has no
    /// column for it.
    pub cpu: Option<usize>,
}

/// Stored values of labels.
pub struct Labels {
    /// Values of the labels `active` and `fastpath` of a session's state.
    pub active: i64,
    pub fastpath: i64,
    /// Value of the kind of on-CPU activity for samples about which the input says nothing more.
    pub cpu: i64,
    /// Values of the labels `ok` and `failed` of a tick's status.
    pub ok: i64,
    pub failed: Option<i64>,
    foreground: i64,
    maintenance: i64,
    replication: i64,
    background: i64,
}

impl Labels {
    fn new(schema: &Schema) -> Labels {
        let value = |labels, label| schema.value(labels, label).unwrap_or(0);
        Labels {
            active: value("state", "active"),
            fastpath: value("state", "fastpath function call"),
            cpu: value("cpu", "CPU*"),
            ok: value("tick_status", "ok"),
            failed: schema.value("tick_status", "failed"),
            foreground: value("category", "foreground"),
            maintenance: value("category", "maintenance"),
            replication: value("category", "replication"),
            background: value("category", "background"),
        }
    }

    /// The category of a type of process, if the input has no category.
    pub fn category(&self, backend_type: &[u8]) -> i64 {
        match backend_type {
            b"" | b"client backend" | b"parallel worker" => self.foreground,
            b"autovacuum worker" | b"autovacuum launcher" => self.maintenance,
            b"walsender" | b"walreceiver" => self.replication,
            other if other.starts_with(b"logical replication") => self.replication,
            _ => self.background,
        }
    }
}

/// The use of each column of the input.
pub struct Plan {
    /// Position of the tick's time in the line.
    pub time: Option<usize>,
    /// Position of the tick's number in the line.
    pub tick: Option<usize>,
    /// Other columns of the tick; number and slot time are derived.
    pub ticks: RowFields,
    /// Columns of the session.
    pub session: RowFields,
    /// Position of the session's PID in the line.
    pub pid: Option<usize>,
    /// Position of the type of the session's process in the line.
    pub backend_type: Option<usize>,
    /// Columns of the session's wait event.
    pub wait: RowFields,
    /// Columns of the session's statement.
    pub statement: RowFields,
    /// Other columns of a sample, which seldom change.
    pub lasting: Vec<SampleField>,
    /// Columns of a sample that are times.
    pub times: Vec<SampleField>,
    /// Position of the blocker's PID in the line.
    pub blocked_by: Option<usize>,
    /// Position of the blocker's start in the line.
    pub blocked_start: Option<usize>,
    /// Position of the query's text in the line.
    pub query_text: Option<usize>,
    /// Position of the text's database in the line.
    pub database: Option<usize>,
    /// Position of the text's user in the line.
    pub username: Option<usize>,
    /// Indexes of the values.
    pub places: ValueIndexes,
    /// Values of labels.
    pub labels: Labels,
}

impl Plan {
    /// The plan for lines with this header, and for builders with the schema of this one.
    pub fn new(header: Header, builder: &PartBuilder) -> ImportResult<Plan> {
        let schema = builder.schema();
        let run = schema.table(RUN).map(|t| t.columns.as_slice());
        let run = run.unwrap_or_default();
        let columns = builder.sample_columns();
        let place = |name: &str| columns.iter().position(|&c| run[c].name == name);
        let position = |name: &str| header.position(name);
        let [time, tick, pid] = ["time", "tick", "pid"].map(position);
        let [blocked_by, blocked_start] = ["blocked_by", "blocked_by_start"].map(position);
        let [database, username] = ["database", "username"].map(position);
        let (has_state, has_cpu) = (position("state").is_some(), position("cpu").is_some());
        let query_text = header.extra;
        let [mut ticks, mut session, mut wait, mut statement] = [const { Vec::new() }; 4];
        let (mut lasting, mut times) = (Vec::new(), Vec::new());
        for (at, field) in header.fields {
            match &field.place {
                _ if matches!(field.name.as_str(), "time" | "tick") => (),
                Place::Tick => ticks.push((at, field)),
                Place::Reference(column) if column == "blocked_by" => (),
                Place::Reference(column) if column == "wait" => wait.push((at, field)),
                Place::Reference(_) if field.table == "session" => session.push((at, field)),
                Place::Reference(_) => statement.push((at, field)),
                Place::Own => {
                    let is_time = field.column.ty == ColumnType::Time;
                    let own = if is_time { &mut times } else { &mut lasting };
                    own.extend(place(&field.column.name).map(|place| (at, field, place)));
                }
            }
        }
        let derived = ["tick", "slot_time", "status", "interval_ms", "taken_at"];
        let session = RowFields::new(builder, "session", session, &["category"])?;
        Ok(Plan {
            time,
            tick,
            ticks: RowFields::new(builder, "tick", ticks, &derived)?,
            pid,
            backend_type: session.has("backend_type"),
            wait: RowFields::new(builder, "wait", wait, &[])?,
            statement: RowFields::new(builder, "statement", statement, &["text_key"])?,
            lasting,
            times,
            blocked_by,
            blocked_start,
            query_text,
            database,
            username,
            places: ValueIndexes {
                pid: session.position("pid"),
                start: session.position("backend_start"),
                category: session.position("category"),
                count: columns.len(),
                wait: place("wait"),
                statement: place("statement"),
                blocked_by: place("blocked_by"),
                state: place("state").map(|place| (place, has_state)),
                cpu: place("cpu").filter(|_| !has_cpu),
            },
            labels: Labels::new(&schema),
            session,
        })
    }

    /// Fills in the state and the kind of activity, if the input has no such
    /// columns.
    pub fn complete(&self, row: &mut [i64], wait: i64) {
        let labels = &self.labels;
        let Some((state, given)) = self.places.state else {
            return;
        };
        if !given {
            row[state] = labels.active;
        }
        if let Some(place) = self.places.cpu {
            let busy = [labels.active, labels.fastpath].contains(&row[state]);
            row[place] = if busy && wait == 0 { labels.cpu } else { 0 };
        }
    }
}
