//! Exact arithmetic for answers: sums are integers (ms), quotients are ratios of `i128`. Only the
//! output rounds, half away from zero, to four decimals. With floating point two readers would
//! differ in the last digit.

use std::cmp::Ordering;

/// Number of [`Ratio::round4`] units in 1.
pub const SCALE: i128 = 10_000;

/// An exact quotient. The denominator is positive.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    num: i128,
    den: i128,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio { num: 0, den: 1 };

    /// `num / den`, or `None` when `den` is not positive.
    pub fn new(num: i128, den: i128) -> Option<Ratio> {
        (den > 0).then_some(Ratio { num, den })
    }

    /// Ten-thousandths, rounded half away from zero.
    pub fn round4(self) -> i128 {
        self.rounded(SCALE)
    }

    /// The value times `scale`, rounded half away from zero to an integer.
    pub fn rounded(self, scale: i128) -> i128 {
        let twice = self.num.abs() * scale * 2;
        let rounded = (twice + self.den) / (self.den * 2);
        if self.num < 0 { -rounded } else { rounded }
    }

    /// The difference `self - other`.
    pub fn minus(self, other: Ratio) -> Ratio {
        let num = self.num * other.den - other.num * self.den;
        let den = self.den * other.den;
        Ratio { num, den }.reduced()
    }

    /// The absolute value.
    pub fn abs(self) -> Ratio {
        let num = self.num.abs();
        Ratio { num, ..self }
    }

    /// Interpolates between both: `self + (other - self) * per_mille / 1000`.
    fn between(self, other: Ratio, per_mille: i128) -> Ratio {
        if per_mille == 0 {
            return self;
        }
        let num = self.num * other.den * (1000 - per_mille) + other.num * self.den * per_mille;
        Ratio {
            num,
            den: 1000 * self.den * other.den,
        }
        .reduced()
    }

    fn reduced(self) -> Ratio {
        let (mut a, mut b) = (self.num.abs(), self.den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        if a <= 1 {
            return self;
        }
        Ratio {
            num: self.num / a,
            den: self.den / a,
        }
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    /// Compares large numbers without cross products, which could overflow: whole parts first, then
    /// the inverses of the remainders.
    fn cmp(&self, other: &Self) -> Ordering {
        if self.den == other.den {
            return self.num.cmp(&other.num);
        }
        let small = |n: i128| i64::try_from(n).is_ok();
        if [self.num, self.den, other.num, other.den]
            .into_iter()
            .all(small)
        {
            return (self.num * other.den).cmp(&(other.num * self.den));
        }
        let (mut a, mut b, mut c, mut d) = (self.num, self.den, other.num, other.den);
        let mut flip = false;
        loop {
            let order = a.div_euclid(b).cmp(&c.div_euclid(d));
            if order != Ordering::Equal {
                return if flip { order.reverse() } else { order };
            }
            (a, c) = (a.rem_euclid(b), c.rem_euclid(d));
            if a == 0 || c == 0 {
                let order = a.cmp(&c);
                return if flip { order.reverse() } else { order };
            }
            (a, b) = (b, a);
            (c, d) = (d, c);
            flip = !flip;
        }
    }
}

/// The 99th percentile; see [`percentile`].
pub fn p99<T: Copy + Ord>(
    present: Vec<T>,
    observed: usize,
    ratio: impl Fn(T) -> Ratio,
) -> Option<Ratio> {
    percentile(present, observed, 990, ratio)
}

/// True if so few of the observed values differ from zero that the 99th percentile is zero.
pub fn p99_is_zero(present: usize, observed: usize) -> bool {
    let zeros = observed.saturating_sub(present);
    position(observed, 990).is_none_or(|(low, _)| low + 1 < zeros)
}

/// Number of greatest values that determine the 99th percentile of `observed` values.
pub fn p99_needs(observed: usize) -> usize {
    observed / 100 + 2
}

/// Same as [`p99`] if only the greatest values are known. `greatest` has [`p99_needs`] of the
/// `present` values, or all of them.
pub fn p99_of_greatest(mut greatest: Vec<Ratio>, present: usize, observed: usize) -> Option<Ratio> {
    let (low, part) = position(observed, 990)?;
    let zeros = observed.saturating_sub(present);
    greatest.sort_unstable_by(|a, b| b.cmp(a));
    let at = |i: usize| match i < zeros {
        true => Ratio::ZERO,
        false => *greatest.get(observed - 1 - i).unwrap_or(&Ratio::ZERO),
    };
    Some(at(low).between(at((low + 1).min(observed - 1)), part))
}

/// Index of the lower neighbour of a percentile among the sorted values. The second number is the
/// percentile's distance from there to the next value, in thousandths. `None` without values.
fn position(observed: usize, per_mille: u128) -> Option<(usize, i128)> {
    let position = per_mille * (observed as u128).checked_sub(1)?;
    Some(((position / 1000) as usize, (position % 1000) as i128))
}

/// `percentile_cont(per_mille / 1000)` over `observed` values. `present` are the values that may
/// differ from zero; all others are zero. Values compare as their ratios do, and none is negative.
/// `None` if nothing was observed.
pub fn percentile<T: Copy + Ord>(
    mut present: Vec<T>,
    observed: usize,
    per_mille: u128,
    ratio: impl Fn(T) -> Ratio,
) -> Option<Ratio> {
    let (low, part) = position(observed, per_mille)?;
    let zeros = observed.saturating_sub(present.len());
    if low + 1 < zeros {
        return Some(Ratio::ZERO);
    }
    // The lower neighbour and the values above it must be in order; values below it need not be.
    let below = low.saturating_sub(zeros);
    if below < present.len() {
        present.select_nth_unstable(below);
        present[below..].sort_unstable();
    }
    let at = |i: usize| match i.checked_sub(zeros) {
        Some(i) => present.get(i).map_or(Ratio::ZERO, |value| ratio(*value)),
        None => Ratio::ZERO,
    };
    Some(at(low).between(at((low + 1).min(observed - 1)), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(num: i128, den: i128) -> Ratio {
        Ratio::new(num, den).unwrap_or(Ratio::ZERO)
    }

    #[test]
    fn rounds_half_away_from_zero() {
        assert_eq!(ratio(1, 20_000).round4(), 1);
        assert_eq!(ratio(-1, 20_000).round4(), -1);
        assert_eq!(ratio(1, 20_001).round4(), 0);
        assert_eq!(ratio(2, 3).round4(), 6667);
        assert_eq!(ratio(100, 6).round4(), 166_667);
    }

    #[test]
    fn compares_exactly_where_cross_products_overflow() {
        let big = 1_i128 << 100;
        assert_eq!(
            ratio(big + 1, big).cmp(&ratio(big, big - 1)),
            Ordering::Less
        );
        assert_eq!(ratio(3 * big, 2 * big), ratio(3, 2));
        assert!(ratio(-1, 2) < ratio(0, 1));
        assert!(ratio(-1, 2) > ratio(-2, 3));
    }

    #[test]
    fn p99_interpolates_like_percentile_cont() {
        let values = (1..=5).map(|v| ratio(v, 1)).collect();
        let same = |value| value;
        // The position is 0.99 * 4 = 3.96, so the percentile is 4 + 0.96.
        assert_eq!(p99(values, 5, same).map(Ratio::round4), Some(49_600));
        assert_eq!(
            p99(vec![ratio(7, 2)], 1, same).map(Ratio::round4),
            Some(35_000)
        );
    }

    #[test]
    fn p99_counts_absent_buckets_as_zero() {
        let same = |value: Ratio| value;
        // One of 60 buckets has a load. The position 58.41 lies between the loads 0 and 10.
        assert_eq!(
            p99(vec![ratio(10, 1)], 60, same).map(Ratio::round4),
            Some(41_000)
        );
        // In 200 buckets the position is 197.01, and both neighbours are zero.
        assert_eq!(
            p99(vec![ratio(10, 1)], 200, same).map(Ratio::round4),
            Some(0)
        );
        assert_eq!(p99(vec![], 3, same).map(Ratio::round4), Some(0));
        assert_eq!(p99(vec![], 0, same), None);
    }
}
