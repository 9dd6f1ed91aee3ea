//! The data model as it was built in: dimensions, their documentation, labels.

use std::sync::OnceLock;
use tacho_tape::Schema;
use tacho_tape::query::dimension_names;

const TEXT: &str = concat!(
    include_str!("../../catalog/samples.h"),
    include_str!("../../catalog/counters.h")
);

/// Tables, columns and labels of `catalog/samples.h`, and the counters of
/// `catalog/counters.h`.
pub fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::from_catalog(TEXT).unwrap_or_default())
}

/// Name and one line of documentation of every dimension. Found once: every
/// reader command asks for them at each start of the program.
pub fn dimensions() -> &'static [(&'static str, &'static str)] {
    static DIMENSIONS: OnceLock<Vec<(&'static str, &'static str)>> = OnceLock::new();
    DIMENSIONS.get_or_init(|| {
        let names = dimension_names(schema());
        names.into_iter().map(|name| (name, doc(name))).collect()
    })
}

fn doc(name: &str) -> &'static str {
    let column = TEXT.lines().find(|line| {
        let mut words = line.splitn(7, ", ");
        line.starts_with("COLUMN(") && words.nth(2) == Some(name) && words.nth(2) == Some("DIM")
    });
    let text = column.and_then(|line| line.split_once(" \"")?.1.strip_suffix("\")"));
    text.unwrap_or("session at the head of the queue this one waits in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_has_a_name_and_a_doc() {
        let dimensions = dimensions();
        assert_eq!(
            dimensions[0],
            ("wait_event_type", "class of the wait event")
        );
        assert!(dimensions.contains(&("pid", "process id")));
        let last = (
            "root_blocker",
            "session at the head of the queue this one waits in",
        );
        assert_eq!(dimensions.last(), Some(&last));
        assert_eq!(dimensions.len(), 16);
    }
}
