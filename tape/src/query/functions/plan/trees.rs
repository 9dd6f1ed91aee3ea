//! The recorded trees of a part (table `plan_tree`).

use super::tree::Tree;
use crate::format::part::Part;
use crate::format::table::Column;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::sums::statement_sums::EntryKey;
use crate::query::value::error::QueryResult;

/// The rows of one part.
pub(super) struct Trees<'p> {
    part: &'p Part,
    view: View<'p>,
    plan_ids: Column,
}

/// The statement of a row.
pub(super) struct Executed {
    pub(super) query_id: i64,
    pub(super) database: Option<String>,
    pub(super) username: Option<String>,
}

impl Executed {
    /// True if this is the statement of the key.
    pub(super) fn is_by(&self, key: &EntryKey) -> bool {
        Some(self.query_id) == key.query_id
            && self.database == key.database
            && self.username == key.username
    }
}

impl<'p> Trees<'p> {
    pub(super) fn of(run: Run<'p>, part: &'p Part) -> QueryResult<Trees<'p>> {
        Ok(Trees {
            part,
            view: View::new(part, run.decode),
            plan_ids: part.ints("plan_tree", "plan_id")?,
        })
    }

    /// All rows with the ids of their plans, in the order of recording.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, i64)> {
        self.plan_ids.iter().copied().enumerate()
    }

    /// The rows with trees of a plan, in the order of recording.
    pub(super) fn rows_of(&self, plan_id: i64) -> impl Iterator<Item = usize> {
        let rows = self.rows().filter(move |(_, id)| *id == plan_id);
        rows.map(|(row, _)| row)
    }

    fn number(&self, column: &str, row: usize) -> QueryResult<i64> {
        Ok(self.part.ints("plan_tree", column)?[row])
    }

    fn name(&self, column: &str, row: usize) -> QueryResult<Option<String>> {
        self.view.name(Reference(self.number(column, row)?))
    }

    /// Time of recording, in ms since 1970.
    pub(super) fn time_ms(&self, row: usize) -> QueryResult<i64> {
        self.number("time", row)
    }

    /// The statement that was executed by the plan.
    pub(super) fn executed(&self, row: usize) -> QueryResult<Executed> {
        Ok(Executed {
            query_id: self.number("query_id", row)?,
            database: self.name("database", row)?,
            username: self.name("username", row)?,
        })
    }

    /// The type of the plan, if it is known.
    pub(super) fn plan_type(&self, row: usize) -> QueryResult<Option<&'static str>> {
        let bytes = self.part.bytes("plan_tree", "tree")?;
        Ok(Tree::type_in(bytes.get(row)))
    }

    /// The tree; `None` if its bytes are damaged.
    pub(super) fn tree(&self, row: usize) -> QueryResult<Option<Tree>> {
        let encoding = self.number("encoding", row)?;
        let bytes = self.part.bytes("plan_tree", "tree")?;
        Ok(Tree::of(bytes.get(row), &|text| {
            self.view.text(encoding, text)
        }))
    }
}
