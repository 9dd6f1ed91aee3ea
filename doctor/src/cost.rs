//! The memory and the disk that tacho would take on a server without it, from measured figures.

use crate::facts::size;
use tacho_record::finding::Finding;

/// Bytes of shared memory at default settings (`pg_shmem_allocations`). Each further connection
/// adds 40 bytes, which are not counted here.
const MEMORY_BYTES: f64 = 81.9e6;
/// Bytes of a day without sessions: ticks, measurements of the server, statements of a
/// small server (`bench/results/sizes.md`, "A day of one recorded hour").
const BYTES_PER_DAY: f64 = 1.4e6;
/// Bytes of a day of a session that is active all the time: least and most of the measured days.
const BYTES_PER_DAY_OF_SESSION: [f64; 2] = [0.05e6, 0.5e6];
/// Bytes of a day of a statement that runs in every minute: 1,440 rows of 11.4 bytes
/// (`bench/results/statements_sizes.md`).
const DAY_OF_STATEMENT: f64 = 16.4e3;

/// The load of a server at this moment.
pub struct Load {
    /// Sessions that execute something.
    pub active: i64,
    /// True if `huge_pages` is on: shared memory is resident from the start.
    pub has_huge_pages: bool,
}

/// The memory and the disk that tacho will take.
pub fn estimate(load: Option<&Load>) -> Finding {
    let use_of_memory = match load.is_some_and(|load| load.has_huge_pages) {
        true => "all of it resident, as huge_pages is on",
        false => "resident as statements are recorded",
    };
    let memory = format!(
        "{} of shared memory at a restart, {use_of_memory}",
        size(MEMORY_BYTES)
    );
    let detail = match load {
        Some(load) => format!("{memory}; {}", of_day(load.active)),
        None => memory,
    };
    Finding::works("cost", detail)
}

fn of_day(active: i64) -> String {
    let [least, most] =
        BYTES_PER_DAY_OF_SESSION.map(|session| BYTES_PER_DAY + session * active as f64);
    format!(
        "{} to {} of history per day with {active} sessions active, as now, and {} for each statement that runs in every minute",
        size(least),
        size(most),
        size(DAY_OF_STATEMENT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_costs_by_its_sessions() {
        let load = |has_huge_pages| Load {
            active: 4,
            has_huge_pages,
        };
        assert_eq!(
            estimate(Some(&load(false))).detail,
            "81.9 MB of shared memory at a restart, resident as statements are recorded; 1.6 MB to 3.4 MB \
             of history per day with 4 sessions active, as now, \
             and 16.4 kB for each statement that runs in every minute"
        );
        assert!(
            estimate(Some(&load(true)))
                .detail
                .contains("all of it resident")
        );
        assert!(!estimate(None).detail.contains("per day"));
    }
}
