//! Protects files that are not shipped yet from retention. The protection ends when the directory
//! reaches a limit, so a stopped `tacho-ship` cannot fill a disk.

use crate::files::shipped::shipped_until;
use crate::files::storage::Storage;
use crate::write::recover::Stored;
use crate::write::settings::Settings;

/// The files that are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unshipped {
    /// Files with numbers up to this one are not protected.
    until: u64,
    /// Size of the directory in bytes up to which the other files are protected.
    most: u64,
}

impl Unshipped {
    /// The current protection; `None` if the setting is off.
    pub(crate) fn read(storage: &dyn Storage, settings: &Settings) -> Option<Unshipped> {
        let most = settings.unshipped_limit()?;
        let until = shipped_until(storage);
        Some(Unshipped { until, most })
    }

    /// True if the file is protected until it is shipped.
    pub(crate) fn is_unshipped(&self, file: &Stored) -> bool {
        file.numbers.last > self.until
    }

    /// True if the file stays in a directory whose closed files have `bytes` bytes. An eighth of
    /// the limit is left for the current log and the file made of it.
    pub(crate) fn must_stay(&self, file: &Stored, bytes: u64) -> bool {
        self.is_unshipped(file) && bytes <= self.most - self.most / 8
    }

    /// Size limit of the directory in bytes while this file is in it.
    pub(crate) fn limit(&self, file: &Stored, limit: u64) -> u64 {
        match self.is_unshipped(file) {
            true => limit.max(self.most),
            false => limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::directory::{Kind, Numbers};
    use crate::testing::Random;

    fn file(first: u64, last: u64, bytes: u64) -> Stored {
        Stored {
            numbers: Numbers { first, last },
            kind: Kind::Sealed,
            bytes,
            times: None,
            identity: None,
            statements_ms: None,
        }
    }

    #[test]
    fn a_file_stays_while_one_of_its_numbers_is_not_shipped_and_all_is_less_than_the_bound() {
        let unshipped = Unshipped {
            until: 9,
            most: 800,
        };
        let stays = |first, last, bytes| unshipped.must_stay(&file(first, last, 1), bytes);
        assert!(stays(10, 10, 700) && stays(1, 10, 0));
        assert!(!stays(9, 9, 0) && !stays(1, 9, 0) && !stays(10, 10, 701));
        assert_eq!(
            [100, 900].map(|n| unshipped.limit(&file(10, 10, 1), n)),
            [800, 900]
        );
        assert_eq!(unshipped.limit(&file(9, 9, 1), 100), 100);
    }

    #[test]
    fn the_bound_holds_and_unshipped_files_below_it_stay() {
        let mut random = Random(7);
        for _ in 0..2_000 {
            let most = 1 + random.below(5_000);
            let unshipped = Unshipped {
                until: random.below(40),
                most,
            };
            let mut files: Vec<Stored> = (1..40).map(|n| file(n, n, random.below(400))).collect();
            let all = |files: &[Stored]| files.iter().map(|f| f.bytes).sum::<u64>();
            // Every file is older than `retention_age` allows.
            let mut lost = Vec::new();
            while files
                .first()
                .is_some_and(|f| !unshipped.must_stay(f, all(&files)))
            {
                let before = all(&files);
                lost.push((files.remove(0), before));
            }
            assert!(all(&files) <= most);
            for (file, before) in lost {
                assert!(file.numbers.last <= unshipped.until || before > most - most / 8);
            }
            assert!(files.iter().all(|f| f.numbers.last > unshipped.until));
        }
    }
}
