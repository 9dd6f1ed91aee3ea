//! Warning about a time in which the server hid sessions from the recorder. Such ticks failed, and
//! the answer lacks their load.

use super::empty::Period;
use super::integers::Reference;
use super::keys::View;
use super::parse::Window;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::value::error::{QueryError, QueryResult};

/// SQLSTATE of a warning.
const WARNING: &str = "01000";

/// Ticks that failed because sessions were hidden.
#[derive(Default)]
struct Hidden {
    ticks: usize,
    /// Largest number of sessions in one of these ticks.
    sessions: i64,
    reason: Option<String>,
}

/// The warning for an answer whose period has such ticks.
pub fn warning(period: &Period, run: Run) -> QueryResult<Option<QueryError>> {
    let mut hidden = Hidden::default();
    for part in &period.parts {
        let read = hidden.read(run, part, period.window);
        run.damage.leave_out_part(part, read)?;
    }
    let Hidden {
        ticks, sessions, ..
    } = hidden;
    Ok((ticks > 0).then(|| {
        let message = format!("sessions were hidden in {ticks} ticks of the period");
        let reason = hidden.reason.unwrap_or_default();
        QueryError::new(WARNING, message).detail(format!(
            "At most {sessions} at once: {reason}. These ticks count as unobserved."
        ))
    }))
}

impl Hidden {
    /// Adds the failed ticks of a log.
    fn read(&mut self, run: Run, part: &Part, window: Window) -> QueryResult<()> {
        let failed = part.schema().value("tick_status", "failed");
        // The columns of a log are in memory. Reading a sealed file only for this would cost time
        // that no plan shows; a marker in the file reports the failure.
        if !part.info().open {
            return Ok(());
        }
        let sessions = part.ints("tick", "rows_failed")?;
        if sessions.iter().all(|sessions| *sessions == 0) {
            return Ok(());
        }
        let [slot_ms, status, reason] =
            ["slot_time", "status", "reason"].map(|column| part.ints("tick", column));
        let (slot_ms, status, reason) = (slot_ms?, status?, reason?);
        let is_within = |ms: i64| {
            let us = ms.saturating_mul(1000);
            (window.since..window.until).contains(&us)
        };
        for row in 0..sessions.len() {
            if sessions[row] > 0 && Some(status[row]) == failed && is_within(slot_ms[row]) {
                self.ticks += 1;
                self.sessions = self.sessions.max(sessions[row]);
                self.reason = View::new(part, run.decode).name(Reference(reason[row]))?;
            }
        }
        Ok(())
    }
}
