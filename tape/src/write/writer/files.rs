//! Closed files: logs are sealed, sealed files merged and thinned, the oldest removed. The work is
//! done elsewhere ([`crate::write::background`]); the writer hands out jobs and takes their
//! results.

use super::{Message, Writer};
use crate::error::{self, Error, Result};
use crate::files::directory::{self, Kind, Numbers, file_name};
use crate::write::background::{Done, Work};
use crate::write::merge::{self, MergeJob, Merged};
use crate::write::recover::{SealJob, Stored};
use crate::write::seal::Sealed;
use crate::write::settings::Limit;
use crate::write::unshipped::Unshipped;

impl Writer {
    /// Jobs for [`crate::write::background::work`]. Each is returned once; its result must come
    /// back through [`Writer::done`].
    pub fn jobs(&mut self) -> Vec<Work> {
        let seal = self.seal_jobs().into_iter().map(Work::Seal);
        let mut jobs: Vec<Work> = seal.collect();
        jobs.extend(self.merge_job().map(Work::Merge));
        jobs
    }

    /// Takes the result of a job.
    pub fn done(&mut self, done: Done) {
        match done {
            Done::Seal(job, result) => self.sealed(job, result),
            Done::Merge(job, result) => self.merged(&job, result),
        }
    }

    /// Logs to seal with [`crate::write::seal::seal_log`]. Each is returned once; its result must
    /// come back through [`Writer::sealed`].
    pub fn seal_jobs(&mut self) -> Vec<SealJob> {
        std::mem::take(&mut self.jobs)
    }

    /// Takes the result of sealing a log. After a failure the log stays, and is sealed again after
    /// a pause. If it is damaged or caused a panic, only the next writer tries again.
    pub fn sealed(&mut self, job: SealJob, result: Result<Sealed>) {
        self.waiting_bytes.retain(|w| w.0 != job.number);
        // The new file replaces a damaged sealed file with this number.
        self.stored.retain(|s| s.numbers.first != job.number);
        self.unsealed.retain(|n| *n != job.number);
        self.may_merge = true;
        match &result {
            Err(error) if error.kind != error::Kind::Damaged => self.retries.failed(job),
            _ => self.retries.forget(job.number),
        }
        match result {
            Ok(sealed) => {
                self.report(job, &sealed);
                if let Some(info) = sealed.info {
                    let has_ticks = info.first_tick <= info.last_tick;
                    self.stored.push(Stored {
                        numbers: Numbers::one(job.number),
                        kind: Kind::Sealed,
                        bytes: sealed.bytes,
                        times: has_ticks.then_some((info.min_ms, info.max_ms)),
                        identity: Some(info.identity),
                        statements_ms: sealed.has_statements.then_some(info.statements_ms),
                    });
                }
            }
            Err(error) => {
                self.messages.push(Message::Error(error.to_string()));
                let files = directory::list(&*self.storage).unwrap_or_default();
                let mut logs = files.iter().filter(|f| f.kind == Kind::Log);
                let kept = logs.find(|f| f.numbers.first == job.number);
                if kept.is_none() {
                    self.retries.forget(job.number);
                }
                self.stored.extend(kept.map(|f| Stored {
                    numbers: f.numbers,
                    kind: f.kind,
                    bytes: f.bytes,
                    times: None,
                    identity: None,
                    statements_ms: None,
                }));
            }
        }
        self.stored.sort_by_key(|s| s.numbers);
        self.retain();
    }

    /// Files to merge with [`crate::write::merge::merge`], if there are any. Each job is returned
    /// once; its result must come back through [`Writer::merged`].
    pub fn merge_job(&mut self) -> Option<MergeJob> {
        if self.merging.is_some() || !std::mem::take(&mut self.may_merge) {
            return None;
        }
        let space = self.storage.space().ok();
        let limit = space.and_then(|s| self.settings.size_limit(s));
        let most = limit.map_or(u64::MAX, |limit| limit / 16);
        let unshipped = Unshipped::read(&*self.storage, &self.settings);
        let limit = limit.map(|limit| match (self.stored.first(), unshipped) {
            (Some(oldest), Some(unshipped)) => unshipped.limit(oldest, limit),
            _ => limit,
        });
        let job = merge::plan(&self.stored, self.node, most, &self.unsealed);
        let mut job = job.or_else(|| self.thin_job())?;
        job.text_limit = self.settings.text_limit();
        let bytes: u64 = self.parents(&job).map(|s| s.bytes).sum();
        let fits = limit.is_none_or(|limit| self.bytes() + bytes <= limit)
            && space.is_none_or(|s| s.free >= self.settings.free_limit().saturating_add(bytes));
        self.merging = fits.then_some(job);
        self.merging.clone()
    }

    #[cfg(test)]
    pub(crate) fn stored_files(&self) -> &[Stored] {
        &self.stored
    }

    fn thin_job(&self) -> Option<MergeJob> {
        let now_ms = crate::write::retention::reference_ms(&self.stored)?;
        let tiers = self.settings.statements_tiers();
        merge::plan_thin(&self.stored, self.node, now_ms, &tiers)
    }

    fn parents(&self, job: &MergeJob) -> impl Iterator<Item = &Stored> {
        let is_one = |s: &&Stored| job.files.contains(&s.numbers);
        self.stored.iter().filter(is_one)
    }

    /// Takes the result of merging. After a failure the files stay, and this writer does not merge
    /// them again. After a stop it may, and for lack of space it may after the next sealed log.
    pub fn merged(&mut self, job: &MergeJob, result: Result<Option<Merged>>) {
        self.merging = None;
        let all = job.numbers();
        match result {
            Ok(Some(merged)) => {
                let errors = merged.left.iter().map(|e| Message::Error(e.to_string()));
                self.messages.extend(errors);
                let made_of = |n: Numbers| n == all || all.replaces(n);
                self.stored.retain(|s| !made_of(s.numbers));
                self.stored.push(Stored {
                    numbers: all,
                    kind: Kind::Sealed,
                    bytes: merged.bytes,
                    times: merged.times,
                    identity: Some(merged.identity),
                    statements_ms: merged.statements_ms,
                });
                self.stored.sort_by_key(|s| s.numbers);
                self.may_merge = true;
                self.retain();
            }
            Ok(None) => (),
            Err(error) => {
                let message = format!("could not merge files: {error}");
                self.messages.push(Message::Warning(message));
                let is_renamed = self.note_renamed(all);
                if error.kind == error::Kind::NoSpace && !is_renamed {
                    return;
                }
                for stored in &mut self.stored {
                    if stored.numbers == all || all.replaces(stored.numbers) {
                        stored.identity = None;
                    }
                }
                self.may_merge = true;
            }
        }
    }

    /// Notes a merged file that was renamed before merging failed: readers take it, so retention must
    /// know it. Returns false if there is no such file.
    fn note_renamed(&mut self, all: Numbers) -> bool {
        let files = directory::list(&*self.storage).unwrap_or_default();
        let is_it = |f: &&directory::HistoryFile| f.kind == Kind::Sealed && f.numbers == all;
        let known = self.stored.iter().any(|s| s.numbers == all);
        let Some(file) = files.iter().find(is_it).filter(|_| !known) else {
            return false;
        };
        let parents = self.stored.iter().filter(|s| all.replaces(s.numbers));
        let times = parents.filter_map(|s| s.times);
        let times = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        self.stored.push(Stored {
            numbers: all,
            kind: Kind::Sealed,
            bytes: file.bytes,
            times,
            identity: None,
            statements_ms: None,
        });
        self.stored.sort_by_key(|s| s.numbers);
        true
    }

    fn report(&mut self, job: SealJob, sealed: &Sealed) {
        let name = file_name(job.number, Kind::Log);
        let path = self.storage.directory().join(name);
        for damage in &sealed.damage {
            self.messages.push(Message::Warning(format!(
                "skipped {} bytes at offset {} of \"{}\": {}",
                damage.bytes,
                damage.offset,
                path.display(),
                damage.reason
            )));
        }
    }

    /// Removes files that are too old or exceed the size limit, unless they must be shipped first.
    pub(super) fn retain(&mut self) {
        let unshipped = Unshipped::read(&*self.storage, &self.settings);
        let space = self.storage.space().ok();
        let limit = space.and_then(|s| self.settings.size_limit(s));
        // Leaves room for a log and for the sealed file made of it.
        let most = limit.map(|limit| limit - limit / 8);
        while most.is_some_and(|most| self.closed_bytes() > most)
            && self.retain_oldest(Limit::Size, unshipped)
        {}
        let age_ms = i64::try_from(self.settings.retention_age_s.saturating_mul(1_000));
        let age_ms = age_ms.unwrap_or(i64::MAX);
        if age_ms == 0 {
            return;
        }
        let Some(reference) = crate::write::retention::reference_ms(&self.stored) else {
            return;
        };
        let limit = reference.saturating_sub(age_ms);
        // A file without ticks is removed with the next other file. A file from a time when the clock
        // was ahead is, too.
        let is_credible = |times: &(i64, i64)| times.1 <= reference;
        while self
            .stored
            .iter()
            .find_map(|s| s.times.filter(is_credible))
            .is_some_and(|t| t.1 < limit)
            && self.retain_oldest(Limit::Age, unshipped)
        {}
    }

    /// Length of all files except the current log, in bytes.
    fn closed_bytes(&self) -> u64 {
        self.bytes() - self.log.as_ref().map_or(0, |l| l.bytes)
    }

    /// Removes the oldest file for this reason. Returns false if there is none, or if it stays
    /// until it is shipped.
    fn retain_oldest(&mut self, why: Limit, unshipped: Option<Unshipped>) -> bool {
        let oldest = self.stored.first().zip(unshipped);
        let Some((oldest, unshipped)) =
            oldest.filter(|(oldest, unshipped)| unshipped.is_unshipped(oldest))
        else {
            return self.remove_oldest(why, unshipped);
        };
        if unshipped.must_stay(oldest, self.closed_bytes()) {
            return false;
        }
        let name = oldest.numbers.name(oldest.kind);
        let path = self.storage.directory().join(name);
        self.messages.push(Message::Warning(format!(
            "removed the oldest history file \"{}\" before it was shipped: the history exceeds \"{}\"",
            path.display(),
            self.settings.name_of(Limit::Unshipped)
        )));
        self.remove_oldest(Limit::Unshipped, Some(unshipped))
    }

    /// Removes the oldest file; returns false if there is none. A file that cannot be removed is left to
    /// the next writer, since it must not hold back the files behind it.
    pub(super) fn remove_oldest(&mut self, why: Limit, unshipped: Option<Unshipped>) -> bool {
        if self.stored.is_empty() {
            return false;
        }
        let oldest = self.stored.remove(0);
        if oldest.kind == Kind::Log {
            self.retries.forget(oldest.numbers.first);
        }
        let name = oldest.numbers.name(oldest.kind);
        if let Err(error) = self.storage.remove(&name) {
            let path = self.storage.directory().join(name);
            let error = Error::io("remove file", &path, error);
            self.messages.push(Message::Error(error.to_string()));
        } else {
            let is_unshipped = unshipped.is_some_and(|unshipped| unshipped.is_unshipped(&oldest));
            self.removed.add(why, is_unshipped, &oldest);
        }
        true
    }
}
