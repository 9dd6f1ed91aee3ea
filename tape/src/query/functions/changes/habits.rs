//! Finds queries that had a similar load at the same time on other days. For example, a nightly
//! batch is no change.

use super::effects::Effect;
use super::loads::Loads;
use super::windows::{Normal, Windows};
use crate::query::ask::context::Run;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::scan::Scan;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::collections::HashMap;

/// The other days: 1 and 7 days before the window.
const DAYS: [i64; 2] = [1, 7];

/// Notes effects that are usual: on one of these days the query had at least half of its load at
/// the same time. A usual effect is no longer notable, so it gets no cause. Does nothing if the
/// caller gave the normal window, because then only that window says what is normal.
pub fn note_habits(
    run: Run,
    samples: Samples,
    windows: &Windows,
    loads: &Loads,
    effects: &mut [Effect],
) -> QueryResult<()> {
    let asks = effects.iter().any(|effect| effect.is_notable);
    if windows.normal == Normal::Given || !asks {
        return Ok(());
    }
    for days in DAYS {
        let ago = days * 86_400 * SECOND;
        let window = Window {
            since: windows.after.since.saturating_sub(ago),
            until: windows.after.until.saturating_sub(ago),
        };
        // A window longer than `days` would overlap the same window `days` earlier.
        if windows.after.length() > ago {
            continue;
        }
        let scan = Scan::new(run, samples, window)?.registered(&loads.register);
        let query = Dimension::find(run.catalog, "dimension", pg::QUERY_ID)?;
        let mut scanned = scan.weights(&[vec![&query]])?;
        let observed = i128::from(scanned.observed.total().observed_ms);
        let is_observed = observed * 2000 >= i128::from(window.length());
        let cube = scanned.cubes.pop().unwrap_or_default();
        let sums: HashMap<_, _> = cube.into_cells().map(|(k, c)| (k.0, c.sum_ms())).collect();
        for effect in effects.iter_mut().filter(|effect| effect.is_notable) {
            let sum = effect.line.id.and_then(|id| sums.get(&id).copied());
            let then = i128::from(sum.unwrap_or(0)) * 10_000;
            if is_observed && then * 2 >= effect.line.after * observed {
                effect.usual_since_days = Some(days);
                effect.is_notable = false;
            }
        }
    }
    Ok(())
}
