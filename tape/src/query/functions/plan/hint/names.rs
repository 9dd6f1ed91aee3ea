//! Names of relations and indexes in a hint.

use super::super::tree::{Node, Tree};
use super::super::words::{ALIAS, RELATION};
use std::collections::BTreeSet;

/// The name as a word of a hint, in double quotes where it needs them. `None` if no hint can have
/// the name: it would end the comment, or it is not of one line.
pub(super) fn word(name: &str) -> Option<String> {
    let ends_comment = name.contains("*/") || name.contains("/*");
    // A star or a slash at an end could form the mark of a comment with the text beside it.
    let is_open = name.ends_with(['*', '/']) && !name.ends_with("VALUES*");
    if name.is_empty() || ends_comment || is_open || name.contains(char::is_control) {
        return None;
    }
    let is_special = |c: char| c.is_whitespace() || "()\"".contains(c);
    Some(match name.contains(is_special) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    })
}

/// The name without the number that EXPLAIN adds to a name that it has used before: `o` of `o_1`.
pub(super) fn base(name: &str) -> Option<&str> {
    let (base, number) = name.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !base.is_empty()).then_some(base)
}

/// The aliases of a tree that EXPLAIN may have made: the query may have the name without the
/// number.
pub(super) fn numbered(tree: &Tree) -> BTreeSet<&str> {
    let aliases: BTreeSet<&str> = tree.nodes.iter().filter_map(|n| n.text(ALIAS)).collect();
    let is_made = |node: &Node, alias: &str| {
        let relation = node.text(RELATION);
        relation != Some(alias)
            && base(alias).is_some_and(|base| relation == Some(base) || aliases.contains(base))
    };
    let made = tree.nodes.iter().filter_map(|node| {
        let alias = node.text(ALIAS)?;
        is_made(node, alias).then_some(alias)
    });
    made.collect()
}
