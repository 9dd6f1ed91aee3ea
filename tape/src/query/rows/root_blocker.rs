//! Root blockers: the session at the head of the queue that a session waits in. They are derived
//! tick by tick from `blocked_by`, and runs are cut where the head changes. Sessions in a cycle
//! have the key `(cycle)`. A prepared transaction is no session, so table `lock` has its waiters.

use super::derived::Derived;
use super::integers::Reference;
use super::keys::{Codes, KeySet, Keys, View};
use super::register::Atom;
use super::runs::Runs;
use crate::fast::{FastMap, FastSet};
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;

/// The columns that determine root blockers.
const COLUMNS: [(&str, &str); 9] = [
    (RUN, pg::BLOCKED_BY),
    (RUN, "session"),
    ("session", "pid"),
    ("session", "backend_start"),
    ("lock", "at"),
    ("lock", "waiter"),
    ("lock", "blocker"),
    ("lock", "blocker_xid"),
    ("lock", "blocker_gid"),
];

/// Times in which a session is blocked: first tick, tick after the last, blocker.
type Blocked = Vec<(i64, i64, u32)>;

/// The session or prepared transaction at the head of the queue.
pub struct RootBlocker;

impl Derived for RootBlocker {
    fn name(&self) -> &'static str {
        pg::ROOT_BLOCKER
    }

    fn is_number(&self) -> bool {
        true
    }

    fn is_named_key(&self, text: &str) -> bool {
        text == pg::CYCLE || pg::is_prepared(text)
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn rows(&self, part: &Part) -> usize {
        part.rows("session")
    }

    fn columns(&self) -> &'static [(&'static str, &'static str)] {
        &COLUMNS
    }

    fn cut(&self, view: &View, runs: &Runs) -> QueryResult<Option<Runs>> {
        let chains = Chains::read(view)?;
        if chains.blocked.is_empty() {
            return Ok(None);
        }
        let (mut rows, mut first, mut ticks) = (Vec::new(), Vec::new(), Vec::new());
        for piece in 0..runs.len() {
            let row = runs.row(piece);
            let mut at = runs.first_tick(piece);
            let end = at + runs.ticks(piece);
            while at < end {
                let until = match chains.may_wait(row) {
                    true => chains.root(row, at).1.min(end),
                    false => end,
                };
                rows.push(row as u32);
                first.push(at);
                ticks.push(until - at);
                at = until;
            }
        }
        Ok(Some(Runs::pieces(rows, first, ticks)))
    }

    fn keys(&self, view: &View, runs: &Runs) -> QueryResult<Keys> {
        let chains = Chains::read(view)?;
        let pids = view.part.ints("session", "pid")?;
        let mut keys = KeySet::default();
        let none = keys.code(Atom::Null);
        let cycle = keys.code(view.register.atom(Some(pg::CYCLE)));
        let mut codes = Vec::with_capacity(runs.len());
        for piece in 0..runs.len() {
            let row = runs.row(piece);
            let root = match chains.may_wait(row) {
                true => chains.root(row, runs.first_tick(piece)).0,
                false => Root::Nobody,
            };
            codes.push(match root {
                Root::Nobody => none,
                Root::Cycle => cycle,
                Root::Of(root) => match chains.example.get(root as usize - 1) {
                    Some(session) => {
                        let pid = session.checked_sub(1);
                        let pid = pid.and_then(|row| pids.get(row)).copied().unwrap_or(0);
                        keys.code(Atom::Number(pid))
                    }
                    None => {
                        let name = &chains.prepared[root as usize - 1 - chains.example.len()];
                        keys.code(view.register.atom(Some(name)))
                    }
                },
            });
        }
        Ok(keys.with(Codes::Pieces(codes)))
    }
}

/// The head of a queue.
enum Root {
    Nobody,
    Cycle,
    /// Number of a session or of a prepared transaction.
    Of(u32),
}

/// The blocker of each session at each tick. Sessions are numbered by process, from 1.
struct Chains {
    /// One session reference for each number.
    example: Vec<usize>,
    /// Number of the session and of its blocker in each row of `run`; blocker 0 = none.
    runner: Vec<u32>,
    blocker: Vec<u32>,
    /// The times in which each blocked session was blocked, by the session's number.
    blocked: FastMap<u32, Blocked>,
    /// Names of prepared transactions. Their numbers follow the sessions' numbers.
    prepared: Vec<String>,
    /// Sessions that wait for a prepared transaction.
    behind_prepared: FastSet<u32>,
}

impl Chains {
    fn read(view: &View) -> QueryResult<Chains> {
        let part = view.part;
        let runs = Runs::whole(part)?;
        let blocked_by = part.ints(RUN, pg::BLOCKED_BY)?;
        let mut chains = Chains {
            example: Vec::new(),
            runner: Vec::new(),
            blocker: vec![0; runs.len()],
            blocked: FastMap::default(),
            prepared: Vec::new(),
            behind_prepared: FastSet::default(),
        };
        let waits = prepared_waits(view)?;
        if waits.is_empty() && blocked_by.iter().all(|b| *b == 0) {
            return Ok(chains);
        }
        let numbers = chains.number_sessions(view)?;
        let number = |reference: i64| {
            let reference = usize::try_from(reference).unwrap_or(0);
            numbers.get(reference).copied().unwrap_or(0)
        };
        let session = part.ints(RUN, "session")?;
        chains.runner = session.iter().map(|s| number(*s)).collect();
        chains.blocker = blocked_by.iter().map(|b| number(*b)).collect();
        for row in 0..runs.len() {
            if chains.blocker[row] != 0 {
                let first = runs.first_tick(row);
                let entry = (first, first + runs.ticks(row), chains.blocker[row]);
                let runner = chains.runner[row];
                chains.blocked.entry(runner).or_default().push(entry);
            }
        }
        for runs in chains.blocked.values_mut() {
            runs.sort_unstable();
        }
        chains.add_prepared(view, waits, number)?;
        Ok(chains)
    }

    /// Adds waits for prepared transactions at ticks without a blocking session.
    fn add_prepared(
        &mut self,
        view: &View,
        mut waits: Vec<Prepared>,
        number: impl Fn(i64) -> u32,
    ) -> QueryResult<()> {
        waits.sort_unstable_by_key(|wait| (wait.waiter, wait.tick));
        let mut numbers: FastMap<(i64, i64), u32> = FastMap::default();
        let mut added: Vec<(u32, (i64, i64, u32))> = Vec::new();
        for wait in waits {
            let waiter = number(wait.waiter);
            let mut until = i64::MAX;
            if self.next(waiter, wait.tick, &mut until).is_some() {
                continue;
            }
            let next = (self.example.len() + numbers.len()) as u32 + 1;
            let blocker = *numbers.entry(wait.who).or_insert(next);
            if blocker == next {
                let (gid, xid) = wait.who;
                let gid = view.name(Reference(gid))?;
                self.prepared.push(pg::prepared(gid.as_deref(), xid));
            }
            match added.last_mut() {
                Some((before, run)) if (*before, run.1, run.2) == (waiter, wait.tick, blocker) => {
                    run.1 += 1;
                }
                _ => added.push((waiter, (wait.tick, wait.tick.saturating_add(1), blocker))),
            }
        }
        for (waiter, run) in added {
            self.behind_prepared.insert(waiter);
            self.blocked.entry(waiter).or_default().push(run);
        }
        for waiter in &self.behind_prepared {
            if let Some(runs) = self.blocked.get_mut(waiter) {
                runs.sort_unstable();
                // If two transactions block the session at one tick, the first one counts.
                runs.dedup_by_key(|run| run.0);
            }
        }
        Ok(())
    }

    /// True if the session of this row may be blocked at one of its ticks.
    fn may_wait(&self, row: usize) -> bool {
        let runner = self.runner.get(row);
        self.blocker[row] != 0 || runner.is_some_and(|r| self.behind_prepared.contains(r))
    }

    /// Number by session reference. Entries of one process have the same number.
    fn number_sessions(&mut self, view: &View) -> QueryResult<Vec<u32>> {
        let pid = view.part.ints("session", "pid")?;
        let start = view.part.ints("session", "backend_start")?;
        let mut known = FastMap::default();
        let mut numbers = vec![0];
        for row in 0..pid.len() {
            let next = self.example.len() as u32 + 1;
            let number = *known.entry((pid[row], start[row])).or_insert(next);
            if number == next {
                self.example.push(row + 1);
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// The root blocker of a row at a tick, and the first tick at which it may be another one.
    fn root(&self, row: usize, tick: i64) -> (Root, i64) {
        let mut until = i64::MAX;
        let runner = self.runner[row];
        let direct = match self.blocker[row] {
            0 => self.next(runner, tick, &mut until),
            blocker => Some(blocker),
        };
        let Some(mut current) = direct else {
            return (Root::Nobody, until);
        };
        let mut seen = vec![runner];
        loop {
            if seen.contains(&current) {
                return (Root::Cycle, until);
            }
            seen.push(current);
            match self.next(current, tick, &mut until) {
                Some(next) => current = next,
                None => return (Root::Of(current), until),
            }
        }
    }

    /// The blocker of a session at a tick, if it has one. Lowers `until` to the tick where this
    /// changes.
    fn next(&self, session: u32, tick: i64, until: &mut i64) -> Option<u32> {
        let runs = self.blocked.get(&session).map_or(&[][..], Vec::as_slice);
        let run = runs.get(runs.partition_point(|run| run.1 <= tick))?;
        if run.0 <= tick {
            *until = (*until).min(run.1);
            return Some(run.2);
        }
        *until = (*until).min(run.0);
        None
    }
}

/// A session that waits for a prepared transaction at a tick.
struct Prepared {
    waiter: i64,
    tick: i64,
    /// Reference to the name of the transaction, and its transaction id.
    who: (i64, i64),
}

fn prepared_waits(view: &View) -> QueryResult<Vec<Prepared>> {
    let column = |name: &str| view.part.ints("lock", name);
    let mut waits = Vec::new();
    if view.part.rows("lock") == 0 {
        return Ok(waits);
    }
    let (xid, blocker) = (column("blocker_xid")?, column("blocker")?);
    if xid.iter().all(|xid| *xid == 0) {
        return Ok(waits);
    }
    let (at, waiter, gid) = (column("at")?, column("waiter")?, column("blocker_gid")?);
    for row in (0..xid.len()).filter(|row| xid[*row] != 0 && blocker[*row] == 0) {
        waits.push(Prepared {
            waiter: waiter[row],
            tick: at[row],
            who: (gid[row], xid[row]),
        });
    }
    Ok(waits)
}
