//! The walk through a tree that finds the words of a hint.

use super::super::branches::{Branches, is_passed};
use super::super::tree::{Node, Tree};
use super::super::words::{
    ALIAS, APPEND, BITMAP_HEAP_SCAN, CUSTOM_SCAN, GATHER, GATHER_MERGE, HASH_JOIN, INDEX,
    INDEX_ONLY_SCAN, INDEX_SCAN, MATERIALIZE, MEMOIZE, MERGE_APPEND, MERGE_JOIN, NESTED_LOOP,
    SEQ_SCAN, TID_RANGE_SCAN, TID_SCAN, WORKERS,
};
use super::found::Found;
use super::names::{base, word};

/// Relations that are joined.
#[derive(Clone)]
struct Joined {
    /// The order of the joins: the name of one relation, or a pair such as `((a b) c)`.
    order: String,
    names: Vec<String>,
    has_outer_join: bool,
}

/// The relations below a node, for the join above it.
#[derive(Default)]
struct Side {
    /// All relations below; `None` if one of them has no name in a hint.
    whole: Option<Joined>,
    /// The largest part below that has names.
    part: Option<Joined>,
}

impl Side {
    fn of(whole: Joined) -> Side {
        Side {
            whole: Some(whole),
            part: None,
        }
    }

    fn largest(self) -> Option<Joined> {
        self.whole.or(self.part)
    }
}

pub(super) struct Walk<'t> {
    branches: Branches<'t>,
    pub(super) found: Found,
}

impl<'t> Walk<'t> {
    pub(super) fn of(tree: &'t Tree) -> Walk<'t> {
        Walk {
            branches: Branches::of(tree),
            found: Found::default(),
        }
    }

    fn node(&self, index: usize) -> &'t Node {
        self.branches.node(index)
    }

    /// Walks through a query, a subquery or a subplan: it has one order of joins.
    pub(super) fn query(&mut self, index: usize) {
        let joined = self.side(index, None).largest();
        if let Some(joined) = joined.filter(|joined| joined.names.len() > 1) {
            self.found.add_order(&joined.order, joined.names.len());
        }
    }

    /// Walks through a node and all below it; `workers`: of the `Gather` above.
    fn side(&mut self, index: usize, workers: Option<i64>) -> Side {
        let node = self.node(index);
        let (apart, below) = self.branches.below(index);
        for subplan in apart {
            self.query(subplan);
        }
        match (node.kind, &below[..]) {
            (NESTED_LOOP..=HASH_JOIN, [outer, inner]) => self.join(node, *outer, *inner, workers),
            (GATHER | GATHER_MERGE, [one]) => self.side(*one, node.number(WORKERS)),
            (APPEND | MERGE_APPEND, parts) => self.append(node, parts, workers),
            (SEQ_SCAN..=CUSTOM_SCAN, below) => self.scan(index, below, workers),
            (_, [one]) if is_passed(node) => self.side(*one, workers),
            (_, below) => {
                self.queries(below);
                Side::default()
            }
        }
    }

    fn queries(&mut self, indexes: &[usize]) {
        for index in indexes {
            self.query(*index);
        }
    }

    fn join(&mut self, node: &Node, outer: usize, inner: usize, workers: Option<i64>) -> Side {
        let side = self.side(outer, workers);
        let other = self.side(inner, workers);
        let (Some(left), Some(right)) = (&side.whole, &other.whole) else {
            self.found.lack(
                "A subquery below a join has no name in the plan: the order and the method of joins with it are not said.",
            );
            let parts = side.largest().into_iter().chain(other.largest());
            let part = parts.max_by_key(|part| part.names.len());
            return Side { whole: None, part };
        };
        if right.has_outer_join {
            self.found.lack(
                "A join whose inner side has an outer join: pg_hint_plan may turn its sides.",
            );
        }
        let joined = Joined {
            order: format!("({} {})", left.order, right.order),
            names: [&left.names[..], &right.names].concat(),
            has_outer_join: left.has_outer_join || right.has_outer_join || is_outer(node),
        };
        self.method(node, self.node(inner).kind, &joined.names);
        Side::of(joined)
    }

    fn method(&mut self, node: &Node, inner: u8, names: &[String]) {
        match (node.kind, inner) {
            (HASH_JOIN, _) => self.found.add_join("HashJoin", names),
            (MERGE_JOIN, _) => self.found.add_join("MergeJoin", names),
            _ => self.found.add_join("NestLoop", names),
        }
        match (node.kind, inner) {
            (NESTED_LOOP, MEMOIZE) => self.found.add_join("Memoize", names),
            (NESTED_LOOP, MATERIALIZE | SEQ_SCAN) => (),
            (NESTED_LOOP, _) => self.found.add_join("NoMemoize", names),
            _ => (),
        }
    }

    /// A scan of a relation or of another source of rows.
    fn scan(&mut self, index: usize, below: &[usize], workers: Option<i64>) -> Side {
        let node = self.node(index);
        if node.kind != BITMAP_HEAP_SCAN {
            self.queries(below);
        }
        let Some(name) = node.text(ALIAS).and_then(word) else {
            self.found.lack(format!(
                "{}: it has no name that a hint can have.",
                node.title()
            ));
            return Side::default();
        };
        self.read(index, &name, workers);
        Side::of(Joined {
            order: name.clone(),
            names: vec![name],
            has_outer_join: false,
        })
    }

    /// Adds how a relation is read.
    fn read(&mut self, index: usize, name: &str, workers: Option<i64>) {
        let node = self.node(index);
        let method = match node.kind {
            SEQ_SCAN => "SeqScan",
            INDEX_SCAN => "IndexScan",
            INDEX_ONLY_SCAN => "IndexOnlyScan",
            BITMAP_HEAP_SCAN => "BitmapScan",
            TID_SCAN | TID_RANGE_SCAN => "TidScan",
            _ => return,
        };
        let indexes = self.indexes(index);
        self.found.add_scan(name, method, indexes);
        if let (Some(workers), true) = (workers, node.is_parallel_aware) {
            self.found.add_workers(name, workers);
        }
    }

    /// The indexes that a node and the nodes below it read.
    fn indexes(&self, index: usize) -> Vec<String> {
        let own = self.node(index).text(INDEX).and_then(word);
        let (_, below) = self.branches.below(index);
        let below = below.into_iter().flat_map(|i| self.indexes(i));
        own.into_iter().chain(below).collect()
    }

    /// The partitions of a table, or the parts of a UNION ALL.
    fn append(&mut self, node: &Node, parts: &[usize], workers: Option<i64>) -> Side {
        let Some(name) = self.parent_of(parts) else {
            self.queries(parts);
            return Side::default();
        };
        for part in parts {
            self.read(self.branches.scan_of(*part), &name, workers);
        }
        if let (Some(workers), true) = (workers, node.is_parallel_aware) {
            self.found.add_workers(&name, workers);
        }
        Side::of(Joined {
            order: name.clone(),
            names: vec![name],
            has_outer_join: false,
        })
    }

    /// The name of the table whose partitions these nodes read: `events` of `events_1` and
    /// `events_2`.
    fn parent_of(&self, parts: &[usize]) -> Option<String> {
        let mut names = parts.iter().map(|part| {
            let node = self.node(self.branches.scan_of(*part));
            let is_table = matches!(node.kind, SEQ_SCAN..=TID_RANGE_SCAN);
            node.text(ALIAS).filter(|_| is_table).and_then(base)
        });
        let first = names.next()??;
        names.all(|name| name == Some(first)).then(|| word(first))?
    }
}

fn is_outer(node: &Node) -> bool {
    !matches!(node.join_type(), "Inner" | "Semi" | "Right Semi")
}
