//! The words of a hint, as they are found in a tree.

use super::super::tree::Tree;
use super::super::words::{
    AGGREGATE, BITMAP_AND, BITMAP_OR, GATHER, GATHER_MERGE, GROUP, INCREMENTAL_SORT, MATERIALIZE,
    MEMOIZE, MERGE_APPEND, NOT_LISTED, SET_OP, UNIQUE,
};
use super::names::numbered;
use std::collections::{BTreeMap, BTreeSet};

/// The planner looks for the order of more relations in another way, which hints do not reach.
const GEQO_THRESHOLD: usize = 12;
/// The planner splits the search for the order of more relations.
const COLLAPSE_LIMIT: usize = 8;

/// How a relation is read: the word of the hint and the indexes, in the order of the plan.
#[derive(PartialEq)]
struct Scan {
    word: &'static str,
    indexes: Vec<String>,
}

#[derive(Default)]
pub(super) struct Found {
    orders: Vec<String>,
    joins: Vec<String>,
    /// The relations in the order of the plan.
    relations: Vec<String>,
    scans: BTreeMap<String, Scan>,
    /// Relations whose partitions are read in several ways.
    mixed: BTreeSet<String>,
    /// Parallel workers of relations that are read by several processes.
    workers: BTreeMap<String, i64>,
    sets: Vec<String>,
    lacks: BTreeSet<String>,
    /// Names of nodes that no hint chooses.
    unsaid: BTreeSet<String>,
    has_gather: bool,
    has_hashed_groups: bool,
    has_sorted_groups: bool,
    /// True if the tree does not list all partitions, so that the names of their indexes are not
    /// complete.
    has_more_partitions: bool,
}

impl Found {
    pub(super) fn add_order(&mut self, order: &str, relations: usize) {
        self.orders.push(format!("Leading({order})"));
        if relations > COLLAPSE_LIMIT {
            self.set(&format!("from_collapse_limit {relations}"));
            self.set(&format!("join_collapse_limit {relations}"));
        }
        if relations >= GEQO_THRESHOLD {
            self.set("geqo off");
        }
    }

    pub(super) fn add_join(&mut self, word: &str, names: &[String]) {
        self.joins.push(format!("{word}({})", names.join(" ")));
    }

    pub(super) fn add_scan(&mut self, name: &str, word: &'static str, indexes: Vec<String>) {
        if !self.relations.iter().any(|known| known == name) {
            self.relations.push(name.to_string());
        }
        let scan = self.scans.entry(name.to_string());
        let scan = scan.or_insert_with(|| Scan {
            word,
            indexes: Vec::new(),
        });
        if scan.word != word {
            self.mixed.insert(name.to_string());
        }
        for index in indexes {
            if !scan.indexes.contains(&index) {
                scan.indexes.push(index);
            }
        }
    }

    pub(super) fn add_workers(&mut self, name: &str, workers: i64) {
        self.workers.insert(name.to_string(), workers);
    }

    pub(super) fn lack(&mut self, sentence: impl Into<String>) {
        self.lacks.insert(sentence.into());
    }

    fn set(&mut self, setting: &str) {
        let set = format!("Set({setting})");
        if !self.sets.contains(&set) {
            self.sets.push(set);
        }
    }

    /// Looks at nodes that the planner chooses without regard to hints.
    pub(super) fn look_at_nodes(&mut self, tree: &Tree) {
        for node in &tree.nodes {
            self.has_more_partitions |= node.text(NOT_LISTED).is_some();
            match node.kind {
                GATHER => self.has_gather = true,
                GATHER_MERGE => {
                    self.has_gather = true;
                    self.unsaid.insert(node.title());
                }
                AGGREGATE | SET_OP if node.strategy() == "Hashed" => {
                    self.has_hashed_groups = true;
                    self.unsaid.insert(node.title());
                }
                AGGREGATE if node.strategy() == "Mixed" => {
                    self.unsaid.insert(node.title());
                }
                AGGREGATE if node.strategy() == "Plain" => (),
                AGGREGATE | SET_OP | GROUP | UNIQUE => self.has_sorted_groups = true,
                BITMAP_AND | BITMAP_OR | INCREMENTAL_SORT | MATERIALIZE | MEMOIZE
                | MERGE_APPEND => {
                    self.unsaid.insert(node.title());
                }
                _ => (),
            }
        }
        if self.has_sorted_groups && !self.has_hashed_groups {
            self.set("enable_hashagg off");
        }
        match self.has_gather {
            // The hint Parallel makes scans cheap, not the node that gathers their rows.
            true => {
                self.set("parallel_setup_cost 0");
                self.set("parallel_tuple_cost 0");
            }
            false if self.relations.is_empty() => (),
            false => self.set("max_parallel_workers_per_gather 0"),
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        let mut words = [&self.orders[..], &self.joins].concat();
        words.extend(self.scan_words());
        if self.has_gather {
            words.extend(self.relations.iter().map(|name| self.parallel(name)));
        }
        words.extend(self.sets.iter().cloned());
        (!words.is_empty()).then(|| format!("/*+ {} */", words.join(" ")))
    }

    fn scan_words(&self) -> impl Iterator<Item = String> {
        let one_way = self.relations.iter().filter(|n| !self.mixed.contains(*n));
        one_way.filter_map(|name| {
            let Scan { word, indexes } = self.scans.get(name)?;
            // Without a name, the hint allows each index of each partition.
            let is_complete = !self.has_more_partitions || indexes.len() == 1;
            let indexes = indexes
                .iter()
                .filter(|_| is_complete)
                .map(|index| format!(" {index}"));
            Some(format!("{word}({name}{})", indexes.collect::<String>()))
        })
    }

    fn parallel(&self, name: &str) -> String {
        let workers = self.workers.get(name).unwrap_or(&0);
        format!("Parallel({name} {workers} hard)")
    }

    pub(super) fn lacks(&self, tree: &Tree) -> Vec<String> {
        let mut lacks: Vec<String> = self.lacks.iter().cloned().collect();
        if !self.unsaid.is_empty() {
            let nodes: Vec<&str> = self.unsaid.iter().map(String::as_str).collect();
            lacks.push(format!("{}: no hint chooses this.", nodes.join(", ")));
        }
        for name in &self.mixed {
            lacks.push(format!(
                "The partitions of {name} are read in several ways."
            ));
        }
        for name in numbered(tree) {
            lacks.push(format!(
                "{name} may be a name that EXPLAIN made; such a table needs an alias of its own in the query."
            ));
        }
        if self.has_more_partitions {
            lacks.push(
                "The plan lists a part of the partitions: the hint names no indexes of them."
                    .into(),
            );
        }
        if tree.is_cut {
            lacks.push("Further nodes of the plan were not recorded.".to_string());
        }
        lacks
    }
}
