//! The state of a directory's history at one moment, which answers questions: the parts of every
//! node in order of ticks, and the damage.

use crate::error::{Error, Kind};
use crate::format::noting::Noted;
use crate::format::part::{LogDamage, Part, PartInfo, RoleColumn, role_columns};
use crate::format::schema::Schema;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A node: one server's history, with its own sequence of ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Random number of the node.
    pub id: u64,
    /// System identifier in its newest part.
    pub system_identifier: u64,
    /// Timeline in its newest part.
    pub timeline: u32,
    /// First slot time in ms.
    pub first_ms: i64,
    /// Last slot time in ms.
    pub last_ms: i64,
    /// Number of parts.
    pub parts: usize,
}

/// Bytes that could not be read. The rest of the file was read, unless `whole`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Offset of the damage in the file.
    pub offset: u64,
    /// Number of skipped bytes.
    pub bytes: u64,
    /// Slot time in ms of the last tick before the damage, if there is one.
    pub since_ms: Option<i64>,
    /// Slot time in ms of the first tick after the damage, if there is one.
    pub until_ms: Option<i64>,
    /// The damage, in words.
    pub reason: String,
    /// True if the file is not damaged, but written by a later version of the program.
    pub of_later_version: bool,
    /// True if nothing of the file could be read.
    pub whole: bool,
}

/// The history of a directory at one moment. It never changes; later history is in other snapshots.
/// Cheap to clone, usable from several threads.
#[derive(Clone, Default)]
pub struct Snapshot {
    nodes: BTreeMap<u64, Parts>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) own_node: Option<u64>,
    pub(crate) other_servers: Vec<u64>,
    /// The nodes before parts were left out.
    all_nodes: Option<Vec<NodeInfo>>,
}

/// The parts of a node in ascending order of ticks. Parts of followed logs come last; snapshots
/// with the same files share all other parts.
#[derive(Clone, Default)]
struct Parts {
    sealed: Arc<Sealed>,
    live: Vec<Part>,
}

/// Parts of files, and their times once these are known.
#[derive(Clone, Default)]
struct Sealed {
    parts: Vec<Part>,
    times: OnceLock<Times>,
}

/// First and last slot time of the parts, in ms.
#[derive(Clone, Copy, Default)]
struct Times {
    /// First and last time of all parts; `None` without parts.
    all: Option<(i64, i64)>,
    /// First and last time of the parts with ticks; `None` without such parts.
    with_ticks: Option<(i64, i64)>,
}

impl Times {
    fn of<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Times {
        let mut times = Times::default();
        for part in parts {
            let own = Some((part.min_ms(), part.max_ms()));
            times.all = united(times.all, own);
            times.with_ticks = united(times.with_ticks, own.filter(|_| has_ticks(part)));
        }
        times
    }

    fn and(self, other: Times) -> Times {
        Times {
            all: united(self.all, other.all),
            with_ticks: united(self.with_ticks, other.with_ticks),
        }
    }
}

fn united(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        _ => one.or(other),
    }
}

impl Parts {
    fn iter(&self) -> impl Iterator<Item = &Part> {
        self.sealed.parts.iter().chain(&self.live)
    }

    fn last(&self) -> Option<&Part> {
        self.live.last().or(self.sealed.parts.last())
    }

    fn count(&self) -> usize {
        self.sealed.parts.len() + self.live.len()
    }

    fn times(&self) -> Times {
        let sealed = &self.sealed;
        let of_files = *sealed.times.get_or_init(|| Times::of(&sealed.parts));
        of_files.and(Times::of(&self.live))
    }

    /// All parts, for changes in this snapshot only.
    fn lists(&mut self) -> [&mut Vec<Part>; 2] {
        let sealed = Arc::make_mut(&mut self.sealed);
        sealed.times = OnceLock::new();
        [&mut sealed.parts, &mut self.live]
    }

    /// The last tick: a part with only larger ticks comes after all others. `u64::MAX` if the last
    /// part has no ticks.
    fn end(&self) -> u64 {
        let last = self.last();
        last.map_or(0, |part| match has_ticks(part) {
            true => part.last_tick(),
            false => u64::MAX,
        })
    }
}

impl Snapshot {
    /// A snapshot of parts in memory.
    pub fn from_parts(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut snapshot = Snapshot::default();
        snapshot.take(parts.into_iter().collect());
        snapshot
    }

    /// A snapshot of sealed files' parts. Each tick counts once.
    pub(crate) fn of_files(parts: Vec<Part>) -> Self {
        Snapshot::from_parts(drop_covered(parts))
    }

    fn take(&mut self, mut parts: Vec<Part>) {
        parts.sort_by_key(|part| (part.node(), part.first_tick()));
        // Usually there is one node, and its parts are not moved.
        while let Some(node) = parts.last().map(Part::node) {
            let first = parts.partition_point(|part| part.node() < node);
            let of_node = match first {
                0 => std::mem::take(&mut parts),
                first => parts.split_off(first),
            };
            self.nodes.entry(node).or_default().sealed = Arc::new(Sealed {
                parts: of_node,
                times: OnceLock::new(),
            });
        }
    }

    /// The same snapshot with the parts of logs. Usually logs begin after the end of the files;
    /// otherwise all parts are sorted again.
    pub(crate) fn with_logs(&self, mut logs: Vec<Part>) -> Snapshot {
        logs.sort_by_key(|part| (part.node(), part.first_tick()));
        let mut snapshot = self.clone();
        let follows = |part: &Part| {
            let of_node = self.nodes.get(&part.node());
            of_node.is_none_or(|parts| part.first_tick() > parts.end())
        };
        if logs.iter().all(follows) {
            for part in drop_covered(logs) {
                snapshot
                    .nodes
                    .entry(part.node())
                    .or_default()
                    .live
                    .push(part);
            }
            return snapshot;
        }
        let files = self.nodes.values().flat_map(Parts::iter).cloned();
        snapshot.nodes.clear();
        snapshot.take(drop_covered(files.chain(logs).collect()));
        snapshot
    }

    /// The nodes; the node with the newest tick comes first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        if let Some(all) = &self.all_nodes {
            return all.clone();
        }
        let mut nodes: Vec<NodeInfo> = self.nodes.iter().filter_map(node_info).collect();
        nodes.sort_by_key(|n| (std::cmp::Reverse(n.last_ms), n.id));
        nodes
    }

    /// First and last slot time of a node's ticks in ms since 1970; `None` without ticks.
    pub(crate) fn times(&self, node: u64) -> Option<(i64, i64)> {
        self.nodes.get(&node)?.times().with_ticks
    }

    /// The node of the directory, if its file `node` is there.
    pub fn own_node(&self) -> Option<u64> {
        self.own_node
    }

    /// Nodes of other servers, whose histories were copied into this directory.
    pub fn other_servers(&self) -> &[u64] {
        &self.other_servers
    }

    /// Makes names of roles with another OID null, so that a role does not see sessions of a
    /// dropped role that had the same name. Rows without an OID keep their names.
    pub fn hide_other_roles(&mut self, oid: i64) {
        let mut known: Option<(Arc<Schema>, Arc<[RoleColumn]>)> = None;
        for part in self.nodes.values_mut().flat_map(Parts::lists).flatten() {
            let schema = part.shared_schema();
            let columns = match &known {
                Some((last, columns)) if Arc::ptr_eq(last, schema) => columns.clone(),
                _ => {
                    let columns: Arc<[RoleColumn]> = role_columns(schema).into();
                    known.insert((schema.clone(), columns)).1.clone()
                }
            };
            *part = part.without_other_roles(oid, columns);
        }
    }

    /// Returns this history with parts that note the columns that are read and decode none. Also
    /// returns each original part with its notes, by node and in ascending order of ticks.
    pub(crate) fn noting(&self) -> (Snapshot, Vec<(Part, Noted)>) {
        let mut noting = self.clone();
        let mut parts = Vec::new();
        for part in noting.nodes.values_mut().flat_map(Parts::lists).flatten() {
            let noted = Noted::default();
            parts.push((part.clone(), noted.clone()));
            *part = noted.part(part);
        }
        (noting, parts)
    }

    /// Leaves out parts and returns their properties. Nodes stay known, so that the same nodes
    /// answer.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&Part) -> bool) -> Vec<PartInfo> {
        self.all_nodes = Some(self.nodes());
        let lists = self.nodes.values_mut().flat_map(Parts::lists);
        let left_out = lists.flat_map(|parts| parts.extract_if(.., |part| is_left_out(part)));
        left_out.map(|part| part.info().clone()).collect()
    }

    /// The parts of a node in ascending order of ticks; none for an unknown node.
    pub fn parts(&self, node: u64) -> impl Iterator<Item = &Part> {
        self.nodes.get(&node).into_iter().flat_map(Parts::iter)
    }

    /// Damage found when the history was opened.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Damage found later, while columns were read, that did not prevent reading.
    pub fn later_damage(&self) -> Vec<Damage> {
        let parts = self.nodes.values().flat_map(Parts::iter);
        let found = parts.filter_map(|p| Some(Damage::of_file(&p.info().file, &p.damage()?)));
        let mut found: Vec<Damage> = found.collect();
        // All groups of a file report the same damage, and groups of other files may lie between
        // them.
        found.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        found.dedup();
        found
    }
}

impl Damage {
    pub(crate) fn of_file(path: &Path, found: &LogDamage) -> Self {
        Damage {
            file: path.to_path_buf(),
            offset: found.offset,
            bytes: found.bytes,
            since_ms: found.since_ms,
            until_ms: found.until_ms,
            reason: found.reason.clone(),
            of_later_version: false,
            whole: false,
        }
    }

    /// A file of `bytes` bytes that could not be read.
    pub(crate) fn unreadable(path: &Path, bytes: u64, error: &Error) -> Self {
        Damage {
            file: path.to_path_buf(),
            offset: error.offset.unwrap_or(0),
            bytes,
            since_ms: None,
            until_ms: None,
            reason: error.reason(),
            of_later_version: error.kind == Kind::Version,
            whole: true,
        }
    }

    /// The damage behind an error of reading a part's column.
    pub fn of_part(part: &Part, error: &Error) -> Self {
        let info = part.info();
        Damage {
            file: error
                .path
                .clone()
                .unwrap_or_else(|| info.file.to_path_buf()),
            offset: error.offset.unwrap_or(0),
            bytes: 0,
            since_ms: Some(info.min_ms),
            until_ms: Some(info.max_ms),
            reason: error.reason(),
            of_later_version: false,
            whole: false,
        }
    }
}

/// True if other parts begin and end where this part does. This suffices, because the writer
/// removes merged files in order.
pub(crate) fn is_covered_by(part: &Part, others: &[Part]) -> bool {
    let mut of_node = others.iter().filter(|o| o.node() == part.node());
    of_node.clone().any(|o| o.first_tick() == part.first_tick())
        && of_node.any(|o| o.last_tick() == part.last_tick())
}

/// Drops parts whose ticks lie within another part of the node, which was made of them. If two are
/// equal, the first stays. Parts without ticks stay.
fn drop_covered(mut parts: Vec<Part>) -> Vec<Part> {
    // Sorts a larger part before the parts that it covers.
    parts.sort_by_key(|p| (p.node(), p.first_tick(), std::cmp::Reverse(p.last_tick())));
    let mut covered: Option<(u64, u64)> = None;
    parts.retain(|p| {
        if !has_ticks(p) {
            return true;
        }
        if covered.is_some_and(|(node, last)| node == p.node() && p.last_tick() <= last) {
            return false;
        }
        covered = Some((p.node(), p.last_tick()));
        true
    });
    parts
}

fn has_ticks(part: &Part) -> bool {
    part.first_tick() <= part.last_tick()
}

fn node_info((&id, parts): (&u64, &Parts)) -> Option<NodeInfo> {
    let newest = parts.last()?.info();
    let (first_ms, last_ms) = parts.times().all?;
    Some(NodeInfo {
        id,
        system_identifier: newest.identity.system_identifier,
        timeline: newest.identity.timeline,
        first_ms,
        last_ms,
        parts: parts.count(),
    })
}
