//! The words of EXPLAIN for the numbers of a tree.

use super::tree::Node;

/// Kinds of texts that EXPLAIN prints within the first line of a node, or JSON under a key of its
/// own.
pub(super) const RELATION: u8 = 1;
pub(super) const SCHEMA: u8 = 2;
pub(super) const ALIAS: u8 = 3;
pub(super) const INDEX: u8 = 4;
pub(super) const SUBPLAN: u8 = 5;
pub(super) const NAME: u8 = 6;
/// A setting of the planner that is not the default, such as `work_mem = 64MB`. Only in the root.
pub(super) const SETTING: u8 = 24;
/// Rows and pages of the table, as its last VACUUM or ANALYZE has found them.
pub(super) const TABLE_ROWS: u8 = 25;
pub(super) const TABLE_PAGES: u8 = 26;
/// The alias in the query, if EXPLAIN adds a number to it.
pub(super) const QUERY_ALIAS: u8 = 27;
/// The relation is a partition of the table with this alias in the query.
pub(super) const PARTITION: u8 = 28;
/// Rows that all executions of the node gave together, and the number of its executions. Only in a
/// tree whose rows were counted.
pub(super) const ACTUAL_ROWS: u8 = 30;
pub(super) const ACTUAL_LOOPS: u8 = 31;
/// Not empty if the node may have ended before its last row.
pub(super) const STOPPED: u8 = 32;
/// Number of partitions that are like the listed ones, and are not listed.
pub(super) const NOT_LISTED: u8 = 33;
/// Number of the relation within its query level among relations with the same alias, if above 1.
pub(super) const OCCURRENCE: u8 = 34;
/// Name of the relation's query level for pg_plan_advice; the query itself has none.
pub(super) const QUERY_LEVEL: u8 = 35;
/// Whole name of a subquery whose scan the planner left out above the node. If there are several,
/// the lowest is first.
pub(super) const ELIDED: u8 = 36;
/// Whole name of a relation whose parts the node appends.
pub(super) const APPENDED: u8 = 37;
/// Time of the last ANALYZE of the relation in µs since 1970, zero if it is not known.
pub(super) const ANALYZED: u8 = 38;
/// Number of planned workers: the first kind of text that EXPLAIN prints on a line of its own.
pub(super) const WORKERS: u8 = 7;
const FIRST_LINE: u8 = WORKERS;

/// The labels of texts with a line of their own, from [`FIRST_LINE`] on.
const LABELS: [&str; 16] = [
    "Workers Planned",
    "Sort Key",
    "Presorted Key",
    "Group Key",
    "Cache Key",
    "Hash Cond",
    "Merge Cond",
    "Index Cond",
    "Recheck Cond",
    "TID Cond",
    "Order By",
    "Join Filter",
    "One-Time Filter",
    "Run Condition",
    "Filter",
    "Subplans Removed",
];

/// Names of nodes in JSON, by kind.
const NODES: [&str; 43] = [
    "Unknown",
    "Result",
    "ProjectSet",
    "ModifyTable",
    "Append",
    "Merge Append",
    "Recursive Union",
    "BitmapAnd",
    "BitmapOr",
    "Seq Scan",
    "Sample Scan",
    "Index Scan",
    "Index Only Scan",
    "Bitmap Index Scan",
    "Bitmap Heap Scan",
    "Tid Scan",
    "Tid Range Scan",
    "Subquery Scan",
    "Function Scan",
    "Values Scan",
    "Table Function Scan",
    "CTE Scan",
    "Named Tuplestore Scan",
    "WorkTable Scan",
    "Foreign Scan",
    "Custom Scan",
    "Nested Loop",
    "Merge Join",
    "Hash Join",
    "Materialize",
    "Memoize",
    "Sort",
    "Incremental Sort",
    "Group",
    "Aggregate",
    "WindowAgg",
    "Unique",
    "Gather",
    "Gather Merge",
    "Hash",
    "SetOp",
    "LockRows",
    "Limit",
];

/// Kinds of nodes, as indexes of [`NODES`].
pub(super) const RESULT: u8 = 1;
pub(super) const MODIFY_TABLE: u8 = 3;
pub(super) const APPEND: u8 = 4;
pub(super) const MERGE_APPEND: u8 = 5;
pub(super) const BITMAP_AND: u8 = 7;
pub(super) const BITMAP_OR: u8 = 8;
pub(super) const SEQ_SCAN: u8 = 9;
pub(super) const INDEX_SCAN: u8 = 11;
pub(super) const INDEX_ONLY_SCAN: u8 = 12;
pub(super) const BITMAP_INDEX_SCAN: u8 = 13;
pub(super) const BITMAP_HEAP_SCAN: u8 = 14;
pub(super) const TID_SCAN: u8 = 15;
pub(super) const TID_RANGE_SCAN: u8 = 16;
pub(super) const SUBQUERY_SCAN: u8 = 17;
pub(super) const FUNCTION_SCAN: u8 = 18;
pub(super) const CTE_SCAN: u8 = 21;
pub(super) const TUPLESTORE_SCAN: u8 = 22;
pub(super) const WORK_TABLE_SCAN: u8 = 23;
pub(super) const FOREIGN_SCAN: u8 = 24;
pub(super) const CUSTOM_SCAN: u8 = 25;
pub(super) const NESTED_LOOP: u8 = 26;
pub(super) const MERGE_JOIN: u8 = 27;
pub(super) const HASH_JOIN: u8 = 28;
pub(super) const MATERIALIZE: u8 = 29;
pub(super) const MEMOIZE: u8 = 30;
pub(super) const SORT: u8 = 31;
pub(super) const INCREMENTAL_SORT: u8 = 32;
pub(super) const GROUP: u8 = 33;
pub(super) const AGGREGATE: u8 = 34;
pub(super) const UNIQUE: u8 = 36;
pub(super) const GATHER: u8 = 37;
pub(super) const GATHER_MERGE: u8 = 38;
pub(super) const HASH: u8 = 39;
pub(super) const SET_OP: u8 = 40;

/// Relations of a node to the node above, as numbers of [`Node::relationship`].
pub(super) const INIT_PLAN: u8 = 5;
pub(super) const SUB_PLAN: u8 = 6;

/// Bits of the detail of an aggregation.
const PARTIAL: u8 = 0x10;
const FINALIZE: u8 = 0x20;
/// Bit of the detail of a set operation.
const HASHED: u8 = 0x10;
/// The lower four bits of `detail` are a number in nodes whose upper bits are flags.
const LOWER: u8 = 0x0F;

fn word(words: &[&'static str], number: u8) -> &'static str {
    words.get(usize::from(number)).copied().unwrap_or("Unknown")
}

impl Node {
    /// The name of the node in JSON.
    pub(super) fn kind_name(&self) -> &'static str {
        word(&NODES, self.kind)
    }

    pub(super) fn is_join(&self) -> bool {
        (NESTED_LOOP..=HASH_JOIN).contains(&self.kind)
    }

    pub(super) fn join_type(&self) -> &'static str {
        let types = [
            "Inner",
            "Left",
            "Full",
            "Right",
            "Semi",
            "Anti",
            "Right Semi",
            "Right Anti",
        ];
        word(&types, self.detail)
    }

    /// The command of a node that changes rows.
    pub(super) fn operation(&self) -> &'static str {
        word(
            &["Select", "Insert", "Update", "Delete", "Merge"],
            self.detail,
        )
    }

    pub(super) fn is_backward(&self) -> bool {
        self.detail == 1 && (INDEX_SCAN..=INDEX_ONLY_SCAN).contains(&self.kind)
    }

    pub(super) fn strategy(&self) -> &'static str {
        match (self.kind, self.detail & HASHED != 0) {
            (SET_OP, true) => "Hashed",
            (SET_OP, false) => "Sorted",
            _ => word(&["Plain", "Sorted", "Hashed", "Mixed"], self.detail & LOWER),
        }
    }

    pub(super) fn partial_mode(&self) -> &'static str {
        match self.detail & (PARTIAL | FINALIZE) {
            PARTIAL => "Partial",
            FINALIZE => "Finalize",
            _ => "Simple",
        }
    }

    pub(super) fn set_operation(&self) -> &'static str {
        let commands = ["Intersect", "Intersect All", "Except", "Except All"];
        word(&commands, self.detail & LOWER)
    }

    /// How the node is related to the node above; `None` for the root.
    pub(super) fn relationship(&self) -> Option<&'static str> {
        let roles = [
            "Outer", "Inner", "Member", "Subquery", "InitPlan", "SubPlan", "child",
        ];
        let index = self.role.checked_sub(1)?;
        Some(word(&roles, index))
    }

    /// The name of the node in the text of EXPLAIN: `Hash Right Join`, `Partial HashAggregate`.
    pub(super) fn title(&self) -> String {
        let title = match self.kind {
            NESTED_LOOP | MERGE_JOIN | HASH_JOIN => self.join_title(),
            AGGREGATE => self.aggregate_title(),
            SET_OP if self.strategy() == "Hashed" => format!("HashSetOp {}", self.set_operation()),
            SET_OP => format!("SetOp {}", self.set_operation()),
            MODIFY_TABLE => self.operation().to_string(),
            FOREIGN_SCAN if self.detail != 0 => format!("Foreign {}", self.operation()),
            _ if self.is_backward() => format!("{} Backward", self.kind_name()),
            _ => self.kind_name().to_string(),
        };
        match self.is_parallel_aware {
            true => format!("Parallel {title}"),
            false => title,
        }
    }

    fn join_title(&self) -> String {
        let method = self.kind_name();
        let method = method.strip_suffix(" Join").unwrap_or(method);
        match (self.kind, self.detail) {
            (NESTED_LOOP, 0) => method.to_string(),
            (_, 0) => format!("{method} Join"),
            _ => format!("{method} {} Join", self.join_type()),
        }
    }

    fn aggregate_title(&self) -> String {
        let names = [
            "Aggregate",
            "GroupAggregate",
            "HashAggregate",
            "MixedAggregate",
        ];
        let name = word(&names, self.detail & LOWER);
        match self.partial_mode() {
            "Simple" => name.to_string(),
            mode => format!("{mode} {name}"),
        }
    }

    /// The texts that EXPLAIN prints on lines of their own, with their labels.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.texts.iter().filter_map(|(kind, text)| {
            let label = match *kind {
                NOT_LISTED => "Partitions Not Listed",
                kind => *LABELS.get(usize::from(kind.checked_sub(FIRST_LINE)?))?,
            };
            Some((label, text.as_str()))
        })
    }
}
