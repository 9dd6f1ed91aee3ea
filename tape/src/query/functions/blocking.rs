//! `blocking`: sessions that block others. For a window it shows the heads of queues, ordered by
//! the time that others waited behind them. For a point in time it shows the whole tree.

pub use super::blocking_rows::BlockingRow;
use super::blocking_rows::{Locks, Object, QueueFigures, SessionFacts, Shown, TreeNode, row};
use super::blocking_waits::{LaterWaits, edges, taken_at};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::rows::blockers::{Edge, Graph, Head, Node};
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::{NEAR, Samples, Window, check_moment, limit};
use crate::query::rows::scan::Scan;
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

request! {
    /// Blocking sessions: heads of lock queues, or the tree of one moment
    Blocking of blocking: BlockingRow {
        node,
        at("Point in time instead of a window: the tree of waits", None),
        since,
        until,
        n("Maximum number of blockers, or all", Some("10")),
    }
}

fn answer(asked: &Blocking, run: Run, emit: Emit<BlockingRow>) -> QueryResult<()> {
    let left = limit(asked.n)?;
    check_moment(asked.at, asked.since, asked.until)?;
    match asked.at {
        None => window(asked, run, left, emit),
        Some(at) => moment(asked, run, at, left, emit),
    }
}

/// The samples of a question: the load of a node.
fn samples(asked: &Blocking) -> Samples<'_> {
    Samples {
        node: asked.node.as_deref(),
        ..Samples::default()
    }
}

fn whole(window: Window) -> QueryResult<Buckets> {
    Buckets::new(window.since, window.until, window.length().max(1), None, 2)
}

/// Emits the heads of the queues in a window.
fn window(asked: &Blocking, run: Run, left: usize, emit: Emit<BlockingRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let scan = Scan::new(run, samples(asked), window)?;
    let mut heads: BTreeMap<Head, QueueFigures> = BTreeMap::new();
    if window.length() == 0 {
        return Ok(());
    }
    let buckets = whole(window)?;
    let mut later = LaterWaits::default();
    for (index, part) in scan.parts.iter().enumerate().rev() {
        scan.check_cancel()?;
        let view = View::new(part, run.decode);
        let ticks = Ticks::read(part, &buckets, &mut Observed::default())?;
        let taken = taken_at(&view, &ticks)?;
        let (edges, locks) = edges(&view, &ticks, &mut later)?;
        let own = own_sessions(&view, run)?;
        for tick in edges.chunk_by(|a, b| a.tick == b.tick) {
            add_tick(&mut heads, index, (&ticks, &taken), tick, &own);
        }
        read_objects(&view, &ticks, &edges, &locks, &mut heads)?;
        part.release();
    }
    let mut order: Vec<(Head, QueueFigures)> = heads.into_iter().collect();
    order.sort_by_key(|(head, found)| (-found.blocked_ms, *head));
    order.truncate(left);
    let heads = order.into_iter();
    let shown = heads.map(|(head, found)| Shown::new(TreeNode::head(head, 0), found));
    let shown: Vec<Shown> = shown.collect();
    let mut facts = SessionFacts::default();
    for index in 0..scan.parts.len() {
        let here = shown.iter().filter(|row| row.figures.part == index);
        let wanted = here.map(|row| (row.tree_node.head.node, row.figures.tick));
        facts.read(&scan, index, wanted)?;
    }
    show(&scan, &shown, facts, run, emit)
}

/// Emits rows. `facts` has their sessions.
fn show(
    scan: &Scan,
    shown: &[Shown],
    mut facts: SessionFacts,
    run: Run,
    emit: Emit<BlockingRow>,
) -> QueryResult<()> {
    facts.find_texts(scan)?;
    facts.find_relations(scan, shown)?;
    for one in shown {
        emit(row(one, &facts, run))?;
    }
    Ok(())
}

/// The sessions that a role may see; `None` means all.
fn own_sessions(view: &View, run: Run) -> QueryResult<Option<HashSet<i64>>> {
    let Some(owner) = &run.owner else {
        return Ok(None);
    };
    let users = view.part.ints("session", "username")?;
    let mut own = HashSet::new();
    for (row, user) in users.iter().enumerate() {
        if view.name(Reference(*user))?.as_ref() == Some(owner) {
            own.insert(row as i64 + 1);
        }
    }
    Ok(Some(own))
}

/// Adds the waits of one tick to the heads of their queues.
fn add_tick(
    heads: &mut BTreeMap<Head, QueueFigures>,
    part: usize,
    (ticks, taken): (&Ticks, &[i64]),
    edges: &[Edge],
    own: &Option<HashSet<i64>>,
) {
    let at = edges[0].tick as usize;
    let counted = match edges.iter().all(|edge| edge.blocker == Node::Unknown) {
        true => count_unknown(edges, own),
        false => count_heads(edges, own),
    };
    for (head, (waiters, depth)) in counted {
        let found = heads.entry(head).or_default();
        found.blocked_ms += waiters * ticks.weight_ms[at];
        found.waiters = found.waiters.max(waiters);
        found.depth = found.depth.max(depth);
        found.see(part, ticks.number(at), ticks.slot_ms[at], taken[at]);
    }
}

/// Number of waiters behind each head, and steps to the farthest one.
type Counted = BTreeMap<Head, (i64, i64)>;

/// Counts the waiters behind each head at one tick.
fn count_heads(edges: &[Edge], own: &Option<HashSet<i64>>) -> Counted {
    let mut graph = Graph::without_unknown(edges);
    let mut counted = Counted::new();
    for (session, node) in graph.waiters() {
        if own.as_ref().is_some_and(|own| !own.contains(&session)) {
            continue;
        }
        for (head, steps) in graph.heads(node) {
            let (waiters, depth) = counted.entry(*head).or_default();
            *waiters += 1;
            *depth = (*depth).max(*steps);
        }
    }
    counted
}

/// Same as [`count_heads`] for a tick without a known blocker. Most ticks are like this if waits
/// are short; no edge has to be followed.
fn count_unknown(edges: &[Edge], own: &Option<HashSet<i64>>) -> Counted {
    let mut sessions: Vec<i64> = edges.iter().map(|edge| edge.session).collect();
    sessions.retain(|session| own.as_ref().is_none_or(|own| own.contains(session)));
    sessions.sort_unstable();
    sessions.dedup();
    let (node, cycle) = (Node::Unknown, false);
    let counted = (sessions.len() as i64, 1);
    let any = (!sessions.is_empty()).then_some((Head { node, cycle }, counted));
    any.into_iter().collect()
}

/// Adds the locked objects that others waited for to the known heads.
fn read_objects(
    view: &View,
    ticks: &Ticks,
    edges: &[Edge],
    locks: &Locks,
    heads: &mut BTreeMap<Head, QueueFigures>,
) -> QueryResult<()> {
    for edge in edges {
        let Some(row) = edge.row else {
            continue;
        };
        let weight = ticks.weight_ms[edge.tick as usize];
        for cycle in [false, true] {
            let node = edge.blocker;
            if let Some(found) = heads.get_mut(&Head { node, cycle }) {
                let object = locks.object(row as usize);
                *found.objects.entry(object).or_default() += weight;
                if found.gid.is_none() {
                    found.gid = locks.gid(view, row as usize)?;
                }
            }
        }
    }
    Ok(())
}

/// Emits the tree of the last tick at or before a point in time.
fn moment(
    asked: &Blocking,
    run: Run,
    at: i64,
    left: usize,
    emit: Emit<BlockingRow>,
) -> QueryResult<()> {
    let window = Window {
        since: at.saturating_sub(NEAR),
        until: at.saturating_add(1),
    };
    let scan = Scan::new(run, samples(asked), window)?;
    let buckets = whole(window)?;
    let mut newest: Option<((i64, usize), usize, Ticks)> = None;
    for (index, part) in scan.parts.iter().enumerate() {
        scan.check_cancel()?;
        let ticks = Ticks::read(part, &buckets, &mut Observed::default())?;
        let last = (0..ticks.len()).rev().find(|t| ticks.bucket[*t] != NONE);
        if let Some(last) = last {
            let key = (ticks.slot_ms[last], index);
            if newest.as_ref().is_none_or(|(known, ..)| *known < key) {
                newest = Some((key, last, ticks));
            }
        }
        part.release();
    }
    let Some(((_, index), last, ticks)) = newest else {
        return Ok(());
    };
    let view = View::new(scan.parts[index], run.decode);
    let (mut edges, locks) = edges(&view, &ticks, &mut LaterWaits::default())?;
    edges.retain(|edge| edge.tick as usize == last);
    if let Some(own) = own_sessions(&view, run)? {
        edges.retain(|edge| own.contains(&edge.session));
    }
    let tree = Tree::new(&view, &ticks, last, &edges, &locks)?;
    let nodes = tree.tree_nodes(left).into_iter();
    let shown: Vec<Shown> = nodes
        .map(|node| Shown::new(node, tree.found(&node, index)))
        .collect();
    let mut facts = SessionFacts::default();
    let number = ticks.number(last);
    let wanted = shown.iter().map(|row| (row.tree_node.head.node, number));
    facts.read(&scan, index, wanted)?;
    show(&scan, &shown, facts, run, emit)
}

/// The waiters behind each blocker at one tick.
struct Tree<'a> {
    edges: &'a [Edge],
    heads: Vec<Head>,
    /// Indexes of the edges to each blocker, longest wait first.
    behind: HashMap<Node, Vec<usize>>,
    /// Waiting time of each edge; `None` if unknown.
    waited_ms: Vec<Option<i64>>,
    objects: Vec<Option<Object>>,
    gids: HashMap<Node, String>,
    tick: i64,
    slot_ms: i64,
    taken_ms: i64,
}

impl<'a> Tree<'a> {
    fn new(
        view: &View,
        ticks: &Ticks,
        last: usize,
        edges: &'a [Edge],
        locks: &Locks,
    ) -> QueryResult<Tree<'a>> {
        let taken = taken_at(view, ticks)?[last];
        let waited = |edge: &Edge| {
            let start = edge.row.map_or(0, |row| locks.wait_start(row as usize));
            (start != 0).then(|| (taken - start).max(0))
        };
        let mut tree = Tree {
            edges,
            heads: Vec::new(),
            behind: HashMap::new(),
            waited_ms: edges.iter().map(waited).collect(),
            objects: Vec::new(),
            gids: HashMap::new(),
            tick: ticks.number(last),
            slot_ms: ticks.slot_ms[last],
            taken_ms: taken,
        };
        for (index, edge) in edges.iter().enumerate() {
            let row = edge.row.map(|row| row as usize);
            tree.objects.push(row.map(|row| locks.object(row)));
            if edge.waiter != edge.blocker {
                tree.behind.entry(edge.blocker).or_default().push(index);
            }
            if let Some(gid) = row.map(|row| locks.gid(view, row)).transpose()?.flatten() {
                tree.gids.insert(edge.blocker, gid);
            }
        }
        // Processes of a parallel query stand for one node: who waits for all of them
        // waits for it once, for a lock that it holds before one that it only asked for.
        let is_ahead = |e: &usize| tree.objects[*e].is_some_and(Object::is_of_a_queue);
        for waiting in tree.behind.values_mut() {
            waiting.sort_by_key(|e| {
                let waited = std::cmp::Reverse(tree.waited_ms[*e]);
                (waited, edges[*e].waiter, is_ahead(e))
            });
            let mut seen = HashSet::new();
            waiting.retain(|e| seen.insert(edges[*e].waiter));
        }
        let mut graph = Graph::new(edges);
        let mut heads: BTreeSet<Head> = BTreeSet::new();
        for (_, node) in graph.waiters() {
            heads.extend(graph.heads(node).iter().map(|(head, _)| *head));
        }
        tree.heads = heads.into_iter().collect();
        let size = |head: &Head| tree.below(head.node).len();
        let mut heads = tree.heads.clone();
        heads.sort_by_key(|head| (std::cmp::Reverse(size(head)), *head));
        tree.heads = heads;
        Ok(tree)
    }

    /// All nodes of the tree, heads first. The waiters behind a node are listed once.
    fn tree_nodes(&self, heads: usize) -> Vec<TreeNode> {
        let mut tree_nodes = Vec::new();
        let mut seen = HashSet::new();
        for head in self.heads.iter().take(heads) {
            let mut stack = vec![TreeNode::head(*head, 0)];
            while let Some(tree_node) = stack.pop() {
                tree_nodes.push(tree_node);
                if !seen.insert(tree_node.head.node) {
                    continue;
                }
                let behind = self.behind.get(&tree_node.head.node);
                for index in behind.into_iter().flatten().rev() {
                    let node = self.edges[*index].waiter;
                    if !(head.cycle && node == head.node) {
                        stack.push(TreeNode::waiter(node, tree_node.level + 1, *index));
                    }
                }
            }
        }
        tree_nodes
    }

    /// All direct and indirect waiters behind a node, each with its longest wait and its depth.
    fn below(&self, node: Node) -> HashMap<Node, (i64, i64)> {
        let mut found: HashMap<Node, (i64, i64)> = HashMap::new();
        let mut level = vec![node];
        let mut depth = 0;
        while !level.is_empty() {
            depth += 1;
            let mut next = Vec::new();
            for index in level.iter().filter_map(|n| self.behind.get(n)).flatten() {
                let waiter = self.edges[*index].waiter;
                let waited = self.waited_ms[*index].unwrap_or(0);
                match found.get_mut(&waiter) {
                    Some(known) => known.0 = known.0.max(waited),
                    None => {
                        found.insert(waiter, (waited, depth));
                        next.push(waiter);
                    }
                }
            }
            level = next;
        }
        found
    }

    fn found(&self, tree_node: &TreeNode, part: usize) -> QueueFigures {
        let below = self.below(tree_node.head.node);
        let mut found = QueueFigures {
            blocked_ms: below.values().map(|b| b.0).sum(),
            waiters: below.len() as i64,
            depth: below.values().map(|b| b.1).max().unwrap_or(0),
            gid: self.gids.get(&tree_node.head.node).cloned(),
            waited_ms: tree_node.edge.and_then(|edge| self.waited_ms[edge]),
            ..QueueFigures::default()
        };
        found.see(part, self.tick, self.slot_ms, self.taken_ms);
        let object = tree_node.edge.and_then(|edge| self.objects[edge]);
        found.objects.extend(object.map(|object| (object, 1)));
        found
    }
}
