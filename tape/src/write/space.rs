//! What to do when the file system has less free space than it should: remove
//! an old file, wait, or pause.
//!
//! Mostly somebody else fills the disk, and the history could not cure that.
//! So nothing is removed unless it covers what is lacking; one file a look,
//! counted by its known size, because the file system may tell of it late;
//! and never more than half of the history a day, whatever grows beside it.

/// Space of removed files may show up so much later.
const SETTLE_MS: i64 = 10_000;
/// Time in which at most half of the history is removed.
const DAY_MS: i64 = 86_400_000;

/// What a look at the free space leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// History can be written.
    Room,
    /// It can, once the oldest file is removed.
    RemoveOldest,
    /// The history cannot make the room that is lacking.
    Pause,
}

/// Files that may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removable {
    /// Bytes of all.
    pub(crate) bytes: u64,
    /// Bytes of the oldest; `None` = there is no file.
    pub(crate) oldest: Option<u64>,
}

/// Remembers what was removed for the sake of free space.
#[derive(Default)]
pub(crate) struct Guard {
    /// Since when, and how much within a day.
    removed: Option<(i64, u64)>,
    /// Still to be removed of what was lacking when this was seen first.
    owed: Option<u64>,
    /// So much was removed that there should be room from then on.
    settled_at: Option<i64>,
}

impl Guard {
    /// `lacking` = bytes that should be free and are not. The caller removes
    /// the oldest file when it is told so.
    pub(crate) fn look(&mut self, lacking: u64, files: Removable, mono_ms: i64) -> Verdict {
        if lacking == 0 {
            (self.owed, self.settled_at) = (None, None);
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
        let owed = self.owed.unwrap_or(lacking);
        let oldest = files.oldest.filter(|oldest| *oldest <= may && owed <= may);
        let Some(oldest) = oldest else {
            self.owed = None;
            return Verdict::Pause;
        };
        self.removed = Some((since, removed.saturating_add(oldest)));
        self.owed = Some(owed.saturating_sub(oldest)).filter(|owed| *owed > 0);
        if self.owed.is_none() {
            self.settled_at = Some(mono_ms.saturating_add(SETTLE_MS));
        }
        Verdict::RemoveOldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks once a second for so long; returns the sizes that were removed
    /// and the last verdict. `lacking` is told what was removed so far.
    fn looks(
        guard: &mut Guard,
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
            last = guard.look(lacks, files_now, second * 1_000);
            if last == Verdict::RemoveOldest {
                removed.push(files.remove(0));
            }
        }
        (removed, last)
    }

    #[test]
    fn what_the_history_cannot_cover_removes_nothing() {
        let (mut guard, mut files) = (Guard::default(), vec![10; 30]);
        let (removed, last) = looks(&mut guard, &mut files, 0..100, |_, _| 500);
        assert_eq!((removed, last), (vec![], Verdict::Pause));
        assert_eq!(
            guard.look(
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
    fn what_it_can_cover_is_removed_one_file_a_look() {
        let (mut guard, mut files) = (Guard::default(), vec![10; 30]);
        let cured = |_, removed| 25_u64.saturating_sub(removed);
        let (removed, last) = looks(&mut guard, &mut files, 0..100, cured);
        assert_eq!((removed, last), (vec![10; 3], Verdict::Room));
    }

    #[test]
    fn a_file_system_that_tells_late_costs_no_second_file() {
        let (mut guard, mut files) = (Guard::default(), vec![10; 30]);
        let late = |second, _| if second < 8 { 25 } else { 0 };
        let (removed, last) = looks(&mut guard, &mut files, 0..100, late);
        assert_eq!((removed, last), (vec![10; 3], Verdict::Room));
    }

    #[test]
    fn what_grows_beside_the_history_takes_half_of_it_a_day_at_most() {
        let (mut guard, mut files) = (Guard::default(), vec![10; 30]);
        let (removed, last) = looks(&mut guard, &mut files, 0..80_000, |_, _| 1);
        assert_eq!((removed, last), (vec![10; 15], Verdict::Pause));
        let (removed, _) = looks(&mut guard, &mut files, 80_000..160_000, |_, _| 1);
        assert_eq!(removed, vec![10; 7]);
    }

    #[test]
    fn without_files_there_is_nothing_but_a_pause() {
        let (mut guard, mut files) = (Guard::default(), Vec::new());
        let (removed, last) = looks(&mut guard, &mut files, 0..3, |_, _| 1);
        assert_eq!((removed, last), (vec![], Verdict::Pause));
        // One that is larger than half of all stays, too.
        files = vec![290, 10];
        let (removed, last) = looks(&mut guard, &mut files, 3..6, |_, _| 1);
        assert_eq!((removed, last), (vec![], Verdict::Pause));
    }
}
