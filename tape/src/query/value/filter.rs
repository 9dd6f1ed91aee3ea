//! Filters as text: one value, a list, `(null)`, an exclusion.
//!
//! `a,b` accepts a or b; `!a` accepts everything but a, also null; `!a,!b` accepts everything but a
//! and b. `a,!b` is an error, because `a` alone means the same. A value that contains a comma or a
//! quote, or begins with `!` or `(`, stands in double quotes. A quote inside it is doubled.

use super::error::{QueryError, QueryResult};

/// Text of a null in a filter.
pub const NULL: &str = "(null)";

/// A parsed filter of one dimension. `None` in a list is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Accepted values; empty accepts every value. One of the two lists is empty.
    pub any: Vec<Option<String>>,
    /// Refused values.
    pub none: Vec<Option<String>>,
}

impl Filter {
    /// Parses the filter of dimension `name`.
    pub fn parse(name: &str, text: &str) -> QueryResult<Filter> {
        Filter::of(name, items(name, text)?)
    }

    /// The filter with these items: true stands for a refused value.
    pub fn of(
        name: &str,
        items: impl IntoIterator<Item = (bool, Option<String>)>,
    ) -> QueryResult<Filter> {
        let (none, any): (Vec<_>, Vec<_>) = items.into_iter().partition(|(refused, _)| *refused);
        let values = |items: Vec<(bool, Option<String>)>| items.into_iter().map(|i| i.1).collect();
        match any.is_empty() || none.is_empty() {
            true => Ok(Filter {
                any: values(any),
                none: values(none),
            }),
            false => Err(mixed(name)),
        }
    }

    /// True if the filter accepts a row with this key.
    pub fn accepts(&self, key: Option<&str>) -> bool {
        let is = |item: &Option<String>| item.as_deref() == key;
        (self.any.is_empty() || self.any.iter().any(is)) && !self.none.iter().any(is)
    }

    /// Every value, accepted or refused.
    pub fn items_mut(&mut self) -> impl Iterator<Item = &mut Option<String>> {
        self.any.iter_mut().chain(self.none.iter_mut())
    }
}

fn mixed(name: &str) -> QueryError {
    QueryError::invalid(format!(
        "filter \"{name}\" mixes included and excluded values"
    ))
    .hint("Write !a,!b to exclude both, or a,b to include either.")
}

/// A value as an item of a filter: `a,b` as `"a,b"`. A value that needs no quotes stays as it is.
pub fn quoted(value: &str) -> String {
    let is_sign = |c: char| "!(".contains(c);
    let is_plain = !value.is_empty()
        && value.trim() == value
        && !value.starts_with(is_sign)
        && !value.contains([',', '"']);
    match is_plain {
        true => value.to_string(),
        false => format!("\"{}\"", value.replace('"', "\"\"")),
    }
}

/// The items of the filter of dimension `name`, in their order: true stands for a refused value.
pub fn items(name: &str, text: &str) -> QueryResult<Vec<(bool, Option<String>)>> {
    let mut items = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (negated, value, tail) = item(name, text)?;
        items.push((negated, value));
        rest = tail;
    }
    Ok(items)
}

/// Parses one item: whether it is negated, its value, and the text after the comma.
fn item<'a>(name: &str, text: &'a str) -> QueryResult<(bool, Option<String>, Option<&'a str>)> {
    let trimmed = text.trim_start();
    let (negated, body) = match trimmed.strip_prefix('!') {
        Some(body) => (true, body.trim_start()),
        None => (false, trimmed),
    };
    if let Some(quoted) = body.strip_prefix('"') {
        let (value, tail) = quoted_value(name, quoted)?;
        return Ok((negated, Some(value), tail));
    }
    let (value, tail) = match body.split_once(',') {
        Some((value, tail)) => (value, Some(tail)),
        None => (body, None),
    };
    let value = value.trim();
    if value.is_empty() {
        return Err(QueryError::invalid(format!("filter \"{name}\" has an empty value"))
            .hint("Write (null) for rows without a value, \"\" for an empty string, and no filter for all rows."));
    }
    let value = (value != NULL).then(|| value.to_string());
    Ok((negated, value, tail))
}

/// Parses the rest of a quoted value after its opening quote; also returns the text after the
/// comma.
fn quoted_value<'a>(name: &str, text: &'a str) -> QueryResult<(String, Option<&'a str>)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let Some((head, tail)) = rest.split_once('"') else {
            return Err(QueryError::invalid(format!(
                "filter \"{name}\" has an unterminated quoted value"
            )));
        };
        value.push_str(head);
        match tail.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => {
                let tail = tail.trim_start();
                if tail.is_empty() {
                    return Ok((value, None));
                }
                return match tail.strip_prefix(',') {
                    Some(next) => Ok((value, Some(next))),
                    None => Err(QueryError::invalid(format!(
                        "filter \"{name}\" has text after a quoted value"
                    ))
                    .hint("Separate values by commas.")),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Filter {
        Filter::parse("application", text).expect("filter")
    }

    #[test]
    fn a_list_accepts_each_value() {
        let filter = parse("a, b");
        assert!(filter.accepts(Some("a")) && filter.accepts(Some("b")));
        assert!(!filter.accepts(Some("c")) && !filter.accepts(None));
    }

    #[test]
    fn null_is_written_in_parentheses() {
        let filter = parse("(null),x");
        assert!(filter.accepts(None) && filter.accepts(Some("x")));
        assert!(!filter.accepts(Some("(null)")));
        assert!(parse("\"(null)\"").accepts(Some("(null)")));
    }

    #[test]
    fn a_negation_keeps_nulls() {
        let filter = parse("!a,!b");
        assert!(filter.accepts(None) && filter.accepts(Some("c")));
        assert!(!filter.accepts(Some("a")) && !filter.accepts(Some("b")));
        assert!(!parse("!(null)").accepts(None));
    }

    #[test]
    fn quotes_protect_commas_and_signs() {
        assert_eq!(
            parse("\"a, \"\"b\"\"\" , \"!c\"").any,
            [Some("a, \"b\"".into()), Some("!c".into())]
        );
        assert_eq!(parse("\"\"").any, [Some(String::new())]);
    }

    #[test]
    fn a_quoted_value_is_accepted_alone() {
        for value in [
            "a", "b c", "", " a", "a ", "a,b", "!a", "(null)", "a\"b", "\t",
        ] {
            let wanted = [Some(value.to_string())];
            assert_eq!(parse(&quoted(value)).any, wanted, "{value:?}");
        }
        assert_eq!(
            ["b c", "a!b", "a, \"b\""].map(quoted),
            ["b c", "a!b", "\"a, \"\"b\"\"\""]
        );
    }

    #[test]
    fn a_list_wants_or_leaves_out_and_not_both() {
        for text in ["!a,b", "a,!b", "\"a\", !(null)"] {
            let error = Filter::parse("username", text).expect_err(text);
            assert_eq!(
                error.message,
                "filter \"username\" mixes included and excluded values"
            );
        }
    }

    #[test]
    fn empty_and_broken_values_are_named() {
        for text in ["", "a,", ",a", "!"] {
            let error = Filter::parse("state", text).expect_err(text);
            assert_eq!(error.message, "filter \"state\" has an empty value");
        }
        for text in ["\"a", "\"a\"b"] {
            assert!(Filter::parse("state", text).is_err(), "{text}");
        }
    }
}
