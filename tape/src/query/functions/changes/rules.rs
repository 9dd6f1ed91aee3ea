//! Rules say from which kind of candidate an effect can follow. They are ordered from the strongest
//! to the weakest. An effect follows from the first rule that has a candidate, and among the
//! candidates of this rule from the nearest in time. So a nearer change that cannot have caused the
//! effect does not win.
//!
//! docs/changes.md has the same table; `rules_tests.rs` compares the two.

use super::candidates::{Candidate, Event, What};
use super::effects::{Change, Effect, Mechanism};
use super::planned::is_wanted;
use super::scanned;
use super::work::Work;
use crate::query::functions::structs::BlockingRow;
use crate::query::value::vocabulary as pg;

/// A rule. The variants are ordered by strength, as [`RULES`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    ChangeHoldsLock,
    Deadlock,
    IdleInTransaction,
    SessionHoldsLock,
    ReplicaLost,
    IndexDropped,
    MemorySetting,
    CommitSetting,
    RowsChanged,
    TableChanged,
    CodeChanged,
    OwnSetting,
    CpuTaken,
    OldSnapshot,
    PlannerSetting,
    VacuumSetting,
    Analyzed,
    PlannerInput,
    ServerStarted,
    NewQuery,
    MoreConnections,
    MoreCalls,
    WritingSetting,
    Autovacuum,
    IndexCreated,
    OtherTableChanged,
    TableScanned,
    Mark,
}

/// A rule as a row of the table in docs/changes.md.
pub struct Described {
    /// The rule.
    pub rule: Rule,
    /// Name of the rule, for the column `rule`.
    pub name: &'static str,
    /// The cause, in words.
    pub cause: &'static str,
    /// The effects that can follow from the cause, in words.
    pub effect: &'static str,
}

/// All rules, the strongest first.
pub const RULES: [Described; 28] = [
    Described {
        rule: Rule::ChangeHoldsLock,
        name: "change holds lock",
        cause: "a change of the schema that began before the waits and ended after they began",
        effect: "half of the difference is waits for locks, by a query that mentions the table, or for the lock of the table",
    },
    Described {
        rule: Rule::Deadlock,
        name: "deadlock",
        cause: "sessions wait for each other in a circle",
        effect: "half of the difference is waits for locks, in the circle or behind it",
    },
    Described {
        rule: Rule::IdleInTransaction,
        name: "idle in transaction",
        cause: "the head of the lock queue is idle in its transaction, or a prepared transaction",
        effect: "half of the difference is waits for locks, behind this head",
    },
    Described {
        rule: Rule::SessionHoldsLock,
        name: "session holds lock",
        cause: "the head of the lock queue is at work",
        effect: "half of the difference is waits for locks, behind this head",
    },
    Described {
        rule: Rule::ReplicaLost,
        name: "replica lost",
        cause: "a replica has stopped confirming the log, or is gone",
        effect: "half of the difference is waits for synchronous replicas",
    },
    Described {
        rule: Rule::IndexDropped,
        name: "index dropped",
        cause: "DROP INDEX",
        effect: "a query that mentions the table of the index is slower or has another plan",
    },
    Described {
        rule: Rule::MemorySetting,
        name: "memory setting",
        cause: "work_mem or hash_mem_multiplier changed",
        effect: "a query has another plan, or is slower: it writes at least twice the temporary blocks per call, or a tenth of its difference is waits for temporary files",
    },
    Described {
        rule: Rule::CommitSetting,
        name: "commit setting",
        cause: "synchronous_commit, synchronous_standby_names, wal_sync_method, commit_delay or fsync changed",
        effect: "a fifth of the difference is waits for the write-ahead log or synchronous replicas",
    },
    Described {
        rule: Rule::RowsChanged,
        name: "rows changed",
        cause: "INSERT, UPDATE, DELETE, MERGE or COPY of 10,000 rows of a table, ten times as many as before",
        effect: "another query that mentions the table is slower, and a call reads half more blocks, or it has another plan",
    },
    Described {
        rule: Rule::TableChanged,
        name: "table changed",
        cause: "ALTER, DROP, TRUNCATE or REFRESH of a relation",
        effect: "a query that mentions the relation is slower, has another plan, or is new",
    },
    Described {
        rule: Rule::CodeChanged,
        name: "code changed",
        cause: "CREATE of a function, view, trigger, policy or rule",
        effect: "a query that mentions it, or its table, is slower, has another plan, or is new",
    },
    Described {
        rule: Rule::OwnSetting,
        name: "role setting",
        cause: "ALTER ROLE or ALTER DATABASE with a setting of the planner or of memory",
        effect: "a query that this role runs, or that runs in this database, is slower or has another plan",
    },
    Described {
        rule: Rule::CpuTaken,
        name: "cpu taken",
        cause: "one more process of the host than before, and a fifth more, runs or waits for a CPU",
        effect: "a query is slower, half of the difference is waits for a CPU, and a call reads no more blocks",
    },
    Described {
        rule: Rule::OldSnapshot,
        name: "old snapshot",
        cause: "a session keeps a snapshot that is 1,000 transactions old, and four times as old as any before",
        effect: "a query is slower, and a call reads half more blocks",
    },
    Described {
        rule: Rule::PlannerSetting,
        name: "planner setting",
        cause: "a setting of the planner, of parallel workers or of JIT changed",
        effect: "a query is slower and did not have its plan before, or JIT changed",
    },
    Described {
        rule: Rule::VacuumSetting,
        name: "vacuum setting",
        cause: "a setting of vacuum or autovacuum changed",
        effect: "a query is slower, and a call reads half more blocks",
    },
    Described {
        rule: Rule::Analyzed,
        name: "analyzed",
        cause: "ANALYZE or VACUUM by hand of a table, or of all",
        effect: "a query that mentions the table is slower or has another plan",
    },
    Described {
        rule: Rule::PlannerInput,
        name: "planner input",
        cause: "the planner had other inputs for the new plan: a setting, also of one session, or a table whose rows differ by a tenth, or that was analyzed in the ten minutes before",
        effect: "this query is slower and did not have its plan before",
    },
    Described {
        rule: Rule::ServerStarted,
        name: "server started",
        cause: "start, crash recovery or promotion",
        effect: "a third of the difference is reads of blocks that were not in the cache",
    },
    Described {
        rule: Rule::NewQuery,
        name: "new query",
        cause: "clients send a query that had no call before",
        effect: "this query",
    },
    Described {
        rule: Rule::MoreConnections,
        name: "more connections",
        cause: "twice as many client connections as before, and ten more",
        effect: "a query is called more often or is slower",
    },
    Described {
        rule: Rule::MoreCalls,
        name: "more calls",
        cause: "clients send a query more often, by a larger factor than a call takes longer",
        effect: "this query",
    },
    Described {
        rule: Rule::WritingSetting,
        name: "writing setting",
        cause: "a setting of checkpoints, of the background writer, of vacuum or of shared buffers changed",
        effect: "a third of the difference is waits for reads or for the write-ahead log",
    },
    Described {
        rule: Rule::Autovacuum,
        name: "autovacuum",
        cause: "autovacuum works on a table, four times as long as in the normal window",
        effect: "a query that mentions the table is slower while the worker runs, and a third of the difference is waits for blocks or the log",
    },
    Described {
        rule: Rule::IndexCreated,
        name: "index created",
        cause: "CREATE INDEX or another new object on a table",
        effect: "a query that mentions the table is slower or has another plan",
    },
    Described {
        rule: Rule::OtherTableChanged,
        name: "other table changed",
        cause: "ALTER or CREATE of a table, which may refer to another one now",
        effect: "a DELETE or UPDATE of another table is slower, and a call reads half more blocks",
    },
    Described {
        rule: Rule::TableScanned,
        name: "table scanned",
        cause: "scans read ten times the rows a second of a table, and 10,000 rows in a record (`tables_history`)",
        effect: "a query that mentions the table is slower, and a call reads half more blocks, or it has another plan; no rule above explains it",
    },
    Described {
        rule: Rule::Mark,
        name: "mark",
        cause: "a mark that somebody wrote, or a new release in tags",
        effect: "a query is new, called more often, slower, or has another plan",
    },
];

const MEMORY: [&str; 2] = ["work_mem", "hash_mem_multiplier"];
const COMMIT: [&str; 6] = [
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_sync_method",
    "commit_delay",
    "commit_siblings",
    "fsync",
];
/// Settings of the planner: a name, or the beginning of several names.
const PLANNER: [&str; 17] = [
    "enable_",
    "random_page_cost",
    "seq_page_cost",
    "cpu_",
    "effective_cache_size",
    "effective_io_concurrency",
    "jit",
    "plan_cache_mode",
    "join_collapse_limit",
    "from_collapse_limit",
    "geqo",
    "constraint_exclusion",
    "cursor_tuple_fraction",
    "max_parallel_workers",
    "parallel_",
    "min_parallel_",
    "recursive_worktable_factor",
];
const VACUUM: [&str; 2] = ["autovacuum", "vacuum_"];
const WRITING: [&str; 11] = [
    "checkpoint_",
    "max_wal_size",
    "min_wal_size",
    "full_page_writes",
    "wal_compression",
    "bgwriter_",
    "shared_buffers",
    "autovacuum",
    "vacuum_",
    "wal_buffers",
    "backend_flush_after",
];

impl Rule {
    pub fn described(self) -> &'static Described {
        &RULES[self as usize]
    }

    /// True if the effect begins with the next call of the query. Effects of other causes grow, or
    /// need a client to connect.
    pub fn acts_at_once(self) -> bool {
        matches!(
            self,
            Rule::IndexDropped
                | Rule::MemorySetting
                | Rule::CommitSetting
                | Rule::TableChanged
                | Rule::CodeChanged
                | Rule::PlannerSetting
                | Rule::Analyzed
                | Rule::Autovacuum
                | Rule::IndexCreated
                | Rule::OtherTableChanged
        )
    }

    /// True if the effect can follow from the candidate by this rule.
    pub fn fits(self, candidate: &Candidate, effect: &Effect) -> bool {
        let locked = effect.waits_for_locks();
        match (self, &candidate.what) {
            (Rule::ChangeHoldsLock, What::Event(event)) => {
                locked && holds_lock(event, candidate, effect)
            }
            (Rule::Deadlock, What::Holder(row)) => locked && is_cycle(row) && is_head(row, effect),
            (_, What::Holder(row)) if is_cycle(row) => false,
            (Rule::IdleInTransaction, What::Holder(row)) => {
                let is_idle = row.state.as_deref().is_some_and(|s| s.starts_with("idle"));
                let is_idle = is_idle || row.prepared_xid.is_some();
                locked && is_idle && is_head(row, effect)
            }
            (Rule::SessionHoldsLock, What::Holder(row)) => locked && is_head(row, effect),
            (Rule::ReplicaLost, What::Replica(_)) => effect.is_by(Mechanism::Replicas, 50),
            (Rule::CpuTaken, What::Host(_)) => {
                let waits = effect.is_by(Mechanism::Runnable, 50);
                effect.change.is_slower() && waits && !effect.reads_more()
            }
            (Rule::OldSnapshot, What::Snapshot(_)) => {
                !locked && effect.change.is_slower() && effect.reads_more()
            }
            (_, What::Event(event)) if !locked => self.fits_event(event, effect),
            (_, What::Work(work)) if !locked => self.fits_work(work, effect),
            (Rule::PlannerInput, What::Planned(planned)) if !locked => {
                let role = planned.username.as_deref();
                effect.query_id == Some(planned.query_id)
                    && role.is_none_or(|role| effect.is_of(role))
                    && is_wanted(effect)
            }
            (Rule::TableScanned, What::Scanned(table)) => {
                !locked && scanned::is_wanted(effect) && effect.names.mentions(&table.table)
            }
            (Rule::Autovacuum, What::Autovacuum(vacuum)) => !locked && vacuum.may_slow(effect),
            (Rule::MoreConnections, What::Connections { .. }) if !locked => {
                effect.change == Change::MoreCalls || effect.change.is_slower()
            }
            (_, What::Clients { query, change }) => {
                let wanted = match self {
                    Rule::NewQuery => Change::New,
                    Rule::MoreCalls => Change::MoreCalls,
                    _ => return false,
                };
                *change == wanted && *query == effect.line.key
            }
            _ => false,
        }
    }

    /// Same as `fits`, for statements that change rows or statistics.
    fn fits_work(self, work: &Work, effect: &Effect) -> bool {
        let wanted = match self {
            Rule::RowsChanged => work.rows.is_some(),
            Rule::Analyzed => work.rows.is_none(),
            _ => return false,
        };
        let is_different = match work.rows {
            Some(_) => effect.reads_more() || effect.change == Change::OtherPlan,
            None => true,
        };
        wanted && is_different && work.may_slow(effect)
    }

    /// Same as `fits`, for markers, if the effect is not waits for locks.
    fn fits_event(self, event: &Event, effect: &Effect) -> bool {
        let slower = effect.change.is_slower();
        let is_new = effect.change == Change::New;
        let sets = |names: &[&str]| {
            let setting = event.setting();
            setting.is_some_and(|own| names.iter().any(|name| own.starts_with(name)))
        };
        match self {
            Rule::IndexDropped => {
                slower && is_command(event, &["DROP INDEX"]) && mentions(event, effect)
            }
            Rule::MemorySetting => {
                let is_other = effect.change == Change::OtherPlan;
                slower && sets(&MEMORY) && (is_other || spills(effect))
            }
            Rule::CommitSetting => sets(&COMMIT) && effect.is_by(Mechanism::Commit, 20),
            Rule::TableChanged => {
                let commands = ["ALTER", "DROP", "TRUNCATE", "REFRESH"];
                (slower || is_new) && is_command(event, &commands) && mentions(event, effect)
            }
            Rule::CodeChanged => {
                let commands = [
                    "CREATE FUNCTION",
                    "CREATE PROCEDURE",
                    "CREATE VIEW",
                    "CREATE TRIGGER",
                    "CREATE POLICY",
                    "CREATE RULE",
                ];
                (slower || is_new) && is_command(event, &commands) && mentions(event, effect)
            }
            Rule::OwnSetting => slower && is_own_setting(event, effect),
            Rule::PlannerSetting => {
                let compiles = sets(&["jit"]);
                slower && sets(&PLANNER) && (compiles || !effect.keeps_plan)
            }
            Rule::VacuumSetting => slower && sets(&VACUUM) && effect.reads_more(),
            Rule::ServerStarted => event.is_restart() && effect.is_by(Mechanism::Reads, 33),
            Rule::WritingSetting => {
                let waits = effect.part(Mechanism::Reads) + effect.part(Mechanism::Commit);
                sets(&WRITING) && waits * 3 >= effect.line.difference()
            }
            Rule::IndexCreated => {
                slower
                    && is_command(event, &["CREATE", "REINDEX", "CLUSTER", "REPACK"])
                    && mentions(event, effect)
            }
            Rule::OtherTableChanged => {
                let commands = ["ALTER TABLE", "CREATE TABLE"];
                let refers = is_command(event, &commands) && !mentions(event, effect);
                slower && refers && effect.changes_rows() && effect.reads_more()
            }
            Rule::Mark => {
                ["mark", "release"].contains(&event.kind()) && effect.line.difference() > 0
            }
            _ => false,
        }
    }
}

/// True for a setting of the role that runs the query, or of its database, on which plans depend.
fn is_own_setting(event: &Event, effect: &Effect) -> bool {
    let Some(setting) = event.own_setting() else {
        return false;
    };
    let is_planned = [&PLANNER[..], &MEMORY[..]].concat();
    let decides = is_planned.iter().any(|name| setting.starts_with(name));
    let is_role = event.marker.object_class.as_deref() == Some("role");
    let is_own = |object: &str| match is_role {
        true => object == "ALL" || effect.is_of(object),
        false => effect.is_in(object),
    };
    decides && event.objects().any(is_own)
}

/// True for a committed change of the schema whose command begins with one of these words.
fn is_command(event: &Event, begins: &[&str]) -> bool {
    let is_change = event.kind() == "schema changed" && event.marker.outcome.is_none();
    is_change
        && begins
            .iter()
            .any(|begin| event.command().starts_with(begin))
}

/// True if the query mentions the changed object, or the table of a changed index.
fn mentions(event: &Event, effect: &Effect) -> bool {
    let names = &effect.names;
    match (event.marker.object_class.as_deref(), &event.table) {
        (_, Some(table)) => names.mentions(table),
        (Some("index"), None) => event.objects().any(|index| names.mentions_table_of(index)),
        (Some("setting" | "role" | "database"), _) => false,
        _ => event.objects().any(|object| names.mentions(object)),
    }
}

/// True if a call writes at least twice as many temporary blocks as before. True, too, if 10 % of
/// the difference is waits for temporary files.
fn spills(effect: &Effect) -> bool {
    let [before, after] = effect.temp_blocks_a_call();
    let writes = match (before, after) {
        (Some(before), Some(after)) => {
            after.num > 0 && after.num * before.den >= 2 * before.num * after.den
        }
        (None, Some(after)) => after.num > 0,
        _ => false,
    };
    let waits =
        effect.part(Mechanism::TemporaryFiles) > 0 && effect.is_by(Mechanism::TemporaryFiles, 10);
    writes || waits
}

/// True if the head is a cycle of sessions that wait for each other.
fn is_cycle(row: &BlockingRow) -> bool {
    row.kind.as_deref() == Some("cycle")
}

/// True if at least a quarter of the query's difference is more waits behind this head.
fn is_head(row: &BlockingRow, effect: &Effect) -> bool {
    let tree = match is_cycle(row) {
        true => pg::CYCLE,
        false => row.tree.as_deref().unwrap_or_default(),
    };
    let own = effect.heads.iter().filter(|(head, _)| head == tree);
    let more: i128 = own.map(|(_, [before, after])| after - before).sum();
    more * 4 >= effect.line.difference()
}

/// True if a change of the schema explains the query's waits for locks: it holds the lock, or waits
/// for it and holds the query up behind it. The waits must be for the lock of the changed table, or
/// the query must mention the table. The waits must have begun while the change ran. Waits of a
/// query before it is planned have no query id, so its text cannot be used for them.
fn holds_lock(event: &Event, candidate: &Candidate, effect: &Effect) -> bool {
    let Some((began, _)) = effect.stretch else {
        return false;
    };
    let spans = candidate.begin() <= began.saturating_add(SLACK) && began <= candidate.time;
    event.kind() == "schema changed" && spans && (event.is_waited_for || mentions(event, effect))
}

/// The waits may seem to begin this many µs before the change: two ticks of a second.
const SLACK: i64 = 2_000_000;
