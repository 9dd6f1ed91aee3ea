//! Statistics of few, noisy measurements: medians, intervals without an
//! assumption about the noise, and plain verdicts.

/// A median, and an interval that contains the true median with some probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that the interval contains the true median, such as 0.95.
    pub confidence: f64,
}

/// Verdict about a ratio to the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 1.
    Above,
    /// The whole interval is below 1.
    Below,
    /// The interval contains 1: noise is larger than the effect.
    Noise,
}

impl Estimate {
    /// The verdict about this ratio.
    pub fn verdict(&self) -> Verdict {
        match () {
            () if self.low > 1.0 => Verdict::Above,
            () if self.high < 1.0 => Verdict::Below,
            () => Verdict::Noise,
        }
    }
}

/// Median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

/// Median of values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| middle(&sorted))
}

/// Median, and the narrowest interval between two measured values that covers
/// the true median with 95 %. With fewer than six values it is the whole range,
/// with its actual confidence. This is order statistics: each value is above
/// the median with probability one half, whatever the distribution.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    let mut below = 0.5_f64.powi(i32::try_from(n).ok()?);
    let (mut cut, mut confidence, mut term) = (0, 1.0 - 2.0 * below, below);
    while 2 * (cut + 1) < n {
        term *= (n - cut) as f64 / (cut + 1) as f64;
        below += term;
        if 1.0 - 2.0 * below < 0.95 {
            break;
        }
        cut += 1;
        confidence = 1.0 - 2.0 * below;
    }
    Some(Estimate {
        median: middle(&sorted),
        low: sorted[cut],
        high: sorted[n - 1 - cut],
        confidence: confidence.max(0.0),
    })
}

/// The percentile by nearest rank: the smallest value that `share` of all values do not exceed.
/// `share` is between 0 and 1, for example 0.95 for p95. `None` without values.
pub fn percentile(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd_numbers_of_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn few_values_give_their_range_and_its_confidence() {
        let e = estimate(&[1.0, 3.0, 2.0]).expect("values");
        assert_eq!(
            (e.low, e.median, e.high, e.confidence),
            (1.0, 2.0, 3.0, 0.75)
        );
        assert_eq!(estimate(&[5.0]).expect("one").confidence, 0.0);
    }

    #[test]
    fn interval_of_the_median_has_the_ranks_of_the_tables() {
        // Tables of the sign test: n = 6: 1..6; n = 9: 2..8; n = 20: 6..15.
        for (n, low, high) in [(6, 1.0, 6.0), (9, 2.0, 8.0), (20, 6.0, 15.0)] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let e = estimate(&values).expect("values");
            assert_eq!((e.low, e.high), (low, high), "{n}");
            assert!(e.confidence >= 0.95);
        }
    }

    #[test]
    fn verdict_needs_the_whole_interval_on_one_side() {
        let of = |values: &[f64]| estimate(values).expect("values").verdict();
        assert_eq!(of(&[1.01, 1.02, 1.03]), Verdict::Above);
        assert_eq!(of(&[0.97, 0.99, 0.98]), Verdict::Below);
        assert_eq!(of(&[0.97, 1.01, 0.98]), Verdict::Noise);
    }

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<u64> = (1..=1000).collect();
        let at = |share| percentile(&values, share).expect("values");
        assert_eq!(
            (at(0.5), at(0.99), at(0.999), at(1.0)),
            (500, 990, 999, 1000)
        );
        assert_eq!(percentile(&[], 0.5), None);
    }
}
