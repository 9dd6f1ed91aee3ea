//! Decodes the tree of a plan from its bytes (`docs/format.md`, "Trees of plans").

use super::words::{ANALYZED, SETTING};

/// A plan: its nodes in the order of EXPLAIN.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tree {
    /// True if nodes are missing: the whole tree would be too long or too deep.
    pub(super) is_cut: bool,
    /// True if the planner's settings and the sizes of tables are recorded.
    pub(super) has_inputs: bool,
    /// `custom`: planned for given values of the parameters. `generic`: for any values. `None`: the
    /// query had no parameters, or it is not known.
    pub(super) plan_type: Option<&'static str>,
    /// True if subplans have the names that pg_plan_advice knows.
    pub(super) takes_advice: bool,
    /// True if its relations have what is needed for the names of pg_plan_advice.
    pub(super) has_advice_names: bool,
    pub(super) nodes: Vec<Node>,
}

/// A node. `docs/format.md` has the meaning of the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) depth: usize,
    pub(super) kind: u8,
    /// Number of the relation to the node above, such as outer, inner or subplan.
    pub(super) role: u8,
    /// Property within the kind: join type, strategy, command or direction.
    pub(super) detail: u8,
    pub(super) is_parallel_aware: bool,
    pub(super) rows: u64,
    pub(super) width: u64,
    /// Cost up to the first row, in hundredths of the planner's unit.
    pub(super) startup_cost: u64,
    /// Cost of all rows, in the same unit.
    pub(super) total_cost: u64,
    /// Kinds of texts, each with its text.
    pub(super) texts: Vec<(u8, String)>,
}

impl Node {
    /// The text of a kind.
    pub(super) fn text(&self, kind: u8) -> Option<&str> {
        let found = self.texts.iter().find(|(of, _)| *of == kind);
        found.map(|(_, text)| text.as_str())
    }

    /// All texts of a kind.
    pub(super) fn texts(&self, kind: u8) -> impl Iterator<Item = &str> {
        let found = self.texts.iter().filter(move |(of, _)| *of == kind);
        found.map(|(_, text)| text.as_str())
    }

    /// The number that the text of a kind is.
    pub(super) fn number(&self, kind: u8) -> Option<i64> {
        self.text(kind)?.parse().ok()
    }

    /// Time of the last ANALYZE of the node's relation, in µs since 1970.
    pub(super) fn analyzed_us(&self) -> Option<i64> {
        self.number(ANALYZED).filter(|us| *us > 0)
    }

    /// A node made by hand.
    #[cfg(test)]
    pub(super) fn made(depth: usize, kind: u8, texts: &[(u8, &str)]) -> Node {
        Node {
            depth,
            kind,
            texts: texts.iter().map(|(k, t)| (*k, t.to_string())).collect(),
            ..Node::default()
        }
    }
}

impl Tree {
    /// True if the rows of its nodes were counted.
    pub(super) fn has_actuals(&self) -> bool {
        self.nodes.iter().any(|node| node.actuals().is_some())
    }

    /// The settings of the planner that were not the default, each with its name and value.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let root = self.nodes.first().into_iter();
        let texts = root.flat_map(|root| &root.texts);
        let settings = texts.filter(|(kind, _)| *kind == SETTING);
        settings.filter_map(|(_, text)| text.split_once(" = "))
    }
}

/// The version that this code reads.
const VERSION: u8 = 1;
/// Flag: nodes are missing.
const CUT: u8 = 1;
/// Flag: with settings and sizes of tables.
const INPUTS: u8 = 2;
/// Flag: planned for any values of its parameters.
const GENERIC: u8 = 4;
/// Flag: planned for given values.
const CUSTOM: u8 = 8;
/// Flag: subplans have the names of pg_plan_advice.
const ADVISABLE: u8 = 16;
/// Flag: relations too have what is needed for these names.
const ADVICE_NAMES: u8 = 32;
/// Flag of a node: it is aware of parallel workers.
const PARALLEL_AWARE: u8 = 1;

/// The bytes that are not decoded yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number: seven bits in each byte, the lowest bits first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn node(&mut self, decode: &dyn Fn(&[u8]) -> String) -> Option<Node> {
        let mut node = Node {
            depth: self.byte()?.into(),
            kind: self.byte()?,
            role: self.byte()?,
            detail: self.byte()?,
            is_parallel_aware: self.byte()? & PARALLEL_AWARE != 0,
            rows: self.number()?,
            width: self.number()?,
            startup_cost: self.number()?,
            total_cost: self.number()?,
            texts: Vec::new(),
        };
        loop {
            match self.byte()? {
                0 => return Some(node),
                kind => {
                    let length = self.byte()?;
                    let text = decode(self.take(length.into())?);
                    node.texts.push((kind, text));
                }
            }
        }
    }
}

/// The type of a plan by the flags of its tree.
fn type_of(flags: u8) -> Option<&'static str> {
    match flags & (GENERIC | CUSTOM) {
        GENERIC => Some("generic"),
        CUSTOM => Some("custom"),
        _ => None,
    }
}

impl Tree {
    /// The type of the plan whose tree has these bytes.
    pub(super) fn type_in(bytes: &[u8]) -> Option<&'static str> {
        match bytes {
            [VERSION, flags, ..] => type_of(*flags),
            _ => None,
        }
    }

    /// Reads a tree; `decode` makes text of its strings. `None` if the bytes are no tree.
    pub(super) fn of(bytes: &[u8], decode: &dyn Fn(&[u8]) -> String) -> Option<Tree> {
        let mut bytes = Bytes(bytes);
        if bytes.byte()? != VERSION {
            return None;
        }
        let flags = bytes.byte()?;
        let mut tree = Tree {
            is_cut: flags & CUT != 0,
            has_inputs: flags & INPUTS != 0,
            plan_type: type_of(flags),
            takes_advice: flags & ADVISABLE != 0,
            has_advice_names: flags & ADVICE_NAMES != 0,
            nodes: Vec::new(),
        };
        while !bytes.0.is_empty() {
            let node = bytes.node(decode)?;
            let deepest = tree.nodes.last().map_or(0, |last| last.depth + 1);
            if node.depth > deepest || (node.depth == 0) != tree.nodes.is_empty() {
                return None;
            }
            tree.nodes.push(node);
        }
        (!tree.nodes.is_empty()).then_some(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// A sort (300 rows) above a scan of t.
    const TREE: &[u8] = &[
        1, 0, 0, 31, 0, 0, 0, 0xAC, 2, 4, 100, 0xC8, 1, 8, 1, b'a', 0, 1, 9, 1, 0, 1, 1, 4, 0, 50,
        1, 1, b't', 0,
    ];

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let sort = Node {
            kind: 31,
            rows: 300,
            width: 4,
            startup_cost: 100,
            total_cost: 200,
            texts: vec![(8, "a".into())],
            ..Node::default()
        };
        let scan = Node {
            depth: 1,
            kind: 9,
            role: 1,
            is_parallel_aware: true,
            rows: 1,
            width: 4,
            total_cost: 50,
            texts: vec![(1, "t".into())],
            ..Node::default()
        };
        let tree = Tree::of(TREE, &text).unwrap();
        assert!(!tree.is_cut);
        assert_eq!(tree.nodes, [sort, scan]);
    }

    #[test]
    fn damaged_bytes_are_no_tree() {
        for length in (0..TREE.len()).filter(|length| *length != 17) {
            assert_eq!(Tree::of(&TREE[..length], &text), None, "{length} bytes");
        }
        let mut other = TREE.to_vec();
        other[0] = 2;
        assert_eq!(Tree::of(&other, &text), None, "another version");
        other[0] = 1;
        other[17] = 2;
        assert_eq!(
            Tree::of(&other, &text),
            None,
            "a node without the node above"
        );
        let endless = [&[1, 0, 0, 9, 0, 0, 0][..], &[0xFF; 40]].concat();
        assert_eq!(Tree::of(&endless, &text), None, "a number without end");
    }
}
