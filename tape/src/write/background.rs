//! Jobs that the writer runs in a thread of its own: sealing and merging. A panic there is an error
//! of this job only: the log stays as it is, readers can still read it, and the thread continues
//! with the next job.

use crate::error::{Result, supervised};
use crate::files::directory::{Kind, file_name};
use crate::files::storage::Storage;
use crate::write::merge::{MergeJob, Merged, merge};
use crate::write::recover::SealJob;
use crate::write::seal::{Sealed, seal_log};
use std::sync::atomic::AtomicBool;

/// First pause before a failed sealing is tried again; each further pause is twice as long, up to
/// [`LAST_RETRY_MS`].
const FIRST_RETRY_MS: i64 = 60_000;
const LAST_RETRY_MS: i64 = 3_600_000;

/// A job of [`crate::write::writer::Writer`].
pub enum Work {
    /// A log to be sealed.
    Seal(SealJob),
    /// Files to be merged.
    Merge(MergeJob),
}

/// Result of a job, for [`crate::write::writer::Writer::done`].
pub enum Done {
    /// A log and the result of sealing it.
    Seal(SealJob, Result<Sealed>),
    /// Files and the result of merging them.
    Merge(MergeJob, Result<Option<Merged>>),
}

/// Runs a job. It returns even if the job panics.
pub fn work(storage: &dyn Storage, work: Work, stop: &AtomicBool) -> Done {
    match work {
        Work::Seal(job) => {
            let seal = || seal_log(storage, job.number, job.until_sequence);
            let path = storage.directory().join(file_name(job.number, Kind::Log));
            let result = supervised("seal a log", seal);
            Done::Seal(job, result.map_err(|e| e.at(&path)))
        }
        Work::Merge(job) => {
            let result = supervised("merge files", || merge(storage, &job, stop));
            Done::Merge(job, result)
        }
    }
}

/// Logs that could not be sealed and will be tried again.
#[derive(Default)]
pub(crate) struct Retries(Vec<Retry>);

struct Retry {
    job: SealJob,
    wait_ms: i64,
    /// When to try again, in ms of the monotonic clock; `None` until the first look after a
    /// failure.
    due: Option<i64>,
    /// True if [`Retries::due`] has returned the job since its last failure.
    given: bool,
}

impl Retries {
    /// Notes a failed attempt.
    pub(crate) fn failed(&mut self, job: SealJob) {
        match self.0.iter_mut().find(|r| r.job == job) {
            Some(retry) => {
                retry.wait_ms = (retry.wait_ms * 2).min(LAST_RETRY_MS);
                (retry.due, retry.given) = (None, false);
            }
            None => self.0.push(Retry {
                job,
                wait_ms: FIRST_RETRY_MS,
                due: None,
                given: false,
            }),
        }
    }

    /// Forgets a log that is sealed, gone, or not to be tried again.
    pub(crate) fn forget(&mut self, number: u64) {
        self.0.retain(|r| r.job.number != number);
    }

    /// Logs to try again now. Each is returned once.
    pub(crate) fn due(&mut self, mono_ms: i64) -> Vec<SealJob> {
        let mut jobs = Vec::new();
        for retry in self.0.iter_mut().filter(|r| !r.given) {
            let due = mono_ms.saturating_add(retry.wait_ms);
            if mono_ms >= *retry.due.get_or_insert(due) {
                retry.given = true;
                jobs.push(retry.job);
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_repeated_ever_more_rarely() {
        let (mut retries, minute) = (Retries::default(), 60_000);
        let job = SealJob {
            number: 7,
            until_sequence: 9,
        };
        retries.failed(job);
        let mut given = Vec::new();
        for now in 0..300 {
            if !retries.due(now * minute).is_empty() {
                given.push(now);
                retries.failed(job);
            }
        }
        // The numbers are minutes. Each pause (1, 2, 4 … 60 minutes) begins with the first call of
        // `due` after the failure, a minute later.
        assert_eq!(given, [1, 4, 9, 18, 35, 68, 129, 190, 251]);
        retries.forget(7);
        assert_eq!(retries.due(i64::MAX), []);
    }
}
