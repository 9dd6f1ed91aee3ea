//! Every lock wait of a part, with its blocker if that is known.
//!
//! The sampler asks the lock manager only about waits that are older than one tick. A blocker found
//! at a later tick also holds for all earlier ticks of the same wait. If no tick has the blocker,
//! it is [`Node::Unknown`].

use super::blocking_rows::{LockRow, Locks};
use crate::fast::FastMap;
use crate::format::schema::RUN;
use crate::query::rows::blockers::{self, Edge, Node, Nodes};
use crate::query::rows::keys::View;
use crate::query::rows::ticks::{NONE, Ticks};
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;

/// Process id of a session, and the start of its process in µs.
type Process = (i64, i64);

/// Waits at the first ticks of later parts that began before those parts. Parts are read from the
/// last to the first.
#[derive(Default)]
pub struct LaterWaits {
    node: u64,
    waits: FastMap<Process, Vec<(Node, LockRow)>>,
}

/// The edges of the counting ticks of a part, ordered by tick, and their locks.
pub fn edges(
    view: &View,
    ticks: &Ticks,
    later: &mut LaterWaits,
) -> QueryResult<(Vec<Edge>, Locks)> {
    let nodes = Nodes::read(view)?;
    let edges = blockers::edges(view, ticks, &nodes)?;
    // Members of a parallel group do not block each other; they wait for the same blocker.
    let of_others = |edge: &Edge| edge.waiter != edge.blocker;
    let (mut edges, within): (Vec<Edge>, Vec<Edge>) = edges.into_iter().partition(of_others);
    let mut locks = Locks::read(view)?;
    if later.node != view.part.node() {
        *later = LaterWaits {
            node: view.part.node(),
            ..LaterWaits::default()
        };
    }
    let taken = taken_at(view, ticks)?;
    let by_process = EdgesByProcess::new(&nodes, &edges);
    let mut copies = Vec::new();
    let mut without_blocker = Vec::new();
    for (tick, session) in lock_waits(view, ticks)? {
        let process = by_process.process(session);
        let wait = Edge {
            tick,
            session,
            waiter: nodes.of(session),
            blocker: Node::Unknown,
            row: None,
        };
        match by_process.next(process, &edges, tick) {
            Some(next) if next[0].tick == tick => (),
            Some(next) => {
                let before = copies.len();
                let begun = next.iter().filter(|edge| {
                    let start = edge.row.map_or(0, |row| locks.wait_start(row as usize));
                    start != 0 && start <= taken[tick as usize]
                });
                copies.extend(begun.map(|edge| Edge {
                    blocker: edge.blocker,
                    row: edge.row,
                    ..wait
                }));
                without_blocker.extend((copies.len() == before).then_some(wait));
            }
            None => {
                let known = later.waits.get(&process).into_iter().flatten();
                let begun = known.filter(|(_, wait)| wait.wait_start <= taken[tick as usize]);
                let before = copies.len();
                for (blocker, wait_of) in begun {
                    copies.push(Edge {
                        blocker: *blocker,
                        row: Some(locks.add(wait_of)),
                        ..wait
                    });
                }
                without_blocker.extend((copies.len() == before).then_some(wait));
            }
        }
    }
    later.keep(view, &edges, &locks, &by_process, &taken, ticks)?;
    edges.extend(copies);
    edges.sort_by_key(|edge| edge.tick);
    let groups = nodes.groups();
    for wait in &mut without_blocker {
        if groups.contains(&wait.waiter) {
            wait.blocker = of_group(&edges, wait).unwrap_or(Node::Unknown);
        }
    }
    edges.extend(without_blocker);
    edges.extend(within);
    edges.sort_by_key(|edge| edge.tick);
    Ok((edges, locks))
}

/// The blocker of another member in the waiter's parallel group. If one member waits for a blocker,
/// all of them do.
fn of_group(edges: &[Edge], wait: &Edge) -> Option<Node> {
    let begin = edges.partition_point(|edge| edge.tick < wait.tick);
    let at_tick = edges[begin..].iter().take_while(|e| e.tick == wait.tick);
    let of_group = at_tick.filter(|edge| edge.waiter == wait.waiter);
    of_group.map(|edge| edge.blocker).min()
}

/// Sessions that wait for a lock, each with its tick, ordered by tick.
fn lock_waits(view: &View, ticks: &Ticks) -> QueryResult<Vec<(u32, i64)>> {
    let class = view.part.ints(pg::WAIT, pg::WAIT_TYPE)?;
    // True for each reference to a wait event that is a lock; reference 0 means no wait.
    let mut is_lock = vec![false];
    for class in class.iter() {
        let name = view.key(pg::WAIT, pg::WAIT_TYPE, *class)?;
        is_lock.push(name.as_deref() == Some(pg::LOCK_CLASS));
    }
    if !is_lock.contains(&true) {
        return Ok(Vec::new());
    }
    let is_lock = |wait: i64| usize::try_from(wait).is_ok_and(|w| is_lock.get(w) == Some(&true));
    let column = |name: &str| view.part.ints(RUN, name);
    let (wait, session, marked) = (column(pg::WAIT)?, column("session")?, column("marked")?);
    let (first, length) = (column("first_tick")?, column("ticks")?);
    let mut found = Vec::new();
    for row in (0..wait.len()).filter(|row| is_lock(wait[*row])) {
        if marked[row] & pg::NOT_COUNTED != 0 {
            continue;
        }
        let (begin, end) = ticks.range(first[row], length[row]);
        let counted = (begin..end).filter(|tick| ticks.bucket[*tick as usize] != NONE);
        found.extend(counted.map(|tick| (tick, session[row])));
    }
    Ok(by_tick(&found, ticks.len()))
}

/// Sorts by counting, because a day may have a million waits.
fn by_tick(waits: &[(u32, i64)], ticks: usize) -> Vec<(u32, i64)> {
    let mut next = vec![0; ticks + 1];
    for (tick, _) in waits {
        next[*tick as usize + 1] += 1;
    }
    for tick in 0..ticks {
        next[tick + 1] += next[tick];
    }
    let mut sorted = vec![(0, 0); waits.len()];
    for wait in waits {
        let at = &mut next[wait.0 as usize];
        sorted[*at] = *wait;
        *at += 1;
    }
    sorted
}

/// The time when each tick was taken, in ms.
pub fn taken_at(view: &View, ticks: &Ticks) -> QueryResult<Vec<i64>> {
    let number = view.part.ints("tick", "tick")?;
    let taken = view.part.ints("tick", "taken_at")?;
    let mut times = ticks.slot_ms.clone();
    for (number, taken) in number.iter().zip(taken.iter()).filter(|t| *t.1 != 0) {
        let (row, end) = ticks.range(*number, 1);
        if row < end {
            times[row as usize] = *taken;
        }
    }
    Ok(times)
}

/// Edges by the waiting process.
struct EdgesByProcess<'n> {
    nodes: &'n Nodes,
    /// Indexes of a process's edges, ordered by tick.
    edges: FastMap<Process, Vec<u32>>,
}

impl<'n> EdgesByProcess<'n> {
    fn new(nodes: &'n Nodes, edges: &[Edge]) -> EdgesByProcess<'n> {
        let mut by_process = EdgesByProcess {
            nodes,
            edges: FastMap::default(),
        };
        for (index, edge) in edges.iter().enumerate() {
            let process = by_process.process(edge.session);
            by_process
                .edges
                .entry(process)
                .or_default()
                .push(index as u32);
        }
        by_process
    }

    fn process(&self, session: i64) -> Process {
        self.nodes.process(session).unwrap_or((0, session))
    }

    /// The edges of a process at the first of its ticks from `tick` on.
    fn next<'e>(&self, process: Process, edges: &'e [Edge], tick: u32) -> Option<Vec<&'e Edge>> {
        let own = self.edges.get(&process)?;
        let begin = own.partition_point(|edge| edges[*edge as usize].tick < tick);
        let first = edges[*own.get(begin)? as usize].tick;
        let of_process = own[begin..].iter().map(|edge| &edges[*edge as usize]);
        Some(of_process.take_while(|edge| edge.tick == first).collect())
    }
}

impl LaterWaits {
    /// Keeps the waits that an earlier part may need.
    fn keep(
        &mut self,
        view: &View,
        edges: &[Edge],
        locks: &Locks,
        by_process: &EdgesByProcess,
        taken: &[i64],
        ticks: &Ticks,
    ) -> QueryResult<()> {
        let counted = (0..taken.len()).filter(|tick| ticks.bucket[*tick] != NONE);
        let Some(first) = counted.map(|tick| taken[tick]).min() else {
            return Ok(());
        };
        self.waits.retain(|process, waits| {
            waits.retain(|wait| wait.1.wait_start < first);
            !waits.is_empty() && !by_process.edges.contains_key(process)
        });
        for process in by_process.edges.keys() {
            let mut waits = Vec::new();
            for edge in by_process.next(*process, edges, 0).into_iter().flatten() {
                let row = edge.row.map(|row| row as usize);
                let start = row.map_or(0, |row| locks.wait_start(row));
                if let Some(row) = row.filter(|_| start != 0 && start < first) {
                    waits.push((edge.blocker, locks.lock_row(view, row)?));
                }
            }
            if !waits.is_empty() {
                self.waits.insert(*process, waits);
            }
        }
        Ok(())
    }
}
