//! Non-inferiority. Each block has one ratio of a variant to its peer. The
//! logarithms of the ratios have a mean, and Student's t gives its bounds.
//! The variant is shown not to cost more if the upper bound of the ratio is at
//! most the margin.
//!
//! Example: ten blocks with a mean ratio of 1.002 and a spread of 1 % have the
//! bounds 0.996 and 1.008. With the margin 1.01 that is shown.

use super::stats::median;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Probability that a bound is on the right side of the true ratio.
pub const CONFIDENCE: f64 = 0.95;

/// With a greater number of blocks than this, [`blocks_for`] gives no answer.
const MOST_BLOCKS: usize = 1_000_000;

/// The ratios of all blocks, evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Number of blocks.
    pub blocks: usize,
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Standard deviation of the logarithms: 0.01 is 1 %.
    pub spread: f64,
    /// The true ratio is at least this, with `CONFIDENCE`.
    pub low: f64,
    /// The true ratio is at most this, with `CONFIDENCE`.
    pub high: f64,
}

/// Meaning of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The upper bound is at most the margin.
    Shown,
    /// The lower bound is above the margin.
    Exceeded,
    /// The margin lies between the bounds. This counts as not shown.
    Open,
}

/// Mean of the logarithms, and their standard deviation. `None` if there are fewer than two ratios,
/// or one is not positive.
fn moments(ratios: &[f64]) -> Option<(f64, f64)> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let usable = logs.len() >= 2 && logs.iter().all(|log| log.is_finite());
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    usable.then(|| (mean, (squares / (n - 1.0)).sqrt()))
}

/// Quantile of Student's t for a mean of `blocks` values; `None` for fewer than two.
fn quantile(blocks: usize, probability: f64) -> Option<f64> {
    let freedom = blocks.checked_sub(1).filter(|n| *n > 0)?;
    let t = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(t.inverse_cdf(probability))
}

/// Evaluates ratios; `None` if there are fewer than two, or one is not
/// positive.
pub fn trial(ratios: &[f64]) -> Option<Trial> {
    let (mean, spread) = moments(ratios)?;
    let blocks = ratios.len();
    let reach = quantile(blocks, CONFIDENCE)? * spread / (blocks as f64).sqrt();
    Some(Trial {
        blocks,
        ratio: mean.exp(),
        spread,
        low: (mean - reach).exp(),
        high: (mean + reach).exp(),
    })
}

impl Trial {
    /// Compares the bounds to a margin.
    pub fn outcome(&self, margin: f64) -> Outcome {
        match () {
            () if self.high <= margin => Outcome::Shown,
            () if self.low > margin => Outcome::Exceeded,
            () => Outcome::Open,
        }
    }
}

/// True if equal arms look equal: the two-sided interval of their mean ratio contains 1.
pub fn equal(ratios: &[f64]) -> bool {
    let Some((mean, spread)) = moments(ratios) else {
        return false;
    };
    let two_sided = quantile(ratios.len(), f64::midpoint(CONFIDENCE, 1.0));
    let reach = two_sided.map(|t| t * spread / (ratios.len() as f64).sqrt());
    reach.is_some_and(|reach| mean.abs() <= reach)
}

/// Number of blocks that shows a true ratio of 1 with this power, and a true
/// ratio as far above the margin as well. It is a little more than the exact
/// number: a sum of two quantiles stands for a quantile of the noncentral t.
pub fn blocks_for(spread: f64, margin: f64, power: f64) -> Option<usize> {
    let enough = |blocks: &usize| {
        let reach = quantile(*blocks, CONFIDENCE).zip(quantile(*blocks, power));
        let room = margin.ln() * (*blocks as f64).sqrt();
        reach.is_some_and(|(bound, power)| (bound + power) * spread <= room)
    };
    let mut beyond = 2;
    while !enough(&beyond) {
        beyond = Some(beyond * 2).filter(|n| *n <= MOST_BLOCKS)?;
    }
    let (mut low, mut high) = (beyond / 2, beyond);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if middle >= 2 && enough(&middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// Least, lower quartile, median, upper quartile and greatest of values; `None` without values.
pub fn five_numbers(values: &[f64]) -> Option<[f64; 5]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let (lower, upper) = (&sorted[..half], &sorted[sorted.len() - half..]);
    Some([
        *sorted.first()?,
        median(lower)?,
        median(&sorted)?,
        median(upper)?,
        *sorted.last()?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::Normal;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn quantiles_equal_published_tables() {
        // Computed by scipy.stats.t.ppf.
        let table = [
            (2, 0.95, 6.313_751_514_675_037),
            (5, 0.95, 2.131_846_786_326_649_5),
            (10, 0.95, 1.833_112_932_656_237),
            (20, 0.95, 1.729_132_811_521_368_2),
            (11, 0.90, 1.372_183_641_110_336),
            (20, 0.975, 2.093_024_054_408_308_7),
        ];
        for (blocks, probability, expected) in table {
            let t = quantile(blocks, probability).expect("defined");
            assert!(near(t, expected), "{blocks} {probability}: {t}");
        }
        assert_eq!((quantile(0, 0.95), quantile(1, 0.95)), (None, None));
    }

    #[test]
    fn bounds_of_generated_ratios_equal_the_oracle() {
        // Computed by numpy and scipy: mean and deviation of logarithms, t.ppf(0.95, 5).
        let trial = trial(&[1.004, 0.998, 1.001, 1.006, 0.995, 1.003]).expect("six");
        assert_eq!(trial.blocks, 6);
        assert!(near(trial.ratio, 1.001_159_764_968_819), "{trial:?}");
        assert!(near(trial.spread, 0.004_068_564_897_084_645), "{trial:?}");
        assert!(near(trial.low, 0.997_814_520_162_176_2), "{trial:?}");
        assert!(near(trial.high, 1.004_516_224_948_813_5), "{trial:?}");
        // Computed by hand: the logarithms −a and a have the deviation a√2, and t is 6.3138.
        let two = super::trial(&[1.0 / 1.01, 1.01]).expect("two");
        let reach = 6.313_751_514_675_037 * 1.01_f64.ln();
        assert!(
            near(two.ratio, 1.0) && near(two.high, reach.exp()),
            "{two:?}"
        );
    }

    #[test]
    fn values_without_logarithm_or_spread_are_no_trial() {
        assert_eq!((trial(&[]), trial(&[1.0])), (None, None));
        assert_eq!((trial(&[1.0, 0.0]), trial(&[1.0, f64::NAN])), (None, None));
        let same = trial(&[1.005; 3]).expect("three");
        assert!(same.spread < 1e-15 && near(same.high, 1.005) && near(same.low, 1.005));
    }

    #[test]
    fn the_margin_decides_and_a_bound_upon_it_is_shown() {
        let of = |low, high| Trial {
            blocks: 20,
            ratio: f64::midpoint(low, high),
            spread: 0.01,
            low,
            high,
        };
        assert_eq!(of(0.99, 1.01).outcome(1.01), Outcome::Shown);
        assert_eq!(of(0.99, 1.0101).outcome(1.01), Outcome::Open);
        assert_eq!(of(1.01, 1.03).outcome(1.01), Outcome::Open);
        assert_eq!(of(1.0101, 1.03).outcome(1.01), Outcome::Exceeded);
    }

    #[test]
    fn equal_arms_are_equal_by_a_two_sided_interval() {
        // scipy: the two-sided interval of these is 0.99689 to 1.00544
        assert!(equal(&[1.004, 0.998, 1.001, 1.006, 0.995, 1.003]));
        assert!(!equal(&[1.004, 1.005, 1.001, 1.006, 1.002, 1.003]));
        assert!(!equal(&[1.0]), "one block shows nothing");
    }

    #[test]
    fn blocks_for_a_power_equal_the_oracle() {
        // scipy: smallest n with t(0.95, n−1) + t(power, n−1) ≤ ln(margin) √n ÷ spread
        let table = [
            (0.005, [4, 5, 5]),
            (0.01, [8, 11, 13]),
            (0.02, [27, 37, 46]),
            (0.05, [158, 218, 276]),
        ];
        for (spread, expected) in table {
            let found = [0.8, 0.9, 0.95].map(|power| blocks_for(spread, 1.01, power));
            assert_eq!(found, expected.map(Some), "{spread}");
        }
        assert_eq!(blocks_for(0.0, 1.01, 0.9), Some(2));
        assert_eq!(blocks_for(0.01, 1.0, 0.9), None, "no room for noise");
    }

    /// Shares of experiments that are shown and that exceed the margin 1.01.
    /// Each has as many blocks as the power of 90 % takes.
    fn shares(true_ratio: f64, spread: f64) -> (f64, f64) {
        let normal = Normal::new(true_ratio.ln(), spread).expect("a distribution");
        let blocks = blocks_for(spread, 1.01, 0.9).expect("some");
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut drawn = || {
            // xorshift64*, a generator for made numbers
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
            normal
                .inverse_cdf((bits as f64 + 0.5) / (1_u64 << 53) as f64)
                .exp()
        };
        let (mut shown, mut exceeded, all) = (0.0, 0.0, 2_000);
        for _ in 0..all {
            let ratios: Vec<f64> = (0..blocks).map(|_| drawn()).collect();
            match trial(&ratios).expect("blocks").outcome(1.01) {
                Outcome::Shown => shown += 1.0,
                Outcome::Exceeded => exceeded += 1.0,
                Outcome::Open => (),
            }
        }
        (shown / f64::from(all), exceeded / f64::from(all))
    }

    #[test]
    fn the_gate_is_red_for_2_percent_and_green_for_none_at_the_declared_power() {
        for spread in [0.005, 0.01, 0.02] {
            let (green, red) = (shares(1.0, spread), shares(1.02, spread));
            assert!(green.0 >= 0.9 && green.1 < 0.001, "{spread}: {green:?}");
            assert!(red.1 >= 0.88 && red.0 < 0.001, "{spread}: {red:?}");
            // If the true ratio is the margin itself, one experiment in twenty is wrong.
            let edge = shares(1.01, spread);
            assert!((0.035..0.065).contains(&edge.0), "{spread}: {edge:?}");
        }
    }

    #[test]
    fn five_numbers_are_the_extremes_quartiles_and_median() {
        assert_eq!(
            five_numbers(&[5.0, 1.0, 4.0, 2.0, 3.0]),
            Some([1.0, 1.5, 3.0, 4.5, 5.0])
        );
        assert_eq!(five_numbers(&[1.0]), None);
    }
}
