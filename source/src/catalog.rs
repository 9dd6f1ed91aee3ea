//! The data model as it was built in: dimensions, their documentation, labels.

use std::sync::OnceLock;
use tacho_tape::Schema;
use tacho_tape::query;

/// The lists as they are.
pub const TEXT: &str = concat!(
    include_str!("../../catalog/samples.h"),
    include_str!("../../catalog/counters.h")
);

/// Tables, columns and labels of `catalog/samples.h`, and the counters of
/// `catalog/counters.h`.
pub fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::from_catalog(TEXT).unwrap_or_default())
}

/// The names of the dimensions.
pub fn dimension_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| query::dimension_names(schema()))
}

/// Name and one line of documentation of every dimension. Found once: every
/// reader command for people asks for them at each start of the program.
pub fn dimensions() -> &'static [(&'static str, &'static str)] {
    static DIMENSIONS: OnceLock<Vec<(&'static str, &'static str)>> = OnceLock::new();
    DIMENSIONS.get_or_init(|| {
        let documented: Vec<_> = TEXT.lines().filter_map(documented).collect();
        let doc = |name: &str| {
            let found = documented.iter().find(|column| column.0 == name);
            found.map_or(ROOT_BLOCKER, |column| column.1)
        };
        let names = dimension_names().iter();
        names.map(|name| (*name, doc(name))).collect()
    })
}

/// The dimension that is no column.
const ROOT_BLOCKER: &str = "session at the head of the queue this one waits in";

/// Name and documentation of a line about a column that is a dimension.
fn documented(line: &'static str) -> Option<(&'static str, &'static str)> {
    let mut words = line
        .strip_prefix("COLUMN(")?
        .split(',')
        .map(str::trim_start);
    let name = words.nth(2)?;
    if words.nth(2)? != "DIM" {
        return None;
    }
    let text = line.split_once('"')?.1.strip_suffix("\")")?;
    Some((name, text))
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
