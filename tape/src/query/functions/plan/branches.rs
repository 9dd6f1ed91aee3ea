//! The nodes of a tree with those below them, for walks that follow the joins of a query.

use super::tree::{Node, Tree};
use super::words::{
    AGGREGATE, HASH, INCREMENTAL_SORT, INIT_PLAN, MATERIALIZE, MEMOIZE, RESULT, SORT, SUB_PLAN,
};

pub(super) struct Branches<'t> {
    pub(super) tree: &'t Tree,
    /// For each node the nodes directly below.
    below: Vec<Vec<usize>>,
}

impl<'t> Branches<'t> {
    pub(super) fn of(tree: &'t Tree) -> Branches<'t> {
        let mut below = vec![Vec::new(); tree.nodes.len()];
        let mut open: Vec<usize> = Vec::new();
        for (index, node) in tree.nodes.iter().enumerate() {
            open.truncate(node.depth);
            if let Some(above) = open.last() {
                below[*above].push(index);
            }
            open.push(index);
        }
        Branches { tree, below }
    }

    pub(super) fn node(&self, index: usize) -> &'t Node {
        &self.tree.nodes[index]
    }

    /// The subplans of a node, and the other nodes directly below it.
    pub(super) fn below(&self, index: usize) -> (Vec<usize>, Vec<usize>) {
        let is_apart = |i: &usize| matches!(self.node(*i).role, INIT_PLAN | SUB_PLAN);
        self.below[index].iter().copied().partition(is_apart)
    }

    /// The node below a sort and its like.
    pub(super) fn scan_of(&self, index: usize) -> usize {
        match &self.below[index][..] {
            [one] if is_passed(self.node(index)) => self.scan_of(*one),
            _ => index,
        }
    }
}

/// True for nodes that hand on the rows of the node below, within the same query.
pub(super) fn is_passed(node: &Node) -> bool {
    match node.kind {
        SORT | INCREMENTAL_SORT | MATERIALIZE | MEMOIZE | HASH | RESULT => true,
        AGGREGATE => node.partial_mode() == "Partial",
        _ => false,
    }
}
