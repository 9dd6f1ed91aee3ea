//! Notice of an answer without rows: the observed share of its period. The reader must tell
//! "nothing happened" from "tacho did not look".

use super::parse::{NEAR, Window, nodes};
use super::ticks::{Observed, Ticks};
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::value::bucket::Buckets;
use crate::query::value::civil::time_text;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::sink::Value;

/// SQLSTATE of a notice.
const SUCCESS: &str = "00000";

/// The period and the node of a request.
#[derive(Default)]
struct RequestedPeriod {
    takes_period: bool,
    node: Option<String>,
    at: Option<i64>,
    since: Option<i64>,
    until: Option<i64>,
}

impl RequestedPeriod {
    fn of<R: Request>(request: &R) -> RequestedPeriod {
        let mut requested = RequestedPeriod::default();
        request.put(&mut |name, value| match (name, value) {
            ("node", Value::Text(node)) => requested.node = Some(node.to_string()),
            ("at", value) => {
                requested.takes_period = true;
                requested.at = time(value);
            }
            ("since" | "since_2", value) => {
                requested.takes_period = true;
                requested.since = time(value);
            }
            ("until" | "until_2", value) => requested.until = time(value),
            _ => (),
        });
        requested
    }
}

fn time(value: Value) -> Option<i64> {
    match value {
        Value::Int(us) => Some(us),
        _ => None,
    }
}

/// The period of an answer, and the parts of the history that overlap it.
pub struct Period<'a> {
    pub window: Window,
    pub parts: Vec<&'a Part>,
}

impl<'a> Period<'a> {
    /// `None` if the function takes no period. Damaged parts are left out.
    pub fn of<R: Request>(request: &R, run: Run<'a>) -> QueryResult<Option<Period<'a>>> {
        let requested = RequestedPeriod::of(request);
        if !requested.takes_period {
            return Ok(None);
        }
        let window = match requested.at {
            Some(at) => Window {
                since: at.saturating_sub(NEAR),
                until: at.saturating_add(1),
            },
            None => Window::of(run.context, requested.since, requested.until)?,
        };
        let mut parts = Vec::new();
        for node in nodes(run, requested.node.as_deref())? {
            let met = run.store.parts(node).filter(|part| window.overlaps(part));
            parts.extend(met.filter(|part| !run.damage.has_left_out(part)));
        }
        Ok(Some(Period { window, parts }))
    }
}

/// The notice for an empty answer about a period.
pub fn notice(period: &Period, run: Run) -> QueryResult<QueryError> {
    let window = period.window;
    let observed = observed(period, run)?;
    let percent = observed
        .total()
        .percent(window.length())
        .map(|p| p.round4());
    let notice = match percent {
        Some(percent) if observed.total().observed_ms > 0 => QueryError::new(
            SUCCESS,
            format!(
                "no rows: {}.{:04} % of the period was observed",
                percent / 10_000,
                percent % 10_000
            ),
        ),
        _ => QueryError::new(SUCCESS, "no rows: the period was not observed")
            .hint("Use status to see the times that the history covers."),
    };
    Ok(notice.detail(format!(
        "The period is {} to {}.",
        time_text(window.since),
        time_text(window.until)
    )))
}

/// The ticks of a period.
fn observed(period: &Period, run: Run) -> QueryResult<Observed> {
    let buckets = Buckets::whole(period.window.since, period.window.until);
    let mut observed = Observed::default();
    for part in &period.parts {
        run.check_cancel()?;
        let read = Ticks::read(part, &buckets, &mut observed);
        run.damage.leave_out_part(part, read)?;
    }
    run.check_cancel()?;
    Ok(observed)
}
