//! The table of rules in docs/changes.md agrees with the code.

use super::rules::RULES;

#[test]
fn the_documented_table_is_the_one_that_decides() {
    let docs = include_str!("../../../../../docs/changes.md");
    let table = docs.split("| Rule |").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let lines: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    for (rule, line) in RULES.iter().zip(&lines) {
        let expected = format!("| `{}` | {} | {} |", rule.name, rule.cause, rule.effect);
        assert!(line.starts_with(&expected), "{line}\n{expected}");
    }
    assert!(lines.len() == RULES.len(), "{lines:#?}");
    for (place, rule) in RULES.iter().enumerate() {
        assert_eq!(rule.rule as usize, place, "{}", rule.name);
    }
}
