//! A plan as the JSON of EXPLAIN, which viewers of plans take.

use super::tree::{Node, Tree};
use super::words::{
    AGGREGATE, ALIAS, CTE_SCAN, CUSTOM_SCAN, FOREIGN_SCAN, FUNCTION_SCAN, INDEX, INDEX_ONLY_SCAN,
    INDEX_SCAN, MODIFY_TABLE, NAME, RELATION, SCHEMA, SET_OP, SUBPLAN, TUPLESTORE_SCAN,
    WORK_TABLE_SCAN,
};
use crate::query::value::civil::time_text;
use serde_json::{Map, Value, json};

/// The whole plan.
pub(super) fn whole(tree: &Tree) -> String {
    let mut open: Vec<Map<String, Value>> = Vec::new();
    for node in &tree.nodes {
        close(&mut open, node.depth);
        open.push(object(node));
    }
    close(&mut open, 1);
    let plan = open.pop().map_or(Value::Null, Value::Object);
    let mut whole = Map::from_iter([("Plan".to_string(), plan)]);
    let settings: Map<String, Value> = tree
        .settings()
        .map(|(name, value)| (name.to_string(), value.into()))
        .collect();
    if !settings.is_empty() {
        whole.insert("Settings".to_string(), settings.into());
    }
    if tree.is_cut {
        whole.insert("Cut".to_string(), true.into());
    }
    json!([whole]).to_string()
}

/// Closes all open nodes at `depth` or deeper: moves each into the array
/// "Plans" of the node above it.
fn close(open: &mut Vec<Map<String, Value>>, depth: usize) {
    while open.len() > depth.max(1) {
        let Some(done) = open.pop() else {
            return;
        };
        let above = open.last_mut().map(|above| above.entry("Plans"));
        if let Some(Value::Array(plans)) = above.map(|plans| plans.or_insert_with(|| json!([]))) {
            plans.push(Value::Object(done));
        }
    }
}

fn object(node: &Node) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(key.to_string(), value);
        }
    };
    let text = |kind: u8| node.text(kind).map(Value::from);
    put("Node Type", Some(node.kind_name().into()));
    put("Parent Relationship", node.relationship().map(Value::from));
    put("Subplan Name", text(SUBPLAN));
    put("Parallel Aware", Some(node.is_parallel_aware.into()));
    details(node, &mut put);
    put("Relation Name", text(RELATION));
    put("Schema", text(SCHEMA));
    put("Alias", text(ALIAS));
    put("Index Name", text(INDEX));
    put(name_key(node.kind), text(NAME));
    put("Startup Cost", Some(cost(node.startup_cost)));
    put("Total Cost", Some(cost(node.total_cost)));
    put("Plan Rows", Some(node.rows.into()));
    put("Plan Width", Some(node.width.into()));
    put(
        "Last Analyze",
        node.analyzed_us().map(|us| time_text(us).into()),
    );
    if let Some(actuals) = node.actuals() {
        put("Actual Rows", Some(actuals.json_rows().into()));
        put("Actual Loops", Some(actuals.loops.into()));
        if actuals.is_lower_bound {
            put("Stopped Early", Some(true.into()));
        }
    }
    for (label, value) in node.lines() {
        put(label, Some(property(label, value)));
    }
    object
}

/// Properties that depend on the kind of the node.
fn details(node: &Node, put: &mut impl FnMut(&str, Option<Value>)) {
    match node.kind {
        AGGREGATE => {
            put("Strategy", Some(node.strategy().into()));
            put("Partial Mode", Some(node.partial_mode().into()));
        }
        SET_OP => {
            put("Strategy", Some(node.strategy().into()));
            put("Command", Some(node.set_operation().into()));
        }
        INDEX_SCAN | INDEX_ONLY_SCAN => {
            let direction = if node.is_backward() {
                "Backward"
            } else {
                "Forward"
            };
            put("Scan Direction", Some(direction.into()));
        }
        MODIFY_TABLE | FOREIGN_SCAN => put("Operation", Some(node.operation().into())),
        _ if node.is_join() => put("Join Type", Some(node.join_type().into())),
        _ => (),
    }
}

/// JSON key for the name of the object that the node reads, such as "Function
/// Name".
fn name_key(kind: u8) -> &'static str {
    match kind {
        FUNCTION_SCAN => "Function Name",
        CTE_SCAN | WORK_TABLE_SCAN => "CTE Name",
        TUPLESTORE_SCAN => "Tuplestore Name",
        CUSTOM_SCAN => "Custom Plan Provider",
        _ => "Name",
    }
}

/// Returns the value of a property of a plan's node. As in EXPLAIN, sort and group keys are arrays,
/// and counts are numbers.
fn property(label: &str, value: &str) -> Value {
    match label {
        "Sort Key" | "Presorted Key" | "Group Key" => json!(keys(value)),
        "Workers Planned" | "Subplans Removed" | "Partitions Not Listed" => {
            value.parse::<u64>().map_or(value.into(), Value::from)
        }
        _ => value.into(),
    }
}

fn cost(hundredths: u64) -> Value {
    (hundredths as f64 / 100.0).into()
}

/// Splits a list of keys. A comma within parentheses, brackets or a quoted name is part of a key:
/// `a, f(b, c) DESC, "d, e"` has three keys.
fn keys(list: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted) = (0_i32, false);
    let is_separator = |letter: char| {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth -= 1,
            _ => (),
        }
        letter == ',' && depth == 0 && !is_quoted
    };
    list.split(is_separator).map(str::trim_start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_at_commas_outside_of_expressions_and_names() {
        assert_eq!(keys("a"), ["a"]);
        assert_eq!(
            keys(r#"cust, f(b, g(c, ARRAY[1, 2])) DESC, "d, e", (count(*)) DESC"#),
            [
                "cust",
                "f(b, g(c, ARRAY[1, 2])) DESC",
                "\"d, e\"",
                "(count(*)) DESC"
            ]
        );
        // A condition that was cut at 200 bytes has open parentheses.
        assert_eq!(keys("a, f(b, c"), ["a", "f(b, c"]);
    }
}
