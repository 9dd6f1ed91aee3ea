//! The time from which the age of files is counted.

use crate::write::recover::Stored;

/// A forward jump of the clock by more than this many ms is not trusted for a day.
const JUMP_MS: i64 = 3_600_000;
/// Length of history after a jump, in ms, that makes the jump trusted.
const DAY_MS: i64 = 86_400_000;

/// The last slot time of the files, which are given oldest first. If the clock jumped forward and
/// less than a day of history follows, it is the last slot time before the jump. Therefore a clock
/// that is a year ahead deletes nothing. `None` without ticks.
pub fn reference_ms(stored: &[Stored]) -> Option<i64> {
    let times: Vec<(i64, i64)> = stored.iter().filter_map(|s| s.times).collect();
    let mut reference = times.last()?.1;
    let mut behind: i64 = 0;
    for pair in times.windows(2).rev() {
        let [(_, before), (min, max)] = [pair[0], pair[1]];
        behind = max.saturating_sub(min).saturating_add(behind);
        if behind >= DAY_MS {
            break;
        }
        if min.saturating_sub(before) > JUMP_MS {
            reference = reference.min(before);
        }
    }
    Some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::directory::{Kind, Numbers};

    fn stored(times: &[(i64, i64)]) -> Vec<Stored> {
        let file = |(i, &times): (usize, &(i64, i64))| Stored {
            numbers: Numbers::one(i as u64),
            kind: Kind::Sealed,
            bytes: 1,
            times: Some(times),
            identity: None,
            statements_ms: None,
        };
        times.iter().enumerate().map(file).collect()
    }

    #[test]
    fn a_clock_a_year_ahead_is_believed_after_a_day_of_history() {
        let year = 365 * DAY_MS;
        let hour = 3_600_000;
        assert_eq!(reference_ms(&[]), None);
        assert_eq!(reference_ms(&stored(&[(0, 10), (11, 20)])), Some(20));
        let mut times = vec![(0, hour), (year, year + hour)];
        assert_eq!(reference_ms(&stored(&times)), Some(hour));
        times.push((year + hour, year + 23 * hour));
        assert_eq!(reference_ms(&stored(&times)), Some(hour));
        times.push((year + 23 * hour, year + 25 * hour));
        assert_eq!(reference_ms(&stored(&times)), Some(year + 25 * hour));
    }

    #[test]
    fn times_at_the_ends_of_all_times_do_not_overflow() {
        let ends = stored(&[(i64::MIN, 5), (i64::MIN, i64::MAX), (7, 9)]);
        assert_eq!(reference_ms(&ends), Some(9));
        let jump = stored(&[(i64::MIN, i64::MIN), (i64::MAX, i64::MAX)]);
        assert_eq!(reference_ms(&jump), Some(i64::MIN));
    }

    #[test]
    fn a_clock_set_back_counts_from_its_new_time() {
        assert_eq!(reference_ms(&stored(&[(500, 900), (100, 300)])), Some(300));
    }
}
