//! Samples of an hour: runs of ticks in even steps, and their load by minute.

use crate::fault::Fault;
use crate::field::{FieldReader, Names, Row, column};
use crate::hours::hour_of;
use crate::redact::Redaction;
use crate::table::{Column, Kind, Object};
use crate::waits::canonical;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tacho_source::catalog;
use tacho_source::exchange::{self, Field, Place};
use tacho_tape::format::schema::{RUN, Schema};
use tacho_tape::query::{NOT_COUNTED, Scope, cpu_key, wait_key};
use tacho_tape::{Column as Numbers, Part, Result};

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;
/// Wait class of samples that wait for nothing.
const CPU: &str = "CPU";
/// Number of derived columns of `sample_runs`; the catalog's columns follow.
const DERIVED: usize = 9;
/// Columns of samples that are shipped in another form, or in table `texts`.
const SHIPPED_ELSEWHERE: [&str; 10] = [
    "cpu",
    "wait_number",
    "wait_event_type",
    "wait_event",
    "text_key",
    "database_oid",
    "user_oid",
    "query_start",
    "xact_start",
    "state_change",
];

/// The ticks of a part, by number.
pub struct Ticks {
    /// Rows of the ticks in table `tick`.
    rows: Vec<usize>,
    numbers: Vec<i64>,
    slot_ms: Vec<i64>,
    interval_ms: Vec<i64>,
    failed: Vec<bool>,
}

impl Ticks {
    /// Reads the ticks.
    ///
    /// # Errors
    /// The columns of the ticks are damaged.
    pub fn read(part: &Part) -> Result<Ticks> {
        let [number, slot, interval, status] =
            ["tick", "slot_time", "interval_ms", "status"].map(|name| part.ints("tick", name));
        let (number, slot, interval, status) = (number?, slot?, interval?, status?);
        let failed = part.schema().value("tick_status", "failed");
        let mut order: Vec<usize> = (0..number.len()).collect();
        order.sort_by_key(|row| number[*row]);
        Ok(Ticks {
            numbers: order.iter().map(|row| number[*row]).collect(),
            slot_ms: order.iter().map(|row| slot[*row]).collect(),
            interval_ms: order.iter().map(|row| interval[*row].max(0)).collect(),
            failed: order.iter().map(|r| failed == Some(status[*r])).collect(),
            rows: order,
        })
    }

    /// The index of a tick by its number, in the order of numbers.
    pub fn place(&self, number: i64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The row of a tick in its table.
    pub fn row(&self, place: usize) -> usize {
        self.rows[place]
    }

    /// True if a tick belongs to an hour.
    pub fn is_of(&self, place: usize, hour: i64) -> bool {
        hour_of(self.slot_ms[place]) == hour
    }

    /// Weight of a tick: its interval, or 0 if it failed.
    pub fn weight_ms(&self, place: usize) -> i64 {
        match self.failed[place] {
            true => 0,
            false => self.interval_ms[place],
        }
    }

    /// Adds the observed time of an hour's ticks to its minutes.
    pub fn observe(&self, hour: i64, minutes: &mut Minutes) {
        for place in (0..self.numbers.len()).filter(|place| self.is_of(*place, hour)) {
            let minute = minutes.observed.entry(minute_of(self.slot_ms[place]));
            *minute.or_default() += self.weight_ms(place);
        }
    }

    /// Cuts a run into pieces. A piece lies within the hour; its ticks did not fail,
    /// and follow each other slot by slot at one interval.
    fn pieces(&self, first: i64, ticks: i64, hour: i64, mut piece: impl FnMut(usize, usize)) {
        let Some(begin) = self.place(first) else {
            return;
        };
        let left = self.numbers.len() - begin;
        let end = begin + usize::try_from(ticks).unwrap_or(0).min(left);
        let counts = |at: usize| !self.failed[at] && self.is_of(at, hour);
        let mut at = begin;
        while at < end {
            if !counts(at) {
                at += 1;
                continue;
            }
            let from = at;
            at += 1;
            while at < end && counts(at) && self.follows(at) {
                at += 1;
            }
            piece(from, at);
        }
    }

    /// True if a tick is in the slot directly after the previous tick's slot.
    fn follows(&self, at: usize) -> bool {
        let before = at - 1;
        self.numbers[at] == self.numbers[before] + 1
            && self.interval_ms[at] == self.interval_ms[before]
            && self.slot_ms[at] == self.slot_ms[before] + self.interval_ms[before]
    }
}

fn minute_of(ms: i64) -> i64 {
    ms.div_euclid(MINUTE_MS)
}

/// The load of an hour by minute.
#[derive(Default)]
pub struct Minutes {
    /// Observed time, ms, by minute since 1970.
    observed: BTreeMap<i64, i64>,
    /// Number of samples and their weight in ms, by minute and wait event.
    load: BTreeMap<(i64, Option<String>), (i64, i64)>,
}

/// The columns of `load_minute`.
pub fn minute_columns() -> Vec<Column> {
    vec![
        Column::new(10, "minute", Kind::Time),
        Column::new(11, "wait_class", Kind::Text),
        Column::new(12, "wait_event", Kind::Text),
        Column::new(13, "samples", Kind::Number),
        Column::new(14, "weight_ms", Kind::Number),
        Column::new(15, "observed_ms", Kind::Number),
    ]
}

impl Minutes {
    /// Writes a row for each minute, and one for each wait event in it.
    ///
    /// # Errors
    /// The rows could not be encoded.
    pub fn write(&self, object: &mut Object) -> parquet::errors::Result<()> {
        let observed = self.observed.iter();
        let observed = observed.map(|(minute, ms)| (*minute, None, None, Some(*ms)));
        let load = self.load.iter();
        let load = load.map(|((minute, key), sums)| (*minute, key.as_deref(), Some(*sums), None));
        for (minute, key, sums, observed) in observed.chain(load) {
            let [time, class, event, samples, weight, ms] = &mut object.values[..] else {
                break;
            };
            time.number(Some(minute * MINUTE_MS * 1_000));
            class.text(key.map(class_of));
            event.text(key);
            samples.number(sums.map(|sums| sums.0));
            weight.number(sums.map(|sums| sums.1));
            ms.number(observed);
            object.flush_full()?;
        }
        Ok(())
    }
}

/// The class of a wait event, from its key.
fn class_of(key: &str) -> &str {
    let class = key.split(':').next().unwrap_or(key);
    if class.starts_with(CPU) { CPU } else { class }
}

/// Fields of runs that follow from the catalog.
pub fn fields(schema: &Schema) -> Vec<Field> {
    let run = schema.table(RUN);
    let fields = run.map_or_else(Vec::new, |run| exchange::fields(schema, run));
    let shown = fields.into_iter().filter(|field| {
        field.place != Place::Tick && !SHIPPED_ELSEWHERE.contains(&field.name.as_str())
    });
    shown.collect()
}

/// The columns of `sample_runs`: derived columns first, then the fields.
pub fn run_columns(schema: &Schema) -> Vec<Column> {
    let mut columns = vec![
        Column::new(10, "first_slot", Kind::Time),
        Column::new(12, "ticks", Kind::Number),
        Column::new(13, "interval_ms", Kind::Number),
        Column::new(14, "weight_ms", Kind::Number),
        Column::new(15, "scope", Kind::Text),
        Column::new(16, "wait_event", Kind::Text),
        Column::new(17, "query_age_ms", Kind::Number),
        Column::new(18, "xact_before_ms", Kind::Number),
        Column::new(19, "state_after_ms", Kind::Number),
    ];
    let run = schema.table(RUN);
    columns.extend(fields(schema).iter().filter_map(|f| Some(column(run?, f))));
    columns
}

/// A piece of a run.
struct Piece {
    run: usize,
    from: usize,
    to: usize,
}

/// The runs of a part.
pub struct Runs<'a> {
    part: &'a Part,
    first_tick: Numbers,
    ticks: Numbers,
    session: Numbers,
    state: Numbers,
    cpu: Numbers,
    wait: Numbers,
    marked: Numbers,
    category: Numbers,
    /// Starts of query, transaction and state, ms since 1970.
    starts: [Numbers; 3],
    /// Keys of wait events; reference 1 is index 0.
    waits: Vec<Option<String>>,
}

/// The stored values that decide the scope of a run: category, state, wait event and
/// kind of activity.
type ScopeKey = (i64, i64, i64, i64);

impl<'a> Runs<'a> {
    /// Reads the columns that others are derived from.
    ///
    /// # Errors
    /// A column is damaged.
    pub fn read(part: &'a Part, names: &Names) -> Result<Runs<'a>> {
        let class = part.ints("wait", "wait_event_type")?;
        let event = part.ints("wait", "wait_event")?;
        let pairs = class.iter().zip(event.iter());
        let waits = pairs.map(|(class, event)| {
            let (class, event) = (names.get(*class), names.get(*event));
            wait_key(class.as_deref(), event.as_deref()).map(canonical)
        });
        Ok(Runs {
            first_tick: part.ints(RUN, "first_tick")?,
            ticks: part.ints(RUN, "ticks")?,
            session: part.ints(RUN, "session")?,
            state: part.ints(RUN, "state")?,
            cpu: part.ints(RUN, "cpu")?,
            wait: part.ints(RUN, "wait")?,
            marked: part.ints(RUN, "marked")?,
            category: part.ints("session", "category")?,
            starts: [
                part.ints(RUN, "query_start")?,
                part.ints(RUN, "xact_start")?,
                part.ints(RUN, "state_change")?,
            ],
            waits: waits.collect(),
            part,
        })
    }

    fn kinds(&self, run: usize) -> ScopeKey {
        let session = usize::try_from(self.session[run] - 1).ok();
        let category = session.and_then(|row| self.category.get(row));
        let category = category.copied().unwrap_or(0);
        (category, self.state[run], self.wait[run], self.cpu[run])
    }

    /// Starts as differences, ms, which repeat more often than times of day. The
    /// query's start is relative to the slot. The starts of transaction and state are
    /// relative to the query's start, or without a query to the slot.
    fn ages(&self, run: usize, slot_ms: i64) -> [Option<i64>; 3] {
        let starts = self.starts.each_ref().map(|column| column[run]);
        let [query, xact, state] = starts.map(|start| (start != 0).then_some(start));
        let base = query.unwrap_or(slot_ms);
        [
            query.map(|query| slot_ms.saturating_sub(query)),
            xact.map(|xact| base.saturating_sub(xact)),
            state.map(|state| state.saturating_sub(base)),
        ]
    }

    fn label(&self, enumeration: &str, value: i64) -> Option<String> {
        let label = self.part.schema().label(enumeration, value);
        (value != 0).then(|| label.map_or_else(|| "?".into(), str::to_string))
    }

    /// The narrowest scope that contains such samples, and their wait event.
    fn derived(&self, kinds: ScopeKey) -> (Scope, Option<String>) {
        let (category, state, wait, cpu) = kinds;
        let key = match usize::try_from(wait - 1) {
            Ok(row) => {
                let key = self.waits.get(row).cloned();
                key.unwrap_or_else(|| Some("?".into()))
            }
            Err(_) => self.label("cpu", cpu).map(|label| cpu_key(&label)),
        };
        let category = self.label("category", category);
        let state = self.label("state", state);
        let has = |scope: &Scope| {
            scope.has_category(category.as_deref())
                && scope.has_state(state.as_deref())
                && scope.has("wait_event", key.as_deref())
        };
        let narrow = [Scope::Load, Scope::Foreground].into_iter().find(has);
        (narrow.unwrap_or(Scope::All), key)
    }

    /// Adds the samples of an hour. Returns the query ids in them.
    ///
    /// # Errors
    /// A column is damaged, or the rows could not be encoded.
    pub fn write(
        &self,
        hour: i64,
        ticks: &Ticks,
        names: &Names,
        redaction: &Redaction,
        object: &mut Object,
        minutes: &mut Minutes,
    ) -> std::result::Result<BTreeSet<i64>, Fault> {
        let fields = fields(&catalog::schema().clone().with_runs());
        let cells = fields.iter();
        let cells = cells.map(|f| FieldReader::read(self.part, RUN, f, redaction));
        let cells: Vec<_> = cells.collect::<Result<_>>()?;
        let mut known: HashMap<ScopeKey, (Scope, Option<String>)> = HashMap::new();
        let statement = self.part.ints(RUN, "statement")?;
        let mut statements = BTreeSet::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for run in 0..self.first_tick.len() {
            ticks.pieces(self.first_tick[run], self.ticks[run], hour, |from, to| {
                pieces.push(Piece { run, from, to });
                statements.insert(statement[run]);
            });
            while pieces.len() >= object.room() {
                let rest = pieces.split_off(object.room());
                self.write_pieces(&pieces, ticks, &mut known, object, minutes);
                write_cells(&cells, &pieces, names, redaction, object);
                object.flush_full()?;
                pieces = rest;
            }
        }
        self.write_pieces(&pieces, ticks, &mut known, object, minutes);
        write_cells(&cells, &pieces, names, redaction, object);
        object.flush_full()?;
        Ok(statements)
    }

    fn write_pieces(
        &self,
        pieces: &[Piece],
        ticks: &Ticks,
        known: &mut HashMap<ScopeKey, (Scope, Option<String>)>,
        object: &mut Object,
        minutes: &mut Minutes,
    ) {
        let [
            slot,
            count,
            interval,
            weight,
            scope,
            wait,
            query,
            xact,
            state,
            ..,
        ] = &mut object.values[..]
        else {
            return;
        };
        for piece in pieces {
            let kinds = self.kinds(piece.run);
            let derived = known.entry(kinds).or_insert_with(|| self.derived(kinds));
            let length = (piece.to - piece.from) as i64;
            let counts = self.marked[piece.run] & NOT_COUNTED == 0;
            let step = ticks.interval_ms[piece.from];
            slot.number(Some(ticks.slot_ms[piece.from] * 1_000));
            count.number(Some(length));
            interval.number(Some(step));
            weight.number(Some(if counts { length * step } else { 0 }));
            scope.text(Some(derived.0.name()));
            wait.text(derived.1.as_deref());
            let ages = self.ages(piece.run, ticks.slot_ms[piece.from]);
            for (values, age) in [&mut *query, xact, state].into_iter().zip(ages) {
                values.number(age);
            }
            if counts && derived.0 == Scope::Load {
                minutes.add(
                    &ticks.slot_ms[piece.from..piece.to],
                    step,
                    derived.1.as_ref(),
                );
            }
        }
    }
}

impl Minutes {
    fn add(&mut self, slots_ms: &[i64], weight_ms: i64, key: Option<&String>) {
        for slots in slots_ms.chunk_by(|a, b| minute_of(*a) == minute_of(*b)) {
            let place = (minute_of(slots[0]), key.cloned());
            let sums = self.load.entry(place).or_default();
            sums.0 += slots.len() as i64;
            sums.1 += slots.len() as i64 * weight_ms;
        }
    }
}

fn write_cells(
    cells: &[Option<FieldReader>],
    pieces: &[Piece],
    names: &Names,
    redaction: &Redaction,
    object: &mut Object,
) {
    let row = |piece: &Piece| Row {
        tick: None,
        own: Some(piece.run),
    };
    let rows: Vec<Row> = pieces.iter().map(row).collect();
    for (cells, values) in cells.iter().zip(&mut object.values[DERIVED..]) {
        match cells {
            Some(cells) => cells.write(&rows, names, redaction, values),
            None => values.repeat(None, rows.len()),
        }
    }
}
