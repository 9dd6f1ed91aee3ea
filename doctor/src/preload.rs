//! Lists of libraries that a server preloads, and tacho in them.

const LIBRARY: &str = "tacho";
/// Libraries that read settings of pg_stat_statements when they are loaded.
const AFTER: [&str; 2] = ["pg_stat_kcache", "powa"];
/// The library of contrib that tacho can replace.
pub const CONTRIB: &str = "pg_stat_statements";
/// The setting with the list.
pub const PRELOAD: &str = "shared_preload_libraries";

/// The list that counts at the next start: the last one of the files.
pub const FILE_SETTINGS: &str = "select setting from pg_file_settings \
    where name = 'shared_preload_libraries' order by seqno desc limit 1";

/// The libraries that the next start will preload.
pub enum Preload {
    /// The running list, which the files have too.
    Same(String),
    /// The files have another list.
    Changed(String),
    /// The files have another list, which this role may not see.
    Hidden,
    /// The setting cannot be read.
    Unknown,
}

/// The libraries of a list such as `pg_stat_statements, "x"`.
pub fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(|name| name.trim().trim_matches('"'));
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_string).collect()
}

/// True if a list of libraries names this library.
pub fn has_tacho(list: &str) -> bool {
    names(list).iter().any(|name| is_tacho(name))
}

/// True if a name in a list of libraries is the name of this library, with or without a directory.
fn is_tacho(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_suffix(".so").unwrap_or(file) == LIBRARY
}

/// The list with tacho in it, as `ALTER SYSTEM` takes it: at the end, or before libraries
/// that read settings of pg_stat_statements at their start, if tacho is in its place.
pub fn preload_with(list: &str) -> String {
    let mut all = names(list);
    if !all.iter().any(|name| is_tacho(name)) {
        let has_contrib = all.iter().any(|name| name == CONTRIB);
        let first = all
            .iter()
            .position(|name| !has_contrib && AFTER.contains(&name.as_str()));
        all.insert(first.unwrap_or(all.len()), LIBRARY.to_string());
    }
    let quoted = all
        .iter()
        .map(|name| format!("'{}'", name.replace('\'', "''")));
    quoted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_added_to_those_that_are_loaded() {
        assert_eq!(preload_with(""), "'tacho'");
        let many = "pg_stat_statements, \"auto_explain\"";
        assert_eq!(
            preload_with(many),
            "'pg_stat_statements', 'auto_explain', 'tacho'"
        );
        assert_eq!(preload_with("tacho"), "'tacho'");
        assert_eq!(preload_with("$libdir/tacho"), "'$libdir/tacho'");
    }

    #[test]
    fn libraries_that_read_settings_of_statements_stay_after_it() {
        let kcache = "'auto_explain', 'tacho', 'pg_stat_kcache', 'powa'";
        assert_eq!(preload_with("auto_explain, pg_stat_kcache, powa"), kcache);
        let beside = "'pg_stat_statements', 'pg_stat_kcache', 'tacho'";
        assert_eq!(preload_with("pg_stat_statements, pg_stat_kcache"), beside);
    }
}
