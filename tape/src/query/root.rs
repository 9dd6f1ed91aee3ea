//! Root blockers: the session at the head of the queue a session waits in.
//! Derived tick by tick from `blocked_by`; runs are cut where the head changes.
//! Sessions that block each other have the key `(cycle)`.

use super::dimension::{Codes, KeySet, Keys, View};
use super::error::QueryResult;
use super::register::Atom;
use super::runs::Runs;
use super::vocabulary as pg;
use crate::schema::RUN;
use std::collections::HashMap;

/// Blocked runs of a session: first tick, tick behind the last, blocker.
type Blocked = Vec<(i64, i64, u32)>;

/// Cuts the runs of a part where their root blocker changes.
pub fn split(view: &View) -> QueryResult<Runs> {
    let whole = Runs::whole(view.part)?;
    let chains = Chains::read(view, &whole)?;
    if chains.blocked.is_empty() {
        return Ok(whole);
    }
    let (mut rows, mut first, mut ticks) = (Vec::new(), Vec::new(), Vec::new());
    for piece in 0..whole.len() {
        let mut at = whole.first_tick(piece);
        let end = at + whole.ticks(piece);
        while at < end {
            let until = match chains.blocker[piece] {
                0 => end,
                _ => chains.root(piece, at).1.min(end),
            };
            rows.push(piece as u32);
            first.push(at);
            ticks.push(until - at);
            at = until;
        }
    }
    Ok(Runs::pieces(rows, first, ticks))
}

/// The keys of pieces made by [`split`].
pub fn keys(view: &View, runs: &Runs) -> QueryResult<Keys> {
    let whole = Runs::whole(view.part)?;
    let chains = Chains::read(view, &whole)?;
    let pids = view.part.ints("session", "pid")?;
    let mut keys = KeySet::default();
    let none = keys.code(Atom::Null);
    let cycle = keys.code(view.register.atom(Some(pg::CYCLE)));
    let mut codes = Vec::with_capacity(runs.len());
    for piece in 0..runs.len() {
        let row = runs.row(piece);
        codes.push(match chains.blocker[row] {
            0 => none,
            _ => match chains.root(row, runs.first_tick(piece)).0 {
                Some(root) => {
                    let pid = chains.example[root as usize - 1].checked_sub(1);
                    let pid = pid.and_then(|row| pids.get(row)).copied().unwrap_or(0);
                    keys.code(Atom::Number(pid))
                }
                None => cycle,
            },
        });
    }
    Ok(keys.with(Codes::Pieces(codes)))
}

/// Who blocks whom. Sessions are numbered by process, from 1.
struct Chains {
    /// Session reference of each number.
    example: Vec<usize>,
    /// By row of `run`: who runs it and who blocks it (0 = nobody).
    runner: Vec<u32>,
    blocker: Vec<u32>,
    /// By session that is blocked at some tick.
    blocked: HashMap<u32, Blocked>,
}

impl Chains {
    fn read(view: &View, runs: &Runs) -> QueryResult<Chains> {
        let part = view.part;
        let blocked_by = part.ints(RUN, pg::BLOCKED_BY)?;
        let mut chains = Chains {
            example: Vec::new(),
            runner: Vec::new(),
            blocker: vec![0; runs.len()],
            blocked: HashMap::new(),
        };
        if blocked_by.iter().all(|b| *b == 0) {
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
        Ok(chains)
    }

    /// Number by session reference: entries of one process share it.
    fn number_sessions(&mut self, view: &View) -> QueryResult<Vec<u32>> {
        let pid = view.part.ints("session", "pid")?;
        let start = view.part.ints("session", "backend_start")?;
        let mut known = HashMap::new();
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

    /// The root blocker of a blocked row at a tick (`None` in a cycle), and
    /// the tick until which it stays so at least.
    fn root(&self, row: usize, tick: i64) -> (Option<u32>, i64) {
        let mut until = i64::MAX;
        let mut seen = vec![self.runner[row]];
        let mut current = self.blocker[row];
        loop {
            if seen.contains(&current) {
                return (None, until);
            }
            seen.push(current);
            let runs = self.blocked.get(&current).map_or(&[][..], Vec::as_slice);
            let next = runs.partition_point(|run| run.1 <= tick);
            match runs.get(next) {
                Some(run) if run.0 <= tick => {
                    until = until.min(run.1);
                    current = run.2;
                }
                Some(run) => return (Some(current), until.min(run.0)),
                None => return (Some(current), until),
            }
        }
    }
}
