//! The lists below the picture.

use crate::lanes;
use crate::paint::{Paint, Sign, rank};
use crate::signal::Target;
use crate::text::{line, put, put_cut};
use crate::view::{List, View, Window};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::collections::HashMap;
use tacho_source::rows::{Row, Rows};
use tacho_source::time;

/// A row of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Its key as a filter takes it; `None` of rows that stand for no key.
    pub key: Option<String>,
    /// What stands before its bar or lane.
    pub left: String,
    /// Classes of its bar by their share of the list's largest row.
    pub bar: Vec<(String, f64)>,
    /// Its lane: the class of each piece of the selection.
    pub lane: Option<lanes::Lane>,
    /// What stands behind.
    pub right: String,
    /// What is known in full.
    pub detail: String,
    /// What y copies.
    pub copied: String,
    /// The session that it is of.
    pub session: Option<Target>,
}

/// A list as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Heads of what stands before the bar, of it, and of what is behind.
    pub left: String,
    pub bar: &'static str,
    pub right: String,
    pub items: Vec<Item>,
}

/// What a list is made of.
pub struct Made<'a> {
    pub view: &'a View,
    pub rows: &'a Rows,
    pub costs: Option<&'a Rows>,
    pub is_compared: bool,
}

/// A key for people, and as a filter takes it.
fn key_of(row: &Row, name: &str) -> (String, Option<String>) {
    match row.shown(name) {
        None => ("(null)".into(), Some("(null)".into())),
        Some(key) if key == "(other)" => (key, None),
        Some(key) => (line(&key), Some(key)),
    }
}

fn aas(row: &Row, name: &str) -> f64 {
    row.number(name).unwrap_or(0.0)
}

/// As readers print it, cut to two digits.
pub fn figure(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| match value {
        value if value.abs() >= 100_000.0 => format!("{:.0}k", value / 1000.0),
        value if value.abs() >= 1000.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    })
}

impl Made<'_> {
    pub fn table(&self) -> Table {
        match self.view.list {
            _ if self.is_compared => self.compared(),
            List::Classes | List::Events => self.keys(),
            List::Queries => self.queries(),
            List::Sessions => self.sessions(),
            List::Spans => self.spans(),
            List::Locks => self.locks(),
        }
    }

    /// Largest first, with a bar each.
    fn keys(&self) -> Table {
        let rows = &self.rows.0;
        let keys = rows.iter().filter(|row| row.text("key") != Some("(other)"));
        let most = keys.map(|row| aas(row, "avg_aas")).fold(0.0, f64::max);
        let item = |row: &Row| {
            let (shown, key) = key_of(row, "key");
            let load = aas(row, "avg_aas");
            let peak = row.shown("peak_sessions").unwrap_or_default();
            Item {
                left: format!(
                    "{:>8} {:>6} {:>5}",
                    figure(Some(load)),
                    percent(row.number("pct")),
                    peak
                ),
                bar: match key {
                    Some(_) => vec![(shown.clone(), load / most.max(1e-9))],
                    None => Vec::new(),
                },
                right: shown.clone(),
                detail: shown.clone(),
                copied: shown,
                key,
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>8} {:>6} {:>5}", "sessions", "%", "most"),
            bar: "",
            right: key_name(self.view.list).into(),
            items: rows.iter().map(item).collect(),
        }
    }

    /// Queries by load, with their waits and what they cost.
    fn queries(&self) -> Table {
        let mut order: Vec<(&Row, String, Option<String>)> = Vec::new();
        let mut bars: HashMap<String, Vec<(String, f64)>> = HashMap::new();
        for row in &self.rows.0 {
            let (shown, key) = key_of(row, "key");
            if !bars.contains_key(&shown) {
                order.push((row, shown.clone(), key));
            }
            let class = row.shown("by_key").unwrap_or_else(|| "(null)".into());
            let part = (class, aas(row, "avg_aas"));
            bars.entry(shown).or_default().push(part);
        }
        let sum = |shown: &str| bars[shown].iter().map(|part| part.1).sum::<f64>();
        // (other) is no query: it would make every bar short.
        let keys = order.iter().filter(|row| row.2.is_some());
        let most = keys.map(|(_, shown, _)| sum(shown));
        let most = most.fold(0.0, f64::max).max(1e-9);
        let percents = self.sums("pct");
        let costs = self.costs_by_query();
        let item = |(row, shown, key): &(&Row, String, Option<String>)| {
            let mut bar: Vec<(String, f64)> = bars[shown]
                .iter()
                .filter(|_| key.is_some())
                .map(|(class, load)| (class.clone(), load / most))
                .collect();
            bar.sort_by_key(|part| rank(&part.0));
            let text = row.shown("query_text");
            let named = text.as_deref().map_or_else(|| shown.clone(), line);
            let cost = costs.get(shown.as_str()).map_or(&[None; 3], |cost| cost);
            let [calls, mean, p95] = cost.map(figure);
            Item {
                key: key.clone(),
                left: format!(
                    "{:>8} {:>6}",
                    figure(Some(sum(shown))),
                    percent(percents.get(shown.as_str()).copied())
                ),
                bar,
                right: format!("{calls:>8} {mean:>8} {p95:>8}  {named}"),
                detail: known(&[Some(shown), text.is_some().then_some(&named)]),
                copied: text.unwrap_or_else(|| shown.clone()),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>8} {:>6}", "sessions", "%"),
            bar: "waits",
            right: format!("{:>8} {:>8} {:>8}  query", "calls/s", "mean ms", "p95 ms"),
            items: order.iter().map(item).collect(),
        }
    }

    /// Sums of a figure by the key as it is shown.
    fn sums(&self, figure: &str) -> HashMap<String, f64> {
        let mut sums = HashMap::new();
        for row in &self.rows.0 {
            *sums.entry(key_of(row, "key").0).or_default() += aas(row, figure);
        }
        sums
    }

    /// Calls a second, mean and 95th percentile in ms: of a query that several
    /// databases or users have, of the one that took most time.
    fn costs_by_query(&self) -> HashMap<String, [Option<f64>; 3]> {
        let mut costs = HashMap::new();
        for row in self.costs.map_or(&[][..], |rows| &rows.0) {
            let figures = ["calls_per_second", "mean_exec_time", "p95_exec_time"];
            if let Some(query) = row.shown("query_id") {
                let figures = figures.map(|name| row.number(name));
                costs.entry(query).or_insert(figures);
            }
        }
        costs
    }

    fn compared(&self) -> Table {
        let item = |row: &Row| {
            let (shown, key) = key_of(row, "key");
            let text = row.shown("query_text");
            let named = text.as_deref().map_or_else(|| shown.clone(), line);
            let change = row.shown("change").unwrap_or_default();
            let delta = row.number("avg_delta");
            let sign = if delta.is_some_and(|d| d > 0.0) {
                "+"
            } else {
                ""
            };
            Item {
                key,
                left: format!(
                    "{:>9} {:>8} {:>8}",
                    format!("{sign}{}", figure(delta)),
                    figure(row.number("avg_aas_1")),
                    figure(row.number("avg_aas_2"))
                ),
                right: format!("{change:<5} {named}"),
                detail: known(&[Some(&shown), text.is_some().then_some(&named)]),
                copied: text.unwrap_or(shown),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>9} {:>8} {:>8}", "change", "before", "now"),
            bar: "",
            right: format!("      {}", key_name(self.view.list)),
            items: self.rows.0.iter().map(item).collect(),
        }
    }

    /// One lane a session, in the order of their load.
    fn sessions(&self) -> Table {
        let window = self.view.selection();
        let mut items: Vec<(String, Item, f64)> = Vec::new();
        for row in &self.rows.0 {
            let who = format!("{:?} {:?}", row.shown("pid"), row.shown("backend_start"));
            if items.last().is_none_or(|last| last.0 != who) {
                items.push((who, session(row, window), 0.0));
            }
            let Some((_, item, seconds)) = items.last_mut() else {
                continue;
            };
            if let Some(lane) = &mut item.lane {
                lane.add(row);
            }
            if row.text("kind") == Some("sampled") {
                *seconds += aas(row, "seconds");
            }
        }
        let item = |(_, item, seconds): (String, Item, f64)| Item {
            left: format!("{:>8} {}", figure(Some(seconds)), item.left),
            ..item
        };
        Table {
            left: format!("{:>8} {:>8}", "active s", "pid"),
            bar: "waits",
            right: "user database application client".into(),
            items: items.into_iter().map(item).collect(),
        }
    }

    fn spans(&self) -> Table {
        let zone = &self.view.zone;
        let item = |row: &Row| {
            let at = row.time("span_start").unwrap_or(0);
            let state = match row.text("kind") {
                Some("sampled") => row.shown("state").unwrap_or_else(|| "-".into()),
                Some("gap") => "not recorded".into(),
                kind => kind.unwrap_or("-").into(),
            };
            let class = row.text("wait_event_type").unwrap_or_default();
            let wait = match (row.text("wait_event"), row.text("cpu")) {
                (Some(event), _) => format!("{class}:{event}"),
                (None, Some(cpu)) => cpu.to_string(),
                (None, None) => "-".into(),
            };
            let by = row.shown("blocked_by").map(|pid| format!("by {pid} "));
            let text = line(&row.shown("query_text").unwrap_or_default());
            Item {
                key: row.shown("blocked_by"),
                left: format!(
                    "{} {:>9}",
                    &time::table_time(at, zone)[11..19],
                    figure(row.number("seconds"))
                ),
                right: line(&format!(
                    "{state:<19} {wait:<20} {}{text}",
                    by.unwrap_or_default()
                )),
                detail: known(&[row.shown("query_id").as_deref(), Some(&text)]),
                copied: text,
                session: target(row),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>8} {:>9}", "from", "seconds"),
            bar: "",
            right: format!("{:<19} {:<20} query", "state", "wait"),
            items: self.rows.0.iter().map(item).collect(),
        }
    }

    fn locks(&self) -> Table {
        let item = |row: &Row| {
            let shown = |name| line(&row.shown(name).unwrap_or_default());
            let tree = row.shown("tree").unwrap_or_default();
            let text = shown("query_text");
            let names = ["mode", "object", "username", "application"];
            let words = names.map(shown).into_iter();
            let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
            Item {
                key: row.shown("pid"),
                left: format!("{tree:<14} {:>7} {:>8}", shown("waiters"), shown("waited")),
                right: line(&format!(
                    "{:<19} {} {text}",
                    shown("state"),
                    words.join(" ")
                )),
                detail: holder(row, tree.trim(), &text),
                copied: row.shown("pid").unwrap_or(tree),
                session: target(row),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:<14} {:>7} {:>8}", "process", "waiters", "waits"),
            bar: "",
            right: format!("{:<19} lock, user, application, query", "state"),
            items: self.rows.0.iter().map(item).collect(),
        }
    }
}

/// Head of a column of keys.
fn key_name(list: List) -> &'static str {
    match list {
        List::Classes => "wait class",
        List::Events => "wait event",
        _ => "query",
    }
}

/// What there is, one beside the other.
fn known(parts: &[Option<&str>]) -> String {
    let parts: Vec<&str> = parts.iter().flatten().copied().collect();
    parts.join("  ")
}

/// What is known of a process of a tree.
fn holder(row: &Row, tree: &str, text: &str) -> String {
    let held = row.shown("mode_held").map(|mode| format!(" holds {mode}"));
    let age = row.shown("xact_age");
    let age = age.map(|age| format!(" in a transaction of {age}"));
    let kind = row.shown("kind").unwrap_or_default();
    let known = [held, age].map(Option::unwrap_or_default).concat();
    format!("{kind} {tree}{known}  {text}")
}

/// The session of a row; none of a prepared transaction.
fn target(row: &Row) -> Option<Target> {
    let pid = row.shown("pid")?.parse().ok().filter(|pid| *pid > 0)?;
    let begin = row.time("backend_start");
    Some(Target { pid, begin })
}

/// A session before its spans.
fn session(row: &Row, window: Window) -> Item {
    let pid = row.shown("pid").unwrap_or_default();
    let names = ["username", "database", "application", "client_addr"];
    let names = names.map(|name| row.shown(name).unwrap_or_else(|| "-".into()));
    let right = line(&names.join(" "));
    Item {
        left: format!("{pid:>8}"),
        detail: format!("{pid}  {right}"),
        copied: pid.clone(),
        key: Some(pid),
        lane: Some(lanes::Lane::of(window)),
        session: target(row),
        right,
        ..Item::default()
    }
}

/// A percentage.
fn percent(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.1}"))
}

/// Draws a table: its heads, and rows so that the chosen one is seen. Says which
/// of them are seen, where not all are.
pub fn draw(
    buf: &mut Buffer,
    area: Rect,
    table: &Table,
    chosen: usize,
    paint: Paint,
) -> Option<String> {
    let has_bar = |item: &Item| !item.bar.is_empty() || item.lane.is_some();
    let left = u16::try_from(table.left.chars().count() + 1).unwrap_or(1);
    let has_bars = table.items.iter().any(has_bar);
    let has_lanes = table.items.iter().any(|item| item.lane.is_some());
    let bar = match (has_bars, has_lanes) {
        (false, _) => 0,
        (true, true) => (area.width - left.min(area.width)) * 3 / 5,
        (true, false) => (area.width / 7).clamp(8, 30),
    };
    let cut = paint.sign(Sign::Cut);
    let right = area.x + left + bar + u16::from(bar > 0);
    let rest = area.width.saturating_sub(right - area.x);
    put(buf, area.x, area.y, area.width, &table.left, paint.faint());
    put(buf, area.x + left, area.y, bar, table.bar, paint.faint());
    put_cut(buf, right, area.y, rest, &table.right, paint.faint(), cut);
    let rows = usize::from(area.height.saturating_sub(1));
    let first = (chosen + 1).saturating_sub(rows);
    let items = table.items.iter().enumerate().skip(first);
    for (y, (at, item)) in (area.y + 1..area.bottom()).zip(items) {
        let style = match at == chosen {
            true => paint.chosen(),
            false => Style::new(),
        };
        buf.set_style(Rect::new(area.x, y, area.width, 1), style);
        put(buf, area.x, y, left - 1, &item.left, style);
        put_cut(buf, right, y, rest, &item.right, style, cut);
        let place = Rect::new(area.x + left, y, bar, 1);
        if let Some(lane) = &item.lane {
            lane.draw(buf, place, paint);
        } else if !item.bar.is_empty() {
            draw_bar(buf, place, &item.bar, paint);
        }
    }
    let all = table.items.len();
    let last = all.min(first + rows);
    let to = paint.sign(Sign::To);
    (last - first < all).then(|| format!("{}{to}{last} of {all}", first + 1))
}

/// Classes side by side.
fn draw_bar(buf: &mut Buffer, area: Rect, bar: &[(String, f64)], paint: Paint) {
    put(
        buf,
        area.x,
        area.y,
        area.width,
        &" ".repeat(usize::from(area.width)),
        Style::new().not_reversed(),
    );
    let (mut from, mut x) = (0.0, area.x);
    for (class, share) in bar {
        let to = from + share * f64::from(area.width);
        let end = area.x + (to.round() as u16).min(area.width);
        let style = Style::new().fg(paint.color(class)).not_reversed();
        while x < end {
            put(buf, x, area.y, 1, &paint.full(class).to_string(), style);
            x += 1;
        }
        from = to;
    }
    // What is too short for a character is still there.
    if let (true, Some((class, share))) = (x == area.x && area.width > 0, bar.first()) {
        let eighths = ((share * f64::from(area.width) * 8.0).ceil() as usize).clamp(1, 7);
        let text = match paint.ascii {
            true => ".",
            false => Paint::part_wide(eighths),
        };
        let style = Style::new().fg(paint.color(class)).not_reversed();
        put(buf, x, area.y, 1, text, style);
    }
}
