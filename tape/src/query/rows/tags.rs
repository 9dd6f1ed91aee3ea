//! The dimensions `tag:KEY`: the value of one key in the tags of a statement. The column
//! `statement.tags` has all tags of a statement as one string, such as
//! `controller=orders,action=show`. A comma in a value is `%2C` there, and a percent sign is `%25`.

use super::integers::{Code, Reference};
use super::keys::{Codes, KeySet, Keys, LOST, View};
use super::register::Atom;
use crate::fast::FastMap;
use crate::format::schema::RUN;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::{self, Filter};
use crate::query::value::vocabulary as pg;

/// The dictionary with the tags, and the column of `run` that refers to it.
pub const STATEMENT: &str = "statement";
/// The columns that determine the keys.
pub const COLUMNS: [(&str, &str); 2] = [(RUN, STATEMENT), (STATEMENT, pg::TAGS)];

/// Bytes of the longest key that `tacho.comment_tags` may have.
const LONGEST_KEY: usize = 32;

/// The key in the name of a dimension, such as `route` in `tag:route`.
pub fn key_of(name: &str) -> Option<&str> {
    let key = name.strip_prefix(pg::TAG)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (!key.is_empty() && key.len() <= LONGEST_KEY && key.bytes().all(fits)).then_some(key)
}

/// The value of a key in the tags of a statement. Tags that were left out belong to `(other)` of
/// every key.
fn value(tags: &str, key: &str) -> Option<String> {
    if tags == pg::OTHER {
        return Some(pg::OTHER.to_string());
    }
    let found = pairs(tags).find(|(own, _)| *own == key);
    found.map(|(_, value)| decoded(value))
}

/// Keys and encoded values in the tags of a statement.
fn pairs(tags: &str) -> impl Iterator<Item = (&str, &str)> {
    tags.split(',').filter_map(|pair| pair.split_once('='))
}

/// The keys in the tags of a statement.
pub fn keys_in(tags: &str) -> impl Iterator<Item = &str> {
    pairs(tags).map(|(key, _)| key)
}

/// The key of the dimension `tag:KEY` for a key of the dimension `tags`.
pub fn value_of(tags: &str, key: &str) -> Option<String> {
    match tags {
        LOST => Some(LOST.to_string()),
        tags => value(tags, key),
    }
}

/// The filter `tags` for a key of the dimension `tag:KEY`; `None` for the text `(null)`, which no
/// such filter can say.
pub fn filter_of(key: &str, value: Option<&str>) -> Option<String> {
    match value {
        None => Some(format!("{key}={}", filter::NULL)),
        Some(filter::NULL) => None,
        Some(value) => Some(filter::quoted(&format!("{key}={}", encoded(value)))),
    }
}

fn decoded(value: &str) -> String {
    value.replace("%2C", ",").replace("%25", "%")
}

fn encoded(value: &str) -> String {
    value.replace('%', "%25").replace(',', "%2C")
}

/// The key of each run: the value of a tag, or null.
pub fn keys(view: &View, key: &str) -> QueryResult<Keys> {
    let tags = view.part.ints(STATEMENT, pg::TAGS)?;
    let mut keys = KeySet::default();
    let none = keys.code(Atom::Null);
    let mut known: FastMap<i64, Code> = FastMap::default();
    let mut map = vec![none];
    for &reference in tags.iter() {
        let code = match (reference, known.get(&reference)) {
            (0, _) => none,
            (_, Some(code)) => *code,
            (reference, None) => {
                let tags = view.name(Reference(reference))?;
                let value = tags.and_then(|tags| value(&tags, key));
                let code = keys.code(view.register.atom(value.as_deref()));
                known.insert(reference, code);
                code
            }
        };
        map.push(code);
    }
    map.push(keys.code(view.register.atom(Some(LOST))));
    let column = STATEMENT.to_string();
    Ok(keys.with(Codes::Lookup { column, map }))
}

/// An item of a filter: true stands for a refused value, and `None` for null.
type Item = (bool, Option<String>);

/// The filter `tags` as filters of dimensions: `(null)` stays one of `tags`, and `KEY=VALUE` becomes
/// one of `tag:KEY`. An item in quotes with several pairs is all tags of a statement. Several values of one key are a list, and each key is a filter of its own.
/// Example: `controller=orders,controller=carts,action=show` becomes `tag:controller` = orders or
/// carts, and `tag:action` = show.
pub fn filters(text: &str) -> QueryResult<Vec<(String, Filter)>> {
    let mut names: Vec<String> = Vec::new();
    let mut lists: Vec<Vec<Item>> = Vec::new();
    for (is_refused, item) in filter::items(pg::TAGS, text)? {
        let (name, item) = pair(item)?;
        let at = names.iter().position(|known| *known == name);
        let at = at.unwrap_or_else(|| {
            names.push(name);
            lists.push(Vec::new());
            names.len() - 1
        });
        lists[at].push((is_refused, item));
    }
    with_missing(&names, &mut lists);
    let filters = names
        .into_iter()
        .zip(lists)
        .filter(|(_, items)| !items.is_empty());
    filters
        .map(|(name, items)| Filter::of(&name, items).map(|filter| (name, filter)))
        .collect()
}

/// Moves `(null)` to the keys that stand beside it. A statement without tags has none of them:
/// `job=mail,(null)` accepts `mail` and a missing job.
fn with_missing(names: &[String], lists: &mut [Vec<Item>]) {
    let missing = (false, None);
    let of_tags = names.iter().position(|name| name == pg::TAGS);
    let Some(of_tags) = of_tags.filter(|at| lists[*at].contains(&missing)) else {
        return;
    };
    let mut is_moved = false;
    for at in (0..lists.len()).filter(|at| *at != of_tags) {
        if lists[at].iter().any(|(is_refused, _)| !is_refused) {
            lists[at].push(missing.clone());
            is_moved = true;
        }
    }
    if is_moved {
        lists[of_tags].retain(|item| *item != missing);
    }
}

/// The dimension that an item of the filter `tags` is for, and the item there.
fn pair(item: Option<String>) -> QueryResult<(String, Option<String>)> {
    let Some(item) = item else {
        return Ok((pg::TAGS.to_string(), None));
    };
    if item == pg::OTHER || item.contains(',') {
        return Ok((pg::TAGS.to_string(), Some(item)));
    }
    let pair = item.split_once('=');
    let pair = pair.map(|(key, value)| (format!("{}{}", pg::TAG, key.trim()), value));
    match pair.filter(|(name, _)| key_of(name).is_some()) {
        Some((name, value)) => Ok((name, (value != "(null)").then(|| decoded(value)))),
        None => Err(QueryError::invalid(format!(
            "invalid value \"{item}\" for filter \"tags\""
        ))
        .hint(
            "Write KEY=VALUE, such as controller=orders, or (null) for statements without tags.",
        )),
    }
}

/// Filters of dimensions `tag:KEY`, and the filter `tags` if there is one, as one filter `tags`,
/// which SQL takes. It accepts what all of them accept.
///
/// # Errors
/// A text is no filter, or no single filter says the same.
pub fn in_one_filter<'t>(
    given: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> QueryResult<String> {
    let mut all: Vec<(String, Filter)> = Vec::new();
    for (name, text) in given {
        let own = match name {
            pg::TAGS => filters(text)?,
            key => vec![(key.to_string(), Filter::parse(key, text)?)],
        };
        for (name, filter) in own {
            if all.iter().any(|(known, _)| *known == name) {
                return Err(apart(&format!("\"{name}\" and \"{}\"", pg::TAGS)));
            }
            all.push((name, filter));
        }
    }
    // One filter would give (null) to each key beside it.
    let without =
        |(name, filter): &(String, Filter)| name == pg::TAGS && filter.any.contains(&None);
    let wanted = |(name, filter): &(String, Filter)| name != pg::TAGS && !filter.any.is_empty();
    if all.iter().any(without)
        && let Some((key, _)) = all.iter().find(|one| wanted(one))
    {
        return Err(apart(&format!("\"{key}\" and \"{}\" of (null)", pg::TAGS)));
    }
    let mut items: Vec<String> = Vec::new();
    for (name, filter) in &all {
        for (sign, values) in [("", &filter.any), ("!", &filter.none)] {
            for value in values {
                items.push(format!("{sign}{}", one_item(name, value.as_deref())?));
            }
        }
    }
    Ok(items.join(","))
}

/// An item of the filter `tags` for a value of `tag:KEY`, or for all tags of a statement.
fn one_item(name: &str, value: Option<&str>) -> QueryResult<String> {
    let quoted = |text: String| format!("\"{}\"", text.replace('"', "\"\""));
    match (name.strip_prefix(pg::TAG), value) {
        (Some(_), Some(filter::NULL)) => {
            Err(apart(&format!("\"{name}\" of the text {}", filter::NULL)))
        }
        (Some(key), Some(value)) => Ok(quoted(format!("{key}={}", encoded(value)))),
        (Some(key), None) => Ok(format!("{key}={}", filter::NULL)),
        (None, Some(whole)) => Ok(quoted(whole.to_string())),
        (None, None) => Ok(filter::NULL.to_string()),
    }
}

/// The error for filters that no single filter `tags` can say.
fn apart(filters: &str) -> QueryError {
    QueryError::invalid(format!("no single filter \"tags\" says {filters}"))
        .detail("A connection takes all filters of tags as one.")
        .hint("Give each key in one filter only, and ask for (null) without other keys.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_whole_key() {
        let tags = "xcontroller=a,controller=b%2Cc%252C,action=show";
        assert_eq!(value(tags, "controller").as_deref(), Some("b,c%2C"));
        assert_eq!(value(tags, "xcontroller").as_deref(), Some("a"));
        assert_eq!(value(tags, "action").as_deref(), Some("show"));
        assert_eq!(value(tags, "contr"), None);
        assert_eq!(value("", "action"), None);
        assert_eq!(value("(other)", "action").as_deref(), Some("(other)"));
    }

    #[test]
    fn a_dimension_names_a_key_of_plain_letters() {
        assert_eq!(key_of("tag:db.system-x_1"), Some("db.system-x_1"));
        let long = format!("tag:{}", "k".repeat(33));
        for name in [
            "tag:",
            "tag",
            "tags",
            "tag:a b",
            "tag:a=b",
            "tag:\u{e9}",
            &long,
        ] {
            assert_eq!(key_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_filter_of_tags_is_one_filter_for_each_key() {
        let shown = |text| -> Vec<String> {
            let list = |items: &[Option<String>]| -> String {
                let items: Vec<&str> = items.iter().map(|i| i.as_deref().unwrap_or("-")).collect();
                items.join("|")
            };
            let filters = filters(text).expect(text);
            let line =
                |(name, f): &(String, Filter)| format!("{name} {};{}", list(&f.any), list(&f.none));
            filters.iter().map(line).collect()
        };
        assert_eq!(
            shown("controller=orders,action=show, controller=carts"),
            ["tag:controller orders|carts;", "tag:action show;"]
        );
        assert_eq!(
            shown("!controller=a,!(null)"),
            ["tag:controller ;a", "tags ;-"]
        );
        assert_eq!(shown("route=(null)"), ["tag:route -;"]);
        assert_eq!(shown("route=/a%2Cb=c%25"), ["tag:route /a,b=c%;"]);
        assert_eq!(shown("a=b,!c=d"), ["tag:a b;", "tag:c ;d"]);
        assert_eq!(shown("(null)"), ["tags -;"]);
        assert_eq!(shown("(null),a=b,a=c"), ["tag:a b|c|-;"]);
        assert_eq!(shown("a=b,!c=d,(null)"), ["tag:a b|-;", "tag:c ;d"]);
        assert_eq!(shown("\"(other)\""), ["tags (other);"]);
        assert_eq!(shown("\"a=b,c=d\",(null)"), ["tags a=b,c=d|-;"]);
    }

    #[test]
    fn filters_of_keys_say_the_same_as_one_filter_of_tags() {
        let one = |text| in_one_filter([("tag:route", text)]).expect(text);
        assert_eq!(
            one("/a,\"b \"\"c\"\"\""),
            "\"route=/a\",\"route=b \"\"c\"\"\""
        );
        assert_eq!(one("!/a,!(null)"), "!\"route=/a\",!route=(null)");
        for text in ["/a,\"b,c%2C\",(null)", "!x"] {
            let name = "tag:route".to_string();
            let filter = Filter::parse(&name, text).expect(text);
            assert_eq!(filters(&one(text)).expect(text), [(name, filter)]);
        }
        // Each filter of its own accepts as much as the filters together.
        for tags in [
            "job=mail,job=web,(null)",
            "\"a=b,c=d\"",
            "!(null)",
            "job=(null)",
            "\"(other)\"",
        ] {
            for route in ["/a", "!/a", "(null)", "!(null)"] {
                let both = [("tags", tags), ("tag:route", route)];
                let both = filters(&in_one_filter(both).expect(tags)).expect(tags);
                let mut apart = filters(tags).expect(tags);
                let route = Filter::parse("tag:route", route).expect(route);
                apart.push(("tag:route".to_string(), route));
                assert_eq!(both, apart, "{tags}");
            }
        }
    }

    #[test]
    fn filters_that_one_filter_of_tags_cannot_say_are_refused() {
        let error = |given: &[(&'static str, &'static str)]| {
            let error = in_one_filter(given.iter().copied()).expect_err("refused");
            error.message
        };
        assert_eq!(
            error(&[("tags", "job=mail"), ("tag:job", "web")]),
            "no single filter \"tags\" says \"tag:job\" and \"tags\""
        );
        assert_eq!(
            error(&[("tags", "(null)"), ("tag:job", "web")]),
            "no single filter \"tags\" says \"tag:job\" and \"tags\" of (null)"
        );
        assert_eq!(
            error(&[("tag:job", "\"(null)\"")]),
            "no single filter \"tags\" says \"tag:job\" of the text (null)"
        );
    }

    #[test]
    fn a_key_cannot_be_wanted_and_refused() {
        let error = filters("a=b,!a=c").expect_err("mixed");
        let message = "filter \"tag:a\" mixes included and excluded values";
        assert_eq!(error.message, message);
    }

    #[test]
    fn a_filter_of_tags_without_a_key_is_refused() {
        for text in ["orders", "=x", "a b=c"] {
            let error = filters(text).expect_err(text);
            assert_eq!(error.sqlstate, "22023", "{text}");
            assert_eq!(
                error.message,
                format!("invalid value \"{text}\" for filter \"tags\"")
            );
        }
    }
}
