//! Markers for settings of the server whose values change: by a reload, at a start, or while no
//! recorder ran. A file beside the history keeps the values last seen.
//!
//! Settings of roles and databases count. Settings that the recorder gives its own session do not.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tacho_dsn::Answer;

/// Time between two looks at the settings.
const INTERVAL_MS: i64 = 10_000;
/// Name of the file in the directory of the history.
const FILE: &str = "recorder-settings.toml";
/// Maximum number of markers for one look: a role may give itself any number of settings.
const MAX_MARKERS: usize = 240;
/// Maximum length of a value or a name in a marker, in bytes.
const MAX_VALUE_BYTES: usize = 1_000;

/// Names of the string settings whose values are shown.
static SHOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("../../catalog/shown_settings.h").lines();
    let name = |line: &'static str| line.strip_prefix("SHOWN_SETTING(")?.strip_suffix(')');
    lines.filter_map(name).collect()
});

/// The value of a setting. A value that may be a secret is kept as a hash, which only this process
/// can compare.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Shown(String),
    Hidden(u64),
    /// A hidden value that an earlier process has seen, so this one cannot compare it.
    Unknown,
}

impl Value {
    fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Unknown, Value::Hidden(_)) => true,
            _ => self == other,
        }
    }
}

/// A setting of the server, or of a role, a database, or a role in a database.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Setting {
    pub name: String,
    pub role: Option<String>,
    pub database: Option<String>,
}

impl Setting {
    fn is_server(&self) -> bool {
        self.role.is_none() && self.database.is_none()
    }
}

/// One row of the answer.
struct Row {
    setting: Setting,
    value: Value,
    /// Configuration file and line that the value comes from.
    place: Option<String>,
}

/// One change, as markers show it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub time_ms: i64,
    pub setting: Setting,
    /// The earlier value; `None` if the setting had none.
    pub old: Option<String>,
    pub new: Option<String>,
    /// File and line of the new value.
    pub place: Option<String>,
}

/// Changes found by one look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub listed: Vec<Change>,
    /// Number of changes beyond `MAX_MARKERS`.
    pub left_out: usize,
}

/// Settings at the last look.
#[derive(Default)]
pub struct ChangedSettings {
    /// `None` before the first look.
    known: Option<BTreeMap<Setting, Value>>,
    /// Hash over all settings, computed by the server. The next question contains it. If it has
    /// not changed, the answer contains no settings.
    digest: String,
    looked_ms: i64,
    interval: Option<i64>,
    hasher: RandomState,
    file: PathBuf,
}

/// Content of the file [`FILE`].
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedSettings {
    system_identifier: String,
    looked_ms: i64,
    settings: Vec<KeptSetting>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct KeptSetting {
    #[serde(flatten)]
    setting: Setting,
    /// `None`: the value is hidden.
    value: Option<String>,
}

impl ChangedSettings {
    /// Keeps the values in a file of `directory`, which holds the history.
    pub fn new(directory: &Path) -> ChangedSettings {
        ChangedSettings {
            file: directory.join(FILE),
            ..ChangedSettings::default()
        }
    }

    /// Begins another life of a server. For another server all values are forgotten. The first life
    /// in this process reads the file, if the file is of this server.
    pub fn begin_life(&mut self, system_identifier: u64, is_another: bool) {
        self.interval = None;
        self.digest.clear();
        if is_another {
            self.known = None;
        } else if self.known.is_none()
            && let Some(kept) = read(&self.file)
            && kept.system_identifier == system_identifier.to_string()
        {
            let known = |kept: KeptSetting| {
                let value = kept.value.map_or(Value::Unknown, Value::Shown);
                (kept.setting, value)
            };
            self.known = Some(kept.settings.into_iter().map(known).collect());
            self.looked_ms = kept.looked_ms;
        }
    }

    /// The system identifier of the server that was recorded here last; `None` if no file keeps it.
    pub fn earlier_system(&self) -> Option<u64> {
        read(&self.file)?.system_identifier.parse().ok()
    }

    /// True if the server's clock has entered another interval of `INTERVAL_MS`, so that a look is
    /// due.
    pub fn is_due(&mut self, server_ms: i64) -> bool {
        let interval = Some(server_ms.div_euclid(INTERVAL_MS));
        std::mem::replace(&mut self.interval, interval) != interval
    }

    /// The question for all settings. If nothing has changed, the answer is one row with the hash
    /// and the time of the last reload.
    pub fn question(&self) -> String {
        format!(
            "with s as materialized ( \
               select name, null as role, null as database, vartype, sourcefile || ':' || sourceline as place, \
                 case source when 'session' then reset_val || \
                     case when reset_val <> '0' then coalesce(unit, '') else '' end \
                   else current_setting(name, true) end as value \
               from pg_settings where context <> 'internal' \
                 and name not in ('transaction_isolation', 'transaction_read_only', \
                   'transaction_deferrable') \
                 and source not in ('client', 'database', 'user', 'database user') \
               union all \
               select split_part(c, '=', 1), \
                 case setrole when 0 then null else coalesce(rolname::text, setrole::text) end, \
                 case setdatabase when 0 then null \
                   else coalesce(datname::text, setdatabase::text) end, \
                 (select vartype from pg_settings where name = split_part(c, '=', 1)), \
                 null, substr(c, strpos(c, '=') + 1) \
               from pg_db_role_setting left join pg_roles r on r.oid = setrole \
                 left join pg_database d on d.oid = setdatabase, unnest(setconfig) c), \
             d as (select coalesce(sum(hashtextextended(s::text, 0)), 0)::text as digest from s) \
             select digest, (date_part('epoch', pg_conf_load_time()) * 1e6)::int8 / 1000, \
               name, role, database, vartype, place, value from d left join s on digest <> '{}'",
            self.digest
        )
    }

    /// Takes the answer: the changes since the last look, `None` if the answer is the same.
    pub fn take(&mut self, answer: &Answer, server_ms: i64) -> Option<Changes> {
        let digest = answer.text(0, 0).unwrap_or_default().to_string();
        let loaded_ms = answer.number(0, 1).unwrap_or(0);
        if digest == self.digest {
            self.looked_ms = server_ms;
            return None;
        }
        self.digest = digest;
        let rows = (0..answer.rows()).filter_map(|row| self.row(answer, row));
        let rows: Vec<Row> = rows.collect();
        Some(self.compare(rows, loaded_ms, server_ms))
    }

    fn row(&self, answer: &Answer, row: usize) -> Option<Row> {
        let text = |column| {
            let bytes = answer.bytes(row, column)?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        let setting = Setting {
            name: text(2)?,
            role: text(3),
            database: text(4),
        };
        let value = text(7).unwrap_or_default();
        let value = match is_shown(&setting.name, &text(5).unwrap_or_default()) {
            true => Value::Shown(value),
            false => Value::Hidden(self.hasher.hash_one(&value)),
        };
        let place = text(6);
        Some(Row {
            setting,
            value,
            place,
        })
    }

    /// Compares the settings with the last look. A changed setting of the server gets the time at
    /// which the server read its configuration files, if that was after the last look. All other
    /// changes (of roles and databases too) get the time of this look.
    fn compare(&mut self, rows: Vec<Row>, loaded_ms: i64, server_ms: i64) -> Changes {
        let since_ms = std::mem::replace(&mut self.looked_ms, server_ms);
        let is_known = (since_ms..=server_ms).contains(&loaded_ms);
        let loaded_ms = if is_known { loaded_ms } else { server_ms };
        let Some(mut known) = self.known.take() else {
            let rows = rows.into_iter();
            self.known = Some(rows.map(|row| (row.setting, row.value)).collect());
            return Changes::default();
        };
        let mut now = BTreeMap::new();
        let mut changes = Changes::default();
        for row in rows {
            let before = known.remove(&row.setting);
            let is_server = row.setting.is_server();
            let has_changed = match &before {
                Some(before) => !before.is_same(&row.value),
                // A new setting of the server came with a version or a library: that is no change.
                None => !is_server,
            };
            if has_changed {
                changes.add(|| Change {
                    time_ms: if is_server { loaded_ms } else { server_ms },
                    setting: row.setting.clone(),
                    old: before.as_ref().map(shown),
                    new: Some(shown(&row.value)),
                    place: row.place,
                });
            }
            now.insert(row.setting, row.value);
        }
        for (setting, before) in known {
            match setting.is_server() {
                // The session's own value may hide the server's value.
                true => drop(now.insert(setting, before)),
                false => changes.add(|| Change {
                    time_ms: server_ms,
                    setting,
                    old: Some(shown(&before)),
                    ..Change::default()
                }),
            }
        }
        self.known = Some(now);
        changes
    }

    /// Writes the values to the file, for the next process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, system_identifier: u64) -> io::Result<()> {
        let mut kept = SavedSettings {
            system_identifier: system_identifier.to_string(),
            looked_ms: self.looked_ms,
            settings: Vec::new(),
        };
        for (setting, value) in self.known.iter().flatten() {
            let value = match value {
                Value::Shown(value) => Some(value.clone()),
                _ => None,
            };
            let setting = setting.clone();
            kept.settings.push(KeptSetting { setting, value });
        }
        let text = toml::to_string(&kept).map_err(io::Error::other)?;
        let fresh = self.file.with_extension("tmp");
        std::fs::write(&fresh, text)?;
        std::fs::rename(&fresh, &self.file)
    }
}

fn read(file: &Path) -> Option<SavedSettings> {
    toml::from_str(&std::fs::read_to_string(file).ok()?).ok()
}

/// Whether markers show the values of a setting; the rule is in `shown_settings.h`.
fn is_shown(name: &str, vartype: &str) -> bool {
    let is_own = name.starts_with("tacho.");
    match vartype {
        _ if name.contains('.') && !is_own => false,
        "bool" | "integer" | "real" | "enum" => true,
        _ => SHOWN.contains(name),
    }
}

impl Changes {
    fn add(&mut self, change: impl FnOnce() -> Change) {
        match self.listed.len() < MAX_MARKERS {
            true => self.listed.push(change()),
            false => self.left_out += 1,
        }
    }
}

/// A value as markers show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Shown(text) if text.is_empty() => "''".to_string(),
        Value::Shown(text) => cut(text).into_owned(),
        _ => "(not shown)".to_string(),
    }
}

/// Cuts a text of more than `MAX_VALUE_BYTES` bytes and appends its length: `abc... (1200 bytes)`.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_VALUE_BYTES {
        return text.into();
    }
    let is_boundary = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=MAX_VALUE_BYTES).rev().find(is_boundary).unwrap_or(0);
    format!("{}... ({} bytes)", &text[..end], text.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting of the server; `name@role` is a setting of that role.
    fn row(name: &str, value: &str) -> Row {
        let (name, role) = match name.split_once('@') {
            Some((name, role)) => (name, Some(role.to_string())),
            None => (name, None),
        };
        Row {
            setting: Setting {
                name: name.to_string(),
                role,
                database: None,
            },
            value: Value::Shown(value.to_string()),
            place: None,
        }
    }

    /// Time, setting and values of what has changed.
    fn look(seen: &mut ChangedSettings, rows: Vec<Row>, loaded_ms: i64, ms: i64) -> Vec<String> {
        let changes = seen.compare(rows, loaded_ms, ms);
        let text = |c: &Change| {
            let role = c.setting.role.as_deref().unwrap_or("-");
            let value = |value: &Option<String>| value.clone().unwrap_or("null".to_string());
            let (old, new, place) = (value(&c.old), value(&c.new), value(&c.place));
            format!(
                "{} {} {role} {old} {new} {place}",
                c.time_ms, c.setting.name
            )
        };
        changes.listed.iter().map(text).collect()
    }

    #[test]
    fn a_change_has_the_time_at_which_it_was_loaded() {
        let mut seen = ChangedSettings::default();
        let of = |a: &str, b: &str| vec![row("a", a), row("b", b)];
        assert_eq!(look(&mut seen, of("1", "x"), 5, 10), [""; 0]);
        let mut rows = of("2", "");
        rows[0].place = Some("/f:7".to_string());
        assert_eq!(
            look(&mut seen, rows, 15, 20),
            ["15 a - 1 2 /f:7", "15 b - x '' null"]
        );
        assert_eq!(look(&mut seen, of("2", "y"), 15, 30), ["30 b - '' y null"]);
    }

    #[test]
    fn a_hidden_setting_is_kept_and_a_lost_one_of_a_role_is_reported() {
        let mut seen = ChangedSettings::default();
        look(&mut seen, vec![row("a", "1")], 0, 10);
        let of_role = || row("a@r", "2");
        assert_eq!(
            look(&mut seen, vec![of_role()], 0, 20),
            ["20 a r null 2 null"]
        );
        let back = vec![row("a", "3"), row("new", "4"), of_role()];
        assert_eq!(look(&mut seen, back, 0, 30), ["30 a - 1 3 null"]);
        let less = vec![row("a", "3")];
        assert_eq!(look(&mut seen, less, 0, 40), ["40 a r 2 null null"]);
    }

    #[test]
    fn values_that_may_be_secrets_are_not_told() {
        assert!(is_shown("work_mem", "integer"));
        assert!(is_shown("synchronous_standby_names", "string"));
        assert!(is_shown("TimeZone", "string"));
        assert!(is_shown("tacho.sample_interval", "integer"));
        for name in ["primary_conninfo", "archive_command", "restore_command"] {
            assert!(!is_shown(name, "string"));
        }
        assert!(!is_shown("app.key", "") && !is_shown("other.pin", "integer"));
        let hidden = |hash| Row {
            value: Value::Hidden(hash),
            ..row("archive_command", "")
        };
        let mut seen = ChangedSettings::default();
        look(&mut seen, vec![hidden(1)], 0, 10);
        assert_eq!(
            look(&mut seen, vec![hidden(2)], 0, 20),
            ["20 archive_command - (not shown) (not shown) null"]
        );
        seen.known = Some([(row("archive_command", "").setting, Value::Unknown)].into());
        assert_eq!(look(&mut seen, vec![hidden(3)], 0, 30), [""; 0]);
    }

    #[test]
    fn a_long_value_is_cut_and_a_look_tells_a_bounded_number() {
        assert_eq!(cut("4MB"), "4MB");
        let long = "ü".repeat(600);
        assert_eq!(cut(&long), format!("{}... (1200 bytes)", "ü".repeat(500)));
        let mut seen = ChangedSettings::default();
        look(&mut seen, Vec::new(), 0, 10);
        let many = |_| (0..250).map(|n| row(&format!("a{n}@r"), "1")).collect();
        let changes = seen.compare(many(()), 0, 20);
        assert_eq!((changes.listed.len(), changes.left_out), (240, 10));
        assert_eq!(seen.compare(many(()), 0, 30), Changes::default());
    }

    #[test]
    fn the_next_process_knows_the_kept_settings() {
        let directory = std::env::temp_dir().join(format!("tacho-kept-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut seen = ChangedSettings::new(&directory);
        let rows = || {
            let hidden = Row {
                value: Value::Hidden(1),
                ..row("archive_command", "")
            };
            vec![row("a", "1"), row("a@r of role s", "2"), hidden]
        };
        look(&mut seen, rows(), 0, 10);
        seen.keep(7).unwrap();
        let mut next = ChangedSettings::new(&directory);
        next.begin_life(7, false);
        let mut changed = rows();
        changed[1].value = Value::Shown("3".to_string());
        assert_eq!(
            look(&mut next, changed, 0, 20),
            ["20 a r of role s 2 3 null"]
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
