//! Decides what to do if the file system has too little free space: remove an old file, wait, or
//! pause.
//!
//! Usually something other than the history fills the disk, and removing history would not help. So
//! nothing is removed unless it can free all that is lacking. Each look removes one file and counts
//! its known size, because the file system may report the freed space late. No more than half of
//! the history is removed in a day, however much the rest grows.

/// Longest time in ms until the file system reports the space of a removed file as free. Some free
/// it in the background, or when the last reader closes the file.
const SETTLE_MS: i64 = 10_000;
/// Time in ms in which at most half of the history is removed.
const DAY_MS: i64 = 86_400_000;

/// Decision after a look at the free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There is enough space, or the space of removed files should become free soon.
    Room,
    /// The oldest file must be removed, then recording continues.
    RemoveOldest,
    /// The history cannot free the lacking space.
    Pause,
}

/// Files that may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removable {
    /// Bytes of all files.
    pub(crate) bytes: u64,
    /// Bytes of the oldest file; `None` if there is no file.
    pub(crate) oldest: Option<u64>,
}

/// Remembers the files that were removed to free space.
#[derive(Default)]
pub(crate) struct SpaceGuard {
    /// Start of the day in which files were removed (monotonic clock, ms), and their bytes.
    removed: Option<(i64, u64)>,
    /// Bytes still to be removed for the lack seen first.
    still_to_remove: Option<u64>,
    /// Monotonic time in ms at which the space of all removed files should be free.
    settled_at: Option<i64>,
}

impl SpaceGuard {
    /// Decides. `lacking` are the bytes that should be free but are not. The caller removes the
    /// oldest file after [`Verdict::RemoveOldest`].
    pub(crate) fn decide(&mut self, lacking: u64, files: Removable, mono_ms: i64) -> Verdict {
        if lacking == 0 {
            (self.still_to_remove, self.settled_at) = (None, None);
            return Verdict::Room;
        }
        if self.settled_at.is_some_and(|at| mono_ms < at) {
            return Verdict::Room;
        }
        self.settled_at = None;
        let day = self.removed.filter(|r| mono_ms - r.0 < DAY_MS);
        let (since, removed) = day.unwrap_or((mono_ms, 0));
        let half = files.bytes.saturating_add(removed) / 2;
        let may = half.saturating_sub(removed);
        let still_to_remove = self.still_to_remove.unwrap_or(lacking);
        let oldest = files
            .oldest
            .filter(|oldest| *oldest <= may && still_to_remove <= may);
        let Some(oldest) = oldest else {
            self.still_to_remove = None;
            return Verdict::Pause;
        };
        self.removed = Some((since, removed.saturating_add(oldest)));
        self.still_to_remove = Some(still_to_remove.saturating_sub(oldest))
            .filter(|still_to_remove| *still_to_remove > 0);
        if self.still_to_remove.is_none() {
            self.settled_at = Some(mono_ms.saturating_add(SETTLE_MS));
        }
        Verdict::RemoveOldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks once a second during `seconds`. Returns the removed sizes and the last verdict.
    /// `lacking` gets the time and the bytes removed so far.
    fn looks(
        guard: &mut SpaceGuard,
        files: &mut Vec<u64>,
        seconds: std::ops::Range<i64>,
        lacking: impl Fn(i64, u64) -> u64,
    ) -> (Vec<u64>, Verdict) {
        let (mut removed, mut last) = (Vec::new(), Verdict::Room);
        for second in seconds {
            let files_now = Removable {
                bytes: files.iter().sum(),
                oldest: files.first().copied(),
            };
            let lacks = lacking(second, removed.iter().sum());
            last = guard.decide(lacks, files_now, second * 1_000);
            if last == Verdict::RemoveOldest {
                removed.push(files.remove(0));
            }
        }
        (removed, last)
    }

    #[test]
    fn a_shortage_beyond_the_history_removes_nothing() {
        let (mut guard, mut files) = (SpaceGuard::default(), vec![10; 30]);
        let (removed, last) = looks(&mut guard, &mut files, 0..100, |_, _| 500);
        assert_eq!((removed, last), (vec![], Verdict::Pause));
        assert_eq!(
            guard.decide(
                0,
                Removable {
                    bytes: 300,
                    oldest: Some(10)
                },
                100_000
            ),
            Verdict::Room
        );
    }

    #[test]
    fn a_shortage_within_the_history_removes_one_file_a_look() {
        let (mut guard, mut files) = (SpaceGuard::default(), vec![10; 30]);
        let cured = |_, removed| 25_u64.saturating_sub(removed);
        let (removed, last) = looks(&mut guard, &mut files, 0..100, cured);
        assert_eq!((removed, last), (vec![10; 3], Verdict::Room));
    }

    #[test]
    fn a_file_system_that_tells_late_costs_no_second_file() {
        let (mut guard, mut files) = (SpaceGuard::default(), vec![10; 30]);
        let late = |second, _| if second < 8 { 25 } else { 0 };
        let (removed, last) = looks(&mut guard, &mut files, 0..100, late);
        assert_eq!((removed, last), (vec![10; 3], Verdict::Room));
    }

    #[test]
    fn growth_of_other_files_takes_at_most_half_the_history_a_day() {
        let (mut guard, mut files) = (SpaceGuard::default(), vec![10; 30]);
        let (removed, last) = looks(&mut guard, &mut files, 0..80_000, |_, _| 1);
        assert_eq!((removed, last), (vec![10; 15], Verdict::Pause));
        let (removed, _) = looks(&mut guard, &mut files, 80_000..160_000, |_, _| 1);
        assert_eq!(removed, vec![10; 7]);
    }

    #[test]
    fn without_files_recording_only_pauses() {
        let (mut guard, mut files) = (SpaceGuard::default(), Vec::new());
        let (removed, last) = looks(&mut guard, &mut files, 0..3, |_, _| 1);
        assert_eq!((removed, last), (vec![], Verdict::Pause));
        // A file that is larger than half of the history also stays.
        files = vec![290, 10];
        let (removed, last) = looks(&mut guard, &mut files, 3..6, |_, _| 1);
        assert_eq!((removed, last), (vec![], Verdict::Pause));
    }
}
