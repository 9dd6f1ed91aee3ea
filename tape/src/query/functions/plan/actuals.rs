//! The rows that the nodes of a plan gave, counted in one execution.

use super::tree::Node;
use super::words::{ACTUAL_LOOPS, ACTUAL_ROWS, STOPPED};
use crate::query::ask::row::Numeric;

/// The counts of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Actuals {
    /// Rows of all executions of the node together.
    total: u64,
    /// Executions of the node.
    pub(super) loops: u64,
    /// True if the node may have ended before its last row.
    pub(super) is_lower_bound: bool,
}

impl Node {
    /// The counts; `None` if they are not recorded.
    pub(super) fn actuals(&self) -> Option<Actuals> {
        let number = |kind: u8| self.text(kind)?.parse().ok();
        Some(Actuals {
            total: number(ACTUAL_ROWS)?,
            loops: number(ACTUAL_LOOPS)?,
            is_lower_bound: self.text(STOPPED).is_some(),
        })
    }
}

impl Actuals {
    /// Mean number of rows of an execution, rounded to hundredths as EXPLAIN prints it.
    /// 0 if the node was not executed.
    fn hundredths(&self) -> u128 {
        let loops = u128::from(self.loops.max(1));
        (u128::from(self.total) * 100 + loops / 2) / loops
    }

    /// Mean number of rows of an execution; `None` if the node was not executed.
    pub(super) fn rows(&self) -> Option<Numeric> {
        let hundredths = i128::try_from(self.hundredths()).ok()?;
        (self.loops > 0).then_some(Numeric(hundredths * 100))
    }

    /// The same number for JSON.
    pub(super) fn json_rows(&self) -> f64 {
        self.hundredths() as f64 / 100.0
    }

    /// The counts as EXPLAIN (ANALYZE, TIMING OFF) prints them.
    pub(super) fn explained(&self) -> String {
        let rows = self.hundredths();
        match self.loops {
            0 => " (never executed)".to_string(),
            loops => format!(
                " (actual rows={}.{:02} loops={loops})",
                rows / 100,
                rows % 100
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(texts: &[(u8, &str)]) -> Node {
        Node::made(0, 0, texts)
    }

    #[test]
    fn actual_rows_are_the_mean_of_all_executions() {
        let third = node(&[(ACTUAL_ROWS, "200"), (ACTUAL_LOOPS, "3")])
            .actuals()
            .unwrap();
        assert_eq!(third.rows(), Some(Numeric(666_700)));
        assert_eq!(third.json_rows(), 66.67);
        assert_eq!(third.explained(), " (actual rows=66.67 loops=3)");
        assert!(!third.is_lower_bound);
    }

    #[test]
    fn a_node_that_was_stopped_has_a_lower_bound() {
        let texts = [(ACTUAL_ROWS, "7"), (ACTUAL_LOOPS, "1"), (STOPPED, "1")];
        assert!(node(&texts).actuals().unwrap().is_lower_bound);
    }

    #[test]
    fn a_node_without_execution_has_no_rows() {
        let never = node(&[(ACTUAL_ROWS, "0"), (ACTUAL_LOOPS, "0")])
            .actuals()
            .unwrap();
        assert_eq!(never.rows(), None);
        assert_eq!(never.explained(), " (never executed)");
    }

    #[test]
    fn a_node_without_counts_has_no_actuals() {
        assert_eq!(node(&[]).actuals(), None);
        assert_eq!(node(&[(ACTUAL_ROWS, "7")]).actuals(), None);
    }
}
