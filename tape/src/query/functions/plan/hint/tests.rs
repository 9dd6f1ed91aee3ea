//! Hints of trees that are made by hand. The hints of a server's plans are in `142_plan_hints.pl`.

use super::super::tree::{Node, Tree};
use super::super::words::{
    AGGREGATE, ALIAS, APPEND, GATHER, HASH, HASH_JOIN, INDEX, INDEX_SCAN, NESTED_LOOP, RELATION,
    SEQ_SCAN, SORT, SUB_PLAN, WORKERS,
};
use super::Hint;

const SERIAL: &str = "Set(max_parallel_workers_per_gather 0)";
const HASHED: u8 = 2;
const LEFT: u8 = 1;
const LIMIT: u8 = 42;

fn scan(depth: usize, alias: &str) -> Node {
    Node::made(depth, SEQ_SCAN, &[(RELATION, "t"), (ALIAS, alias)])
}

fn hint(nodes: &[Node]) -> Hint {
    Hint::of(&Tree {
        nodes: nodes.to_vec(),
        ..Tree::default()
    })
}

fn text(nodes: &[Node]) -> String {
    hint(nodes).text.unwrap_or_default()
}

#[test]
fn a_bushy_join_has_its_order_and_its_methods() {
    let nodes = [
        Node::made(0, HASH_JOIN, &[]),
        Node::made(1, NESTED_LOOP, &[]),
        scan(2, "a"),
        Node::made(2, INDEX_SCAN, &[(ALIAS, "b"), (INDEX, "b_x")]),
        Node::made(1, HASH, &[]),
        Node::made(2, HASH_JOIN, &[]),
        scan(3, "c"),
        Node::made(3, HASH, &[]),
        scan(4, "d"),
    ];
    let joins =
        "Leading(((a b) (c d))) NestLoop(a b) NoMemoize(a b) HashJoin(c d) HashJoin(a b c d)";
    let scans = "SeqScan(a) IndexScan(b b_x) SeqScan(c) SeqScan(d)";
    assert_eq!(text(&nodes), format!("/*+ {joins} {scans} {SERIAL} */"));
    assert_eq!(hint(&nodes).lacks, [""; 0]);
}

#[test]
fn a_plan_without_a_choice_has_no_hint() {
    let result = Node::made(0, super::super::words::RESULT, &[]);
    assert_eq!(hint(&[result]), Hint::default());
}

#[test]
fn a_name_that_would_end_the_comment_is_left_out() {
    for name in ["a*/; drop table t; --", "/*", "a\nb", "x*", ""] {
        let found = hint(&[scan(0, name)]);
        assert_eq!(found.text, None);
        assert_eq!(
            found.lacks,
            ["Seq Scan: it has no name that a hint can have."]
        );
    }
    let quoted = "/*+ SeqScan(\"a \"\"(b)\") Set(max_parallel_workers_per_gather 0) */";
    assert_eq!(text(&[scan(0, "a \"(b)")]), quoted);
    assert_eq!(
        text(&[scan(0, "Größe")]),
        format!("/*+ SeqScan(Größe) {SERIAL} */")
    );
}

#[test]
fn an_index_whose_name_would_end_the_comment_is_left_out() {
    let index = Node::made(0, INDEX_SCAN, &[(ALIAS, "a"), (INDEX, "*/")]);
    assert_eq!(text(&[index]), format!("/*+ IndexScan(a) {SERIAL} */"));
}

#[test]
fn joins_beside_a_subquery_without_a_name_keep_their_order() {
    let nodes = [
        Node::made(0, HASH_JOIN, &[]),
        Node::made(1, HASH_JOIN, &[]),
        scan(2, "a"),
        Node::made(2, HASH, &[]),
        scan(3, "b"),
        Node::made(1, HASH, &[]),
        Node::made(2, LIMIT, &[]),
        scan(3, "c"),
    ];
    let words = "Leading((a b)) HashJoin(a b) SeqScan(a) SeqScan(b) SeqScan(c)";
    assert_eq!(text(&nodes), format!("/*+ {words} {SERIAL} */"));
    let lacks = "A subquery below a join has no name in the plan: the order and the method of joins with it are not said.";
    assert_eq!(hint(&nodes).lacks, [lacks]);
}

#[test]
fn a_subplan_has_an_order_of_its_own() {
    let mut below = Node::made(1, HASH_JOIN, &[]);
    below.role = SUB_PLAN;
    let nodes = [
        scan(0, "a"),
        below,
        scan(2, "b"),
        Node::made(2, HASH, &[]),
        scan(3, "c"),
    ];
    let words = "Leading((b c)) HashJoin(b c) SeqScan(b) SeqScan(c) SeqScan(a)";
    assert_eq!(text(&nodes), format!("/*+ {words} {SERIAL} */"));
}

#[test]
fn partitions_that_are_read_in_several_ways_have_no_word() {
    let mut index = scan(1, "t_2");
    index.kind = INDEX_SCAN;
    let nodes = [Node::made(0, APPEND, &[]), scan(1, "t_1"), index];
    assert_eq!(text(&nodes), format!("/*+ {SERIAL} */"));
    let lacks = ["The partitions of t are read in several ways."];
    assert_eq!(hint(&nodes).lacks[..1], lacks);
}

#[test]
fn workers_are_of_the_tables_that_several_processes_read() {
    let mut shared = scan(2, "a");
    shared.is_parallel_aware = true;
    let nodes = [
        Node::made(0, GATHER, &[(WORKERS, "3")]),
        Node::made(1, HASH_JOIN, &[]),
        shared,
        Node::made(2, HASH, &[]),
        scan(3, "b"),
    ];
    let words =
        "Leading((a b)) HashJoin(a b) SeqScan(a) SeqScan(b) Parallel(a 3 hard) Parallel(b 0 hard)";
    let sets = "Set(parallel_setup_cost 0) Set(parallel_tuple_cost 0)";
    assert_eq!(text(&nodes), format!("/*+ {words} {sets} */"));
}

#[test]
fn a_join_of_many_tables_lifts_the_limits_of_the_search() {
    let chain = |count: usize| {
        let mut nodes = Vec::new();
        for depth in 0..count - 1 {
            nodes.push(Node::made(depth, HASH_JOIN, &[]));
        }
        for index in 0..count {
            let depth = (count - 1 - index.saturating_sub(1)).min(count - 1);
            nodes.push(scan(depth, &format!("t{index}")));
        }
        text(&nodes)
    };
    assert!(!chain(8).contains("collapse_limit"));
    let nine = "Set(from_collapse_limit 9) Set(join_collapse_limit 9) Set(max";
    assert!(chain(9).contains(nine), "{}", chain(9));
    assert!(!chain(11).contains("geqo"));
    assert!(chain(12).contains("Set(geqo off)"), "{}", chain(12));
    assert!(chain(3).starts_with("/*+ Leading(((t0 t1) t2)) HashJoin(t0 t1) HashJoin(t0 t1 t2)"));
}

#[test]
fn what_no_hint_chooses_is_named() {
    let mut groups = Node::made(0, AGGREGATE, &[]);
    groups.detail = HASHED;
    let mut outer = Node::made(2, HASH_JOIN, &[]);
    outer.detail = LEFT;
    let nodes = [
        groups,
        Node::made(1, NESTED_LOOP, &[]),
        scan(2, "a"),
        outer,
        scan(3, "b"),
        Node::made(3, HASH, &[]),
        scan(4, "c"),
    ];
    let lacks = [
        "A join whose inner side has an outer join: pg_hint_plan may turn its sides.",
        "HashAggregate: no hint chooses this.",
    ];
    assert_eq!(hint(&nodes).lacks, lacks);
    let cut = Tree {
        is_cut: true,
        nodes: vec![Node::made(0, SORT, &[]), scan(1, "a")],
        ..Tree::default()
    };
    let lacks = ["Further nodes of the plan were not recorded."];
    assert_eq!(Hint::of(&cut).lacks, lacks);
}

#[test]
fn a_number_at_the_end_of_a_name_may_be_made_by_explain() {
    let lacks = |nodes: &[Node]| hint(nodes).lacks.len();
    let own = Node::made(0, SEQ_SCAN, &[(RELATION, "log_1"), (ALIAS, "log_1")]);
    assert_eq!(lacks(&[own]), 0, "a table of this name");
    let made = Node::made(0, SEQ_SCAN, &[(RELATION, "log"), (ALIAS, "log_1")]);
    assert_eq!(lacks(&[made]), 1, "its table has the name without a number");
    let second = Node::made(0, SEQ_SCAN, &[(RELATION, "t"), (ALIAS, "o_1")]);
    assert_eq!(
        lacks(std::slice::from_ref(&second)),
        0,
        "nothing else has the name"
    );
    let both = [
        Node::made(0, LIMIT, &[]),
        Node { depth: 1, ..second },
        scan(1, "o"),
    ];
    assert_eq!(lacks(&both), 1, "another table has the name");
}
