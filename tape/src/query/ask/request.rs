//! Questions as structs. `request!` in the file of a function describes its arguments once. From
//! this description follow the struct, and the names, kinds, help and defaults that SQL, command
//! line and HTTP show. These three turn their texts into the struct; `remote` turns the struct back
//! into named SQL arguments.

use super::context::Run;
use super::row::Row;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::sink::Value;

/// The kind of value that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A node: its id, or `all`.
    Node,
    /// The name of a dimension.
    Dimension,
    /// A point in time.
    Time,
    /// A length of time.
    Interval,
    /// A whole number.
    Number,
    /// The column that orders the rows.
    Order,
    /// The samples that count.
    Scope,
    /// Name of a time zone.
    Zone,
    /// `true` or `false`.
    Switch,
    /// The id of a plan.
    Plan,
    /// A value, a list or an exclusion of metrics or their objects.
    Metric,
    /// A value, a list or an exclusion of a dimension, or of an attribute of statements.
    Filter,
    /// A filter for each dimension of the catalog.
    Filters,
}

impl Kind {
    /// Placeholder of the value in a description.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Node | Kind::Plan => "ID",
            Kind::Dimension => "DIMENSION",
            Kind::Time => "TIME",
            Kind::Interval => "INTERVAL",
            Kind::Number => "N",
            Kind::Order => "ORDER",
            Kind::Scope => "SCOPE",
            Kind::Zone => "ZONE",
            Kind::Switch => "BOOL",
            Kind::Metric | Kind::Filter | Kind::Filters => "FILTER",
        }
    }

    /// True if the default in the description is a value. Others have words, such as "1h before the
    /// end".
    fn has_default(self) -> bool {
        matches!(
            self,
            Kind::Dimension | Kind::Number | Kind::Order | Kind::Scope
        )
    }
}

/// An argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name in SQL.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: Kind,
    /// Help in one line.
    pub help: &'static str,
    /// The default, as a value or in words. `None` for a filter, and if the function names no
    /// default.
    pub default: Option<&'static str>,
}

impl Argument {
    /// Describes an argument.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        help: &'static str,
        default: Option<&'static str>,
    ) -> Argument {
        Argument {
            name,
            kind,
            help,
            default,
        }
    }

    /// The same argument with the help and the default that one function has for it.
    pub(crate) const fn described(
        self,
        help: &'static str,
        default: Option<&'static str>,
    ) -> Argument {
        Argument::new(self.name, self.kind, help, default)
    }

    /// The default, if it is a value.
    pub fn default_text(&self) -> Option<&'static str> {
        self.default.filter(|_| self.kind.has_default())
    }

    /// The default as a value, or null.
    pub fn default_value(&self) -> Value {
        let text = self.default_text();
        match self.kind {
            Kind::Number => Value::int(text.and_then(|text| text.parse().ok())),
            _ => Value::text(text),
        }
    }
}

/// The arguments by name. `help` and `default` are for functions that give none of their own.
#[allow(non_upper_case_globals)]
pub(crate) mod argument {
    use super::{Argument, Kind};

    const fn window(name: &'static str, help: &'static str, default: &'static str) -> Argument {
        Argument::new(name, Kind::Time, help, Some(default))
    }

    const fn filter(name: &'static str, help: &'static str) -> Argument {
        Argument::new(name, Kind::Filter, help, None)
    }

    pub const node: Argument = Argument::new(
        "node",
        Kind::Node,
        "Node id, or all: the mean of all nodes, weighted by time observed",
        Some("the newest"),
    );
    pub const dimension: Argument = Argument::new("dimension", Kind::Dimension, "", None);
    pub const by: Argument = Argument::new("by", Kind::Dimension, "Split by a dimension", None);
    /// A point in time instead of a window.
    pub const at: Argument =
        Argument::new("at", Kind::Time, "Point in time instead of a window", None);
    pub const since: Argument = window(
        "since",
        "Start: 1h, 03:12, \"yesterday 14:00\", RFC 3339",
        "1h before the end",
    );
    pub const until: Argument = window("until", "End, exclusive", "now");
    pub const since_1: Argument = window(
        "since_1",
        "Start of the earlier window",
        "a day before the later one",
    );
    pub const until_1: Argument =
        window("until_1", "Its end, exclusive", "as long as the later one");
    pub const since_2: Argument =
        window("since_2", "Start of the later window", "1h before its end");
    pub const until_2: Argument = window("until_2", "Its end, exclusive", "now");
    pub const before_since: Argument = window(
        "before_since",
        "Start of the time that was normal",
        "the same length, before the load left its usual range",
    );
    pub const before_until: Argument = window(
        "before_until",
        "Its end, exclusive",
        "as long as the window",
    );
    pub const bucket: Argument = Argument::new(
        "bucket",
        Kind::Interval,
        "Width of a bucket, such as 10s, 5m, 1d",
        None,
    );
    pub const n: Argument = Argument::new("n", Kind::Number, "", None);
    pub const order_by: Argument = Argument::new("order_by", Kind::Order, "", None);
    pub const width: Argument =
        Argument::new("width", Kind::Number, "Columns of a full bar", Some("40"));
    pub const color: Argument = Argument::new(
        "color",
        Kind::Switch,
        "Colours",
        Some("on a terminal, unless NO_COLOR is set"),
    );
    pub const ascii: Argument = Argument::new("ascii", Kind::Switch, "No block characters", None);
    pub const metric: Argument = Argument::new(
        "metric",
        Kind::Metric,
        "Metrics: a name, a list a,b, or !name",
        None,
    );
    pub const object: Argument =
        Argument::new("object", Kind::Metric, "Databases, replicas or slots", None);
    pub const scope: Argument = Argument::new(
        "scope",
        Kind::Scope,
        "load, foreground or all",
        Some("load"),
    );
    pub const by_leader: Argument =
        Argument::new("by_leader", Kind::Switch, "Exclude parallel workers", None);
    pub const filters: Argument = Argument::new("filters", Kind::Filters, "", None);
    pub const plan_id: Argument = Argument::new("plan_id", Kind::Plan, "Id of the plan", None);
    pub const diff: Argument =
        Argument::new("diff", Kind::Plan, "Id of a plan to compare it with", None);
    pub const sqlstate: Argument = filter("sqlstate", "SQLSTATE, or its class: 23505, 40");
    pub const query_id: Argument = filter("query_id", "query identifier");
    pub const database: Argument = filter("database", "name of the database");
    pub const username: Argument = filter("username", "name of the role");
    pub const toplevel: Argument = filter(
        "toplevel",
        "true or false: executed as a top-level statement",
    );
}

/// The Rust type of each argument, by the argument's name.
#[allow(non_camel_case_types)]
pub(crate) mod rust {
    /// A name or a text.
    type Text = Option<String>;
    /// µs since 1970 UTC.
    type Time = Option<i64>;

    pub type node = Text;
    pub type dimension = Text;
    pub type by = Text;
    pub type at = Time;
    pub type since = Time;
    pub type until = Time;
    pub type since_1 = Time;
    pub type until_1 = Time;
    pub type since_2 = Time;
    pub type until_2 = Time;
    pub type before_since = Time;
    pub type before_until = Time;
    /// Width of a bucket in µs.
    pub type bucket = Option<i64>;
    /// Number of rows; `None` means all.
    pub type n = Option<i64>;
    pub type order_by = Text;
    pub type width = Option<i64>;
    pub type color = bool;
    pub type ascii = bool;
    pub type metric = Text;
    pub type object = Text;
    pub type scope = Text;
    pub type by_leader = bool;
    /// Dimensions and the texts of their filters.
    pub type filters = Vec<(String, String)>;
    pub type plan_id = Text;
    pub type diff = Text;
    pub type sqlstate = Text;
    pub type query_id = Text;
    pub type database = Text;
    pub type username = Text;
    pub type toplevel = Text;
}

/// The arguments that a caller gives.
pub struct Given<'a> {
    /// The value of an argument; null means not given, or all.
    pub value: &'a dyn Fn(&Argument) -> QueryResult<Value>,
    /// Dimensions and the texts of their filters.
    pub filters: Vec<(String, String)>,
}

/// A field of a request.
pub trait Field: Sized {
    /// Takes the value that the caller gives.
    ///
    /// # Errors
    /// The value is not understood.
    fn of(argument: &Argument, given: &mut Given) -> QueryResult<Self>;

    /// Calls `to` with the name and the value.
    fn put<'a>(&'a self, name: &'a str, to: &mut dyn FnMut(&'a str, Value));
}

impl Field for Option<String> {
    fn of(argument: &Argument, given: &mut Given) -> QueryResult<Self> {
        Ok(super::row::Cell::of((given.value)(argument)?))
    }

    fn put<'a>(&'a self, name: &'a str, to: &mut dyn FnMut(&'a str, Value)) {
        to(name, Value::text(self.clone()));
    }
}

impl Field for Option<i64> {
    fn of(argument: &Argument, given: &mut Given) -> QueryResult<Self> {
        Ok(super::row::Cell::of((given.value)(argument)?))
    }

    fn put<'a>(&'a self, name: &'a str, to: &mut dyn FnMut(&'a str, Value)) {
        to(name, Value::int(*self));
    }
}

impl Field for bool {
    fn of(argument: &Argument, given: &mut Given) -> QueryResult<Self> {
        Ok(super::row::Cell::of((given.value)(argument)?).unwrap_or(false))
    }

    fn put<'a>(&'a self, name: &'a str, to: &mut dyn FnMut(&'a str, Value)) {
        to(name, Value::Bool(*self));
    }
}

impl Field for Vec<(String, String)> {
    fn of(_: &Argument, given: &mut Given) -> QueryResult<Self> {
        Ok(std::mem::take(&mut given.filters))
    }

    fn put<'a>(&'a self, _: &'a str, to: &mut dyn FnMut(&'a str, Value)) {
        for (name, filter) in self {
            to(name, Value::Text(filter.as_str().into()));
        }
    }
}

/// Takes the rows of an answer in order.
pub type Emit<'e, R> = &'e mut dyn FnMut(R) -> QueryResult<()>;

/// A question: the arguments of a function, and how the function answers them.
pub trait Request: Default + Send + Sync {
    /// A row of the answer.
    type Row: Row;
    /// The answer in one line, for help.
    const ABOUT: &'static str;
    /// The arguments, in the order of the struct's fields.
    const ARGUMENTS: &'static [Argument];

    /// Reads the arguments that a caller gives.
    ///
    /// # Errors
    /// A value is not understood.
    fn of(given: &mut Given) -> QueryResult<Self>;

    /// Calls `to` with the name and value of every argument; null means not given, or all.
    fn put<'a>(&'a self, to: &mut dyn FnMut(&'a str, Value));

    /// Answers the question.
    ///
    /// # Errors
    /// An argument makes no sense, the history could not be read, `emit` failed, or
    /// the question was cancelled.
    fn answer(&self, run: Run, emit: Emit<Self::Row>) -> QueryResult<()>;
}

/// Describes the arguments of a function, in order. The macro makes the list of arguments, the
/// request struct with its defaults, and the method of [`crate::Snapshot`]. The function `answer`
/// of the same file answers. An argument without a description of its own has the one in
/// [`argument`].
macro_rules! request {
    (
        #[doc = $about:literal]
        $request:ident of $function:ident: $row:ident {
            $($name:ident $(($help:literal, $default:expr))?,)*
        }
    ) => {
        #[doc = $about]
        #[allow(missing_docs)]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $request {
            $(pub $name: $crate::query::ask::request::rust::$name,)*
        }

        impl Default for $request {
            #[allow(clippy::unwrap_used)]
            fn default() -> Self {
                let value = |argument: &$crate::query::ask::request::Argument| Ok(argument.default_value());
                let mut given = $crate::query::ask::request::Given {
                    value: &value,
                    filters: Vec::new(),
                };
                $crate::query::ask::request::Request::of(&mut given).unwrap()
            }
        }

        impl $crate::query::ask::request::Request for $request {
            type Row = $row;
            const ABOUT: &'static str = $crate::query::ask::request::line($about);
            const ARGUMENTS: &'static [$crate::query::ask::request::Argument] = &[
                $($crate::query::ask::request::argument::$name $(.described($help, $default))?,)*
            ];

            fn of(
                given: &mut $crate::query::ask::request::Given,
            ) -> $crate::query::value::error::QueryResult<Self> {
                let mut arguments = Self::ARGUMENTS.iter();
                $(let $name = $crate::query::ask::request::field(&mut arguments, given)?;)*
                Ok($request { $($name,)* })
            }

            fn put<'a>(&'a self, to: &mut dyn FnMut(&'a str, $crate::query::value::sink::Value)) {
                $($crate::query::ask::request::Field::put(&self.$name, stringify!($name), to);)*
            }

            fn answer(
                &self,
                run: $crate::query::ask::context::Run,
                emit: $crate::query::ask::request::Emit<$row>,
            ) -> $crate::query::value::error::QueryResult<()> {
                answer(self, run, emit)
            }
        }

        impl $crate::Snapshot {
            #[doc = concat!("Asks `", stringify!($function), "`.")]
            ///
            /// # Errors
            /// The errors of [`answer`](crate::query::ask::request::Request::answer).
            pub fn $function(
                &self,
                request: &$request,
                context: &$crate::query::ask::context::Context,
            ) -> $crate::query::value::error::QueryResult<$crate::query::ask::row::Answer<$row>> {
                self.ask(request, context)
            }
        }
    };
}
pub(crate) use request;

/// A line of documentation without its leading blank.
pub(crate) const fn line(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

/// The field for the next argument.
pub(crate) fn field<F: Field>(
    arguments: &mut std::slice::Iter<Argument>,
    given: &mut Given,
) -> QueryResult<F> {
    match arguments.next() {
        Some(argument) => F::of(argument, given),
        None => Err(QueryError::new("XX000", "argument has no description")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::*;

    /// A request whose arguments all have different values, and its arguments by name.
    fn arguments_and_request<R: Request>() -> (Vec<(String, Value)>, R) {
        let place = |name: &str| R::ARGUMENTS.iter().position(|a| a.name == name).unwrap();
        let value = |argument: &Argument| {
            let number = 100 + i64::try_from(place(argument.name)).unwrap();
            Ok(match argument.kind {
                Kind::Time | Kind::Interval | Kind::Number => Value::Int(number),
                Kind::Switch => Value::Bool(true),
                _ => Value::Text(number.to_string().into()),
            })
        };
        let request = R::of(&mut Given {
            value: &value,
            filters: vec![("pid".into(), "7".into()), ("state".into(), "idle".into())],
        });
        let request = request.unwrap();
        let mut arguments = Vec::new();
        request.put(&mut |name, value| arguments.push((name.to_string(), value)));
        (arguments, request)
    }

    struct Arrives;

    impl functions::WithRequest for Arrives {
        fn run<R: Request + PartialEq + std::fmt::Debug>(&mut self) {
            arrives::<R>();
        }
    }

    /// A request gives back the values that it was made from.
    fn arrives<R: Request + PartialEq + std::fmt::Debug>() {
        let (all, request) = arguments_and_request::<R>();
        let given = |name: &str| all.iter().find(|(argument, _)| argument == name);
        let again = R::of(&mut Given {
            value: &|argument| Ok(given(argument.name).unwrap().1.clone()),
            filters: request_filters(&all, R::ARGUMENTS),
        });
        assert_eq!(again.unwrap(), request);
    }

    fn request_filters(all: &[(String, Value)], arguments: &[Argument]) -> Vec<(String, String)> {
        let is_own = |name: &str| arguments.iter().any(|argument| argument.name == name);
        let filter = |(name, value): &(String, Value)| match value {
            Value::Text(text) if !is_own(name) => Some((name.clone(), text.to_string())),
            _ => None,
        };
        all.iter().filter_map(filter).collect()
    }

    #[test]
    fn every_argument_of_a_request_arrives() {
        functions::with_each(&mut Arrives);
    }

    #[test]
    fn a_request_without_arguments_has_the_defaults() {
        let top = Top::default();
        let text = |text: &str| Some(text.to_string());
        assert_eq!((top.dimension, top.n), (text("wait_event"), Some(10)));
        assert_eq!((top.order_by, top.scope), (text("avg"), text("load")));
        assert_eq!((top.since, top.node, top.by_leader), (None, None, false));
        assert_eq!(Sessions::default().scope, text("all"));
        assert_eq!(Chart::default().width, Some(40));
        assert_eq!(Compare::default().dimension, None);
    }
}
