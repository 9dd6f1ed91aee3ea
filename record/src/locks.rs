//! Finds who blocks whom from one reading of `pg_locks`. `pg_blocking_pids()` would be one call per
//! waiter, each under all locks of the server's lock manager.
//!
//! A waiter is blocked by every holder of its lock whose mode conflicts. If no holder conflicts,
//! the frontmost conflicting waiter ahead of it blocks it. Queues are ordered by the time at which
//! the waits began.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use tacho_dsn::Answer;
use tacho_tape::query::LOCK_MODES;

/// Maximum number of edges of one waiter, and of one tick.
const MAX_HOLDERS: usize = 64;
const MAX_EDGES: usize = 4_096;

/// Sends only locks that some process waits for. Locks taken by the fast path block no one and are
/// left out. A prepared transaction has no process: its lock on its own transaction id identifies
/// it.
pub const QUESTION: &str = "with l as materialized (select locktype, database, relation, page, \
    tuple, virtualxid, transactionid, classid, objid, objsubid, virtualtransaction, pid, mode, \
    granted, (date_part('epoch', waitstart) * 1e6)::int8 / 1000 as waitstart, \
    row(locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, \
      objsubid)::text as tag \
    from pg_catalog.pg_lock_status() where not fastpath) \
    select *, case when pid is null then (select case when count(*) = 1 then min(h.transactionid::text) end \
      from l h where h.pid is null and h.granted and h.locktype = 'transactionid' \
      and h.virtualtransaction = l.virtualtransaction) end as prepared \
    from l where tag in (select tag from l where not granted)";

/// For each lock mode by number the modes that conflict with it: bit n stands for mode n. Index 0
/// is no mode.
const CONFLICTS: [u32; 9] = [
    0,
    1 << 8,
    1 << 7 | 1 << 8,
    1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    0x1FE,
];

/// The locked object: type, database, and numbers as in the lock manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub locktype: String,
    pub database: i64,
    pub fields: [i64; 3],
}

/// One row of `pg_locks`.
#[derive(Clone, Debug, Default)]
pub struct Lock {
    pub tag: Tag,
    /// Virtual transaction of the holder; a prepared transaction has one, too, but no process.
    pub holder: String,
    pub pid: i64,
    /// Transaction id of the prepared transaction; 0 = none, or not known.
    pub prepared: i64,
    /// Number of the lock mode, from 1 (AccessShareLock) to 8.
    pub mode: u32,
    pub granted: bool,
    pub wait_start_ms: i64,
}

/// A waiter and one of its blockers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub waiter: i64,
    /// PID of the blocker; 0 = a prepared transaction.
    pub blocker: i64,
    /// Transaction id of the prepared transaction, if known.
    pub prepared: i64,
    /// Name of the prepared transaction, if known.
    pub gid: Vec<u8>,
    pub hard: bool,
    pub tag: Tag,
    pub modes_held: u32,
    pub mode_requested: u32,
    pub wait_start_ms: i64,
}

/// Reads the answer of [`QUESTION`].
pub fn read(answer: &Answer) -> Vec<Lock> {
    (0..answer.rows())
        .filter_map(|row| lock(answer, row))
        .collect()
}

fn lock(answer: &Answer, row: usize) -> Option<Lock> {
    let number = |column| answer.number::<i64>(row, column).unwrap_or(0);
    let mode = answer.text(row, 12)?;
    let mode = LOCK_MODES.iter().position(|m| *m == mode)? as u32 + 1;
    let locktype = answer.text(row, 0)?.to_string();
    let (first, second) = answer
        .text(row, 5)
        .unwrap_or_default()
        .split_once('/')
        .unwrap_or_default();
    let fields = match locktype.as_str() {
        "transactionid" => [number(6), 0, 0],
        "virtualxid" => [first.parse().unwrap_or(0), second.parse().unwrap_or(0), 0],
        "spectoken" => [number(6), number(8), 0],
        "relation" | "extend" => [number(2), 0, 0],
        "page" | "tuple" => [number(2), number(3), number(4)],
        _ => [number(7), number(8), number(9)],
    };
    let prepared = match (locktype.as_str(), number(11)) {
        ("transactionid", 0) => number(6),
        _ => number(16),
    };
    Some(Lock {
        prepared,
        tag: Tag {
            locktype,
            database: number(1),
            fields,
        },
        holder: answer.text(row, 10).unwrap_or_default().to_string(),
        pid: number(11),
        mode,
        granted: answer.bytes(row, 13) == Some(b"t"),
        wait_start_ms: number(14),
    })
}

/// The question for names of prepared transactions that block, if there are any.
pub fn names_question(edges: &[Edge]) -> Option<String> {
    let ids = edges.iter().map(|edge| edge.prepared).filter(|id| *id != 0);
    let ids: BTreeSet<String> = ids.map(|id| id.to_string()).collect();
    let ids = ids.into_iter().collect::<Vec<_>>().join(",");
    (!ids.is_empty()).then(|| {
        format!(
            "select transaction, gid from pg_catalog.pg_prepared_xact() \
             where transaction::text = any('{{{ids}}}')"
        )
    })
}

/// Takes the answer of [`names_question`].
pub fn name(edges: &mut [Edge], answer: &Answer) {
    for row in 0..answer.rows() {
        let (id, gid) = (answer.number(row, 0), answer.bytes(row, 1));
        for edge in edges.iter_mut().filter(|edge| Some(edge.prepared) == id) {
            edge.gid = gid.unwrap_or_default().to_vec();
        }
    }
}

/// A holder of a lock, and the modes that it holds: bit n stands for mode n.
struct Holder {
    pid: i64,
    prepared: i64,
    modes: u32,
}

/// Edges of all waiters of a lock, if at least one of them has waited since `since_ms` or longer.
/// `leaders` maps a parallel worker to its leader; a parallel group does not block itself. The
/// second value is the number of waiters left out.
pub fn edges(locks: &[Lock], since_ms: i64, leaders: &HashMap<i64, i64>) -> (Vec<Edge>, i64) {
    let mut by_tag: BTreeMap<&Tag, Vec<&Lock>> = BTreeMap::new();
    for lock in locks {
        by_tag.entry(&lock.tag).or_default().push(lock);
    }
    let (mut edges, mut left_out) = (Vec::new(), 0);
    for group in by_tag.values() {
        let mut queue: Vec<&Lock> = group.iter().filter(|l| !l.granted).copied().collect();
        queue.sort_by_key(|l| (l.wait_start_ms == 0, l.wait_start_ms, l.pid));
        let is_old = |l: &&&Lock| l.wait_start_ms != 0 && l.wait_start_ms <= since_ms;
        if queue.iter().find(is_old).is_none() {
            continue;
        }
        let holders = holders(group);
        for (position, waiter) in queue.iter().enumerate() {
            if edges.len() >= MAX_EDGES {
                left_out += 1;
            } else if !add_holders(&mut edges, waiter, &holders, leaders) {
                add_ahead(&mut edges, waiter, &queue[..position], leaders);
            }
        }
    }
    (edges, left_out)
}

fn holders(group: &[&Lock]) -> Vec<Holder> {
    let mut by_holder: BTreeMap<(&str, i64, i64), u32> = BTreeMap::new();
    for lock in group.iter().filter(|l| l.granted) {
        let holder = (lock.holder.as_str(), lock.pid, lock.prepared);
        *by_holder.entry(holder).or_default() |= 1 << lock.mode;
    }
    let holder = |((_, pid, prepared), modes)| Holder {
        pid,
        prepared,
        modes,
    };
    by_holder.into_iter().map(holder).collect()
}

fn leader(leaders: &HashMap<i64, i64>, pid: i64) -> i64 {
    leaders.get(&pid).copied().unwrap_or(pid)
}

fn add_holders(
    edges: &mut Vec<Edge>,
    waiter: &Lock,
    holders: &[Holder],
    leaders: &HashMap<i64, i64>,
) -> bool {
    let in_the_way = |h: &&Holder| {
        h.modes & CONFLICTS[waiter.mode as usize] != 0
            && (h.pid == 0 || leader(leaders, h.pid) != leader(leaders, waiter.pid))
    };
    let before = edges.len();
    let found = holders
        .iter()
        .filter(in_the_way)
        .take(MAX_HOLDERS.min(MAX_EDGES - before));
    edges.extend(found.map(|h| Edge {
        prepared: h.prepared,
        modes_held: h.modes,
        ..edge(waiter, leader(leaders, h.pid), true)
    }));
    edges.len() > before
}

fn add_ahead(edges: &mut Vec<Edge>, waiter: &Lock, ahead: &[&Lock], leaders: &HashMap<i64, i64>) {
    let in_the_way = |l: &&&Lock| {
        CONFLICTS[waiter.mode as usize] & 1 << l.mode != 0
            && leader(leaders, l.pid) != leader(leaders, waiter.pid)
    };
    let front = ahead.iter().find(in_the_way);
    edges.extend(front.map(|l| edge(waiter, leader(leaders, l.pid), false)));
}

fn edge(waiter: &Lock, blocker: i64, hard: bool) -> Edge {
    Edge {
        waiter: waiter.pid,
        blocker,
        prepared: 0,
        gid: Vec::new(),
        hard,
        tag: waiter.tag.clone(),
        modes_held: 0,
        mode_requested: waiter.mode,
        wait_start_ms: waiter.wait_start_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(pid: i64, mode: u32, granted: bool, wait_start_ms: i64) -> Lock {
        Lock {
            holder: format!("{pid}/1"),
            pid,
            mode,
            granted,
            wait_start_ms,
            ..Lock::default()
        }
    }

    fn found(locks: &[Lock], since_ms: i64) -> Vec<(i64, i64, bool)> {
        let (edges, left_out) = edges(locks, since_ms, &HashMap::from([(31, 3)]));
        assert_eq!(left_out, 0);
        edges
            .iter()
            .map(|e| (e.waiter, e.blocker, e.hard))
            .collect()
    }

    #[test]
    fn a_mode_is_in_the_way_of_another_as_that_one_is_in_its() {
        for (a, conflicts) in CONFLICTS.iter().enumerate() {
            for (b, others) in CONFLICTS.iter().enumerate() {
                assert_eq!(conflicts >> b & 1, others >> a & 1, "{a} {b}");
            }
        }
    }

    #[test]
    fn holders_block_those_who_wait_and_a_queue_leads_on_to_its_head() {
        // 1 reads, 2 wants to alter, 3 and its worker queue behind 2 to read.
        let locks = [
            lock(1, 1, true, 0),
            lock(2, 8, false, 1_000),
            lock(3, 1, false, 1_200),
            lock(31, 1, false, 1_300),
        ];
        let expected = [(2, 1, true), (3, 2, false), (31, 2, false)];
        assert_eq!(found(&locks, 1_000), expected);
        assert_eq!(found(&locks, 999), []);
    }

    #[test]
    fn a_worker_does_not_wait_for_its_leader_and_a_prepared_transaction_has_no_process() {
        let mut prepared = lock(0, 7, true, 0);
        (prepared.holder, prepared.prepared) = ("-1/9".to_string(), 700);
        // Another prepared transaction may have the same session number.
        let mut other = prepared.clone();
        other.prepared = 701;
        let locks = [lock(3, 7, true, 0), prepared, other, lock(31, 7, false, 5)];
        assert_eq!(found(&locks, 10), [(31, 0, true), (31, 0, true)]);
        let (edges, _) = edges(&locks, 10, &HashMap::from([(31, 3)]));
        let ids: Vec<i64> = edges.iter().map(|edge| edge.prepared).collect();
        assert_eq!(ids, [700, 701]);
        let question = names_question(&edges).unwrap();
        assert!(question.ends_with("any('{700,701}')"), "{question}");
        assert_eq!(names_question(&[]), None);
    }

    #[test]
    fn modes_of_one_holder_are_one_edge() {
        let locks = [
            lock(1, 3, true, 0),
            lock(1, 4, true, 0),
            lock(2, 8, false, 5),
        ];
        let (edges, _) = edges(&locks, 5, &HashMap::new());
        assert_eq!((edges.len(), edges[0].modes_held), (1, 1 << 3 | 1 << 4));
    }
}
