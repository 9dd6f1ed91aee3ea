//! Limits the texts of an answer. Names and texts of queries come from others, and may
//! be longer than anyone reads on a page.

use std::hash::{DefaultHasher, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tacho_source::Arguments;
use tacho_tape::query::json::{Object, array, quote};
use tacho_tape::query::{Field, QueryError, QueryResult, Value};

/// The argument that limits texts.
pub const ARGUMENT: &str = "texts";
/// Value for whole texts.
const FULL: &str = "full";
/// Range of the limit, in bytes.
pub const BYTES: RangeInclusive<usize> = 16..=1_000_000;

/// The limit of texts, and the texts that were shortened.
#[derive(Debug, Default)]
pub struct Texts {
    /// Maximum length of a text in bytes; `None` = whole texts.
    most: Option<usize>,
    rows: usize,
    /// Row, index of the column, and length of the whole text in bytes.
    shortened: Vec<(usize, usize, usize)>,
}

impl Texts {
    /// Takes the argument out of a function's arguments.
    ///
    /// # Errors
    /// The argument is neither `full` nor a number of bytes within its bounds.
    pub fn taken(arguments: &mut Arguments) -> QueryResult<Texts> {
        let most = match arguments.remove(ARGUMENT).as_deref() {
            None | Some(FULL) => None,
            Some(text) => Some(bytes(text)?),
        };
        Ok(Texts {
            most,
            ..Texts::default()
        })
    }

    /// Shortens the texts in the next row of the answer.
    pub fn shorten(&mut self, row: &mut [Value]) {
        let (Some(most), number) = (self.most, self.rows) else {
            return;
        };
        self.rows += 1;
        for (column, value) in row.iter_mut().enumerate() {
            if let Value::Text(text) = value
                && let Some(length) = shorten(text, most)
            {
                self.shortened.push((number, column, length));
            }
        }
    }

    /// The shortened texts as JSON; `None` without a limit.
    pub fn told(&self, fields: &[Field]) -> Option<String> {
        self.most?;
        Some(array(self.shortened.iter().map(|(row, column, bytes)| {
            let name = fields.get(*column).map_or("", |field| field.0);
            let mut object = Object::default();
            object
                .put("row", &row.to_string())
                .put("column", &quote(name))
                .put("bytes", &bytes.to_string());
            object.json()
        })))
    }
}

fn bytes(text: &str) -> QueryResult<usize> {
    let bytes = text.parse().ok().filter(|bytes| BYTES.contains(bytes));
    bytes.ok_or_else(|| {
        let (least, most) = (BYTES.start(), BYTES.end());
        QueryError::invalid(format!(
            "{ARGUMENT} must be {FULL} or between {least} and {most}"
        ))
        .hint("A number limits each text to that many bytes.")
    })
}

/// Cuts a text after `most` bytes, never inside a character, and appends a mark with length and
/// hash: different texts stay different. Returns the length of the whole text in bytes; `None` if
/// it is not cut.
pub fn shorten(text: &mut Arc<str>, most: usize) -> Option<usize> {
    let (length, end) = (text.len(), end_of(text, most)?);
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    let mark = format!("… ({length} bytes, {:016x})", hasher.finish());
    *text = [&text[..end], &mark].concat().into();
    Some(length)
}

/// Index at which to cut a text that has more than `most` bytes, never inside a character;
/// `None` if it is not longer.
pub fn end_of(text: &str, most: usize) -> Option<usize> {
    let ends = |end: &usize| text.is_char_boundary(*end);
    (text.len() > most).then(|| (0..=most).rev().find(ends).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::query::Type;

    /// A shortened text without its hash.
    fn shortened(text: &str, most: usize) -> (String, Option<usize>) {
        let mut text = text.into();
        let length = shorten(&mut text, most);
        let mark = length.map_or(text.len(), |_| text.rfind(", ").unwrap());
        (text[..mark].to_string(), length)
    }

    #[test]
    fn texts_end_between_characters_with_their_full_length() {
        assert_eq!(shortened("select", 6), ("select".into(), None));
        assert_eq!(
            shortened("selected", 6),
            ("select… (8 bytes".into(), Some(8))
        );
        // Two, three and four bytes per character.
        for (text, most, left) in [
            ("aé", 2, "a"),
            ("a€b", 3, "a"),
            ("a€b", 4, "a€"),
            ("🦀🦀", 7, "🦀"),
            ("🦀", 3, ""),
        ] {
            let length = text.len();
            let expected = (format!("{left}… ({length} bytes"), Some(length));
            assert_eq!(shortened(text, most), expected, "{text} {most}");
        }
    }

    #[test]
    fn texts_with_the_same_begin_still_differ() {
        let [mut one, mut other] = ["a", "b"].map(|last| ("x".repeat(100) + last).into());
        shorten(&mut one, 20);
        shorten(&mut other, 20);
        assert_eq!(one[..20], other[..20]);
        assert_ne!(one, other);
    }

    fn texts(said: &str) -> QueryResult<Texts> {
        let mut arguments = Arguments::from([(ARGUMENT.to_string(), said.to_string())]);
        let taken = Texts::taken(&mut arguments);
        assert!(arguments.is_empty());
        taken
    }

    #[test]
    fn each_text_that_was_shortened_is_named() {
        const FIELDS: &[Field] = &[("n", Type::Int), ("key", Type::Text)];
        let mut texts = texts("16").unwrap();
        for text in ["short", &"é".repeat(9), "sixteen bytes..."] {
            texts.shorten(&mut [Value::Int(1), Value::Text(text.into())]);
        }
        let expected = "[{\"row\": 1, \"column\": \"key\", \"bytes\": 18}]";
        assert_eq!(texts.told(FIELDS).as_deref(), Some(expected));
    }

    #[test]
    fn texts_are_complete_unless_a_length_is_given() {
        assert_eq!(Texts::taken(&mut Arguments::new()).unwrap().most, None);
        assert_eq!(texts("full").unwrap().most, None);
        assert_eq!(texts("1000000").unwrap().most, Some(1_000_000));
        for said in ["", "0", "15", "1000001", "-20", "all", "20 "] {
            let error = texts(said).unwrap_err();
            assert_eq!(
                error.message, "texts must be full or between 16 and 1000000",
                "{said}"
            );
        }
    }
}
