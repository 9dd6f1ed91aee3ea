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
    pub(crate) fn look(storage: &dyn Storage, settings: &Settings) -> Option<Unshipped> {
        let most = settings.unshipped_limit()?;
        let until = shipped_until(storage);
        Some(Unshipped { until, most })
    }

    /// True if the file is protected until it is shipped.
    pub(crate) fn has(&self, file: &Stored) -> bool {
        file.numbers.last > self.until
    }

    /// True if the file stays in a directory whose closed files have `bytes` bytes. An eighth of
    /// the limit is left for the current log and the file made of it.
    pub(crate) fn keeps(&self, file: &Stored, bytes: u64) -> bool {
        self.has(file) && bytes <= self.most - self.most / 8
    }

    /// Size limit of the directory in bytes while this file is in it.
    pub(crate) fn limit(&self, file: &Stored, limit: u64) -> u64 {
        match self.has(file) {
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
        let held = Unshipped {
            until: 9,
            most: 800,
        };
        let keeps = |first, last, bytes| held.keeps(&file(first, last, 1), bytes);
        assert!(keeps(10, 10, 700) && keeps(1, 10, 0));
        assert!(!keeps(9, 9, 0) && !keeps(1, 9, 0) && !keeps(10, 10, 701));
        assert_eq!(
            [100, 900].map(|n| held.limit(&file(10, 10, 1), n)),
            [800, 900]
        );
        assert_eq!(held.limit(&file(9, 9, 1), 100), 100);
    }

    #[test]
    fn whatever_is_shipped_the_bound_holds_and_what_is_less_than_it_stays() {
        let mut random = Random(7);
        for _ in 0..2_000 {
            let most = 1 + random.below(5_000);
            let held = Unshipped {
                until: random.below(40),
                most,
            };
            let mut files: Vec<Stored> = (1..40).map(|n| file(n, n, random.below(400))).collect();
            let all = |files: &[Stored]| files.iter().map(|f| f.bytes).sum::<u64>();
            // Every file is too old.
            let mut lost = Vec::new();
            while files.first().is_some_and(|f| !held.keeps(f, all(&files))) {
                let before = all(&files);
                lost.push((files.remove(0), before));
            }
            assert!(all(&files) <= most);
            for (file, before) in lost {
                assert!(file.numbers.last <= held.until || before > most - most / 8);
            }
            assert!(files.iter().all(|f| f.numbers.last > held.until));
        }
    }
}
