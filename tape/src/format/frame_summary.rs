//! The writer's view of a frame: its ticks, the number of samples, and whether it has markers of a
//! stop or a clock step.

use crate::error::Result;
use crate::format::hello;
use crate::format::schema::{SAMPLE, Schema};
use crate::format::section::{Section, from_stored};

/// If the wall clock and the monotonic clock differ by more ms than this, the wall clock was set.
const STEP_MS: i64 = 1_000;

/// A sampler that sent its hello frame.
pub(crate) struct Connection {
    pub(crate) incarnation: u64,
    /// The hello frame as it came.
    pub(crate) hello: Vec<u8>,
    pub(crate) schema: Schema,
    /// Time when the newest tick was taken, in ms since 1970.
    pub(crate) last_taken_ms: Option<i64>,
}

impl Connection {
    pub(crate) fn new(incarnation: u64, hello: &[u8], sections: &[Section<'_>]) -> Result<Self> {
        Ok(Connection {
            incarnation,
            hello: hello.to_vec(),
            schema: hello::read_schema(sections)?,
            last_taken_ms: None,
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tick {
    number: u64,
    slot_ms: i64,
    taken_ms: i64,
    interval_ms: i64,
    elapsed_ms: i64,
}

/// The writer's view of a data frame.
#[derive(Debug, Default)]
pub(crate) struct FrameSummary {
    ticks: Vec<Tick>,
    pub(crate) sample_rows: u64,
    pub(crate) has_stop_marker: bool,
    pub(crate) has_clock_step_marker: bool,
    /// Jump of the wall clock since the frame before, in ms.
    pub(crate) clock_step: Option<i64>,
}

impl FrameSummary {
    pub(crate) fn read(schema: &Schema, sections: &[Section<'_>], base_ms: i64) -> Self {
        let mut summary = FrameSummary::default();
        let table = |name| schema.table(name).map(|t| t.id);
        for section in sections {
            let id = Some(section.table);
            if id == table("tick") {
                summary.read_ticks(schema, section, base_ms);
            } else if id == table(SAMPLE) {
                summary.sample_rows += section.rows as u64;
            } else if id == table("marker") {
                let kinds = column(schema, "marker", "kind", section, base_ms);
                let has_marker = |label| {
                    let value = schema.value("marker", label);
                    value.is_some_and(|v| kinds.contains(&v))
                };
                summary.has_stop_marker |= has_marker("stop");
                summary.has_clock_step_marker |= has_marker("clock step");
            }
        }
        summary
    }

    fn read_ticks(&mut self, schema: &Schema, section: &Section<'_>, base_ms: i64) {
        let columns = ["tick", "slot_time", "taken_at", "interval_ms", "elapsed_ms"];
        let [number, slot, taken, interval, elapsed] =
            columns.map(|name| column(schema, "tick", name, section, base_ms));
        let def = schema.table("tick");
        let sensible = |name, value| {
            let column = def.and_then(|t| t.column(name));
            column.is_none_or(|c| c.is_sensible(value))
        };
        // Rows that sealing leaves out (`ingest.rs`) show nothing about clocks.
        let kept = (0..section.rows).filter(|&row| {
            sensible("slot_time", slot[row])
                && sensible("taken_at", taken[row])
                && sensible("interval_ms", interval[row])
        });
        self.ticks.extend(kept.map(|row| Tick {
            number: number[row] as u64,
            slot_ms: slot[row],
            taken_ms: taken[row],
            interval_ms: interval[row],
            elapsed_ms: elapsed[row],
        }));
    }

    pub(crate) fn first_slot_ms(&self) -> Option<i64> {
        self.ticks.first().map(|t| t.slot_ms)
    }

    pub(crate) fn last_tick(&self) -> Option<u64> {
        self.ticks.last().map(|t| t.number)
    }

    pub(crate) fn last_taken_ms(&self) -> Option<i64> {
        self.ticks.last().map(|t| t.taken_ms)
    }

    /// End of the last slot in ms since 1970.
    pub(crate) fn end_ms(&self) -> Option<i64> {
        self.ticks.last().map(|t| t.slot_ms + t.interval_ms)
    }

    /// Finds a jump of the wall clock since the last tick of the frame before.
    pub(crate) fn compare_clocks(&mut self, last_taken_ms: Option<i64>) {
        let first = self.ticks.first().zip(last_taken_ms);
        self.clock_step = first.and_then(|(tick, last)| step(last, tick));
    }

    /// True if the wall clock jumped between two ticks of the frame.
    pub(crate) fn steps_inside(&self) -> bool {
        let mut pairs = self.ticks.windows(2);
        pairs.any(|pair| step(pair[0].taken_ms, &pair[1]).is_some())
    }
}

fn step(before_ms: i64, tick: &Tick) -> Option<i64> {
    if tick.elapsed_ms == 0 || tick.taken_ms == 0 || before_ms == 0 {
        return None;
    }
    let step = (tick.taken_ms - before_ms).saturating_sub(tick.elapsed_ms);
    (step.saturating_abs() > STEP_MS).then_some(step)
}

fn column(
    schema: &Schema,
    table: &str,
    name: &str,
    section: &Section<'_>,
    base_ms: i64,
) -> Vec<i64> {
    let Some(def) = schema.table(table).and_then(|t| t.column(name)) else {
        return vec![0; section.rows];
    };
    let stored = section.stored(def.id);
    stored
        .iter()
        .map(|&v| from_stored(def.ty, v, base_ms))
        .collect()
}
