//! The names that a query mentions: a query that got slower can follow from a change
//! of a table only if it mentions the table.

use std::collections::HashSet;

/// All identifiers in the text of a query. Keywords of SQL are among them.
///
/// Example: `select O.id from shop."Orders" o where note = 'from x' -- y` mentions
/// `select`, `o`, `id`, `from`, `shop`, `Orders`, `where` and `note`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(HashSet<String>);

impl Names {
    /// Reads the text of a query. Words in literals and comments do not count.
    pub fn of(text: &str) -> Names {
        let mut names = HashSet::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '\'' => behind(&rest[1..], "'"),
                '"' => {
                    let (name, after) = quoted(&rest[1..]);
                    names.insert(name);
                    after
                }
                '-' if rest.starts_with("--") => behind(rest, "\n"),
                '/' if rest.starts_with("/*") => behind(rest, "*/"),
                c if is_of_name(c) => {
                    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                    names.insert(rest[..end].to_lowercase());
                    &rest[end..]
                }
                c => &rest[c.len_utf8()..],
            };
        }
        Names(names)
    }

    /// True if the query mentions an object. The schema is ignored: `orders`
    /// mentions `app.orders`.
    pub fn mentions(&self, object: &str) -> bool {
        let name = object.rsplit('.').next().unwrap_or(object);
        !name.is_empty() && self.0.contains(name)
    }

    /// True if the query mentions the table of an index, judged by the name that
    /// PostgreSQL gives to indexes: `orders_customer_idx` is on `orders`. Names of
    /// tables shorter than three letters do not count.
    pub fn mentions_table_of(&self, index: &str) -> bool {
        let name = index.rsplit('.').next().unwrap_or(index);
        let ends = name.match_indices('_').map(|(at, _)| at);
        ends.into_iter()
            .any(|end| end >= 3 && self.0.contains(&name[..end]))
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The text after the end of a literal or comment.
fn behind<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// Returns a quoted name and the text after its closing quote. A doubled quote is
/// one quote of the name.
fn quoted(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').unwrap_or(rest.len());
        name += &rest[..end];
        rest = rest.get(end + 1..).unwrap_or("");
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return (name, rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_mentions_names_and_no_literals() {
        let names = Names::of(
            "select O.id from shop.\"Order\"\"s\" o where note = 'from lines' -- items\n and /* parts */ x$1 > $2",
        );
        for name in ["o", "id", "shop", "Order\"s", "app.note", "x$1"] {
            assert!(names.mentions(name), "{name}");
        }
        for name in ["lines", "items", "parts", "orders", ""] {
            assert!(!names.mentions(name), "{name}");
        }
    }

    #[test]
    fn an_index_is_named_after_its_table() {
        let names = Names::of("update order_lines set n = 1 where id = $1");
        assert!(names.mentions_table_of("app.order_lines_item_idx"));
        assert!(!names.mentions_table_of("orders_customer"));
        // "id" is too short to tell a table.
        assert!(!names.mentions_table_of("id_name_key"));
    }

    #[test]
    fn texts_that_end_early_end() {
        for text in ["'", "\"", "\"a\"\"", "/*", "--", "é'", "select 'a''b"] {
            let _ = Names::of(text);
        }
        assert!(Names::of("\"a\"\"").mentions("a\""));
    }
}
