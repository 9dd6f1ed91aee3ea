//! Columns of an answer: their SQL expressions, and conversion of their texts
//! to values.

use tacho_tape::query::json::parse_decimal;
use tacho_tape::query::{Field, QueryError, Type, Value, without_nul};

/// SQL expression of a column. Times and intervals are selected in µs, so that
/// no setting of the session changes their form.
pub fn expression((name, kind): &Field) -> String {
    match kind {
        Type::Text => format!("r.\"{name}\"::text"),
        Type::Int | Type::Id => format!("r.\"{name}\"::bigint"),
        Type::Bool => format!("r.\"{name}\"::boolean"),
        Type::Numeric => format!("r.\"{name}\"::numeric"),
        Type::Time | Type::Interval => {
            format!("(extract(epoch from r.\"{name}\") * 1000000)::bigint")
        }
    }
}

/// Parses a value in the server's output form.
///
/// # Errors
/// The value does not have the type of the field.
pub fn parse((name, kind): &Field, bytes: Option<&[u8]>) -> Result<Value, QueryError> {
    let Some(bytes) = bytes else {
        return Ok(Value::Null);
    };
    let text = String::from_utf8_lossy(bytes);
    let value = match kind {
        Type::Text => Some(Value::Text(without_nul(text.to_string()).into())),
        Type::Int => text.parse().ok().map(Value::Int),
        Type::Id => text.parse().ok().map(Value::Id),
        Type::Bool => match &*text {
            "t" => Some(Value::Bool(true)),
            "f" => Some(Value::Bool(false)),
            _ => None,
        },
        Type::Numeric => parse_decimal(&text, 4).map(Value::Numeric),
        Type::Time => text.parse().ok().map(Value::Time),
        Type::Interval => text.parse().ok().map(Value::Interval),
    };
    value.ok_or_else(|| {
        QueryError::new("42804", format!("invalid value in column \"{name}\""))
            .detail(format!("It is \"{text}\"."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_server_becomes_a_value_of_the_column() {
        let parsed = |kind, text: &str| parse(&("c", kind), Some(text.as_bytes()));
        assert_eq!(parsed(Type::Int, "-7"), Ok(Value::Int(-7)));
        let id = "-9223372036854775808";
        assert_eq!(parsed(Type::Id, id), Ok(Value::Id(i64::MIN)));
        assert_eq!(parsed(Type::Bool, "t"), Ok(Value::Bool(true)));
        assert_eq!(parsed(Type::Numeric, "2.5"), Ok(Value::Numeric(25_000)));
        assert_eq!(parsed(Type::Time, "-1"), Ok(Value::Time(-1)));
        assert_eq!(parsed(Type::Interval, "60"), Ok(Value::Interval(60)));
        assert_eq!(parse(&("c", Type::Int), None), Ok(Value::Null));
        let broken = parse(&("c", Type::Text), Some(b"a\xff\x00"));
        assert_eq!(broken, Ok(Value::Text("a\u{fffd}\u{fffd}".into())));
        let error = parsed(Type::Int, "many").unwrap_err();
        assert_eq!(error.message, "invalid value in column \"c\"");
        assert_eq!(error.detail.as_deref(), Some("It is \"many\"."));
    }
}
