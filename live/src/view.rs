//! The view: a window of columns, a cursor, a list, filters. Nothing here asks or
//! draws.

use jiff::tz::TimeZone;
use tacho_source::{catalog, time::timestamp};
use tacho_tape::query::{LONGEST_WITH_CAUSES, tag_key};

/// One second in µs.
pub const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// Possible widths of a column, µs.
pub const WIDTHS: [i64; 19] = [
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    7 * DAY,
];
/// The server's measurements are read in this interval, µs.
const MEASURED: i64 = 10 * SECOND;
/// Index of the width at the start, ten seconds: a terminal with 80 columns shows twelve minutes.
const FIRST: usize = 3;

/// The kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Classes,
    Events,
    Queries,
    Sessions,
    /// The tags that applications send, such as `controller=orders,action=show`.
    Tags,
    /// One session's spans in order.
    Spans,
    Locks,
    /// The answer of `changes`: causes, then the load that is different.
    Findings,
    /// The plans of one query.
    Plans,
    /// Two plans of one query beside each other.
    Trees,
    /// Measurements of the server that are bad.
    Alarms,
}

impl List {
    pub fn name(self) -> &'static str {
        match self {
            List::Classes => "wait classes",
            List::Events => "wait events",
            List::Queries => "queries",
            List::Sessions => "sessions",
            List::Tags => "tags",
            List::Spans => "history of a session",
            List::Locks => "locks",
            List::Findings => "what changed",
            List::Plans => "plans",
            List::Trees => "two plans",
            List::Alarms => "alarms of the server",
        }
    }

    /// The dimension of the rows' keys; `None` for rows without keys.
    pub fn dimension(self) -> Option<&'static str> {
        match self {
            List::Classes => Some("wait_event_type"),
            List::Events => Some("wait_event"),
            List::Queries | List::Findings => Some("query_id"),
            List::Sessions | List::Locks => Some("pid"),
            List::Tags => Some("tags"),
            List::Spans | List::Plans | List::Trees | List::Alarms => None,
        }
    }

    /// True if the list is about the whole picture, not about the column under the cursor.
    pub fn is_of_picture(self) -> bool {
        matches!(
            self,
            List::Spans | List::Findings | List::Plans | List::Trees | List::Alarms
        )
    }

    /// True if the list is about the whole server: its reader function takes no filter.
    pub fn is_of_server(self) -> bool {
        matches!(self, List::Locks | List::Findings | List::Alarms)
    }

    /// True if the list can compare two windows.
    pub fn is_compared(self) -> bool {
        matches!(
            self,
            List::Classes | List::Events | List::Queries | List::Tags
        )
    }
}

/// A dimension and the wanted values, in the form of readers' arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub dimension: String,
    pub text: String,
}

impl Filter {
    /// Parses `application=web`, `wait_event_type=!Lock` or `tag:controller=orders`.
    ///
    /// # Errors
    /// The message for a text that is no filter.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let names = catalog::dimension_names();
        let (name, text) = text.split_once('=').unwrap_or((text, ""));
        let (name, text) = (name.trim(), text.trim());
        let is_tag = tag_key(name).is_some();
        let dimension = match is_tag {
            true => name.to_string(),
            false => name.replace('-', "_"),
        };
        if text.is_empty() || !(is_tag || names.contains(&dimension.as_str())) {
            let names = names.join(", ");
            return Err(format!("write NAME=VALUE; names are {names}, tag:KEY"));
        }
        let text = text.to_string();
        Ok(Filter { dimension, text })
    }

    /// A filter for a key of an answer.
    pub fn key(dimension: &str, key: &str) -> Filter {
        let is_plain = !key.contains([',', '"']) && !key.starts_with('!') && !key.is_empty();
        let text = match is_plain {
            true => key.to_string(),
            false => format!("\"{}\"", key.replace('"', "\"\"")),
        };
        Filter {
            dimension: dimension.to_string(),
            text,
        }
    }
}

/// List, filters and row that Esc goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Above {
    list: List,
    filters: Vec<Filter>,
    row: usize,
}

/// A window of time, from `since` to before `until`, µs since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub since: i64,
    pub until: i64,
}

impl Window {
    pub fn earlier(self, by: i64) -> Window {
        Window {
            since: self.since - by,
            until: self.until - by,
        }
    }
}

#[derive(Clone, Debug)]
pub struct View {
    pub server: Option<String>,
    /// True if the right end follows the end of the history.
    pub live: bool,
    /// True if the view is live, but the user has stopped its movement.
    pub paused: bool,
    /// End of the history in µs since 1970: the second after its last tick.
    pub end: Option<i64>,
    /// Right end of the picture in µs since 1970, a multiple of a column's width.
    until: i64,
    zoom: usize,
    columns: usize,
    /// Begin of the column under the cursor, in µs since 1970; `None` without a cursor.
    cursor: Option<i64>,
    pub list: List,
    /// Index of the chosen row.
    pub row: usize,
    pub filters: Vec<Filter>,
    /// The plans of [`List::Trees`]: two, or one if the query has no other.
    pub plans: Vec<String>,
    above: Vec<Above>,
    pub zone: TimeZone,
    /// How much earlier the compared window is, in µs; `None` without a comparison.
    pub earlier: Option<i64>,
}

impl View {
    pub fn new(zone: TimeZone) -> View {
        View {
            server: None,
            live: true,
            paused: false,
            end: None,
            until: 0,
            zoom: FIRST,
            columns: 1,
            cursor: None,
            list: List::Classes,
            row: 0,
            filters: Vec::new(),
            plans: Vec::new(),
            above: Vec::new(),
            zone,
            earlier: None,
        }
    }

    /// Width of a column, µs.
    pub fn width(&self) -> i64 {
        WIDTHS[self.zoom]
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    fn length(&self) -> i64 {
        self.width() * i64::try_from(self.columns).unwrap_or(i64::MAX / DAY)
    }

    /// The window of the picture.
    pub fn window(&self) -> Window {
        Window {
            since: self.until - self.length(),
            until: self.until,
        }
    }

    /// Cuts a window at the end of the history: questions are not about the
    /// future.
    fn recorded(&self, window: Window) -> Window {
        let until = match self.end {
            Some(end) if window.since < end => window.until.min(end),
            _ => window.until,
        };
        Window { until, ..window }
    }

    /// The window of the picture's question.
    pub fn asked(&self) -> Window {
        self.recorded(self.window())
    }

    /// The window of the alarms: of a live picture in steps of the measurements, so that not every
    /// tick asks for it.
    pub fn measured(&self) -> Window {
        let Window { since, until } = self.asked();
        match self.live {
            true => Window {
                since: since.div_euclid(MEASURED) * MEASURED,
                until: ceiling(until, MEASURED),
            },
            false => Window { since, until },
        }
    }

    /// True if the alarms are shown: they are about the whole server, and cost too much for a
    /// window that is longer than the causes of changes.
    pub fn has_alarms(&self) -> bool {
        let Window { since, until } = self.asked();
        let is_shown = self.filters.is_empty() || self.list == List::Alarms;
        is_shown && until - since <= LONGEST_WITH_CAUSES
    }

    /// The window of the list: the column under the cursor, otherwise the whole
    /// picture.
    pub fn selection(&self) -> Window {
        let window = match self.cursor {
            Some(since) => Window {
                since,
                until: since + self.width(),
            },
            None => self.window(),
        };
        self.recorded(window)
    }

    /// The filter by query id, if there is one.
    pub fn query(&self) -> Option<String> {
        let mut filters = self.filters.iter();
        let filter = filters.find(|filter| filter.dimension == "query_id")?;
        Some(filter.text.clone())
    }

    /// Index of the column under the cursor; `None` without a cursor.
    pub fn cursor_column(&self) -> Option<usize> {
        let offset = self.cursor? - self.window().since;
        let column = usize::try_from(offset / self.width()).ok()?;
        (column < self.columns).then_some(column)
    }

    /// Sets the end of the history. True if it has changed.
    pub fn followed(&mut self, end: i64) -> bool {
        let moved = self.end != Some(end);
        self.end = Some(end);
        if self.live {
            self.until = ceiling(end, self.width());
            self.keep_cursor();
        }
        moved
    }

    /// Sets the number of columns. True if it has changed.
    pub fn resize(&mut self, columns: usize) -> bool {
        let changed = self.columns != columns.max(1);
        self.columns = columns.max(1);
        self.keep_cursor();
        changed
    }

    /// Moves a cursor outside the picture to the nearer edge.
    fn keep_cursor(&mut self) {
        let window = self.window();
        let last = window.until - self.width();
        self.cursor = self.cursor.map(|at| at.clamp(window.since, last));
    }

    /// Shows this window of the history. Each column of the terminal stands for the shortest time
    /// in `WIDTHS` with which the window fits on the screen.
    pub fn show(&mut self, window: Window) {
        let columns = i64::try_from(self.columns).unwrap_or(1).max(1);
        let needed = |width: &i64| (window.until - window.since) <= width * columns;
        self.zoom = WIDTHS.iter().position(needed).unwrap_or(WIDTHS.len() - 1);
        self.live = false;
        self.cursor = None;
        self.until = ceiling(window.until, self.width());
    }

    /// Follows the end of the history again.
    pub fn go_live(&mut self) {
        (self.live, self.paused, self.cursor) = (true, false, None);
        if let Some(end) = self.end {
            self.until = ceiling(end, self.width());
        }
    }

    /// Moves the cursor. Without a cursor, a step to the left puts it at the right edge. At an edge
    /// the picture moves.
    pub fn step(&mut self, columns: i64) {
        let width = self.width();
        let window = self.window();
        let at = match self.cursor {
            Some(at) => at + columns * width,
            None if columns < 0 => window.until - width,
            None => return,
        };
        self.cursor = Some(at);
        if at < window.since {
            self.pan(at - window.since);
        } else if at >= window.until {
            self.pan(at + width - window.until);
        }
    }

    /// Moves the picture in time, at most to the end of the history.
    fn pan(&mut self, by: i64) {
        let most = self.end.map(|end| ceiling(end, self.width()));
        self.until = most.map_or(self.until + by, |most| most.min(self.until + by));
        self.live = self.live && by > 0;
        self.keep_cursor();
    }

    /// Moves the picture by its own length, `pages` times.
    pub fn page(&mut self, pages: i64) {
        self.pan(pages * self.length());
    }

    /// Puts the cursor on a moment in the middle of the picture.
    pub fn go_to(&mut self, at: i64) {
        let since = at.div_euclid(self.width()) * self.width();
        let window = self.window();
        if since < window.since || since >= window.until {
            self.live = false;
            self.until = since + ceiling(self.length() / 2, self.width());
        }
        self.cursor = Some(since);
    }

    /// Makes columns wider or narrower. The moment under the cursor, or the
    /// middle, stays.
    pub fn zoom(&mut self, by: isize) {
        let zoom = self.zoom.saturating_add_signed(by).min(WIDTHS.len() - 1);
        if zoom == self.zoom {
            return;
        }
        let at = self.cursor.map(|at| at + self.width() / 2);
        let middle = self.window().since.midpoint(self.until);
        self.zoom = zoom;
        match (at, self.live, self.end) {
            (None, true, Some(end)) => self.until = ceiling(end, self.width()),
            (None, ..) => self.until = ceiling(middle + self.length() / 2, self.width()),
            (Some(at), ..) => {
                self.cursor = None;
                self.until = i64::MIN / 4;
                self.go_to(at);
            }
        }
    }

    /// Shows another list; filters stay.
    pub fn turn(&mut self, list: List) {
        (self.list, self.row) = (list, 0);
    }

    /// Opens a row: another list and one more filter, or only this filter.
    pub fn enter(&mut self, list: List, filter: Filter, alone: bool) {
        self.keep();
        if alone {
            self.filters.clear();
        }
        self.filters.retain(|f| f.dimension != filter.dimension);
        self.filters.push(filter);
        self.turn(list);
    }

    /// Shows these plans of the query, if there are any.
    pub fn differ(&mut self, plans: Vec<String>) {
        if plans.is_empty() {
            return;
        }
        self.keep();
        self.plans = plans;
        self.turn(List::Trees);
    }

    /// Keeps the list, so that Esc goes back to it.
    fn keep(&mut self) {
        self.above.push(Above {
            list: self.list,
            filters: self.filters.clone(),
            row: self.row,
        });
    }

    /// One step back: to the list above. Without one, the cursor goes away, then the first list
    /// returns, then the view is live.
    pub fn leave(&mut self) {
        if let Some(above) = self.above.pop() {
            (self.list, self.filters, self.row) = (above.list, above.filters, above.row);
        } else if self.cursor.is_some() {
            self.cursor = None;
        } else if self.list != List::Classes {
            self.turn(List::Classes);
        } else {
            self.go_live();
        }
    }

    /// Removes all filters and the lists to go back to, and chooses the first row.
    pub fn forget(&mut self) {
        self.filters.clear();
        self.above.clear();
        self.row = 0;
    }
}

/// Rounds up to a multiple of `width`.
fn ceiling(at: i64, width: i64) -> i64 {
    -(-at).div_euclid(width) * width
}

/// A moment in the form of an argument.
pub fn argument(us: i64) -> String {
    timestamp(us).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_source::time::{interval, length};

    /// 2026-01-01 00:00:00 UTC.
    const BEGIN: i64 = 1_767_225_600 * SECOND;

    fn live() -> View {
        let mut view = View::new(TimeZone::UTC);
        view.resize(72);
        view.followed(BEGIN + 125 * SECOND);
        view
    }

    #[test]
    fn live_follows_the_end_and_asks_for_nothing_behind_it() {
        let mut view = live();
        assert_eq!(view.window().until, BEGIN + 130 * SECOND);
        assert_eq!(view.window().since, BEGIN - 590 * SECOND);
        assert_eq!(view.asked().until, BEGIN + 125 * SECOND);
        assert!(!view.followed(BEGIN + 125 * SECOND));
        assert!(view.followed(BEGIN + 131 * SECOND));
        assert_eq!(view.window().until, BEGIN + 140 * SECOND);
    }

    #[test]
    fn the_cursor_begins_at_the_right_end_and_takes_the_picture_with_it() {
        let mut view = live();
        view.step(1);
        assert_eq!(view.cursor_column(), None);
        view.step(-1);
        assert_eq!(view.cursor_column(), Some(71));
        assert_eq!(view.selection().since, BEGIN + 120 * SECOND);
        assert_eq!(view.selection().until, BEGIN + 125 * SECOND);
        view.step(-71);
        assert!(view.live);
        assert_eq!(view.cursor_column(), Some(0));
        view.step(-1);
        assert!(!view.live);
        assert_eq!(view.cursor_column(), Some(0));
        assert_eq!(view.window().until, BEGIN + 120 * SECOND);
        view.step(500);
        assert_eq!(view.window().until, BEGIN + 130 * SECOND);
        assert_eq!(view.cursor_column(), Some(71));
        view.leave();
        assert_eq!(view.cursor_column(), None);
        view.leave();
        assert!(view.live);
    }

    #[test]
    fn zooming_keeps_the_middle_of_the_column() {
        let mut view = live();
        view.go_to(BEGIN + 25 * SECOND);
        assert_eq!(view.selection().since, BEGIN + 20 * SECOND);
        for by in [-3, 2, 5, 20, -30] {
            let at = view.selection().since + view.width() / 2;
            view.zoom(by);
            let selection = view.selection();
            assert!(selection.since <= at && at < selection.since + view.width());
            assert!(view.cursor_column().is_some());
        }
        assert_eq!(view.width(), SECOND);
    }

    #[test]
    fn a_window_is_shown_whole() {
        for (length, width) in [(60, 1), (72, 1), (73, 2), (3600, 60), (86_400, 1_800)] {
            let mut view = live();
            let window = Window {
                since: BEGIN,
                until: BEGIN + length * SECOND,
            };
            view.show(window);
            assert_eq!(view.width(), width * SECOND, "{length}");
            assert!(view.window().since <= window.since && view.window().until >= window.until);
        }
    }

    #[test]
    fn esc_goes_back_where_enter_came_from() {
        let mut view = live();
        view.row = 2;
        view.enter(List::Events, Filter::key("wait_event_type", "Lock"), false);
        view.enter(
            List::Queries,
            Filter::key("wait_event", "Lock:tuple"),
            false,
        );
        assert_eq!(view.filters.len(), 2);
        view.leave();
        assert_eq!((view.list, view.filters.len()), (List::Events, 1));
        view.leave();
        assert_eq!((view.list, view.row), (List::Classes, 2));
        assert!(view.filters.is_empty());
    }

    #[test]
    fn a_key_is_quoted_where_a_filter_would_read_it() {
        let text = |key| Filter::key("application", key).text;
        assert_eq!(text("web"), "web");
        assert_eq!(text("(null)"), "(null)");
        assert_eq!(text("a,b"), "\"a,b\"");
        assert_eq!(text("!a\"b"), "\"!a\"\"b\"");
        assert_eq!(text(""), "\"\"");
    }

    #[test]
    fn times_and_lengths_are_written_as_readers_take_them() {
        assert_eq!(argument(BEGIN), "2026-01-01T00:00:00Z");
        assert_eq!(argument(BEGIN + 1), "2026-01-01T00:00:00.000001Z");
        for width in WIDTHS {
            let parsed = interval(&length(width)).unwrap();
            assert_eq!(parsed, width);
        }
        assert_eq!(length(90 * SECOND), "90s");
    }
}
