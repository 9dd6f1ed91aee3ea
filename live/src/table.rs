//! A list as it is shown: its rows, its figures, and how it is drawn.

use crate::lanes;
use crate::paint::{Paint, Sign};
use crate::signal::Target;
use crate::text::{put, put_cut};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tacho_tape::query::Numeric;

/// A row of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Key of the row as a filter writes it; `None` for rows without a key.
    pub key: Option<String>,
    /// Text before the bar or lane.
    pub left: String,
    /// Wait classes of the bar, and their load divided by the load of the largest row of the list.
    pub bar: Vec<(String, f64)>,
    /// The lane, with the class of each piece of the selection.
    pub lane: Option<lanes::Lane>,
    /// Text after the bar.
    pub right: String,
    /// The full details of the row.
    pub detail: String,
    /// Text that `y` copies.
    pub copied: String,
    /// Ids of the row's plans: one, or the old and the new plan of a change.
    pub plans: Vec<String>,
    /// The row's session.
    pub session: Option<Target>,
}

/// A list as shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Column heads: of the text before the bar, of the bar, of the text after it.
    pub left: String,
    pub bar: &'static str,
    pub right: String,
    pub items: Vec<Item>,
}

pub fn number(known: Option<Numeric>) -> Option<f64> {
    known.map(Numeric::to_f64)
}

/// A figure; 0 if unknown.
pub fn some(known: Option<Numeric>) -> f64 {
    known.map_or(0.0, Numeric::to_f64)
}

/// A number; empty if unknown.
pub fn whole(known: Option<i64>) -> String {
    known.map_or(String::new(), |number| number.to_string())
}

/// A figure with two decimals; from 1,000 on without decimals, from 100,000 on in thousands.
pub fn figure(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| match value {
        value if value.abs() >= 100_000.0 => format!("{:.0}k", value / 1000.0),
        value if value.abs() >= 1000.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    })
}

/// A percentage with one decimal; empty if unknown.
pub fn percent(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.1}"))
}

/// Draws a table: its heads, and rows around the chosen one. Returns the range
/// of visible rows, unless all are visible.
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

/// Draws classes side by side.
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
    // A share too small for a character is still visible.
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
