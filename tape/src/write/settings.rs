//! Identity and settings, which the writer takes from `meta` sections. Unknown keys are for
//! readers.

use crate::files::storage::Space;
use crate::format::part::Identity;
use std::path::PathBuf;

const MEGABYTE: u64 = 1 << 20;
const GIGABYTE: u64 = 1 << 30;
const DAY_S: u64 = 86_400;

/// Identity of the server, and the writer's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The server. Its node is the directory's.
    pub identity: Identity,
    /// Time between two syncs in ms.
    pub flush_interval_ms: u64,
    /// Age in seconds after which files are removed; 0 = never.
    pub retention_age_s: u64,
    /// Size of the directory in MB above which files are removed; 0 = no limit. A negative number
    /// means 4 GiB or 5 % of the file system, whichever is less.
    pub retention_size_mb: i64,
    /// Size in MB up to which unshipped files stay, even if age or size would remove them; 0 = they
    /// are removed like all others.
    pub retention_unshipped_mb: u64,
    /// Free space in MB that the history leaves to others; 0 = no limit, negative = 1 GiB. The
    /// default is not a share of the file system, because 5 % of 10 TB is more than any history
    /// could free.
    pub min_free_space_mb: i64,
    /// Age in seconds up to which statistics of statements stay as recorded; 0 = for ever.
    pub statements_full_age_s: u64,
    /// Age in seconds up to which statistics of statements have intervals of ten minutes; older
    /// ones have intervals of an hour.
    pub statements_ten_minutes_age_s: u64,
    /// Maximum size of query texts a day in KB; 0 = no limit.
    pub text_limit_kb: u64,
    /// Mode of the files.
    pub file_mode: u32,
    /// The sampler's reason why nothing was recorded before its current life. Without it, the
    /// writer derives a reason from the history.
    pub gap_reason: Option<String>,
    /// Time in ms between two measurements of the server's file systems; 0 = none.
    pub disk_interval_ms: u64,
    /// Data directory of the server; empty if it is not known.
    pub data_directory: PathBuf,
    /// True if `tacho record` started the writer. Then messages name its options instead of
    /// settings.
    pub by_recorder: bool,
}

/// Limits that messages and markers name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Age,
    Size,
    Space,
    /// Age or size, after unshipped files exceeded their limit.
    Unshipped,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            identity: Identity::default(),
            flush_interval_ms: 5_000,
            retention_age_s: 31_622_400,
            retention_size_mb: -1,
            retention_unshipped_mb: 0,
            min_free_space_mb: -1,
            statements_full_age_s: 14 * DAY_S,
            statements_ten_minutes_age_s: 60 * DAY_S,
            text_limit_kb: 16_384,
            file_mode: 0o600,
            gap_reason: None,
            disk_interval_ms: 0,
            data_directory: PathBuf::new(),
            by_recorder: false,
        }
    }
}

impl Settings {
    /// Sets one key. Returns false and changes nothing if the value of a known key is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> bool {
        fn take<T: std::str::FromStr>(field: &mut T, value: &str) -> bool {
            let parsed = value.parse().map(|v| *field = v);
            parsed.is_ok()
        }
        match key {
            "system_identifier" => take(&mut self.identity.system_identifier, value),
            "timeline" => take(&mut self.identity.timeline, value),
            "postmaster_start" => take(&mut self.identity.postmaster_start_us, value),
            "flush_interval_ms" => take(&mut self.flush_interval_ms, value),
            "retention_age_s" => take(&mut self.retention_age_s, value),
            "retention_size_mb" => take(&mut self.retention_size_mb, value),
            "retention_unshipped_mb" => take(&mut self.retention_unshipped_mb, value),
            "min_free_space_mb" => take(&mut self.min_free_space_mb, value),
            "statements_full_age_s" => take(&mut self.statements_full_age_s, value),
            "statements_ten_minutes_age_s" => take(&mut self.statements_ten_minutes_age_s, value),
            "gap_reason" => {
                self.gap_reason = Some(value.to_string());
                true
            }
            "disk_interval_ms" => take(&mut self.disk_interval_ms, value),
            "data_directory" => take(&mut self.data_directory, value),
            "started_by" => {
                self.by_recorder = value == "recorder";
                true
            }
            "text_limit_kb" => take(&mut self.text_limit_kb, value),
            "file_mode" => match u32::from_str_radix(value, 8) {
                Ok(mode) => {
                    self.file_mode = mode;
                    true
                }
                Err(_) => false,
            },
            _ => true,
        }
    }

    /// Maximum size of the directory in bytes; `None` = no limit.
    pub fn size_limit(&self, space: Space) -> Option<u64> {
        match self.retention_size_mb {
            0 => None,
            mb if mb < 0 => Some((4 * GIGABYTE).min(space.total / 20)),
            mb => Some(mb.unsigned_abs().saturating_mul(MEGABYTE)),
        }
    }

    /// Size of the directory in bytes up to which unshipped files stay; `None` if they are removed
    /// like all others.
    pub fn unshipped_limit(&self) -> Option<u64> {
        let mb = Some(self.retention_unshipped_mb).filter(|mb| *mb > 0)?;
        Some(mb.saturating_mul(MEGABYTE))
    }

    /// Interval and age in ms of each tier of the statistics of statements.
    pub fn statements_tiers(&self) -> Vec<(u64, i64)> {
        let ages = [
            self.statements_full_age_s,
            self.statements_ten_minutes_age_s,
        ];
        let tiers = [600_000, 3_600_000].into_iter().zip(ages);
        let ms = |age: u64| i64::try_from(age.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let used = tiers.filter(|tier| tier.1 > 0);
        used.map(|(interval, age)| (interval, ms(age))).collect()
    }

    /// Maximum length of texts in a merged file, in bytes.
    pub fn text_limit(&self) -> u64 {
        match self.text_limit_kb {
            0 => u64::MAX,
            kb => kb.saturating_mul(1024),
        }
    }

    /// Name of a limit: the setting, or the option of `tacho record`.
    pub(crate) fn name_of(&self, limit: Limit) -> &'static str {
        match (limit, self.by_recorder) {
            (Limit::Age, false) => "tacho.retention_age",
            (Limit::Size, false) => "tacho.retention_size",
            (Limit::Space, false) => "tacho.min_free_space",
            (Limit::Unshipped, false) => "tacho.retention_unshipped",
            (Limit::Age, true) => "--retention-age",
            (Limit::Size, true) => "--retention-size",
            (Limit::Space, true) => "--min-free-space",
            (Limit::Unshipped, true) => "--retention-unshipped",
        }
    }

    /// Minimum free space in bytes.
    pub fn free_limit(&self) -> u64 {
        match self.min_free_space_mb {
            mb if mb < 0 => GIGABYTE,
            mb => mb.unsigned_abs().saturating_mul(MEGABYTE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_set_their_field_and_bad_values_change_nothing() {
        let mut settings = Settings::default();
        assert!(settings.set("file_mode", "0640"));
        assert!(settings.set("retention_size_mb", "7"));
        assert!(settings.set("host", "db1"));
        assert!(!settings.set("flush_interval_ms", "soon"));
        assert_eq!(
            (settings.file_mode, settings.flush_interval_ms),
            (0o640, 5_000)
        );
        let space = Space {
            free: 0,
            total: 40 * GIGABYTE,
        };
        assert_eq!(settings.size_limit(space), Some(7 * MEGABYTE));
        assert_eq!(settings.free_limit(), GIGABYTE);
        assert_eq!(settings.unshipped_limit(), None);
        assert!(settings.set("retention_unshipped_mb", "9"));
        assert!(!settings.set("retention_unshipped_mb", "-1"));
        assert_eq!(settings.unshipped_limit(), Some(9 * MEGABYTE));
        assert!(settings.set("min_free_space_mb", "3"));
        assert_eq!(settings.free_limit(), 3 * MEGABYTE);
        assert!(settings.set("retention_size_mb", "-1"));
        assert_eq!(settings.size_limit(space), Some(2 * GIGABYTE));
    }
}
