//! Rows of answers as structs. `row!` describes the columns of a function once: it makes the list
//! of columns (name, type) and the struct.

use crate::format::schema::Schema;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::sink::{Field, Sink, Value};
use std::sync::Arc;

/// A row of a function.
pub trait Row: Sized {
    /// The function whose answer has these rows.
    const FUNCTION: &'static str;
    /// The columns that are always there.
    const FIELDS: &'static [Field<'static>];

    /// All columns, including the ones from the catalog.
    fn columns(_: &Schema) -> Vec<Field<'_>> {
        Self::FIELDS.to_vec()
    }

    /// Makes a row. `take` gives the value of a column by its position in [`Row::FIELDS`].
    fn of(take: impl FnMut(usize) -> Value) -> Self;

    /// The values of all columns, in order.
    fn values(self) -> Vec<Value>;
}

/// A number with four decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numeric(
    /// Ten-thousandths.
    pub i128,
);

impl Numeric {
    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 10_000.0
    }
}

impl From<Numeric> for i128 {
    fn from(number: Numeric) -> i128 {
        number.0
    }
}

/// A Rust type that takes the value of a column.
pub trait Cell: Sized {
    /// The value, or `None` if it is null or has another type.
    fn of(value: Value) -> Option<Self>;
}

impl Cell for String {
    fn of(value: Value) -> Option<Self> {
        <Arc<str>>::of(value).map(|text| text.to_string())
    }
}

impl Cell for Arc<str> {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Cell for i64 {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Int(n) | Value::Id(n) | Value::Time(n) | Value::Interval(n) => Some(n),
            _ => None,
        }
    }
}

impl Cell for bool {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Bool(is) => Some(is),
            _ => None,
        }
    }
}

impl Cell for Numeric {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Numeric(n) => Some(Numeric(n)),
            _ => None,
        }
    }
}

/// The Rust type of a column, by its [`Type`](crate::query::value::sink::Type).
pub(crate) mod rust {
    pub type Text = super::Arc<str>;
    /// A count.
    pub type Int = i64;
    /// A 64-bit id.
    pub type Id = i64;
    pub type Bool = bool;
    pub type Numeric = super::Numeric;
    /// µs since 1970 UTC.
    pub type Time = i64;
    /// Length of time in µs.
    pub type Interval = i64;
}

/// Describes the columns of a function: makes their list and the struct of a row. Null is `None`.
/// `and NAME of PATH` adds the columns that the function `PATH` finds in a catalog; the field
/// `NAME` has their values.
macro_rules! row {
    ($(#[$doc:meta])* $row:ident of $function:literal: $fields:ident {
        $($column:ident: $type:ident,)*
    } $(and $more:ident of $columns:path)?) => {
        pub const $fields: &[$crate::query::value::sink::Field<'static>] =
            &[$((stringify!($column), $crate::query::value::sink::Type::$type),)*];

        $(#[$doc])*
        #[allow(missing_docs)]
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $row {
            $(pub $column: Option<$crate::query::ask::row::rust::$type>,)*
            $(pub $more: Vec<$crate::query::value::sink::Value>,)?
        }

        impl $crate::query::ask::row::Row for $row {
            const FUNCTION: &'static str = $function;
            const FIELDS: &'static [$crate::query::value::sink::Field<'static>] = $fields;

            $(fn columns(catalog: &$crate::format::schema::Schema) -> Vec<$crate::query::value::sink::Field<'_>> {
                [$fields, &$columns(catalog)].concat()
            })?

            fn of(mut take: impl FnMut(usize) -> $crate::query::value::sink::Value) -> Self {
                let mut places = 0..;
                $row {
                    $($column: places
                        .next()
                        .and_then(|place| $crate::query::ask::row::Cell::of(take(place))),)*
                    $($more: Vec::new(),)?
                }
            }

            fn values(self) -> Vec<$crate::query::value::sink::Value> {
                let values = [$(match self.$column {
                    Some(value) => $crate::query::value::sink::Value::$type(value.into()),
                    None => $crate::query::value::sink::Value::Null,
                },)*];
                values.into_iter()$(.chain(self.$more))?.collect()
            }
        }
    };
}
pub(crate) use row;

/// An answer inside a process: rows as structs.
#[derive(Debug, Default)]
pub struct Answer<R> {
    /// The rows.
    pub rows: Vec<R>,
    /// Notices about the answer.
    pub notices: Vec<QueryError>,
}

/// Takes the answer of another process as rows. It finds columns by name, because a server of
/// another version may have more or fewer of them. Missing columns are `None`.
#[derive(Debug)]
pub struct Taken<R> {
    /// The rows.
    pub rows: Vec<R>,
    /// Notices about the answer.
    pub notices: Vec<QueryError>,
    /// For each column of the row: its position in the answer.
    places: Vec<Option<usize>>,
}

impl<R> Default for Taken<R> {
    fn default() -> Self {
        Taken {
            rows: Vec::new(),
            notices: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl<R: Row> Taken<R> {
    /// Starts to take an answer with these columns.
    pub fn new(fields: &[Field]) -> Taken<R> {
        let place = |own: &Field| fields.iter().position(|field| field.0 == own.0);
        Taken {
            places: R::FIELDS.iter().map(place).collect(),
            ..Taken::default()
        }
    }

    /// The rows that `answer` puts into a sink.
    ///
    /// # Errors
    /// The errors of `answer`.
    pub fn rows_of(answer: impl FnOnce(&mut dyn Sink) -> QueryResult<()>) -> QueryResult<Vec<R>> {
        let mut taken = Taken::default();
        answer(&mut taken)?;
        Ok(taken.rows)
    }

    /// Takes a row.
    pub fn add(&mut self, mut values: Vec<Value>) {
        self.rows.push(R::of(|column| {
            let place = self.places.get(column).copied().flatten();
            let value = place.and_then(|place| values.get_mut(place));
            value.map_or(Value::Null, |value| std::mem::replace(value, Value::Null))
        }));
    }
}

impl<R: Row> Sink for Taken<R> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        *self = Taken::new(fields);
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.add(values);
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        self.notices.push(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;
    use crate::query::*;
    use crate::testing::{Arguments, run, schema};
    use crate::write::merge_tests::{go, sealed_files};

    /// The rows as structs equal the values that a sink gets, and the struct's columns equal the
    /// registry's.
    fn difference<R: Request>(arguments: &Arguments, snapshot: &Snapshot) -> Option<String> {
        let (name, fields) = (R::Row::FUNCTION, R::Row::FIELDS);
        assert_eq!(find(name).unwrap().fields, fields, "{name}");
        let mut printed = Printed::default();
        run(name, arguments, snapshot, &mut printed).unwrap();
        let value = |argument: &Argument| {
            Ok(match argument.name {
                "since" | "since_2" => Value::Time(arguments.since_us.unwrap()),
                "dimension" => Value::text(arguments.dimension.clone()),
                "n" => Value::int(arguments.n),
                // The sink's question above gives no scope.
                "scope" => Value::Null,
                _ => argument.default_value(),
            })
        };
        let request = R::of(&mut Given {
            value: &value,
            filters: Vec::new(),
        });
        let answer = snapshot.ask(&request.unwrap(), &arguments.context).unwrap();
        let rows: Vec<Vec<Value>> = answer.rows.into_iter().map(Row::values).collect();
        let columns = R::Row::columns(arguments.catalog).len();
        assert!(
            rows.iter().all(|row| row.len() == columns),
            "{name}: {rows:?}"
        );
        (rows != printed.0).then(|| format!("{name}: {rows:?}, {:?}", printed.0))
    }

    struct Differences<'a> {
        arguments: &'a Arguments<'a>,
        snapshot: &'a Snapshot,
        found: Vec<String>,
    }

    impl functions::WithRequest for Differences<'_> {
        fn run<R: Request + PartialEq + std::fmt::Debug>(&mut self) {
            self.found
                .extend(difference::<R>(self.arguments, self.snapshot));
        }
    }

    #[derive(Default)]
    struct Printed(Vec<Vec<Value>>);

    impl Sink for Printed {
        fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
            Ok(())
        }

        fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
            self.0.push(values);
            Ok(())
        }
    }

    row! {
        /// The fields as they stand in one version.
        Calm of "top": CALM {
            begin: Time,
            end: Time,
            load: Numeric,
            pct: Numeric,
            text: Text,
        }
    }

    row! {
        /// The same fields with two pairs swapped.
        Swapped of "top": SWAPPED {
            end: Time,
            begin: Time,
            pct: Numeric,
            load: Numeric,
            text: Text,
        }
    }

    /// The values of a row by name, as SQL, JSON and HTTP show them.
    fn by_name<R: Row>(row: R) -> std::collections::BTreeMap<&'static str, Value> {
        let names = R::FIELDS.iter().map(|field| field.0);
        names.zip(row.values()).collect()
    }

    #[test]
    fn swapping_two_fields_of_one_type_changes_no_output() {
        let calm = || Calm {
            begin: Some(1),
            end: Some(2),
            load: Some(Numeric(3)),
            pct: Some(Numeric(4)),
            text: Some("five".into()),
        };
        let swapped = Swapped {
            begin: Some(1),
            end: Some(2),
            load: Some(Numeric(3)),
            pct: Some(Numeric(4)),
            text: Some("five".into()),
        };
        let shown = by_name(calm());
        assert_eq!(shown["begin"], Value::Time(1));
        assert_eq!(shown["pct"], Value::Numeric(4));
        assert_eq!(shown, by_name(swapped.clone()));
        // A reader of the other version takes the same values.
        let mut taken = Taken::<Swapped>::new(CALM);
        taken.add(calm().values());
        assert_eq!(taken.rows, [swapped]);
    }

    #[test]
    fn rows_as_structs_equal_printed_rows() {
        let (storage, _) = sealed_files(1, 3, 130);
        go(&storage, 2).unwrap().unwrap();
        let snapshot = Snapshot::open_storage(&storage).unwrap();
        let catalog = schema();
        let last_ms = snapshot.nodes()[0].last_ms;
        let mut arguments = Arguments::new(&catalog, 1_000 * last_ms + 1_000_000);
        arguments.since_us = Some(1_000 * snapshot.nodes()[0].first_ms);
        arguments.dimension = Some("wait_event".to_string());
        arguments.n = Some(50);
        let mut all = Differences {
            arguments: &arguments,
            snapshot: &snapshot,
            found: Vec::new(),
        };
        functions::with_each(&mut all);
        assert!(all.found.is_empty(), "{:#?}", all.found);
        let top = Top {
            since: arguments.since_us,
            n: Some(50),
            ..Top::default()
        };
        let top = snapshot.top(&top, &arguments.context).unwrap().rows;
        let seconds = top.iter().map(|row| row.backend_seconds.unwrap().0);
        let aas = Aas {
            since: arguments.since_us,
            ..Aas::default()
        };
        let aas = snapshot.aas(&aas, &arguments.context).unwrap().rows;
        assert!(top.len() > 2 && top.len() < 50, "{top:?}");
        assert_eq!(aas[0].backend_seconds, Some(Numeric(seconds.sum())));
    }

    #[test]
    fn columns_are_found_by_name_and_may_be_missing() {
        let fields = [("planet", Type::Text), ("value", Type::Text)];
        let mut taken: Taken<StatusRow> = Taken::new(&fields);
        let text = |text: &str| Value::Text(text.into());
        taken.add(vec![text("Mars"), text("on")]);
        taken.add(vec![text("Mars"), Value::Int(7)]);
        let row = |value: Option<&str>| StatusRow {
            metric: None,
            value: value.map(Arc::from),
        };
        assert_eq!(taken.rows, [row(Some("on")), row(None)]);
    }
}
