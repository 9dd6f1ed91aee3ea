//! Resources of a server, read from /proc: memory, and the CPU time of the
//! postmaster and all its descendants, including ended ones.

use anyhow::{Context, Result};
use std::collections::{HashMap, HashSet};
use std::fs;

/// Fields of /proc/PID/stat that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Clock ticks of the process and of its ended children.
    ticks: u64,
}

/// Parses a line of /proc/PID/stat. The name in parentheses may contain
/// anything.
fn parse(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = fields.get(11..15)?.iter().map(|f| f.parse::<u64>());
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        ticks: ticks.sum::<Result<u64, _>>().ok()?,
    })
}

fn processes() -> Result<HashMap<u32, Stat>> {
    let entries = fs::read_dir("/proc").context("could not read /proc")?;
    let pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
    Ok(pids
        .filter_map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&line)?))
        })
        .collect())
}

/// A process and its descendants.
fn family(processes: &HashMap<u32, Stat>, root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        let children = processes.iter().filter(|(_, s)| s.parent == parent);
        family.extend(children.map(|(&pid, _)| pid));
        at += 1;
    }
    family
}

/// Clock ticks of these processes and their descendants, including ended ones.
pub fn ticks_of_families(roots: &[u32]) -> Result<u64> {
    let processes = processes()?;
    let members = roots.iter().flat_map(|&root| family(&processes, root));
    let members: HashSet<u32> = members.collect();
    let stats = members.iter().filter_map(|pid| processes.get(pid));
    Ok(stats.map(|stat| stat.ticks).sum())
}

/// CPU time of a server over a period; unknown if the server is on another
/// machine.
#[derive(Debug)]
pub struct Cpu(Option<(u32, f64)>);

impl Cpu {
    /// The period begins now; `postmaster` is a PID on this machine.
    pub fn start(postmaster: Option<u32>) -> Result<Self> {
        let pid = postmaster.map(|pid| Ok::<_, anyhow::Error>((pid, cpu_seconds(pid)?)));
        pid.transpose().map(Self)
    }

    /// CPU seconds since the begin; `None` if the server is on another machine.
    pub fn end(self) -> Result<Option<f64>> {
        let seconds = self.0.map(|(pid, before)| Ok(cpu_seconds(pid)? - before));
        seconds.transpose()
    }
}

/// CPU seconds that a server has used since its start.
fn cpu_seconds(postmaster: u32) -> Result<f64> {
    let ticks = ticks_of_families(&[postmaster])?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Memory of a server, with shared pages counted once; `None` if it may not be
/// read.
pub fn memory_mb(postmaster: u32) -> Result<Option<f64>> {
    let family = family(&processes()?, postmaster);
    let kilobytes: Vec<u64> = family.iter().filter_map(|&pid| pss_kb(pid)).collect();
    let whole = kilobytes.len() == family.len();
    Ok(whole.then(|| kilobytes.iter().sum::<u64>() as f64 / 1024.0))
}

fn pss_kb(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("Pss:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_do_not_shift_fields() {
        let line = "12 (a) b) S 7 12 12 0 -1 0 0 0 0 0 100 20 3 4 20 0 1 0 9";
        let stat = Stat {
            parent: 7,
            ticks: 127,
        };
        assert_eq!(parse(line), Some(stat));
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn grandchildren_belong_to_the_server() {
        let stat = |parent| Stat { parent, ticks: 0 };
        let processes = HashMap::from([(1, stat(0)), (2, stat(1)), (3, stat(2)), (9, stat(0))]);
        assert_eq!(family(&processes, 1), [1, 2, 3]);
    }

    #[test]
    fn this_process_has_a_life_of_its_own() {
        let pid = std::process::id();
        assert!(memory_mb(pid).expect("read").is_none_or(|mb| mb > 0.0));
        assert!(cpu_seconds(pid).expect("read") >= 0.0);
    }
}
