//! The advice of pg_plan_advice (PostgreSQL 19) that brings a recorded plan back, and what no advice
//! says of it.
//!
//! Example: a hash join of `orders o` with the index of `customers c` gives
//! `JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(o) INDEX_SCAN(c public.customers_pkey) NO_GATHER(o c)`.

use super::branches::{Branches, is_passed};
use super::explained::name;
use super::tree::{Node, Tree};
use super::words::{
    AGGREGATE, ALIAS, APPEND, APPENDED, BITMAP_AND, BITMAP_HEAP_SCAN, BITMAP_OR, CUSTOM_SCAN,
    ELIDED, GATHER, GATHER_MERGE, GROUP, HASH_JOIN, INCREMENTAL_SORT, INDEX, INDEX_ONLY_SCAN,
    INDEX_SCAN, MATERIALIZE, MEMOIZE, MERGE_APPEND, MERGE_JOIN, NESTED_LOOP, NOT_LISTED,
    OCCURRENCE, PARTITION, QUERY_ALIAS, QUERY_LEVEL, RELATION, SCHEMA, SEQ_SCAN, SET_OP,
    SUBQUERY_SCAN, TID_RANGE_SCAN, TID_SCAN, UNIQUE,
};
use std::collections::BTreeSet;

/// The stash that the commands use.
const STASH: &str = "tacho";

/// The tags in the order of printing.
const TAGS: [&str; 17] = [
    "NESTED_LOOP_PLAIN",
    "NESTED_LOOP_MATERIALIZE",
    "NESTED_LOOP_MEMOIZE",
    "MERGE_JOIN_PLAIN",
    "MERGE_JOIN_MATERIALIZE",
    "HASH_JOIN",
    "SEQ_SCAN",
    "TID_SCAN",
    "INDEX_SCAN",
    "INDEX_ONLY_SCAN",
    "BITMAP_HEAP_SCAN",
    "PARTITIONWISE",
    "SEMIJOIN_UNIQUE",
    "SEMIJOIN_NON_UNIQUE",
    "GATHER",
    "GATHER_MERGE",
    "NO_GATHER",
];

/// The way back to a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::query::functions) struct Advice {
    /// The advice; `None` if the plan has nothing to choose, or the server takes no advice.
    text: Option<String>,
    /// Sentences about choices of the plan that the advice does not have.
    lacks: Vec<String>,
}

impl Advice {
    pub(super) fn of(tree: &Tree) -> Advice {
        if !tree.takes_advice {
            return Advice::default();
        }
        if !tree.has_advice_names {
            let lack = "The tree lacks the names of pg_plan_advice: it was recorded by an older version, or the query has too many relations.";
            return Advice {
                text: None,
                lacks: vec![lack.into()],
            };
        }
        let mut walk = Walk::of(tree);
        walk.top(0);
        walk.look_at_nodes();
        Advice {
            text: walk.text(),
            lacks: walk.lacks.into_iter().collect(),
        }
    }

    /// The sentences, one a line.
    pub(in crate::query::functions) fn lacks(&self) -> Option<String> {
        (!self.lacks.is_empty()).then(|| self.lacks.join("\n"))
    }

    /// The commands that let a session plan the query with the advice, one a line.
    pub(in crate::query::functions) fn commands(&self, query_id: i64) -> Option<String> {
        let advice = self.text.as_ref()?.replace('\'', "''");
        Some(format!(
            "SELECT pg_create_advice_stash('{STASH}') WHERE '{STASH}' NOT IN (SELECT stash_name FROM pg_get_advice_stashes());\n\
             SELECT pg_set_stashed_advice('{STASH}', {query_id}, '{advice}');\n\
             SET pg_stash_advice.stash_name = '{STASH}';"
        ))
    }
}

/// Relations that are joined.
struct Joined {
    /// The driving relation, and what it is joined to, one after the other.
    order: Vec<String>,
    names: Vec<String>,
}

impl Joined {
    fn one(name: String) -> Joined {
        Joined {
            order: vec![name.clone()],
            names: vec![name],
        }
    }
}

/// One relation, or several in parentheses.
fn item(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        several => format!("({})", several.join(" ")),
    }
}

struct Walk<'t> {
    branches: Branches<'t>,
    is_gathered: bool,
    /// True in a part of joined tables: relations have the names of their partitions.
    in_parts: bool,
    orders: Vec<String>,
    words: Vec<(&'static str, String)>,
    lacks: BTreeSet<String>,
}

impl<'t> Walk<'t> {
    fn of(tree: &'t Tree) -> Walk<'t> {
        Walk {
            branches: Branches::of(tree),
            is_gathered: false,
            in_parts: false,
            orders: Vec::new(),
            words: Vec::new(),
            lacks: BTreeSet::new(),
        }
    }

    fn node(&self, index: usize) -> &'t Node {
        self.branches.node(index)
    }

    fn say(&mut self, tag: &'static str, target: impl Into<String>) {
        self.words.push((tag, target.into()));
    }

    fn lack(&mut self, sentence: impl Into<String>) {
        self.lacks.insert(sentence.into());
    }

    /// The name of a relation of the query as advice has it: `o`, `o#2@expr_1`.
    fn target(&self, node: &Node) -> Option<String> {
        match self.in_parts {
            true => self.scanned(node),
            false => of_level(node, String::new()),
        }
    }

    /// The name of a relation that is scanned: of a partition `events/public.events_1`.
    fn scanned(&self, node: &Node) -> Option<String> {
        let relation = node.text(RELATION).filter(|_| is_partition(node));
        let part = relation.map(|relation| format!("/{}", qualified(node, relation)));
        of_level(node, part.unwrap_or_default())
    }

    /// Walks through a node and all below it, as parts of joined tables or not.
    fn part(&mut self, index: usize, in_parts: bool) {
        let before = std::mem::replace(&mut self.in_parts, in_parts);
        self.top(index);
        self.in_parts = before;
    }

    /// Walks through nodes above the joins of a query, or above a part of them.
    fn top(&mut self, index: usize) {
        let joined = self.side(index, false);
        self.order(joined);
    }

    fn order(&mut self, joined: Option<Joined>) {
        if let Some(joined) = joined.filter(|joined| joined.order.len() > 1) {
            self.orders
                .push(format!("JOIN_ORDER({})", joined.order.join(" ")));
        }
    }

    /// Walks through a node and all below it. `None` if it has no name for the join above.
    fn side(&mut self, index: usize, in_join: bool) -> Option<Joined> {
        let node = self.node(index);
        if node.text(ELIDED).is_none() {
            return self.visit(index, in_join);
        }
        let before = std::mem::take(&mut self.in_parts);
        let joined = self.visit(index, false);
        self.order(joined);
        self.in_parts = before;
        let mut joined = None;
        for name in node.texts(ELIDED) {
            joined = Some(self.named(name.to_string(), name.to_string()));
        }
        joined
    }

    /// Walks through a node and all below it, but for subqueries that are left out above it.
    fn visit(&mut self, index: usize, in_join: bool) -> Option<Joined> {
        let node = self.node(index);
        let (apart, below) = self.branches.below(index);
        for subplan in apart {
            self.subplan(subplan);
        }
        match (node.kind, &below[..]) {
            (NESTED_LOOP..=HASH_JOIN, [outer, inner]) => self.join(node, *outer, *inner),
            (GATHER | GATHER_MERGE, [one]) => self.gather(node, *one, in_join),
            (APPEND | MERGE_APPEND, parts) => self.append(node, parts),
            (SUBQUERY_SCAN, [one]) => {
                self.part(*one, false);
                self.source(node)
            }
            (SEQ_SCAN..=CUSTOM_SCAN, _) => {
                self.read(index);
                self.source(node)
            }
            (_, [one]) if is_passed(node) => self.side(*one, in_join),
            (AGGREGATE | UNIQUE, [one]) if in_join => self.unique(node, *one),
            (_, below) => {
                below.iter().for_each(|one| self.top(*one));
                None
            }
        }
    }

    /// A subplan: it begins outside of all workers.
    fn subplan(&mut self, index: usize) {
        let is_gathered = std::mem::replace(&mut self.is_gathered, false);
        self.part(index, false);
        self.is_gathered = is_gathered;
    }

    /// A relation of the query, or another source of rows.
    fn source(&mut self, node: &Node) -> Option<Joined> {
        let Some((target, scanned)) = self.target(node).zip(self.scanned(node)) else {
            self.lack(format!(
                "{}: its relations have no name in the plan.",
                node.title()
            ));
            return None;
        };
        Some(self.named(target, scanned))
    }

    fn named(&mut self, target: String, scanned: String) -> Joined {
        if !self.is_gathered {
            self.say("NO_GATHER", scanned);
        }
        Joined::one(target)
    }

    fn join(&mut self, node: &Node, outer: usize, inner: usize) -> Option<Joined> {
        let left = self.side(outer, true);
        let right = self.side(inner, true);
        let (Some(left), Some(right)) = (&left, &right) else {
            self.lack("A side of a join has no name in the plan: the order and the method of this join are not said.");
            self.order(left.or(right));
            return None;
        };
        let inner = self.node(inner);
        let inner_kind = inner.text(ELIDED).map_or(inner.kind, |_| SUBQUERY_SCAN);
        let tag = match (node.kind, inner_kind) {
            (HASH_JOIN, _) => "HASH_JOIN",
            (MERGE_JOIN, MATERIALIZE) => "MERGE_JOIN_MATERIALIZE",
            (MERGE_JOIN, _) => "MERGE_JOIN_PLAIN",
            (_, MATERIALIZE) => "NESTED_LOOP_MATERIALIZE",
            (_, MEMOIZE) => "NESTED_LOOP_MEMOIZE",
            _ => "NESTED_LOOP_PLAIN",
        };
        self.say(tag, item(&right.names));
        match node.join_type() {
            "Semi" => self.say("SEMIJOIN_NON_UNIQUE", item(&right.names)),
            "Right Semi" => self.say("SEMIJOIN_NON_UNIQUE", item(&left.names)),
            _ => (),
        }
        let mut order = left.order.clone();
        order.push(item(&right.order));
        Some(Joined {
            order,
            names: [&left.names[..], &right.names].concat(),
        })
    }

    /// Distinct rows of a side of a join: the planner made a join of a semi join.
    fn unique(&mut self, node: &Node, below: usize) -> Option<Joined> {
        let joined = self.side(below, true)?;
        if node.kind == UNIQUE || node.partial_mode() == "Simple" {
            self.say("SEMIJOIN_UNIQUE", item(&joined.names));
        }
        Some(joined)
    }

    fn gather(&mut self, node: &Node, below: usize, in_join: bool) -> Option<Joined> {
        let before = std::mem::replace(&mut self.is_gathered, true);
        // Partial groups stand between the node and the relations.
        let joined = self.side(below, in_join);
        self.is_gathered = before;
        match &joined {
            Some(joined) => {
                let tag = if node.kind == GATHER {
                    "GATHER"
                } else {
                    "GATHER_MERGE"
                };
                self.say(tag, item(&joined.names));
            }
            None => self.lack(format!(
                "{}: the relations below have no name in the plan.",
                node.title()
            )),
        }
        joined
    }

    /// The partitions of a table or of joined tables, or the parts of a UNION ALL.
    fn append(&mut self, node: &Node, parts: &[usize]) -> Option<Joined> {
        let names: Vec<String> = node.texts(APPENDED).map(str::to_string).collect();
        let is_of_table = parts.iter().any(|part| {
            let scan = self.node(self.branches.scan_of(*part));
            is_partition(scan) && of_level(scan, String::new()).as_ref() == names.first()
        });
        if node.text(NOT_LISTED).is_some() {
            self.lack("Partitions that are not listed: no advice names them.");
        }
        for part in parts {
            self.part(*part, names.len() > 1);
        }
        match &names[..] {
            [] => {
                self.lack(format!(
                    "{}: its parts have no name in the plan.",
                    node.title()
                ));
                None
            }
            [one] if is_of_table => Some(Joined::one(one.clone())),
            [one] => Some(self.named(one.clone(), one.clone())),
            _ => {
                self.say("PARTITIONWISE", item(&names));
                names
                    .iter()
                    .for_each(|name| drop(self.named(name.clone(), name.clone())));
                Some(Joined {
                    order: vec![format!("{{{}}}", names.join(" "))],
                    names,
                })
            }
        }
    }

    /// Says how a relation is read.
    fn read(&mut self, index: usize) {
        let node = self.node(index);
        let Some(target) = self.scanned(node) else {
            return;
        };
        let index = node.text(INDEX).map(|index| qualified(node, index));
        match (node.kind, index) {
            (SEQ_SCAN, _) => self.say("SEQ_SCAN", target),
            (TID_SCAN | TID_RANGE_SCAN, _) => self.say("TID_SCAN", target),
            (INDEX_SCAN, Some(index)) => self.say("INDEX_SCAN", format!("{target} {index}")),
            (INDEX_ONLY_SCAN, Some(index)) => {
                self.say("INDEX_ONLY_SCAN", format!("{target} {index}"));
            }
            (BITMAP_HEAP_SCAN, _) => {
                self.say("BITMAP_HEAP_SCAN", target);
                self.lack("Bitmap Heap Scan: no advice names its indexes.");
            }
            _ => (),
        }
    }

    /// Looks at nodes that no advice chooses.
    fn look_at_nodes(&mut self) {
        let is_unsaid = |node: &&Node| match node.kind {
            AGGREGATE => node.strategy() != "Plain",
            kind => matches!(
                kind,
                SET_OP | GROUP | UNIQUE | BITMAP_AND | BITMAP_OR | INCREMENTAL_SORT
            ),
        };
        let unsaid: BTreeSet<String> = self
            .branches
            .tree
            .nodes
            .iter()
            .filter(is_unsaid)
            .map(Node::title)
            .collect();
        if !unsaid.is_empty() {
            let nodes: Vec<&str> = unsaid.iter().map(String::as_str).collect();
            self.lack(format!("{}: no advice chooses this.", nodes.join(", ")));
        }
        if self.branches.tree.is_cut {
            self.lack("Further nodes of the plan were not recorded.");
        }
    }

    fn text(&self) -> Option<String> {
        let mut words = self.orders.clone();
        for tag in TAGS {
            let of_tag = self.words.iter().filter(|(of, _)| *of == tag);
            let targets: Vec<&str> = of_tag.map(|(_, target)| target.as_str()).collect();
            if !targets.is_empty() {
                words.push(format!("{tag}({})", targets.join(" ")));
            }
        }
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// The name of a relation with the number and the query level that tell it from others; `part`:
/// its partition.
fn of_level(node: &Node, part: String) -> Option<String> {
    let alias = node.text(QUERY_ALIAS).or_else(|| node.text(ALIAS))?;
    let number = node.text(OCCURRENCE).map(|number| format!("#{number}"));
    let level = node
        .text(QUERY_LEVEL)
        .map(|level| format!("@{}", name(level)));
    Some(format!(
        "{}{}{part}{}",
        name(alias),
        number.unwrap_or_default(),
        level.unwrap_or_default()
    ))
}

fn is_partition(node: &Node) -> bool {
    node.text(PARTITION).is_some()
}

/// A table or index with the schema of the node's table, if that is known.
fn qualified(node: &Node, object: &str) -> String {
    match node.text(SCHEMA).filter(|schema| *schema != "pg_temp") {
        Some(schema) => format!("{}.{}", name(schema), name(object)),
        None => name(object),
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::HASH;
    use super::*;

    fn advice(takes_advice: bool) -> Advice {
        let scan = |depth, alias| Node::made(depth, SEQ_SCAN, &[(RELATION, "t"), (ALIAS, alias)]);
        let second = [
            (RELATION, "t"),
            (ALIAS, "b_1"),
            (QUERY_ALIAS, "it's"),
            (INDEX, "x"),
        ];
        Advice::of(&Tree {
            takes_advice,
            has_advice_names: true,
            nodes: vec![
                Node::made(0, HASH_JOIN, &[]),
                Node::made(1, NESTED_LOOP, &[]),
                scan(2, "a"),
                Node::made(2, INDEX_SCAN, &second),
                Node::made(1, HASH, &[]),
                Node::made(2, MERGE_JOIN, &[]),
                scan(3, "c"),
                Node::made(3, MATERIALIZE, &[]),
                scan(4, "d"),
            ],
            ..Tree::default()
        })
    }

    #[test]
    fn a_bushy_join_has_its_order_and_its_methods() {
        let expected = "JOIN_ORDER(a \"it's\" (c d)) NESTED_LOOP_PLAIN(\"it's\") MERGE_JOIN_MATERIALIZE(d) \
            HASH_JOIN((c d)) SEQ_SCAN(a c d) INDEX_SCAN(\"it's\" x) NO_GATHER(a \"it's\" c d)";
        assert_eq!(advice(true).text.as_deref(), Some(expected));
        assert_eq!(advice(true).lacks, [""; 0]);
    }

    #[test]
    fn a_quote_of_a_name_is_doubled_in_the_command() {
        let commands = advice(true).commands(-7).unwrap();
        let lines: Vec<&str> = commands.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with(
            "SELECT pg_set_stashed_advice('tacho', -7, 'JOIN_ORDER(a \"it''s\" (c d)) "
        ));
        assert_eq!(lines[2], "SET pg_stash_advice.stash_name = 'tacho';");
    }

    /// The advice of a join of a table with the same table in a subquery. `scan` has more texts of the
    /// scan there, `top` of the node above it.
    fn of_subquery(has_advice_names: bool, scan: &[(u8, &str)], top: &[(u8, &str)]) -> Advice {
        let scan = [&[(RELATION, "t"), (ALIAS, "t_1"), (QUERY_ALIAS, "t")], scan].concat();
        Advice::of(&Tree {
            takes_advice: true,
            has_advice_names,
            nodes: vec![
                Node::made(0, NESTED_LOOP, &[]),
                Node::made(1, SEQ_SCAN, &[(RELATION, "t"), (ALIAS, "t")]),
                Node::made(1, AGGREGATE, top),
                Node::made(2, SEQ_SCAN, &scan),
            ],
            ..Tree::default()
        })
    }

    #[test]
    fn numbers_and_levels_tell_relations_with_one_alias_from_each_other() {
        let pulled_up = of_subquery(true, &[(OCCURRENCE, "2")], &[]);
        assert_eq!(
            pulled_up.text.as_deref(),
            Some(
                "JOIN_ORDER(t t#2) NESTED_LOOP_PLAIN(t#2) SEQ_SCAN(t t#2) SEMIJOIN_UNIQUE(t#2) NO_GATHER(t t#2)"
            )
        );
        let level = [(QUERY_LEVEL, "S")];
        let apart = of_subquery(true, &level, &[(ELIDED, "\"S\"")]);
        assert_eq!(
            apart.text.as_deref(),
            Some(
                "JOIN_ORDER(t \"S\") NESTED_LOOP_PLAIN(\"S\") SEQ_SCAN(t t@\"S\") NO_GATHER(t t@\"S\" \"S\")"
            )
        );
        assert_eq!(apart.lacks, [""; 0]);
    }

    #[test]
    fn a_tree_without_names_has_no_advice_but_the_reason() {
        let without = of_subquery(false, &[], &[]);
        assert_eq!(without.text, None);
        assert_eq!(without.lacks.len(), 1);
        assert!(without.lacks[0].starts_with("The tree lacks the names of pg_plan_advice"));
    }

    #[test]
    fn a_server_without_pg_plan_advice_has_no_advice() {
        assert_eq!(advice(false), Advice::default());
    }
}
