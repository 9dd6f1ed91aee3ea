//! Markers for settings of the server whose values change: by a reload, at a start, or
//! while no recorder ran. A file beside the history keeps the values that were seen last.
//!
//! Settings of a role or a database count, too. Settings that the recorder gives its
//! own session do not.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tacho_dsn::Answer;

/// Between two looks.
const INTERVAL_MS: i64 = 10_000;
/// Name of the file in the directory of the history.
const FILE: &str = "recorder-settings.toml";
/// Shown for a setting without a value.
const NONE: &str = "(not set)";

/// String settings that are shown, by their names.
static SHOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("../../catalog/shown_settings.h").lines();
    let name = |line: &'static str| line.strip_prefix("SHOWN_SETTING(")?.strip_suffix(')');
    lines.filter_map(name).collect()
});

/// The value of a setting; one that may be a secret is known by a hash that holds for
/// this process alone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Shown(String),
    Hidden(u64),
    /// Hidden, and seen by a process before this one.
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

/// One row of the answer.
struct Row {
    /// `work_mem`, or `work_mem of role app`.
    name: String,
    /// Set for the whole server, not for a role or a database.
    is_server: bool,
    value: Value,
    /// File and line.
    place: Option<String>,
}

/// A change: when, and what.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub time_ms: i64,
    pub detail: String,
}

/// The settings as of the last look.
#[derive(Default)]
pub struct ChangedSettings {
    /// By name, as of the last look; nothing before the first one.
    known: Option<BTreeMap<String, Value>>,
    /// Hash of the server's answer: if it is the same again, the server leaves the rows out.
    digest: String,
    looked_ms: i64,
    interval: Option<i64>,
    hasher: RandomState,
    file: PathBuf,
}

/// Content of the file.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    system_identifier: String,
    looked_ms: i64,
    /// Settings whose values are not shown.
    hidden: Vec<String>,
    values: BTreeMap<String, String>,
}

impl ChangedSettings {
    /// With a file in the directory of the history.
    pub fn new(directory: &Path) -> ChangedSettings {
        ChangedSettings {
            file: directory.join(FILE),
            ..ChangedSettings::default()
        }
    }

    /// Another life of a server begins; of another server nothing is known, unless it
    /// is the one that was recorded before this process began.
    pub fn begin_life(&mut self, system_identifier: u64, is_another: bool) {
        self.interval = None;
        self.digest.clear();
        if is_another {
            self.known = None;
        } else if self.known.is_none()
            && let Some(kept) = read(&self.file)
            && kept.system_identifier == system_identifier.to_string()
        {
            let hidden = kept.hidden.into_iter().map(|name| (name, Value::Unknown));
            let shown = kept.values.into_iter();
            let shown = shown.map(|(name, value)| (name, Value::Shown(value)));
            self.known = Some(hidden.chain(shown).collect());
            self.looked_ms = kept.looked_ms;
        }
    }

    /// True when the server's clock has entered another interval.
    pub fn is_due(&mut self, server_ms: i64) -> bool {
        let interval = Some(server_ms.div_euclid(INTERVAL_MS));
        std::mem::replace(&mut self.interval, interval) != interval
    }

    /// Asks for all settings, unless they are what they were at the last look.
    pub fn question(&self) -> String {
        format!(
            "with s as materialized ( \
               select name, '' as scope, vartype, sourcefile || ':' || sourceline as place, \
                 case source when 'session' then reset_val || \
                     case when reset_val <> '0' then coalesce(unit, '') else '' end \
                   else current_setting(name, true) end as value \
               from pg_settings where context <> 'internal' and name not like 'transaction%' \
                 and source not in ('client', 'database', 'user', 'database user') \
               union all \
               select split_part(c, '=', 1), concat( \
                   ' of role ' || case setrole when 0 then null \
                     else coalesce(quote_ident(rolname), setrole::text) end, \
                   case setrole when 0 then ' of' else ' in' end || ' database ' || \
                     case setdatabase when 0 then null \
                       else coalesce(quote_ident(datname), setdatabase::text) end), \
                 (select vartype from pg_settings where name = split_part(c, '=', 1)), \
                 null, substr(c, strpos(c, '=') + 1) \
               from pg_db_role_setting left join pg_roles r on r.oid = setrole \
                 left join pg_database d on d.oid = setdatabase, unnest(setconfig) c), \
             d as (select coalesce(sum(hashtextextended(s::text, 0)), 0)::text as digest from s) \
             select digest, (date_part('epoch', pg_conf_load_time()) * 1e6)::int8 / 1000, \
               name, scope, vartype, place, value from d left join s on digest <> '{}'",
            self.digest
        )
    }

    /// Takes the answer: what has changed since the last look, if that was not the same.
    pub fn take(&mut self, answer: &Answer, server_ms: i64) -> Option<Vec<Change>> {
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
        let (name, scope) = (text(2)?, text(3).unwrap_or_default());
        let value = text(6).unwrap_or_default();
        let value = match is_shown(&name, &text(4).unwrap_or_default()) {
            true => Value::Shown(value),
            false => Value::Hidden(self.hasher.hash_one(&value)),
        };
        Some(Row {
            is_server: scope.is_empty(),
            name: name + &scope,
            value,
            place: text(5),
        })
    }

    /// A change of the server's own settings has the time at which its files were read,
    /// if that was since the last look.
    fn compare(&mut self, rows: Vec<Row>, loaded_ms: i64, server_ms: i64) -> Vec<Change> {
        let since_ms = std::mem::replace(&mut self.looked_ms, server_ms);
        let is_known = (since_ms..=server_ms).contains(&loaded_ms);
        let loaded_ms = if is_known { loaded_ms } else { server_ms };
        let Some(mut known) = self.known.take() else {
            self.known = Some(rows.into_iter().map(|row| (row.name, row.value)).collect());
            return Vec::new();
        };
        let mut now = BTreeMap::new();
        let mut changes = Vec::new();
        for row in rows {
            let before = known.remove(&row.name);
            let time_ms = if row.is_server { loaded_ms } else { server_ms };
            let has_changed = match &before {
                Some(before) => !before.is_same(&row.value),
                // a setting of the server that is new came with a version or a library
                None => !row.is_server,
            };
            if has_changed {
                let detail = told(&row, before.as_ref());
                changes.push(Change { time_ms, detail });
            }
            now.insert(row.name, row.value);
        }
        for (name, before) in known {
            match name.contains(' ') {
                // A session's own value may hide the server's.
                false => drop(now.insert(name, before)),
                true => changes.push(Change {
                    time_ms: server_ms,
                    detail: pair(&name, Some(&before), None),
                }),
            }
        }
        self.known = Some(now);
        changes
    }

    /// Keeps what was seen for the next process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, system_identifier: u64) -> io::Result<()> {
        let mut kept = Kept {
            system_identifier: system_identifier.to_string(),
            looked_ms: self.looked_ms,
            hidden: Vec::new(),
            values: BTreeMap::new(),
        };
        for (name, value) in self.known.iter().flatten() {
            match value {
                Value::Shown(value) => drop(kept.values.insert(name.clone(), value.clone())),
                _ => kept.hidden.push(name.clone()),
            }
        }
        let text = toml::to_string(&kept).map_err(io::Error::other)?;
        let fresh = self.file.with_extension("tmp");
        std::fs::write(&fresh, text)?;
        std::fs::rename(&fresh, &self.file)
    }
}

fn read(file: &Path) -> Option<Kept> {
    toml::from_str(&std::fs::read_to_string(file).ok()?).ok()
}

/// Whether markers show the values of a setting, by the rule of `shown_settings.h`.
fn is_shown(name: &str, vartype: &str) -> bool {
    let is_own = name.starts_with("tacho.");
    match vartype {
        _ if name.contains('.') && !is_own => false,
        "bool" | "integer" | "real" | "enum" => true,
        _ => SHOWN.contains(name),
    }
}

fn told(row: &Row, before: Option<&Value>) -> String {
    let pair = pair(&row.name, before, Some(&row.value));
    match &row.place {
        Some(place) => format!("{pair} ({place})"),
        None => pair,
    }
}

/// `name: old -> new`
fn pair(name: &str, before: Option<&Value>, now: Option<&Value>) -> String {
    let text = |value: Option<&Value>| match value {
        None => NONE.to_string(),
        Some(Value::Shown(text)) if text.is_empty() => "''".to_string(),
        Some(Value::Shown(text)) => text.clone(),
        Some(_) => "(not shown)".to_string(),
    };
    format!("{name}: {} -> {}", text(before), text(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: &str) -> Row {
        Row {
            name: name.to_string(),
            is_server: !name.contains(' '),
            value: Value::Shown(value.to_string()),
            place: None,
        }
    }

    /// Details and times of what has changed.
    fn look(seen: &mut ChangedSettings, rows: Vec<Row>, loaded_ms: i64, ms: i64) -> Vec<String> {
        let changes = seen.compare(rows, loaded_ms, ms);
        changes
            .iter()
            .map(|c| format!("{} {}", c.time_ms, c.detail))
            .collect()
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
            ["15 a: 1 -> 2 (/f:7)", "15 b: x -> ''"]
        );
        assert_eq!(look(&mut seen, of("2", "y"), 15, 30), ["30 b: '' -> y"]);
    }

    #[test]
    fn what_a_session_hides_is_not_forgotten_and_what_a_role_loses_is_told() {
        let mut seen = ChangedSettings::default();
        look(&mut seen, vec![row("a", "1")], 0, 10);
        let of_role = || row("a of role r", "2");
        assert_eq!(
            look(&mut seen, vec![of_role()], 0, 20),
            ["20 a of role r: (not set) -> 2"]
        );
        let back = vec![row("a", "3"), row("new", "4"), of_role()];
        assert_eq!(look(&mut seen, back, 0, 30), ["30 a: 1 -> 3"]);
        let less = vec![row("a", "3")];
        assert_eq!(
            look(&mut seen, less, 0, 40),
            ["40 a of role r: 2 -> (not set)"]
        );
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
            ["20 archive_command: (not shown) -> (not shown)"]
        );
        seen.known = Some([("archive_command".to_string(), Value::Unknown)].into());
        assert_eq!(look(&mut seen, vec![hidden(3)], 0, 30), [""; 0]);
    }
}
