//! Edges from waiters to their blockers at each tick. They come from table `lock`, or from the
//! column `blocked_by` if the history has no such table. A parallel worker stands for its leader:
//! members of a parallel group never block each other, and if one of them waits for a blocker, all
//! of them do.

use super::keys::View;
use super::ticks::{NONE, Ticks};
use crate::fast::{FastMap, FastSet};
use crate::format::schema::RUN;
use crate::format::table::Column;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::collections::{BTreeMap, VecDeque};

/// A waiter or a blocker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// A session: process id, start in µs.
    Session(i64, i64),
    /// A prepared transaction by its transaction id.
    Prepared(i64),
    /// The recorder did not look for a blocker: the wait was young, or too many sessions waited.
    Unknown,
    /// A blocker that had ended before the recorder looked it up.
    Lost,
}

/// A waiter and one of its blockers.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Row of the tick in [`Ticks`].
    pub tick: u32,
    /// Reference of the waiting session. If a parallel worker waits, the worker's own.
    pub session: i64,
    /// The waiter.
    pub waiter: Node,
    /// The blocker.
    pub blocker: Node,
    /// Row of table `lock`, if there is one.
    pub row: Option<u32>,
}

/// The edges of a part at ticks that count, ordered by tick.
pub fn edges(view: &View, ticks: &Ticks, nodes: &Nodes) -> QueryResult<Vec<Edge>> {
    let mut edges = if view.part.rows("lock") > 0 {
        edges_of_locks(view, ticks, nodes)?
    } else {
        edges_of_runs(view, ticks, nodes)?
    };
    edges.sort_by_key(|edge| edge.tick);
    Ok(edges)
}

fn edges_of_locks(view: &View, ticks: &Ticks, nodes: &Nodes) -> QueryResult<Vec<Edge>> {
    let column = |name: &str| view.part.ints("lock", name);
    let (at, waiter, blocker) = (column("at")?, column("waiter")?, column("blocker")?);
    let prepared = column("blocker_xid")?;
    let mut edges = Vec::new();
    for row in 0..at.len() {
        let (tick, end) = ticks.range(at[row], 1);
        if end == tick || ticks.bucket[tick as usize] == NONE {
            continue;
        }
        let blocker = match (blocker[row], prepared[row]) {
            (0, 0) => Node::Lost,
            (0, xid) => Node::Prepared(xid),
            (session, _) => nodes.of(session),
        };
        edges.push(Edge {
            tick,
            session: waiter[row],
            waiter: nodes.of(waiter[row]),
            blocker,
            row: Some(row as u32),
        });
    }
    Ok(edges)
}

fn edges_of_runs(view: &View, ticks: &Ticks, nodes: &Nodes) -> QueryResult<Vec<Edge>> {
    let column = |name: &str| view.part.ints(RUN, name);
    let (session, blocker) = (column("session")?, column(pg::BLOCKED_BY)?);
    let (first, length) = (column("first_tick")?, column("ticks")?);
    let mut edges = Vec::new();
    for row in (0..blocker.len()).filter(|row| blocker[*row] != 0) {
        let (begin, end) = ticks.range(first[row], length[row]);
        for tick in (begin..end).filter(|tick| ticks.bucket[*tick as usize] != NONE) {
            edges.push(Edge {
                tick,
                session: session[row],
                waiter: nodes.of(session[row]),
                blocker: nodes.of(blocker[row]),
                row: None,
            });
        }
    }
    Ok(edges)
}

/// The node of each entry in the `session` dictionary of a part.
pub struct Nodes {
    pid: Column,
    start: Column,
    leader: Column,
    /// Starts of the sessions with the process id of a leader, by this id.
    starts: FastMap<i64, Vec<i64>>,
    /// Nodes of the leaders of parallel workers.
    groups: FastSet<Node>,
}

impl Nodes {
    /// Reads the sessions of a part.
    pub fn read(view: &View) -> QueryResult<Nodes> {
        let column = |name: &str| view.part.ints("session", name);
        let (pid, start, leader) = (
            column("pid")?,
            column("backend_start")?,
            column(pg::LEADER)?,
        );
        // Starts of leaders only: a day may have a million sessions.
        let leaders = leader.iter().filter(|leader| **leader != 0);
        let mut starts: FastMap<i64, Vec<i64>> =
            leaders.map(|leader| (*leader, Vec::new())).collect();
        if !starts.is_empty() {
            for row in (0..pid.len()).filter(|row| leader[*row] == 0) {
                if let Some(starts) = starts.get_mut(&pid[row]) {
                    starts.push(start[row]);
                }
            }
        }
        let mut nodes = Nodes {
            pid,
            start,
            leader,
            starts,
            groups: FastSet::default(),
        };
        let leader = nodes.leader.iter().enumerate();
        let workers = leader.filter(|(_, leader)| **leader != 0);
        nodes.groups = workers.map(|(row, _)| nodes.at(row)).collect();
        Ok(nodes)
    }

    /// Leaders of parallel workers.
    pub fn groups(&self) -> &FastSet<Node> {
        &self.groups
    }

    /// The node of a session entry.
    pub fn of(&self, reference: i64) -> Node {
        self.row(reference).map_or(Node::Lost, |row| self.at(row))
    }

    /// Process id and start, in µs, of the session's own process; `None` without an entry.
    pub fn process(&self, reference: i64) -> Option<(i64, i64)> {
        let row = self.row(reference)?;
        Some((self.pid[row], self.start[row]))
    }

    fn row(&self, reference: i64) -> Option<usize> {
        let row = usize::try_from(reference - 1).ok();
        row.filter(|row| *row < self.pid.len())
    }

    fn at(&self, row: usize) -> Node {
        let (start, leader) = (self.start[row], self.leader[row]);
        if leader == 0 {
            return Node::Session(self.pid[row], start);
        }
        let known = self.starts.get(&leader).into_iter().flatten();
        let before = known.filter(|known| **known <= start).max();
        Node::Session(leader, before.copied().unwrap_or(0))
    }
}

/// The end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Head {
    /// The node that waits for no other; in a cycle its first member.
    pub node: Node,
    /// True if `node` is a member of a cycle, whose members wait for each other.
    pub cycle: bool,
}

/// The graph of the edges of one tick.
pub struct Graph<'e> {
    /// The edges.
    pub edges: &'e [Edge],
    blockers: FastMap<Node, Vec<Node>>,
    /// Waiters without a known blocker; only [`Graph::without_unknown`] fills it.
    unknown_waiters: FastSet<Node>,
    known: FastMap<Node, Vec<(Head, i64)>>,
}

impl<'e> Graph<'e> {
    /// The graph of these edges, which belong to one tick.
    pub fn new(edges: &'e [Edge]) -> Graph<'e> {
        let mut blockers: FastMap<Node, Vec<Node>> = FastMap::default();
        for edge in edges.iter().filter(|edge| edge.waiter != edge.blocker) {
            blockers.entry(edge.waiter).or_default().push(edge.blocker);
        }
        Graph {
            edges,
            blockers,
            unknown_waiters: FastSet::default(),
            known: FastMap::default(),
        }
    }

    /// Same as [`Graph::new`], but a waiter with a known blocker no longer waits for
    /// [`Node::Unknown`]. Waiters without one are in `unknown_waiters`.
    pub fn without_unknown(edges: &'e [Edge]) -> Graph<'e> {
        let mut graph = Graph::new(edges);
        graph.blockers.retain(|waiter, blockers| {
            blockers.retain(|blocker| *blocker != Node::Unknown);
            if blockers.is_empty() {
                graph.unknown_waiters.insert(*waiter);
            }
            !blockers.is_empty()
        });
        graph
    }

    /// The waiting sessions by reference, each with its node.
    pub fn waiters(&self) -> BTreeMap<i64, Node> {
        let waiting = |edge: &&Edge| {
            self.blockers.contains_key(&edge.waiter) || self.unknown_waiters.contains(&edge.waiter)
        };
        let edges = self.edges.iter().filter(waiting);
        edges.map(|edge| (edge.session, edge.waiter)).collect()
    }

    /// All direct and indirect blockers of a node, with the fewest steps to each.
    fn reach(&self, from: Node) -> BTreeMap<Node, i64> {
        let mut found = BTreeMap::new();
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((node, steps)) = queue.pop_front() {
            for next in self.blockers.get(&node).into_iter().flatten() {
                if !found.contains_key(next) {
                    found.insert(*next, steps + 1);
                    queue.push_back((*next, steps + 1));
                }
            }
        }
        found
    }

    /// The heads of the queues that a waiter stands in, and the number of edges to each. If every
    /// node that it reaches waits, the head is a cycle.
    pub fn heads(&mut self, waiter: Node) -> &[(Head, i64)] {
        if !self.known.contains_key(&waiter) {
            let found = self.find_heads(waiter);
            self.known.insert(waiter, found);
        }
        self.known.get(&waiter).map_or(&[], Vec::as_slice)
    }

    fn find_heads(&self, waiter: Node) -> Vec<(Head, i64)> {
        if self.unknown_waiters.contains(&waiter) {
            let (node, cycle) = (Node::Unknown, false);
            return vec![(Head { node, cycle }, 1)];
        }
        let reach = self.reach(waiter);
        let free = reach.iter().filter(|(n, _)| !self.blockers.contains_key(n));
        let mut heads: Vec<(Head, i64)> = free
            .map(|(node, steps)| {
                (
                    Head {
                        node: *node,
                        cycle: false,
                    },
                    *steps,
                )
            })
            .collect();
        if heads.is_empty() {
            let member = |n: &&Node| self.reach(**n).contains_key(*n);
            if let Some(node) = reach.keys().find(member).copied() {
                heads.push((Head { node, cycle: true }, reach[&node]));
            }
        }
        heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: i64) -> Node {
        Node::Session(pid, 0)
    }

    fn graph_edges(pairs: &[(i64, i64)]) -> Vec<Edge> {
        let edge = |(waiter, blocker): &(i64, i64)| Edge {
            tick: 0,
            session: *waiter,
            waiter: session(*waiter),
            blocker: session(*blocker),
            row: None,
        };
        pairs.iter().map(edge).collect()
    }

    fn heads(pairs: &[(i64, i64)], waiter: i64) -> Vec<(Node, bool, i64)> {
        let edges = graph_edges(pairs);
        let mut graph = Graph::new(&edges);
        let heads = graph.heads(session(waiter));
        heads.iter().map(|(h, d)| (h.node, h.cycle, *d)).collect()
    }

    #[test]
    fn a_chain_leads_to_its_end_and_counts_steps() {
        let chain = [(1, 2), (2, 3), (3, 4)];
        assert_eq!(heads(&chain, 1), [(session(4), false, 3)]);
        assert_eq!(heads(&chain, 3), [(session(4), false, 1)]);
        assert_eq!(heads(&chain, 4), []);
    }

    #[test]
    fn several_holders_are_all_heads() {
        let pairs = [(1, 8), (1, 9), (2, 1)];
        let expected = [(session(8), false, 2), (session(9), false, 2)];
        assert_eq!(heads(&pairs, 2), expected);
    }

    #[test]
    fn a_cycle_is_named_by_its_first_member_wherever_it_is_entered() {
        let pairs = [(7, 5), (5, 6), (6, 5)];
        assert_eq!(heads(&pairs, 7), [(session(5), true, 1)]);
        assert_eq!(heads(&pairs, 6), [(session(5), true, 1)]);
        assert_eq!(heads(&pairs, 5), [(session(5), true, 2)]);
    }

    #[test]
    fn a_session_that_waits_for_itself_only_does_not_wait() {
        let edges = graph_edges(&[(1, 1)]);
        assert!(Graph::new(&edges).waiters().is_empty());
    }
}
