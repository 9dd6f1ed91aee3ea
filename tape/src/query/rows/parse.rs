//! Checks the arguments of a question: window, buckets, filters.

use super::dimension::Dimension;
use super::tags;
use crate::format::part::Part;
use crate::query::ask::context::{Context, Run};
use crate::query::ask::request::{Kind, Request};
use crate::query::value::bucket::{Buckets, DAY, HOUR, SECOND};
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use crate::query::value::sink::Value;
use crate::query::value::vocabulary::{self as pg, Scope};

/// Maximum number of buckets if each bucket is a row of the answer.
pub const MAX_ROWS: usize = 100_000;
/// Maximum number of buckets if they are only compared.
pub const MAX_BUCKETS: usize = 3_000_000;

/// Maximum distance in µs between a point in time and the tick that answers for it.
pub const NEAR: i64 = 60 * SECOND;

/// Latest time, and negated the earliest, in µs since 1970: 36,533 years. Sums of a few such times
/// do not overflow.
const FARTHEST: i64 = 1 << 60;
/// Maximum width of a bucket in µs: 36,525 days.
const WIDEST: i64 = 36_525 * DAY;

/// Refuses times and widths that are out of range.
pub fn check_range<R: Request>(request: &R, context: &Context) -> QueryResult<()> {
    check_time("now", context.now_us)?;
    let mut arguments = R::ARGUMENTS.iter();
    let mut checked = Ok(());
    request.put(&mut |name, value| {
        let kind = arguments.find(|a| a.name == name).map(|a| a.kind);
        let check = match (kind, value) {
            (Some(Kind::Time), Value::Int(us)) => check_time(name, us),
            (Some(Kind::Interval), Value::Int(us)) => check_width(us),
            _ => Ok(()),
        };
        if checked.is_ok() {
            checked = check;
        }
    });
    checked
}

fn check_time(name: &str, us: i64) -> QueryResult<()> {
    match us.unsigned_abs() > FARTHEST.unsigned_abs() {
        false => Ok(()),
        true => Err(QueryError::invalid(format!("{name} is out of range"))
            .hint("Use a time between the years 1 and 9999.")),
    }
}

fn check_width(width: i64) -> QueryResult<()> {
    match width > WIDEST {
        false => Ok(()),
        true => Err(QueryError::invalid("bucket is too wide")
            .detail(format!(
                "The bucket has {} days; at most {} are allowed.",
                width / DAY,
                WIDEST / DAY
            ))
            .hint("Use a narrower bucket.")),
    }
}

/// The time asked for, half-open, in µs since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start, inclusive.
    pub since: i64,
    /// End, exclusive.
    pub until: i64,
}

/// Half the length of the window around a point in time, in µs.
const AROUND: i64 = HOUR / 4;

/// Refuses a point in time together with a window.
pub fn check_moment(at: Option<i64>, since: Option<i64>, until: Option<i64>) -> QueryResult<()> {
    match at.is_some() && (since.is_some() || until.is_some()) {
        false => Ok(()),
        true => Err(
            QueryError::invalid("at cannot be combined with since or until")
                .hint("Specify either a moment or a window."),
        ),
    }
}

impl Window {
    /// The window of a question, cut at the current time. Without `since` it is one hour long.
    pub fn of(context: &Context, since: Option<i64>, until: Option<i64>) -> QueryResult<Window> {
        let now = context.now_us;
        let until = until.unwrap_or(now);
        let since = match since {
            Some(since) => since,
            None => until.min(now).saturating_sub(HOUR),
        };
        if since > until {
            return Err(QueryError::invalid("since must not be after until")
                .detail(format!(
                    "The window starts {} s after its end.",
                    (since - until) / SECOND
                ))
                .hint("Swap the two, or omit until to use the current time."));
        }
        let until = until.min(now);
        Ok(Window {
            since: since.min(until),
            until,
        })
    }

    /// The window of a question that may have a point in time instead: half an hour around it.
    pub fn at_or_of(
        context: &Context,
        at: Option<i64>,
        since: Option<i64>,
        until: Option<i64>,
    ) -> QueryResult<Window> {
        check_moment(at, since, until)?;
        let around = |at: i64| (at.saturating_sub(AROUND), at.saturating_add(AROUND));
        let (since, until) = at
            .map(around)
            .map_or((since, until), |(since, until)| (Some(since), Some(until)));
        Window::of(context, since, until)
    }

    /// Length in µs.
    pub fn length(&self) -> i64 {
        self.until - self.since
    }

    /// True if a part may have ticks in the window.
    pub fn overlaps(&self, part: &Part) -> bool {
        part.min_ms() <= part.max_ms()
            && part.min_ms().saturating_mul(1000) < self.until
            && part.max_ms().saturating_mul(1000) >= self.since
    }
}

/// The buckets of a window, at most `limit`.
pub fn buckets(
    context: &Context,
    window: Window,
    width: i64,
    limit: usize,
) -> QueryResult<Buckets> {
    let zone = context
        .zone
        .map(|z| z as &dyn crate::query::value::bucket::Zone);
    Buckets::new(window.since, window.until, width, zone, limit)
}

/// The arguments that select samples.
#[derive(Clone, Copy, Default)]
pub struct Samples<'q> {
    /// `all`, a node id in hexadecimal, or `None` for the node that wrote last.
    pub node: Option<&'q str>,
    /// `load`, `foreground` or `all`.
    pub scope: Option<&'q str>,
    /// True if parallel workers are left out.
    pub by_leader: bool,
    /// Dimensions and their filters.
    pub filters: &'q [(String, String)],
}

/// Takes [`Samples`] from a request that has all these arguments.
macro_rules! samples {
    ($request:expr) => {
        $crate::query::rows::parse::Samples {
            node: $request.node.as_deref(),
            scope: $request.scope.as_deref(),
            by_leader: $request.by_leader,
            filters: &$request.filters,
        }
    };
}
pub(in crate::query) use samples;

/// The samples that count.
pub struct Selection {
    /// Scope.
    pub scope: Scope,
    /// Filters by dimension.
    pub filters: Vec<(Dimension, Filter)>,
    /// True if parallel workers are left out.
    pub by_leader: bool,
    /// True if rows count that were recorded only because they block others.
    pub marked: bool,
}

impl Selection {
    /// The default: scope `load` without filters.
    pub fn load() -> Selection {
        Selection {
            scope: Scope::Load,
            filters: Vec::new(),
            by_leader: false,
            marked: false,
        }
    }

    /// True for the default: scope `load` without filters.
    pub fn is_load(&self) -> bool {
        self.scope == Scope::Load && self.filters.is_empty() && !self.by_leader && !self.marked
    }

    /// Checks the scope and the filters of a question.
    pub fn of(context: &Context, samples: Samples) -> QueryResult<Selection> {
        let scope = Scope::parse(samples.scope)?;
        let mut filters = Vec::new();
        for (name, text) in samples.filters {
            for (name, mut filter) in parsed(name, text)? {
                let dimension = Dimension::find(context.catalog, "dimension", &name)?;
                check_values(context, &dimension, &mut filter)?;
                scope.check(&name, &filter)?;
                filters.push((dimension, filter));
            }
        }
        if let Some(owner) = &context.owner {
            let dimension = Dimension::find(context.catalog, "dimension", pg::USERNAME)?;
            let filter = Filter {
                any: vec![Some(owner.clone())],
                none: Vec::new(),
            };
            filters.push((dimension, filter));
        }
        Ok(Selection {
            scope,
            filters,
            by_leader: samples.by_leader,
            marked: false,
        })
    }
}

/// The filters that the text of one argument stands for.
fn parsed(name: &str, text: &str) -> QueryResult<Vec<(String, Filter)>> {
    match name {
        pg::TAGS => tags::filters(text),
        name => Ok(vec![(name.to_string(), Filter::parse(name, text)?)]),
    }
}

/// Refuses a text for a dimension of numbers, and unknown labels. A missing key may be written as
/// it is shown, such as `(no query id)`.
fn check_values(context: &Context, dimension: &Dimension, filter: &mut Filter) -> QueryResult<()> {
    let name = dimension.name.as_str();
    let number = dimension.is_number(context.catalog);
    let labels = dimension.labels(context.catalog);
    for item in filter.items_mut() {
        if item.is_some() && item.as_deref() == pg::null_label(name) {
            *item = None;
        }
        let Some(value) = item.as_deref() else {
            continue;
        };
        let invalid =
            || QueryError::invalid(format!("invalid value \"{value}\" for filter \"{name}\""));
        if number && !dimension.is_named_key(value) {
            let parsed: i64 = value.parse().map_err(|_| {
                invalid().hint("Use a whole number, a list of whole numbers, or (null).")
            })?;
            *item = (parsed != 0).then(|| parsed.to_string());
        } else if let Some(labels) = &labels
            && !labels.contains(&value)
        {
            return Err(invalid().hint(format!("Available are {}.", labels.join(", "))));
        }
    }
    Ok(())
}

/// The ids of the requested nodes, newest first.
pub fn nodes(run: Run, node: Option<&str>) -> QueryResult<Vec<u64>> {
    let store = run.store;
    let known: Vec<u64> = store.nodes().iter().map(|n| n.id).collect();
    match node {
        Some("all") => Ok(known),
        None => {
            let own = store.own_node().filter(|_| run.at_home);
            let node = own.or(known.first().copied());
            Ok(node.map_or_else(Vec::new, |node| store.answering(node)))
        }
        Some(text) => {
            let id = u64::from_str_radix(text, 16).ok();
            match id.filter(|id| known.contains(id)) {
                Some(id) => Ok(vec![id]),
                None => Err(unknown_node(text, &known)),
            }
        }
    }
}

fn unknown_node(text: &str, known: &[u64]) -> QueryError {
    let error = QueryError::undefined(format!("node \"{text}\" does not exist"));
    if known.is_empty() {
        return error.detail("The history is empty.");
    }
    let known: Vec<String> = known.iter().map(|id| format!("{id:016x}")).collect();
    error.hint(format!("Available are all, {}.", known.join(", ")))
}

/// Checks `n`; `None` means all.
pub fn limit(n: Option<i64>) -> QueryResult<usize> {
    match n {
        None => Ok(usize::MAX),
        Some(n) if n >= 1 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        Some(n) => {
            Err(QueryError::invalid("n must be at least 1").detail(format!("The value is {n}.")))
        }
    }
}
