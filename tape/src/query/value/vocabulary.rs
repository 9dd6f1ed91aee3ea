//! All knowledge of PostgreSQL in the query engine: which samples are load, the names of samples
//! without a wait event, and labels of missing keys. The rest of the crate sees only tables and
//! columns.

use super::error::{QueryError, QueryResult};
use super::filter::Filter;
use crate::format::schema::Schema;

/// Selects the samples that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Foreground sessions that work or wait for anything except their client.
    Load,
    /// Foreground sessions in any state except idle.
    Foreground,
    /// Every session.
    All,
}

/// Table of wait events, and the column of `run` that refers to it.
pub const WAIT: &str = "wait";
/// Class of a wait event.
pub const WAIT_TYPE: &str = "wait_event_type";
/// Class and name of a wait event.
pub const WAIT_EVENT: &str = "wait_event";
/// Kind of on-CPU activity, in samples without a wait event.
pub const CPU: &str = "cpu";
/// State of a session.
pub const STATE: &str = "state";
/// Category of a session.
pub const CATEGORY: &str = "category";
/// The blockers of a session.
pub const BLOCKED_BY: &str = "blocked_by";
/// The session at the head of the queue that a session waits in; derived.
pub const ROOT_BLOCKER: &str = "root_blocker";
/// Query identifier.
pub const QUERY_ID: &str = "query_id";
/// All tags from the comment of a statement, such as `controller=orders,action=show`.
pub const TAGS: &str = "tags";
/// Begin of the name of a dimension that is one key of the tags, such as `tag:controller`.
pub const TAG: &str = "tag:";
/// Leader of a parallel worker.
pub const LEADER: &str = "leader";
/// Role of a session.
pub const USERNAME: &str = "username";

/// Key of sessions in a cycle of blockers.
pub const CYCLE: &str = "(cycle)";
/// Key that sums up all keys after the largest ones.
pub const OTHER: &str = "(other)";

/// Key of what belongs to no statement that the server has identified.
pub const NO_QUERY_ID: &str = "(no query id)";

/// Key for the sum of the statements that were evicted to make room.
pub const EVICTED: &str = "(evicted)";

/// Class of samples without a wait event that are on or near a CPU. `CPU*` means on a CPU, or in
/// code without instrumentation.
pub const CPU_CLASS: &str = "CPU";

/// Class of waits for locks of the lock manager.
pub const LOCK_CLASS: &str = "Lock";

/// Bit of `marked`: the sample was recorded only because its session blocks others.
pub const NOT_COUNTED: i64 = 1;

/// Category of client sessions and their parallel workers.
pub const FOREGROUND: &str = "foreground";
/// States of sessions that are load.
pub const LOAD_STATES: [&str; 2] = [ACTIVE, "fastpath function call"];
/// State of a session that executes a statement.
pub const ACTIVE: &str = "active";
const IDLE: &str = "idle";
const CLIENT_READ: (&str, &str) = ("Client", "ClientRead");

/// Prefix of the name of a prepared transaction.
const PREPARED: &str = "prepared ";

/// True for the name of a prepared transaction.
pub fn is_prepared(name: &str) -> bool {
    name.starts_with(PREPARED)
}

/// Name of a prepared transaction.
pub fn prepared(gid: Option<&str>, xid: i64) -> String {
    match gid {
        Some(gid) => format!("{PREPARED}'{gid}'"),
        None => format!("{PREPARED}xid {xid}"),
    }
}

impl Scope {
    /// Parses an argument.
    pub fn parse(text: Option<&str>) -> QueryResult<Scope> {
        match text {
            None | Some("load") => Ok(Scope::Load),
            Some("foreground") => Ok(Scope::Foreground),
            Some("all") => Ok(Scope::All),
            Some(other) => Err(QueryError::invalid(format!("invalid scope \"{other}\""))
                .hint("Available scopes are load, foreground, all.")),
        }
    }

    /// The name of the argument.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Load => "load",
            Scope::Foreground => "foreground",
            Scope::All => "all",
        }
    }

    /// True if sessions of this category may count.
    pub fn has_category(self, category: Option<&str>) -> bool {
        self == Scope::All || category == Some(FOREGROUND)
    }

    /// True if samples in this state may count.
    pub fn has_state(self, state: Option<&str>) -> bool {
        match self {
            Scope::Load => state.is_some_and(|s| LOAD_STATES.contains(&s)),
            Scope::Foreground => state.is_some_and(|s| s != IDLE),
            Scope::All => true,
        }
    }

    /// True if samples with this wait event may count.
    pub fn has_wait(self, class: Option<&str>, event: Option<&str>) -> bool {
        self != Scope::Load || (class, event) != (Some(CLIENT_READ.0), Some(CLIENT_READ.1))
    }

    /// True if samples with this key of a dimension may count.
    pub fn has(self, dimension: &str, value: Option<&str>) -> bool {
        match dimension {
            CATEGORY => self.has_category(value),
            STATE => self.has_state(value),
            WAIT_EVENT => {
                let (class, event) = match value.and_then(|v| v.split_once(':')) {
                    Some((class, event)) => (Some(class), Some(event)),
                    None if value == Some(CLIENT_READ.1) => (Some(CLIENT_READ.0), value),
                    None => (None, value),
                };
                self.has_wait(class, event)
            }
            _ => true,
        }
    }

    /// Refuses a filter that accepts a value outside the scope.
    pub fn check(self, dimension: &str, filter: &Filter) -> QueryResult<()> {
        let Some(outside) = filter
            .any
            .iter()
            .find(|v| !self.has(dimension, v.as_deref()))
        else {
            return Ok(());
        };
        let wider = [Scope::Foreground, Scope::All]
            .into_iter()
            .find(|scope| scope.has(dimension, outside.as_deref()))
            .unwrap_or(Scope::All);
        let shown = outside
            .as_deref()
            .map_or(super::filter::NULL.to_string(), |v| format!("\"{v}\""));
        Err(
            QueryError::invalid(format!("filter \"{dimension}\" is outside the scope"))
                .detail(format!(
                    "Scope \"{}\" has no samples with {dimension} {shown}.",
                    self.name()
                ))
                .hint(format!("Use scope \"{}\".", wider.name())),
        )
    }
}

/// Key of a wait event, such as `IO:WalSync`; `None` if both are missing.
pub fn wait_key(class: Option<&str>, event: Option<&str>) -> Option<String> {
    match (class, event) {
        (Some(class), Some(event)) => Some(format!("{class}:{event}")),
        (class, event) => event.or(class).map(str::to_string),
    }
}

/// Key of a kind of on-CPU activity among the wait events: `CPU*`, `CPU:running` ….
pub fn cpu_key(kind: &str) -> String {
    if kind.starts_with(CPU_CLASS) {
        kind.to_string()
    } else {
        format!("{CPU_CLASS}:{kind}")
    }
}

/// Label of a missing key of a dimension; `None` if null has no label.
pub fn null_label(dimension: &str) -> Option<&'static str> {
    (dimension == QUERY_ID).then_some(NO_QUERY_ID)
}

/// Lock modes by number, from 1.
pub const LOCK_MODES: [&str; 8] = [
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];

/// Name of a lock mode.
pub fn lock_mode(mode: i64) -> Option<&'static str> {
    let index = usize::try_from(mode - 1).ok()?;
    LOCK_MODES.get(index).copied()
}

/// Name of the strongest mode in a mask. Bit n stands for mode n.
pub fn strongest_mode(mask: i64) -> Option<&'static str> {
    (1..=8)
        .rev()
        .find(|m| mask & (1 << m) != 0)
        .and_then(lock_mode)
}

/// Type of a locked object by its stored number.
pub fn locktype(catalog: &Schema, value: i64) -> Option<&str> {
    catalog.label("locktype", value)
}

/// True if the first field of a lock of this type is the OID of a relation: the locked one, or
/// the one that contains the locked object.
pub fn has_relation(locktype: &str) -> bool {
    ["relation", "extend", "page", "tuple"].contains(&locktype)
}

/// OID of the locked relation, or of the relation that contains the locked object.
pub fn locked_relation(catalog: &Schema, value: i64, fields: [i64; 3]) -> Option<i64> {
    let has = locktype(catalog, value).is_some_and(has_relation);
    has.then_some(fields[0])
}

/// A locked object as text: its type, then the name of its relation or the numbers as recorded.
pub fn locked_object(
    catalog: &Schema,
    value: i64,
    database: i64,
    fields: [i64; 3],
    relation: Option<&str>,
) -> String {
    let name = locktype(catalog, value).unwrap_or("?");
    let [a, b, c] = fields;
    let numbers = || format!("{database}/{a}");
    let relation = relation.map_or_else(numbers, str::to_string);
    match name {
        "relation" | "extend" => format!("{name} {relation}"),
        "page" => format!("{name} {relation} block {b}"),
        "tuple" => format!("{name} {relation} ({b},{c})"),
        "frozenid" => format!("{name} {database}"),
        "transactionid" => format!("{name} {a}"),
        "virtualxid" | "spectoken" => format!("{name} {a}/{b}"),
        "advisory" if c == 1 => format!("{name} {}", (a << 32) | b),
        "advisory" => format!("{name} {},{}", a as i32, b as i32),
        _ => format!("{name} {database}/{a}/{b}/{c}"),
    }
}

/// Colours of wait classes.
const COLORS: [(&str, (u8, u8, u8)); 11] = [
    (CPU_CLASS, (80, 250, 123)),
    ("IO", (30, 100, 255)),
    ("Lock", (255, 85, 85)),
    ("LWLock", (255, 121, 198)),
    ("IPC", (0, 200, 255)),
    ("Client", (255, 220, 100)),
    ("Timeout", (255, 165, 0)),
    ("Buffer", (0, 210, 180)),
    ("BufferPin", (0, 210, 180)),
    ("Activity", (150, 100, 255)),
    ("Extension", (190, 150, 255)),
];

/// The wait classes of PostgreSQL, and the class of samples without a wait event.
pub fn wait_classes() -> impl Iterator<Item = &'static str> {
    COLORS.iter().map(|(class, _)| *class)
}

/// Colour of the key's wait class, or grey.
pub fn color(key: &str) -> (u8, u8, u8) {
    let class = key.split(':').next().unwrap_or(key).trim_end_matches('*');
    let found = COLORS.iter().find(|(name, _)| *name == class);
    found.map_or((180, 180, 180), |(_, color)| *color)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scope: Scope, dimension: &str, text: &str) -> Option<QueryError> {
        let filter = Filter::parse(dimension, text).expect("filter");
        scope.check(dimension, &filter).err()
    }

    #[test]
    fn a_filter_outside_the_scope_names_the_scope_that_has_it() {
        let error = check(Scope::Load, STATE, "idle in transaction").expect("outside");
        assert_eq!(error.sqlstate, "22023");
        assert_eq!(error.message, "filter \"state\" is outside the scope");
        assert_eq!(
            error.detail.as_deref(),
            Some("Scope \"load\" has no samples with state \"idle in transaction\".")
        );
        assert_eq!(error.hint.as_deref(), Some("Use scope \"foreground\"."));
        let hint = |d, t| check(Scope::Load, d, t).and_then(|e| e.hint);
        assert_eq!(
            hint(CATEGORY, "background").as_deref(),
            Some("Use scope \"all\".")
        );
        assert_eq!(hint(STATE, "(null)").as_deref(), Some("Use scope \"all\"."));
        for wait in ["ClientRead", "Client:ClientRead", "X:y,ClientRead"] {
            assert_eq!(
                hint(WAIT_EVENT, wait).as_deref(),
                Some("Use scope \"foreground\".")
            );
        }
    }

    #[test]
    fn filters_within_the_scope_pass() {
        assert_eq!(check(Scope::Load, STATE, "active"), None);
        assert_eq!(check(Scope::Load, STATE, "!idle"), None);
        assert_eq!(check(Scope::Load, WAIT_EVENT, "Client:ClientWrite"), None);
        assert_eq!(check(Scope::Foreground, STATE, "idle in transaction"), None);
        assert_eq!(check(Scope::All, CATEGORY, "background"), None);
    }

    #[test]
    fn keys_name_class_and_event() {
        assert_eq!(
            wait_key(Some("IO"), Some("WalSync")).as_deref(),
            Some("IO:WalSync")
        );
        assert_eq!(wait_key(None, None), None);
        assert_eq!(cpu_key("CPU*"), "CPU*");
        assert_eq!(cpu_key("running"), "CPU:running");
    }
}
