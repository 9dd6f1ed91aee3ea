//! The primary figure of a scenario: one ratio at one point, declared before
//! the run with its margin, its power and the arms that are equal. The report
//! has one verdict, about this figure.

use super::metric::{Better, find};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Minimum number of pairs of equal arms for a verdict.
pub const NULL_PAIRS: usize = 20;

/// A declared primary figure, as in
///
/// ```toml
/// [primary]
/// metric = "cpu_us"
/// point = "5k, 32 clients"
/// variant = "tacho"
/// peer = "pg_stat_statements"
/// equal = "pg_stat_statements again"
/// margin = 1.01
/// power = 0.9
/// spread = 0.015
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Primary {
    /// Name of the metric in the results.
    pub metric: String,
    /// Label of the point.
    pub point: String,
    /// The variant that must not cost more.
    pub variant: String,
    /// The variant that it is compared to.
    pub peer: String,
    /// A variant that is the peer once more. Its ratio to the peer is known
    /// to be 1, so what is measured is the noise.
    pub equal: String,
    /// The variant may cost at most this many times the cost of the peer: 1.01 is 1 % more.
    pub margin: f64,
    /// Probability that the experiment shows it if the variant costs the same as the peer.
    pub power: f64,
    /// Expected standard deviation of the ratio of a block: 0.015 is 1.5 %. With the power it gives
    /// the number of blocks.
    pub spread: f64,
}

impl Primary {
    /// Refuses figures that cannot have a verdict. The caller may have left out
    /// variants and points: that is a reason in the report.
    pub fn check(&self) -> Result<()> {
        ensure!(
            find(&self.metric).is_some(),
            "primary figure of an unknown metric \"{}\"",
            self.metric
        );
        ensure!(self.margin > 1.0, "primary.margin must be above 1");
        ensure!(
            self.power > 0.5 && self.power < 1.0,
            "primary.power must be between 0.5 and 1"
        );
        ensure!(
            self.spread > 0.0 && self.spread < 1.0,
            "primary.spread must be between 0 and 1"
        );
        ensure!(
            self.variant != self.peer && self.equal != self.peer,
            "primary.peer must differ from primary.variant and primary.equal"
        );
        Ok(())
    }

    /// Ratio of costs: above 1, `own` is worse than `base`.
    pub fn cost_ratio(&self, own: f64, base: f64) -> f64 {
        match find(&self.metric).map(|metric| metric.better) {
            Some(Better::More) => base / own,
            _ => own / base,
        }
    }
}
