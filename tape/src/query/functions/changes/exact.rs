//! Rounds the parts of a sum so that they add up to the rounded sum.

use crate::query::value::number::Ratio;

/// Rounds each of `numbers / den` to a multiple of `1 / scale`. All are rounded down first. The
/// units that are then missing in the rounded sum go to the parts with the greatest remainders.
/// Among equal remainders the first part gets a unit first.
///
/// Example: thirds of 100 to whole numbers are 34, 33 and 33.
pub fn apportioned(numbers: &[i128], den: i128, scale: i128) -> Vec<i128> {
    let Some(whole) = Ratio::new(numbers.iter().sum(), den) else {
        return vec![0; numbers.len()];
    };
    let mut parts: Vec<i128> = numbers
        .iter()
        .map(|n| (n * scale).div_euclid(den))
        .collect();
    let mut left = whole.rounded(scale) - parts.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse((numbers[at] * scale).rem_euclid(den)), at));
    for at in order {
        if left <= 0 {
            break;
        }
        parts[at] += 1;
        left -= 1;
    }
    parts
}

/// The share of each part in the sum: percent, in ten-thousandths. The shares add
/// up to 100 exactly. `None` if the sum is zero.
pub fn percentages(parts: &[i128]) -> Option<Vec<i128>> {
    let sum: i128 = parts.iter().sum();
    let signed: Vec<i128> = parts.iter().map(|part| part * sum.signum() * 100).collect();
    (sum != 0).then(|| apportioned(&signed, sum.abs(), 10_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_rounded_sum() {
        assert_eq!(apportioned(&[100, 100, 100], 3, 1), [34, 33, 33]);
        assert_eq!(apportioned(&[1, 1], 3, 10_000), [3334, 3333]);
        assert_eq!(apportioned(&[], 3, 10_000), []);
        assert_eq!(apportioned(&[0, 7], 0, 10_000), [0, 0]);
        for den in [7, 60_000, 3_599_900] {
            let numbers = [1, 59_999, 123_457, 7, 31, 899_999, 0];
            let sum: i128 = apportioned(&numbers, den, 10_000).iter().sum();
            let whole = Ratio::new(numbers.iter().sum(), den).unwrap();
            assert_eq!(sum, whole.round4(), "{den}");
        }
    }

    #[test]
    fn percentages_of_any_sign_add_up_to_a_hundred() {
        let sum = |parts: &[i128]| percentages(parts).unwrap().iter().sum::<i128>();
        assert_eq!(sum(&[1, 1, 1]), 1_000_000);
        assert_eq!(sum(&[5, -2, 4, -9, 8]), 1_000_000);
        assert_eq!(sum(&[-5, 2, -4, 9, -8]), 1_000_000);
        assert_eq!(percentages(&[-1, -3]), Some(vec![250_000, 750_000]));
        assert_eq!(percentages(&[3, -1]), Some(vec![1_500_000, -500_000]));
        assert_eq!(percentages(&[3, -3]), None);
    }
}
