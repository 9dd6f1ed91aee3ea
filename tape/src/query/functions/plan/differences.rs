//! The differences between two plans of a query.
//!
//! A node has its counterpart in the node of the other plan that reads the same relations with the
//! same kind of work. Example: one plan has `Hash Join` above `Seq Scan on orders o` and
//! `Hash` above `Seq Scan on customer c`. The other plan has `Nested Loop` above `Index Scan using
//! orders_c on orders o` and `Seq Scan on customer c`. The joins both read {c, o}, so they are counterparts,
//! as the scans of `o` are. `Hash` has no counterpart.

use super::explained::head;
use super::tree::{Node, Tree};
use super::words::{ALIAS, BITMAP_INDEX_SCAN, INDEX, NAME, RELATION};
use std::collections::{BTreeMap, BTreeSet};

/// The estimates of two equal nodes differ from this ratio on. Smaller ratios follow from the
/// constants of the query that was planned.
const ROWS_RATIO: u64 = 10;

/// How a node differs from the other plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Difference {
    /// The other plan has the same node.
    Same,
    /// The other plan has no counterpart.
    Missing,
    /// The counterpart is another node, which is shown as EXPLAIN shows it.
    Node(String),
    /// The counterpart has other conditions or keys, which are shown.
    Lines(String),
    /// The counterpart's estimated rows.
    Rows(u64),
}

impl Difference {
    /// The kind of the difference, as a row of `plan` has it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Difference::Same => "same",
            Difference::Missing => "missing",
            Difference::Node(_) => "node",
            Difference::Lines(_) => "condition",
            Difference::Rows(_) => "rows",
        }
    }

    /// The other plan's node, conditions or estimate.
    pub(super) fn other(&self) -> Option<String> {
        match self {
            Difference::Same | Difference::Missing => None,
            Difference::Node(text) | Difference::Lines(text) => Some(text.clone()),
            Difference::Rows(rows) => Some(format!("rows={rows}")),
        }
    }
}

/// The kind of work of a node, and the relations that it reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    work: Work,
    sources: BTreeSet<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// Reads a relation, or another source of rows.
    Scan,
    Join,
    /// A node of this kind.
    Other(u8),
}

/// The difference of each node of `tree` from `other`.
pub(super) fn differences(tree: &Tree, other: &Tree) -> Vec<Difference> {
    let mut free: BTreeMap<Place, Vec<&Node>> = BTreeMap::new();
    for (place, node) in places(other).into_iter().zip(&other.nodes) {
        free.entry(place).or_default().push(node);
    }
    let places = places(tree);
    let mut found: Vec<Option<&Node>> = vec![None; tree.nodes.len()];
    // The first round pairs only nodes that are equal in both plans, so that a node does not take
    // the counterpart of another: several nodes may do the same work on the same relations.
    for is_counterpart in [is_equal, |_: &Node, _: &Node| true] {
        for ((node, place), found) in tree.nodes.iter().zip(&places).zip(&mut found) {
            let nodes = free.get_mut(place).filter(|_| found.is_none());
            if let Some(nodes) = nodes
                && let Some(index) = nodes.iter().position(|other| is_counterpart(node, other))
            {
                *found = Some(nodes.remove(index));
            }
        }
    }
    let both = tree.nodes.iter().zip(found);
    both.map(|(node, other)| other.map_or(Difference::Missing, |other| between(node, other)))
        .collect()
}

/// The place of each node.
fn places(tree: &Tree) -> Vec<Place<'_>> {
    let mut sources: Vec<BTreeSet<&str>> = tree.nodes.iter().map(own_source).collect();
    // Nodes below come after a node, so the last node gives its sources up first.
    for index in (0..tree.nodes.len()).rev() {
        if let Some(above) = above(tree, index) {
            let below = sources[index].clone();
            sources[above].extend(below);
        }
    }
    for index in 0..tree.nodes.len() {
        // A scan of an index for a bitmap reads the relation of the node above.
        if let (true, Some(above)) = (sources[index].is_empty(), above(tree, index)) {
            sources[index] = sources[above].clone();
        }
    }
    let nodes = tree.nodes.iter().zip(sources);
    nodes
        .map(|(node, sources)| Place {
            work: work(node),
            sources,
        })
        .collect()
}

/// The index of the node above.
fn above(tree: &Tree, index: usize) -> Option<usize> {
    let depth = tree.nodes[index].depth.checked_sub(1)?;
    tree.nodes[..index]
        .iter()
        .rposition(|node| node.depth == depth)
}

/// The alias of the relation, function or CTE that this plan node itself scans; without an alias,
/// its name. Empty for nodes that only read from their children.
fn own_source(node: &Node) -> BTreeSet<&str> {
    let named = [ALIAS, RELATION, NAME];
    let name = named.iter().find_map(|kind| node.text(*kind));
    name.into_iter().collect()
}

fn work(node: &Node) -> Work {
    match node.kind {
        BITMAP_INDEX_SCAN => Work::Other(BITMAP_INDEX_SCAN),
        _ if node.is_join() => Work::Join,
        _ if !own_source(node).is_empty() => Work::Scan,
        kind => Work::Other(kind),
    }
}

/// The node as EXPLAIN prints it, without estimates and conditions.
fn identity(node: &Node) -> impl PartialEq {
    let index = node.text(INDEX).map(str::to_string);
    (node.title(), index)
}

fn lines(node: &Node) -> Vec<String> {
    let lines = node
        .lines()
        .map(|(label, value)| format!("{label}: {value}"));
    lines.collect()
}

fn is_equal(node: &Node, other: &Node) -> bool {
    identity(node) == identity(other) && lines(node) == lines(other)
}

fn between(node: &Node, other: &Node) -> Difference {
    if identity(node) != identity(other) {
        return Difference::Node(head(other));
    }
    let own = lines(node);
    let mut others = lines(other);
    if own != others {
        others.retain(|line| !own.contains(line));
        let text = match others.is_empty() {
            true => "no such condition".to_string(),
            false => others.join("\n"),
        };
        return Difference::Lines(text);
    }
    let (less, more) = (node.rows.min(other.rows), node.rows.max(other.rows));
    match more >= less.max(1).saturating_mul(ROWS_RATIO) {
        true => Difference::Rows(other.rows),
        false => Difference::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{
        BITMAP_HEAP_SCAN, HASH, HASH_JOIN, INDEX_SCAN, NESTED_LOOP, SEQ_SCAN, SORT,
    };
    use super::*;

    const SORT_KEY: u8 = 8;
    const FILTER: u8 = 21;

    fn node(depth: usize, kind: u8, texts: &[(u8, &str)]) -> Node {
        Node {
            rows: 100,
            ..Node::made(depth, kind, texts)
        }
    }

    fn scan(depth: usize, alias: &str) -> Node {
        node(depth, SEQ_SCAN, &[(RELATION, "t"), (ALIAS, alias)])
    }

    fn tree(nodes: &[Node]) -> Tree {
        Tree {
            nodes: nodes.to_vec(),
            ..Tree::default()
        }
    }

    fn shown(tree: &Tree, other: &Tree) -> Vec<String> {
        let found = differences(tree, other);
        let shown = |d: Difference| match d.other() {
            Some(other) => format!("{} {other}", d.kind()),
            None => d.kind().into(),
        };
        found.into_iter().map(shown).collect()
    }

    #[test]
    fn counterparts_read_the_same_relations() {
        let hashed = tree(&[
            node(0, HASH_JOIN, &[]),
            scan(1, "o"),
            node(1, HASH, &[]),
            scan(2, "c"),
        ]);
        let index = [(RELATION, "t"), (ALIAS, "o"), (INDEX, "t_c")];
        let nested = tree(&[
            node(0, NESTED_LOOP, &[]),
            scan(1, "c"),
            node(1, INDEX_SCAN, &index),
        ]);
        let head = "(cost=0.00..0.00 rows=100 width=0)";
        let there = [
            format!("node Nested Loop  {head}"),
            format!("node Index Scan using t_c on t o  {head}"),
            "missing".into(),
            "same".into(),
        ];
        assert_eq!(shown(&hashed, &nested), there);
        let here = [
            format!("node Hash Join  {head}"),
            "same".into(),
            format!("node Seq Scan on t o  {head}"),
        ];
        assert_eq!(shown(&nested, &hashed), here);
    }

    #[test]
    fn a_plan_does_not_differ_from_itself() {
        let bitmap = node(2, BITMAP_INDEX_SCAN, &[(INDEX, "t_c")]);
        let heap = node(1, BITMAP_HEAP_SCAN, &[(RELATION, "t"), (ALIAS, "t")]);
        let plan = tree(&[node(0, SORT, &[(SORT_KEY, "t.a")]), heap, bitmap]);
        assert_eq!(shown(&plan, &plan), ["same"; 3]);
    }

    #[test]
    fn other_conditions_and_estimates_are_differences() {
        let old = tree(&[node(0, SORT, &[(SORT_KEY, "t.a")]), scan(1, "t")]);
        let mut filtered = node(
            1,
            SEQ_SCAN,
            &[(RELATION, "t"), (ALIAS, "t"), (FILTER, "(a = ?)")],
        );
        let new = tree(&[node(0, SORT, &[(SORT_KEY, "t.b")]), filtered.clone()]);
        let lines = ["condition Sort Key: t.b", "condition Filter: (a = ?)"];
        assert_eq!(shown(&old, &new), lines);
        let back = ["condition Sort Key: t.a", "condition no such condition"];
        assert_eq!(shown(&new, &old), back);
        filtered.depth = 0;
        let few = tree(&[filtered.clone()]);
        for (rows, difference) in [(999, "same"), (1000, "rows rows=1000")] {
            filtered.rows = rows;
            assert_eq!(shown(&few, &tree(&[filtered.clone()])), [difference]);
        }
    }

    #[test]
    fn equal_scans_find_each_other_before_different_ones() {
        let filtered = node(
            1,
            SEQ_SCAN,
            &[(RELATION, "t"), (ALIAS, "t"), (FILTER, "(a = ?)")],
        );
        let append = node(0, 4, &[]);
        let both = tree(&[append.clone(), scan(1, "t"), filtered.clone()]);
        let turned = tree(&[append, filtered, scan(1, "t")]);
        assert_eq!(shown(&both, &turned), ["same"; 3]);
    }
}
