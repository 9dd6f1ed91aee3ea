//! The screen: picture above, list below, state and messages around them.

use crate::alarms;
use crate::app::{App, Over, Prompt};
use crate::asked::Slot;
use crate::chart::{self, Picture};
use crate::paint::Sign;
use crate::signal::{Act, Session};
use crate::table;
use crate::text::{line, put, put_cut, wrapped};
use crate::view::{DAY, List, SECOND};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use tacho_source::rows::Rows;
use tacho_source::time;
use tacho_tape::query::MarkersRow;

/// Columns and lines of the smallest terminal that shows a picture and a list.
const LEAST: (u16, u16) = (40, 14);

/// A terminal with fewer lines has none for alarms.
const LOW: u16 = 20;

/// Maximum number of lines for the sentence of a finding.
const DETAILS: u16 = 3;

/// Keys and their effects.
const KEYS: &[(&str, &str)] = &[
    ("← →", "earlier, later moment; scrolls at the edges"),
    ("PgUp PgDn", "previous, next window"),
    ("[ ]", "zoom in, out"),
    ("Space End", "pause, resume; live"),
    ("↑ ↓", "choose a row"),
    (
        "Enter",
        "open the row: class, event, query, session, its history",
    ),
    ("Esc", "back"),
    ("e s a", "wait events; sessions; tags of statements"),
    ("q", "queries by load, with their cost"),
    ("b", "lock tree at the moment"),
    ("c !", "changes and their causes; alarms of the server"),
    (
        "p d",
        "plans of the chosen query; two of them beside each other",
    ),
    ("v", "compare: window before, yesterday, last week, off"),
    ("/", "filter: application=web, wait_event_type=!Lock"),
    ("x", "remove all filters"),
    ("g", "go to a time: 03:12, 1h, yesterday 14:00"),
    ("m M", "next, previous marker"),
    ("t", "time zone: local, UTC"),
    ("y", "copy the row (OSC 52)"),
    ("w", "show as command and web address"),
    (
        "C K",
        "cancel the query, terminate the session (--allow-signal)",
    ),
    ("Tab Q", "next server; quit (also Ctrl-C)"),
];

/// Keys shown at the bottom, as many as fit.
const HINTS: [(&str, &str); 18] = [
    ("?", "help"),
    ("← →", "time"),
    ("[ ]", "zoom"),
    ("Enter", "in"),
    ("Esc", "out"),
    ("q", "queries"),
    ("s", "sessions"),
    ("b", "locks"),
    ("e", "events"),
    ("c", "changes"),
    ("!", "alarms"),
    ("p", "plans"),
    ("/", "filter"),
    ("v", "compare"),
    ("g", "go to"),
    ("m M", "marker"),
    ("w", "command"),
    ("Q", "quit"),
];

/// Number of columns of the picture in a terminal of this width.
pub fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(chart::AXIS))
}

/// Draws everything.
pub fn draw(app: &App, buf: &mut Buffer) {
    let area = buf.area;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("too small: needs {} x {}", LEAST.0, LEAST.1);
        put(buf, 0, 0, area.width, &text, Style::new());
        return;
    }
    head(app, buf);
    legend(app, buf);
    let first = 2 + alarm_line(app, buf, 2);
    // An even number of lines, so that the middle of the axis is on a line.
    let height = (area.height * 2 / 5).clamp(6, 24).next_multiple_of(2);
    let picture = Rect::new(0, first, area.width, height);
    let (load, earlier) = app.loads();
    let markers = markers(app);
    let times: Vec<i64> = markers.iter().map(|marker| marker.0).collect();
    Picture {
        view: &app.view,
        load,
        earlier,
        markers: &times,
        paint: app.paint,
    }
    .draw(buf, picture);
    let top = picture.bottom();
    let details = match app.view.list {
        List::Findings | List::Trees | List::Alarms => DETAILS.min(area.height / 6),
        _ => 1,
    };
    let below = Rect::new(0, top + 1, area.width, area.height - top - 2 - details);
    let mut seen = None;
    match &app.over {
        Some(Over::Help) => help(app, buf),
        Some(Over::Command(lines)) => said(app, buf, below, lines),
        Some(Over::Confirm(act, session)) => confirmation(app, buf, below, *act, session),
        None if app.error.is_some() => trouble(app, buf, below),
        None => {
            seen = table::draw(buf, below, &app.table, app.view.row, app.paint);
            empty(app, buf, below);
            detail(app, buf, details);
        }
    }
    if app.over != Some(Over::Help) {
        moment(app, buf, top, &markers, &seen.unwrap_or_default());
    }
    foot(app, buf, area.height - 1);
}

/// Draws the details of the chosen row on the last lines before the foot.
fn detail(app: &App, buf: &mut Buffer, lines: u16) {
    let chosen = app.table.items.get(app.view.row);
    let detail = chosen.map_or("", |item| item.detail.as_str());
    let (width, first) = (buf.area.width, buf.area.height - 1 - lines);
    let mut texts = match lines {
        1 => vec![detail.to_string()],
        _ => wrapped(detail, width),
    };
    // If the text is longer than the lines, spaces make the last line too wide. It is then shown
    // with the sign of a cut line.
    let rest = texts.split_off(texts.len().min(usize::from(lines)));
    if let (Some(last), false) = (texts.last_mut(), rest.is_empty()) {
        last.extend(std::iter::repeat_n(' ', usize::from(width)));
    }
    let cut = app.paint.sign(Sign::Cut);
    for (y, text) in (first..).zip(&texts) {
        put_cut(buf, 0, y, width, text, app.paint.faint(), cut);
    }
}

/// A time to the second, and its zone.
fn at(app: &App, us: i64) -> String {
    time::table_time(us, &app.view.zone)
}

/// The time of day of `us`, in the zone of the program.
fn clock(app: &App, us: i64) -> String {
    let at = app.view.zone.to_datetime(time::timestamp(us));
    at.strftime("%H:%M:%S").to_string()
}

/// Draws the head of the screen: the server, the time, and the sign of a live view.
fn head(app: &App, buf: &mut Buffer) {
    let paint = app.paint;
    let window = app.view.window();
    let server = app.view.server.as_deref().unwrap_or("tacho");
    let server: String = line(server).chars().take(24).collect();
    put(buf, 0, 0, 24, &server, paint.strong());
    let live = paint.sign(Sign::Live);
    let (state, style) = match (&app.error, app.view.live, app.view.paused) {
        _ if app.silent.is_some() => {
            let age = lasting_units(app.silent.unwrap_or_default(), 2);
            (format!("no answer for {age}"), paint.alarm())
        }
        (Some(_), ..) if app.is_tried_again() => ("unreadable".to_string(), paint.alarm()),
        (_, false, _) => ("past (End: live)".to_string(), paint.strong()),
        (_, true, true) => ("paused (Space)".to_string(), paint.strong()),
        (_, true, false) if app.late.is_some() => (late(app), paint.alarm()),
        (_, true, false) => (format!("{live} live"), paint.good()),
    };
    let width = u16::try_from(state.chars().count()).unwrap_or(0);
    let right = buf.area.width.saturating_sub(width);
    put(buf, right, 0, width, &state, style);
    if app.view.end.is_none() {
        return;
    }
    let to = paint.sign(Sign::To);
    let when = format!(
        "{}{to}{} {}",
        at(app, window.since),
        clock(app, window.until),
        time::zone_name(&app.view.zone)
    );
    let x = u16::try_from(server.chars().count()).unwrap_or(0) + 2;
    let room = right.saturating_sub(x + 1);
    let short = format!(
        "{}{to}{}",
        clock(app, window.since),
        clock(app, window.until)
    );
    let fits = when.chars().count() <= usize::from(room);
    put(
        buf,
        x,
        0,
        room,
        if fits { &when } else { &short },
        Style::new(),
    );
}

/// The age of the last tick; its time if that is days ago.
fn late(app: &App) -> String {
    match app.late.unwrap_or_default() {
        age @ ..DAY => format!("no tick for {}", lasting_units(age, 2)),
        _ => {
            let end = app.view.end.unwrap_or_default() - SECOND;
            format!("no tick since {}", at(app, end))
        }
    }
}

/// A duration for people: 12m10s.
fn lasting(us: i64) -> String {
    lasting_units(us, 4)
}

/// A duration in its largest units: 329d10h.
fn lasting_units(us: i64, most: usize) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|unit| us / SECOND >= unit.1);
    let shown = units.iter().skip(first.unwrap_or(3)).take(most);
    let mut left = us / SECOND;
    let mut text = String::new();
    for (unit, seconds) in shown {
        if left >= *seconds {
            text += &format!("{}{unit}", left / seconds);
            left %= seconds;
        }
    }
    text
}

/// Draws the legend of colours, and the length of a column.
fn legend(app: &App, buf: &mut Buffer) {
    let paint = app.paint;
    let column = format!("1 column = {}", time::length(app.view.width()));
    let column_width = u16::try_from(column.len()).unwrap_or(0);
    let right = buf.area.width.saturating_sub(column_width);
    put(buf, right, 1, column_width, &column, paint.faint());
    let mut x = 1;
    let mut word = |buf: &mut Buffer, sign: char, style: Style, name: &str| {
        let width = u16::try_from(name.chars().count()).unwrap_or(0);
        if x + width + 3 > right {
            return;
        }
        put(buf, x, 1, 1, &sign.to_string(), style);
        put(buf, x + 2, 1, width, name, Style::new());
        x += width + 4;
    };
    if let Some(by) = app.view.earlier {
        let name = format!("{} before", lasting(by));
        word(buf, paint.sign(Sign::Earlier), paint.strong(), &name);
    }
    let (load, _) = app.loads();
    for class in load.map(|load| load.classes()).unwrap_or_default() {
        let style = Style::new().fg(paint.color(class));
        word(buf, paint.full(class), style, &line(class));
    }
    let gaps = load.is_some_and(|load| load.columns.values().any(|column| !column.observed));
    if gaps {
        word(buf, paint.sign(Sign::Gap), paint.faint(), "not recorded");
    }
    if load.is_some_and(|load| load.vcpus.is_some()) {
        word(buf, paint.sign(Sign::Cpus), paint.strong(), "CPUs");
    }
}

/// Draws the alarms of the server on a line, if there are any. Returns the number of lines.
fn alarm_line(app: &App, buf: &mut Buffer, y: u16) -> u16 {
    let is_low = buf.area.height < LOW;
    let rows = app
        .rows(Slot::Alarms)
        .filter(|_| !is_low && app.view.list != List::Alarms);
    let Some((is_critical, text)) = rows.and_then(alarms::in_a_line) else {
        return 0;
    };
    let style = match is_critical {
        true => app.paint.alarm(),
        false => app.paint.strong(),
    };
    put_cut(
        buf,
        0,
        y,
        buf.area.width,
        &text,
        style,
        app.paint.sign(Sign::Cut),
    );
    1
}

/// Time and text of the picture's markers.
fn markers(app: &App) -> Vec<(i64, String)> {
    let rows: Vec<MarkersRow> = app.rows(Slot::Markers).map_or(Vec::new(), Rows::read);
    let marker = |row: MarkersRow| {
        let detail = row.detail.map(|detail| format!(": {detail}"));
        let kind = row.kind.unwrap_or_default();
        let text = format!("{kind}{}", detail.unwrap_or_default());
        Some((row.marker_time?, line(&text)))
    };
    rows.into_iter().filter_map(marker).collect()
}

/// Draws the heading of the list: its time, load, filters and marker, and at the right the range of
/// visible rows.
fn moment(app: &App, buf: &mut Buffer, y: u16, markers: &[(i64, String)], seen: &str) {
    let paint = app.paint;
    let view = &app.view;
    let selection = view.selection();
    let to = paint.sign(Sign::To);
    let mut text = format!(" {}", view.list.name());
    if let (List::Locks, Some(at)) = (view.list, app.moment) {
        text += &format!(" at {}", clock(app, at));
    } else if view.end.is_some() {
        let about = match view.list.is_of_picture() {
            true => view.asked(),
            false => selection,
        };
        let (since, until) = (clock(app, about.since), clock(app, about.until));
        text += &format!(" {since}{to}{until}");
    }
    let filters = view.filters.iter();
    for filter in filters.filter(|_| !view.list.is_of_server()) {
        text += &format!("  [{}={}]", filter.dimension, line(&filter.text));
    }
    if view.cursor_column().is_some() {
        let load = app.loads().0;
        let column = load.and_then(|load| load.columns.get(&selection.since));
        text += &match column {
            Some(column) if column.observed => format!("  {:.2} active", column.total()),
            Some(_) => "  not recorded".to_string(),
            None => String::new(),
        };
        let is_here = |at: i64| (selection.since..selection.since + view.width()).contains(&at);
        for (_, marker) in markers.iter().filter(|marker| is_here(marker.0)) {
            text += &format!("  {} {marker}", paint.sign(Sign::Marker));
        }
    }
    let seen_width = u16::try_from(seen.chars().count()).unwrap_or(0);
    let right = buf.area.width.saturating_sub(seen_width);
    put(buf, right, y, seen_width, seen, paint.faint());
    let room = right.saturating_sub(u16::from(seen_width > 0));
    let cut = paint.sign(Sign::Cut);
    put_cut(buf, 0, y, room, &text, paint.strong(), cut);
}

/// Says why there are no rows.
fn empty(app: &App, buf: &mut Buffer, area: Rect) {
    if !app.table.items.is_empty() {
        return;
    }
    let text = match (app.is_idle() && app.view.end.is_some(), app.view.list) {
        (false, _) => "asking",
        (true, List::Locks) => "no session waited for another",
        (true, List::Findings) => "not recorded",
        (true, List::Alarms) if !app.view.has_alarms() => "only for pictures of at most seven days",
        (true, List::Alarms) => "no alarm, or no measurements of the server",
        (true, List::Plans) => "no execution of this query ended in this window",
        (true, _) => "no active session, or not recorded",
    };
    put(buf, 1, area.y + 1, area.width - 1, text, app.paint.faint());
}

/// Draws the error, and what happens next.
fn trouble(app: &App, buf: &mut Buffer, area: Rect) {
    let Some(error) = &app.error else { return };
    let mut lines = vec![format!("{} ({})", error.message, error.sqlstate)];
    lines.extend(error.detail.clone());
    lines.extend(error.hint.clone());
    lines.push(match app.is_tried_again() {
        true => "Retrying every second.".into(),
        false => "Esc goes back.".into(),
    });
    let mut y = area.y + 1;
    for (i, text) in lines.iter().enumerate() {
        let style = match i {
            0 => app.paint.alarm(),
            _ => Style::new(),
        };
        for text in wrapped(text, area.width - 2) {
            if y < area.bottom() {
                put(buf, 1, y, area.width - 1, &text, style);
            }
            y += 1;
        }
    }
}

/// Draws all keys, over everything but the first and the last line.
fn help(app: &App, buf: &mut Buffer) {
    let area = buf.area;
    let blank = " ".repeat(usize::from(area.width));
    let room = usize::from(area.height.saturating_sub(2)).max(1);
    (1..area.height - 1).for_each(|y| put(buf, 0, y, area.width, &blank, Style::new()));
    let columns = u16::try_from(KEYS.len().div_ceil(room)).unwrap_or(1);
    let width = area.width / columns;
    for (i, (key, does)) in KEYS.iter().enumerate() {
        let place = |n: usize| u16::try_from(n).unwrap_or(0);
        let (x, y) = (place(i / room) * width, 1 + place(i % room));
        let key = match app.paint.ascii {
            true => key.replace("← →", "arrows").replace("↑ ↓", "arrows"),
            false => (*key).to_string(),
        };
        put(buf, x + 1, y, 10, &key, app.paint.strong());
        put(buf, x + 12, y, width.saturating_sub(13), does, Style::new());
    }
}

/// Draws the question whether to signal a session.
fn confirmation(app: &App, buf: &mut Buffer, area: Rect, act: Act, session: &Session) {
    let asked = match act {
        Act::Cancel => "Cancel the query of this session?",
        Act::End => "End this session?",
    };
    let began = session
        .query_begin
        .map(|us| format!(", query since {}", at(app, us)));
    let facts = [
        (
            "process",
            format!("{}, since {}", session.pid, at(app, session.begin)),
        ),
        (
            "user",
            format!(
                "{}, database {}, application {}",
                session.user, session.database, session.application
            ),
        ),
        ("state", session.state.clone() + &began.unwrap_or_default()),
        ("query", session.query.clone()),
    ];
    put(buf, 1, area.y, area.width - 1, asked, app.paint.alarm());
    let mut y = area.y + 1;
    let last = area.bottom() - 1;
    for (name, fact) in &facts {
        put(buf, 1, y, 8, name, app.paint.faint());
        for line in wrapped(fact, area.width - 10) {
            if y < last {
                put(buf, 9, y, area.width - 9, &line, Style::new());
                y += 1;
            }
        }
    }
    let confirm = "y: confirm; any other key: cancel";
    put(
        buf,
        1,
        y.min(last),
        area.width - 1,
        confirm,
        app.paint.strong(),
    );
}

/// Draws the command and the address, broken at the edge of the screen.
fn said(app: &App, buf: &mut Buffer, area: Rect, lines: &[String]) {
    let mut y = area.y;
    let mut write = |buf: &mut Buffer, text: &str, style: Style| {
        if y < area.bottom() {
            put(buf, 0, y, area.width, text, style);
        }
        y += 1;
    };
    for (head, text) in ["command", "page of tacho web"].iter().zip(lines) {
        write(buf, head, app.paint.faint());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(usize::from(area.width)) {
            let piece: String = piece.iter().collect();
            write(buf, &piece, Style::new());
        }
        write(buf, "", Style::new());
    }
    write(buf, "Both are printed on exit.", app.paint.faint());
}

/// Draws the prompt, a message, or the keys.
fn foot(app: &App, buf: &mut Buffer, y: u16) {
    let width = buf.area.width;
    let paint = app.paint;
    let prompt = match &app.prompt {
        Some(Prompt::GoTo(line)) => Some(format!("go to: {line}_")),
        Some(Prompt::Filter(line)) => Some(format!("filter: {line}_")),
        None => None,
    };
    if let Some(prompt) = prompt {
        return put_end(buf, y, &prompt, paint.strong());
    }
    if let Some(message) = &app.message {
        return over_foot(app, buf, y, message);
    }
    // A notice stays on the screen, so it takes only one line.
    if let Some(notice) = &app.notice {
        let cut = paint.sign(Sign::Cut);
        return put_cut(buf, 0, y, width, notice, paint.strong(), cut);
    }
    let mut x = 0;
    for (key, does) in HINTS {
        let key = match (paint.ascii, key) {
            (true, "← →") => "<- ->",
            (_, key) => key,
        };
        let hint = format!("{key} {does}");
        let needed = u16::try_from(hint.chars().count()).unwrap_or(width);
        if x + needed > width {
            return;
        }
        put(buf, x, y, needed, &hint, paint.faint());
        x += needed + 2;
    }
}

/// Draws a message over the last lines, at most four.
fn over_foot(app: &App, buf: &mut Buffer, y: u16, text: &str) {
    let width = buf.area.width;
    let mut lines = wrapped(text, width);
    if lines.len() > 4 {
        lines.truncate(4);
        lines[3].extend(std::iter::repeat_n(' ', usize::from(width)));
    }
    let cut = app.paint.sign(Sign::Cut);
    let first = y + 1 - u16::try_from(lines.len()).unwrap_or(1);
    for (y, line) in (first..=y).zip(&lines) {
        let blank = " ".repeat(usize::from(width));
        put(buf, 0, y, width, &blank, Style::reset());
        put_cut(buf, 0, y, width, line, app.paint.strong(), cut);
    }
}

/// Draws a prompt so that its end, the cursor, is always visible.
fn put_end(buf: &mut Buffer, y: u16, text: &str, style: Style) {
    let width = usize::from(buf.area.width);
    let left_off = Span::raw(text).width().saturating_sub(width);
    let end: String = text.chars().skip(left_off).collect();
    put(buf, 0, y, buf.area.width, &end, style);
}
