//! The rows of `blocking`: one for each blocker or waiter.

use crate::fast::FastMap;
use crate::format::schema::{RUN, Schema};
use crate::format::table::Column;
use crate::query::ask::context::Run;
use crate::query::ask::row::row;
use crate::query::functions::common_columns::{nonzero, seconds};
use crate::query::rows::blockers::{Head, Node};
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::relations::{Relation, RelationNames};
use crate::query::rows::scan::Scan;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

row! {
    /// A row of `blocking`.
    BlockingRow of "blocking": FIELDS {
        tree: Text,
        level: Int,
        kind: Text,
        pid: Int,
        backend_start: Time,
        prepared_xid: Int,
        prepared_gid: Text,
        database: Text,
        username: Text,
        application: Text,
        state: Text,
        xact_age: Interval,
        query_id: Id,
        query_text: Text,
        blocked_seconds: Numeric,
        waiters: Int,
        depth: Int,
        waited: Interval,
        via: Text,
        locktype: Text,
        object: Text,
        lock_database: Int,
        lock_relation: Int,
        mode: Text,
        mode_held: Text,
        first_seen: Time,
        last_seen: Time,
    }
}

/// A blocker or waiter in the answer.
#[derive(Clone, Copy)]
pub struct TreeNode {
    /// Node of the session or prepared transaction; `cycle` is set only for the first row of a
    /// tree.
    pub head: Head,
    /// Steps from the head of the tree.
    pub level: i64,
    /// Index of the edge to the node's blocker; only in the tree of a moment.
    pub edge: Option<usize>,
}

impl TreeNode {
    /// The head of a queue.
    pub fn head(head: Head, level: i64) -> TreeNode {
        TreeNode {
            head,
            level,
            edge: None,
        }
    }

    /// A waiter.
    pub fn waiter(node: Node, level: i64, edge: usize) -> TreeNode {
        let cycle = false;
        TreeNode {
            head: Head { node, cycle },
            level,
            edge: Some(edge),
        }
    }
}

/// A locked object, with the requested and the held modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    locktype: i64,
    database: i64,
    fields: [i64; 3],
    requested: i64,
    held: i64,
    hard: i64,
}

impl Object {
    /// The locked relation, or the relation that contains the locked object.
    fn relation(self, catalog: &Schema) -> Option<Relation> {
        let oid = pg::locked_relation(catalog, self.locktype, self.fields)?;
        let database = self.database;
        Some(Relation { database, oid })
    }

    /// True if the blocker does not hold this lock: it only stands before the waiter in the queue
    /// for the lock.
    pub fn is_of_a_queue(self) -> bool {
        self.hard == 0
    }
}

/// The columns of table `lock` with the locked objects, prepared transactions and wait starts.
pub struct Locks {
    object: [Column; 8],
    gid: Column,
    wait_start: Column,
    /// Rows copied from later parts. Their numbers follow the part's own rows.
    later: Vec<LockRow>,
}

/// The contents of one row of table `lock`.
#[derive(Clone)]
pub struct LockRow {
    object: Object,
    gid: Option<String>,
    /// Start of the wait in ms; 0 if unknown.
    pub wait_start: i64,
}

impl Locks {
    /// Reads the columns of a part.
    pub fn read(view: &View) -> QueryResult<Locks> {
        let column = |name: &str| view.part.ints("lock", name);
        Ok(Locks {
            object: [
                column("locktype")?,
                column("lock_database")?,
                column("field1")?,
                column("field2")?,
                column("field3")?,
                column("mode_requested")?,
                column("modes_held")?,
                column("hard")?,
            ],
            gid: column("blocker_gid")?,
            wait_start: column("wait_start")?,
            later: Vec::new(),
        })
    }

    /// Adds a row of a later part; returns its number.
    pub fn add(&mut self, row: &LockRow) -> u32 {
        self.later.push(row.clone());
        (self.gid.len() + self.later.len() - 1) as u32
    }

    /// The contents of a row.
    pub fn lock_row(&self, view: &View, row: usize) -> QueryResult<LockRow> {
        Ok(LockRow {
            object: self.object(row),
            gid: self.gid(view, row)?,
            wait_start: self.wait_start(row),
        })
    }

    /// The row, if it was copied from a later part.
    fn later(&self, row: usize) -> Option<&LockRow> {
        self.later.get(row.checked_sub(self.gid.len())?)
    }

    /// Start of the wait in ms; 0 if unknown.
    pub fn wait_start(&self, row: usize) -> i64 {
        let later = self.later(row).map(|row| row.wait_start);
        later.unwrap_or_else(|| self.wait_start[row])
    }

    /// The locked object.
    pub fn object(&self, row: usize) -> Object {
        if let Some(copied) = self.later(row) {
            return copied.object;
        }
        let [locktype, database, a, b, c, requested, held, hard] =
            std::array::from_fn(|i| self.object[i][row]);
        Object {
            locktype,
            database,
            fields: [a, b, c],
            requested,
            held,
            hard,
        }
    }

    /// Identifier of the blocking prepared transaction.
    pub fn gid(&self, view: &View, row: usize) -> QueryResult<Option<String>> {
        match self.later(row) {
            Some(copied) => Ok(copied.gid.clone()),
            None => view.name(Reference(self.gid[row])),
        }
    }
}

/// Figures about a node that others wait for.
#[derive(Default)]
pub struct QueueFigures {
    /// Sum of the waiters' time in ms.
    pub blocked_ms: i64,
    /// Largest number of waiters at one tick.
    pub waiters: i64,
    /// Largest number of steps to a waiter.
    pub depth: i64,
    /// Time that the node itself has waited, in ms; `None` if it does not wait or the time is
    /// unknown.
    pub waited_ms: Option<i64>,
    /// Locked objects, each with the time in ms that others waited for it.
    pub objects: FastMap<Object, i64>,
    /// Identifier of a prepared transaction.
    pub gid: Option<String>,
    /// Part in which the node was seen last.
    pub part: usize,
    /// Number of the tick at which the node was seen last.
    pub tick: i64,
    /// Slot times in ms at which the node was seen first and last.
    pub seen: Option<(i64, i64)>,
    /// Time when that last tick was taken, in ms.
    pub taken_ms: i64,
}

impl QueueFigures {
    /// Adds a tick at which the node was seen. If the clock was set back, two ticks may have the
    /// same slot time. The tick with the larger number then counts, in whatever order they come.
    pub fn see(&mut self, part: usize, tick: i64, slot_ms: i64, taken_ms: i64) {
        let (first, last) = self.seen.unwrap_or((slot_ms, slot_ms));
        if (slot_ms, part, tick) >= (last, self.part, self.tick) {
            (self.part, self.tick, self.taken_ms) = (part, tick, taken_ms);
        }
        self.seen = Some((first.min(slot_ms), last.max(slot_ms)));
    }

    /// The object that others waited for longest.
    fn object(&self) -> Option<Object> {
        let largest = self.objects.iter().max_by_key(|(o, ms)| (**ms, **o));
        largest.map(|(object, _)| *object)
    }
}

/// A row that the answer shows.
pub struct Shown {
    /// The node of the row, and where it stands in the tree.
    pub tree_node: TreeNode,
    /// Figures about the queue behind it.
    pub figures: QueueFigures,
    /// The object that others waited for longest.
    object: Option<Object>,
}

impl Shown {
    /// Finds the object among the figures.
    pub fn new(tree_node: TreeNode, figures: QueueFigures) -> Shown {
        let object = figures.object();
        Shown {
            tree_node,
            figures,
            object,
        }
    }
}

/// A session at one tick.
struct SessionFact {
    database: Option<String>,
    username: Option<String>,
    application: Option<String>,
    state: Option<String>,
    xact_start_ms: i64,
    query_id: i64,
    text: Option<TextKey>,
}

/// Sessions at the ticks where they were last seen.
#[derive(Default)]
pub struct SessionFacts {
    sessions: FastMap<Node, SessionFact>,
    texts: Texts,
    relations: RelationNames,
}

impl SessionFacts {
    /// Reads the wanted sessions of a part, each at its tick.
    pub fn read(
        &mut self,
        scan: &Scan,
        index: usize,
        wanted: impl Iterator<Item = (Node, i64)>,
    ) -> QueryResult<()> {
        let wanted: FastMap<Node, i64> = wanted.collect();
        if wanted.is_empty() {
            return Ok(());
        }
        scan.check_cancel()?;
        let view = View::new(scan.parts[index], scan.run.decode);
        let column = |table: &str, name: &str| view.part.ints(table, name);
        let (pid, start) = (
            column("session", "pid")?,
            column("session", "backend_start")?,
        );
        let session = column(RUN, "session")?;
        let (first, ticks) = (column(RUN, "first_tick")?, column(RUN, "ticks")?);
        let node = |entry: usize| Node::Session(pid[entry], start[entry]);
        // One look-up for each session instead of each row.
        let entries = 0..pid.len();
        let wanted: Vec<Option<i64>> = entries.map(|e| wanted.get(&node(e)).copied()).collect();
        for row in 0..session.len() {
            let Some(entry) = usize::try_from(session[row] - 1).ok() else {
                continue;
            };
            let Some(Some(at)) = wanted.get(entry) else {
                continue;
            };
            if (first[row]..first[row] + ticks[row]).contains(at) {
                let fact = SessionFact::read(&view, row, entry)?;
                let owner = scan.run.owner.as_deref();
                if owner.is_none() || fact.username.as_deref() == owner {
                    self.sessions.insert(node(entry), fact);
                }
            }
        }
        Ok(())
    }

    /// Finds the query texts of all sessions.
    pub fn find_texts(&mut self, scan: &Scan) -> QueryResult<()> {
        let wanted: Vec<TextKey> = self.sessions.values().filter_map(|f| f.text).collect();
        let near = scan.parts.iter().rev().copied();
        let far = scan.others.iter().rev().copied();
        self.texts = Texts::find(wanted, near, far, scan.run)?;
        Ok(())
    }

    /// Finds the names of the relations that the rows show.
    pub fn find_relations(&mut self, scan: &Scan, shown: &[Shown]) -> QueryResult<()> {
        let objects = shown.iter().filter_map(|row| row.object);
        let wanted = objects.filter_map(|object| object.relation(scan.run.catalog));
        let parts = scan.parts.iter().rev().chain(scan.others.iter().rev());
        self.relations = RelationNames::find(wanted, parts.copied(), scan.run)?;
        Ok(())
    }
}

impl SessionFact {
    fn read(view: &View, row: usize, entry: usize) -> QueryResult<SessionFact> {
        let session = |column: &str| -> QueryResult<Option<String>> {
            view.name(Reference(view.part.ints("session", column)?[entry]))
        };
        let run = |column: &str| -> QueryResult<i64> { Ok(view.part.ints(RUN, column)?[row]) };
        let statement = usize::try_from(run("statement")? - 1).ok();
        let of_statement = |column: &str| -> QueryResult<i64> {
            let column = view.part.ints("statement", column)?;
            let value = statement.and_then(|row| column.get(row));
            Ok(value.copied().unwrap_or(0))
        };
        let query_id = of_statement(pg::QUERY_ID)?;
        let hash = of_statement("text_key")?;
        let text = TextKey::of(query_id, hash);
        Ok(SessionFact {
            database: session("database")?,
            username: session(pg::USERNAME)?,
            application: session("application")?,
            state: view.key(RUN, pg::STATE, run(pg::STATE)?)?,
            xact_start_ms: run("xact_start")?,
            query_id,
            text,
        })
    }
}

/// The row of a blocker or waiter.
pub fn row(shown: &Shown, facts: &SessionFacts, run: Run) -> BlockingRow {
    let (tree_node, found, object) = (&shown.tree_node, &shown.figures, shown.object);
    let fact = facts.sessions.get(&tree_node.head.node);
    let text = |value: fn(&SessionFact) -> &Option<String>| -> Option<Arc<str>> {
        value(fact?).as_deref().map(Arc::from)
    };
    let (kind, pid, start, xid) = match tree_node.head.node {
        Node::Session(pid, start) => ("session", Some(pid), nonzero(start), None),
        Node::Prepared(xid) => ("prepared transaction", None, None, Some(xid)),
        Node::Unknown => ("unknown", None, None, None),
        Node::Lost => ("lost", None, None, None),
    };
    let kind = if tree_node.head.cycle { "cycle" } else { kind };
    let (first, last) = found.seen.unwrap_or((0, 0));
    let us = |ms: i64| ms.saturating_mul(1000);
    let xact = fact.map(|f| f.xact_start_ms).filter(|start| *start != 0);
    // Starts are rounded (`format/starts.rs`), so this age may be too small. A wait is never longer
    // than its transaction.
    let xact_age = |start: i64| us((found.taken_ms - start).max(found.waited_ms.unwrap_or(0)));
    let catalog = run.catalog;
    let relation = object.and_then(|o| o.relation(catalog));
    let via = object.filter(|_| tree_node.edge.is_some());
    let name = |o: Object| {
        let relation = relation.and_then(|relation| facts.relations.get(relation));
        pg::locked_object(catalog, o.locktype, o.database, o.fields, relation)
    };
    BlockingRow {
        tree: Some(tree(tree_node, kind, pid, xid, found.gid.as_deref()).into()),
        level: Some(tree_node.level),
        kind: Some(kind.into()),
        pid,
        backend_start: start,
        prepared_xid: xid,
        prepared_gid: found.gid.as_deref().map(Arc::from),
        database: text(|f| &f.database),
        username: text(|f| &f.username),
        application: text(|f| &f.application),
        state: text(|f| &f.state),
        xact_age: xact.map(xact_age),
        query_id: fact.and_then(|f| nonzero(f.query_id)),
        query_text: fact.and_then(|f| facts.texts.get(f.text?, f.database.as_deref())),
        blocked_seconds: seconds(found.blocked_ms),
        waiters: Some(found.waiters),
        depth: Some(found.depth),
        waited: found.waited_ms.map(us),
        via: via.map(|o| Arc::from(if o.is_of_a_queue() { "queue" } else { "lock" })),
        locktype: object
            .and_then(|o| pg::locktype(catalog, o.locktype))
            .map(Arc::from),
        object: object.map(|o| name(o).into()),
        lock_database: relation.map(|relation| relation.database),
        lock_relation: relation.map(|relation| relation.oid),
        mode: object
            .and_then(|o| pg::lock_mode(o.requested))
            .map(Arc::from),
        mode_held: object
            .and_then(|o| pg::strongest_mode(o.held))
            .map(Arc::from),
        first_seen: Some(us(first)),
        last_seen: Some(us(last)),
    }
}

/// The name in the column `tree`, indented by level.
fn tree(
    tree_node: &TreeNode,
    kind: &str,
    pid: Option<i64>,
    xid: Option<i64>,
    gid: Option<&str>,
) -> String {
    let indent = "  ".repeat(usize::try_from(tree_node.level.min(100)).unwrap_or(0));
    let who = match (pid, xid, gid) {
        (Some(pid), ..) if tree_node.head.cycle => format!("cycle of {pid}"),
        (Some(pid), ..) => pid.to_string(),
        (None, Some(xid), gid) => pg::prepared(gid, xid),
        _ => format!("({kind})"),
    };
    indent + &who
}
