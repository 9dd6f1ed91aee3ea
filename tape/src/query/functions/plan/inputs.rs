//! The inputs of the planner, its settings and the sizes of tables, and how they differ between plans.
//!
//! A tree is recorded at the first execution of each day. So the inputs of a turn from one plan to
//! another are in the trees that were recorded last, up to the turn.

use super::advice::Advice;
use super::hint::Hint;
use super::tree::Tree;
use super::trees::Trees;
use super::words::{RELATION, SCHEMA, TABLE_ROWS};
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::functions::aas::MINUTE;
use crate::query::rows::parse::{Window, nodes};
use crate::query::sums::plan_turns::Turn;
use crate::query::sums::statement_sums::EntryKey;
use crate::query::value::bucket::DAY;
use crate::query::value::error::QueryResult;
use std::collections::{BTreeMap, BTreeSet};

/// A table is named if its rows differ by at least the tenth part of the larger number: the
/// estimates of smaller differences are nearly equal.
const ROWS_PART: i64 = 10;
/// A table is named, too, if it was analyzed at most this many µs before the first execution by the new plan:
/// an ANALYZE makes the next execution plan again.
const ANALYZED_US: i64 = 10 * MINUTE;

/// A tree to be found.
struct Wanted<'k> {
    plan_id: i64,
    key: &'k EntryKey,
    /// The moment after which a tree is taken only if there is none before, in ms since 1970.
    until_ms: i64,
    found: Option<(i64, Tree)>,
}

impl Wanted<'_> {
    /// True if a tree of this time is to be taken instead of the one that was found.
    fn is_nearer(&self, time_ms: i64) -> bool {
        match &self.found {
            None => true,
            Some((found, _)) if *found <= self.until_ms => {
                (*found..=self.until_ms).contains(&time_ms)
            }
            Some((found, _)) => time_ms < *found,
        }
    }

    fn tree(&self) -> Option<&Tree> {
        self.found.as_ref().map(|(_, tree)| tree)
    }

    fn window(&self) -> Window {
        let until = self.until_ms * 1000;
        Window {
            since: until - 2 * DAY,
            until: until + DAY,
        }
    }

    /// Takes the nearest tree of a part.
    fn look(&mut self, trees: &Trees) -> QueryResult<()> {
        for row in trees.rows_of(self.plan_id) {
            let executed = trees.executed(row)?;
            let time_ms = trees.time_ms(row)?;
            if executed.is_by(self.key)
                && self.is_nearer(time_ms)
                && let Some(tree) = trees.tree(row)?
            {
                self.found = Some((time_ms, tree));
            }
        }
        Ok(())
    }
}

/// Facts from the recorded trees of a turn.
#[derive(Default)]
pub(in crate::query::functions) struct Known {
    /// Inputs of the planner that differ, separated by semicolons; empty if none does. `None` if the inputs of
    /// a plan are not recorded, or not for this reader.
    pub(in crate::query::functions) inputs: Option<String>,
    /// The way back to the old plan, if its tree is recorded.
    pub(in crate::query::functions) back: Option<Hint>,
    /// The same as advice of pg_plan_advice.
    pub(in crate::query::functions) advice: Option<Advice>,
}

impl Known {
    /// The facts of a turn, whose first execution by the new plan was at most at `until_us`.
    fn of(old: Option<&Tree>, new: Option<&Tree>, until_us: i64) -> Known {
        let both = old.zip(new).filter(|(a, b)| a.has_inputs && b.has_inputs);
        Known {
            inputs: both.map(|(old, new)| differences(old, new, until_us).join("; ")),
            back: old.map(Hint::of),
            advice: old.map(Advice::of),
        }
    }
}

/// Facts of each turn, in the order of `turns`.
pub(in crate::query::functions) fn of_turns(
    run: Run,
    node: Option<&str>,
    turns: &[(&EntryKey, &Turn)],
) -> QueryResult<Vec<Known>> {
    let mut wanted: Vec<Wanted> = turns
        .iter()
        .flat_map(|(key, turn)| wanted_of(key, turn))
        .collect();
    if run.texts {
        for node in nodes(run, node)? {
            for part in run.store.parts(node) {
                run.check_cancel()?;
                let read = look(run, part, &mut wanted);
                run.damage.leave_out_part(part, read)?;
            }
        }
    }
    let sides = wanted.chunks_exact(2).zip(turns);
    let sides = sides.map(|(sides, (_, turn))| {
        let [old, new] = [sides[0].tree(), sides[1].tree()];
        Known::of(old, new, until_us(turn))
    });
    Ok(sides.collect())
}

/// The trees of both plans of a turn.
fn wanted_of<'k>(key: &'k EntryKey, turn: &Turn) -> [Wanted<'k>; 2] {
    let until_us = until_us(turn) + MINUTE;
    [turn.before.plan_id, turn.after.plan_id].map(|plan_id| Wanted {
        plan_id,
        key,
        until_ms: until_us / 1000,
        found: None,
    })
}

/// The last moment at which the first execution by the new plan can have begun.
fn until_us(turn: &Turn) -> i64 {
    turn.at_us.saturating_add(turn.grain_us.unwrap_or(0))
}

fn look(run: Run, part: &Part, wanted: &mut [Wanted]) -> QueryResult<()> {
    if part.rows("plan_tree") == 0 || !wanted.iter().any(|tree| tree.window().overlaps(part)) {
        return Ok(());
    }
    let trees = Trees::of(run, part)?;
    wanted.iter_mut().try_for_each(|tree| tree.look(&trees))
}

fn differences(old: &Tree, new: &Tree, until_us: i64) -> Vec<String> {
    let (old_settings, new_settings) = (settings(old), settings(new));
    let names: BTreeSet<&str> = old_settings
        .keys()
        .chain(new_settings.keys())
        .copied()
        .collect();
    let settings = names.into_iter().filter_map(|name| {
        let (old, new) = (old_settings.get(name), new_settings.get(name));
        let shown = |value: Option<&&str>| value.map_or("default", |value| *value).to_string();
        (old != new).then(|| format!("setting {name}: {} -> {}", shown(old), shown(new)))
    });
    let (old_tables, new_tables) = (tables(old), tables(new));
    let both = old_tables
        .iter()
        .filter_map(|(name, old)| Some((name, old, new_tables.get(name)?)));
    let tables = both.filter_map(|(name, old, new)| {
        let how = grown(old, new).or_else(|| analyzed(old, new, until_us))?;
        Some(format!("table {name}: {how}"))
    });
    let types = old.plan_type.zip(new.plan_type);
    let types = types.filter(|(old, new)| old != new);
    let types = types.map(|(old, new)| format!("plan: {old} -> {new}"));
    types.into_iter().chain(settings).chain(tables).collect()
}

fn settings(tree: &Tree) -> BTreeMap<&str, &str> {
    tree.settings().collect()
}

/// Knowledge of the planner about a table.
struct Table {
    rows: i64,
    /// Time of its last ANALYZE in µs since 1970.
    analyzed_us: Option<i64>,
}

/// How the rows of a table differ, if they do.
fn grown(old: &Table, new: &Table) -> Option<String> {
    let (old, new) = (old.rows, new.rows);
    let is_other = old != new && (old - new).abs() >= old.max(new) / ROWS_PART;
    is_other.then(|| format!("{old} -> {new} rows"))
}

/// Says that the table was analyzed, if that was after the old tree and shortly before the new plan.
fn analyzed(old: &Table, new: &Table, until_us: i64) -> Option<String> {
    let at = new
        .analyzed_us
        .filter(|_| old.analyzed_us != new.analyzed_us)?;
    let before = until_us.saturating_sub(at);
    (0..=ANALYZED_US)
        .contains(&before)
        .then(|| "analyzed".to_string())
}

fn tables(tree: &Tree) -> BTreeMap<String, Table> {
    let tables = tree.nodes.iter().filter_map(|node| {
        let name = node.text(RELATION)?;
        let name = match node.text(SCHEMA) {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_string(),
        };
        let table = Table {
            rows: node.number(TABLE_ROWS)?,
            analyzed_us: node.analyzed_us(),
        };
        Some((name, table))
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Node;
    use super::super::words::{ANALYZED, SETTING};
    use super::*;

    fn tree(settings: &[&str], rows: &[(&str, &str)]) -> Tree {
        let root = Node {
            texts: settings.iter().map(|s| (SETTING, s.to_string())).collect(),
            ..Node::default()
        };
        let scans = rows.iter().map(|(table, rows)| Node {
            depth: 1,
            texts: vec![
                (RELATION, table.to_string()),
                (SCHEMA, "s".to_string()),
                (TABLE_ROWS, rows.to_string()),
            ],
            ..Node::default()
        });
        Tree {
            has_inputs: true,
            nodes: [root].into_iter().chain(scans).collect(),
            ..Tree::default()
        }
    }

    #[test]
    fn settings_and_sizes_that_differ_are_named() {
        let old = tree(
            &["jit = off", "work_mem = 4MB"],
            &[("t", "1000"), ("u", "1000"), ("v", "5")],
        );
        let new = tree(
            &["geqo = off", "work_mem = 64MB"],
            &[("t", "1110"), ("u", "1120"), ("w", "7")],
        );
        assert_eq!(
            differences(&old, &new, 0),
            [
                "setting geqo: default -> off",
                "setting jit: off -> default",
                "setting work_mem: 4MB -> 64MB",
                "table s.u: 1000 -> 1120 rows",
            ]
        );
        assert_eq!(differences(&old, &old, 0), [""; 0]);
    }

    #[test]
    fn a_plan_for_given_values_that_became_one_for_any_is_named() {
        let of_type = |plan_type| Tree {
            plan_type,
            ..tree(&[], &[])
        };
        let (custom, generic) = (of_type(Some("custom")), of_type(Some("generic")));
        assert_eq!(
            differences(&custom, &generic, 0),
            ["plan: custom -> generic"]
        );
        assert_eq!(
            differences(&generic, &custom, 0),
            ["plan: generic -> custom"]
        );
        assert_eq!(differences(&generic, &generic, 0), [""; 0]);
        assert_eq!(differences(&of_type(None), &generic, 0), [""; 0]);
    }

    #[test]
    fn a_table_that_was_empty_has_grown() {
        let (old, new) = (tree(&[], &[("t", "0")]), tree(&[], &[("t", "1")]));
        assert_eq!(differences(&old, &new, 0), ["table s.t: 0 -> 1 rows"]);
    }

    #[test]
    fn a_table_that_was_analyzed_shortly_before_the_new_plan_is_named() {
        let analyzed = |us: i64, rows: &str| {
            let mut tree = tree(&[], &[("t", rows)]);
            tree.nodes[1].texts.push((ANALYZED, us.to_string()));
            tree
        };
        let minutes = |minutes: i64| 1_000_000_000_000 + minutes * MINUTE;
        let [old, new] = [0, 30].map(|at| analyzed(minutes(at), "1000"));
        let at = |minute: i64| differences(&old, &new, minutes(minute));
        assert_eq!(at(30), ["table s.t: analyzed"]);
        assert_eq!(at(40), ["table s.t: analyzed"]);
        assert_eq!(at(41), [""; 0], "the old plan ran after it");
        assert_eq!(at(29), [""; 0], "later than the new plan");
        assert_eq!(differences(&new, &new, minutes(30)), [""; 0]);
        // The rows say more.
        let grown = analyzed(minutes(30), "1200");
        let rows = ["table s.t: 1000 -> 1200 rows"];
        assert_eq!(differences(&old, &grown, minutes(30)), rows);
        let first = tree(&[], &[("t", "1000")]);
        assert_eq!(
            differences(&first, &new, minutes(30)),
            ["table s.t: analyzed"]
        );
        assert_eq!(differences(&new, &first, minutes(30)), [""; 0]);
    }

    #[test]
    fn the_last_tree_up_to_the_turn_is_nearest_then_the_first_after_it() {
        let key = EntryKey {
            query_id: Some(1),
            database: None,
            username: None,
            toplevel: true,
        };
        let nearest = |times: &[i64]| {
            let mut wanted = Wanted {
                plan_id: 1,
                key: &key,
                until_ms: 100,
                found: None,
            };
            for time in times {
                if wanted.is_nearer(*time) {
                    wanted.found = Some((*time, Tree::default()));
                }
            }
            wanted.found.map(|(time, _)| time)
        };
        assert_eq!(nearest(&[]), None);
        assert_eq!(nearest(&[20, 90, 100, 101, 30]), Some(100));
        assert_eq!(nearest(&[300, 200, 250]), Some(200));
        assert_eq!(nearest(&[200, 50, 150, 60]), Some(60));
    }
}
