//! The picture: load over time, stacked by wait class.

use crate::load::{Column, Load, nice};
use crate::paint::{Paint, Sign};
use crate::text::put;
use crate::view::View;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tacho_source::time;

/// Width of the axis at the left, in columns.
pub const AXIS: u16 = 7;
/// Lines below the picture: one for markers and the cursor, one for times.
pub const UNDER: u16 = 2;

/// Data of a picture.
pub struct Picture<'a> {
    pub view: &'a View,
    pub load: Option<&'a Load>,
    pub earlier: Option<&'a Load>,
    /// Times of markers, µs since 1970.
    pub markers: &'a [i64],
    pub paint: Paint,
}

impl Picture<'_> {
    /// Draws the stacks, the axis and the lines below.
    pub fn draw(&self, buf: &mut Buffer, area: Rect) {
        let rows = area.height.saturating_sub(UNDER);
        let stacks = Rect {
            x: area.x + AXIS,
            width: area.width.saturating_sub(AXIS),
            height: rows,
            ..area
        };
        let peak = self.load.map_or(0.0, Load::peak);
        let earlier = self.earlier.map_or(0.0, Load::peak);
        let cpus = self.load.and_then(|load| load.vcpus);
        let most = nice(peak.max(earlier).max(cpus.unwrap_or(0.0)));
        self.axis(buf, stacks, most);
        let unit = most / f64::from(rows.max(1));
        let begins = self.begins();
        for (x, begin) in (stacks.x..stacks.right()).zip(begins) {
            self.column(buf, stacks, x, begin, unit);
        }
        self.lines(buf, stacks, unit, cpus);
        self.under(buf, stacks);
    }

    /// Begin of each column, µs since 1970.
    fn begins(&self) -> impl Iterator<Item = i64> {
        let (since, width) = (self.view.window().since, self.view.width());
        let columns = i64::try_from(self.view.columns()).unwrap_or(0);
        (0..columns).map(move |i| since + i * width)
    }

    fn axis(&self, buf: &mut Buffer, area: Rect, most: f64) {
        let faint = self.paint.faint();
        for row in 0..area.height {
            let y = area.y + row;
            let is_half = area.height >= 6 && row == area.height / 2;
            let labelled = row == 0 || is_half;
            let value = most * f64::from(area.height - row) / f64::from(area.height.max(1));
            let sign = if labelled { Sign::Tick } else { Sign::Side };
            let label = match labelled {
                true => format!("{:>5} {}", number(value), self.paint.sign(sign)),
                false => format!("{:>5} {}", "", self.paint.sign(sign)),
            };
            put(buf, area.x - AXIS, y, AXIS, &label, faint);
        }
    }

    /// Draws one column: its stack, or a gap.
    fn column(&self, buf: &mut Buffer, area: Rect, x: u16, begin: i64, unit: f64) {
        let same = self.load.filter(|load| load.width == self.view.width());
        let Some(column) = same.and_then(|load| load.columns.get(&begin)) else {
            return;
        };
        for row in 0..area.height {
            let y = area.bottom() - 1 - row;
            if !column.observed {
                let gap = self.paint.sign(Sign::Gap).to_string();
                put(buf, x, y, 1, &gap, self.paint.faint());
                continue;
            }
            let (text, style) = self.cell(column, f64::from(row) * unit, unit);
            if text != " " {
                put(buf, x, y, 1, &text, style);
            }
        }
    }

    /// Text and style of the cell that covers `from` to `from + unit` of a
    /// stack.
    fn cell(&self, column: &Column, from: f64, unit: f64) -> (String, Style) {
        let mut parts: Vec<(&str, f64)> = Vec::new();
        let mut ground = 0.0_f64;
        for (class, aas) in &column.classes {
            let (begin, end) = (ground.max(from), (ground + aas).min(from + unit));
            if end > begin {
                parts.push((class, (end - begin) / unit));
            }
            ground += aas;
        }
        let Some(&(first, _)) = parts.first() else {
            return (" ".into(), Style::new());
        };
        if self.paint.has_parts() {
            return self.two(&parts);
        }
        let filled: f64 = parts.iter().map(|part| part.1).sum();
        let largest = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let class = largest.map_or(first, |part| part.0);
        let style = Style::new().fg(self.paint.color(class));
        match (filled >= 0.5, from > 0.0, self.paint.ascii) {
            (true, ..) => (self.paint.full(class).to_string(), style),
            (false, true, _) => (" ".into(), style),
            (false, false, true) => ("_".into(), style),
            (false, false, false) => (Paint::part(1).into(), style),
        }
    }

    /// A cell with the class at its bottom and the largest class above it.
    fn two(&self, parts: &[(&str, f64)]) -> (String, Style) {
        let (ground, share) = parts[0];
        let filled: f64 = parts.iter().map(|part| part.1).sum();
        let above = parts[1..].iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let above = above.filter(|part| part.1 > 1.0 - filled);
        let eighths = ((share * 8.0).round() as usize).max(1);
        let style = Style::new().fg(self.paint.color(ground));
        match above {
            _ if eighths >= 8 => (Paint::part(8).into(), style),
            Some(above) => {
                let style = style.bg(self.paint.color(above.0));
                (Paint::part(eighths).into(), style)
            }
            None => {
                let eighths = ((filled * 8.0).round() as usize).max(1);
                (Paint::part(eighths).into(), style)
            }
        }
    }

    /// Draws the CPUs, the earlier load and the cursor.
    fn lines(&self, buf: &mut Buffer, area: Rect, unit: f64, cpus: Option<f64>) {
        let row_of = |value: f64| {
            let row = (value / unit - 0.5).round().max(0.0);
            (row < f64::from(area.height)).then_some(row as u16)
        };
        if let Some(row) = cpus.filter(|cpus| *cpus > 0.0).and_then(row_of) {
            let y = area.bottom() - 1 - row;
            (area.x..area.right()).for_each(|x| self.over(buf, x, y, Sign::Cpus));
            let label = format!("{:>5} ", number(cpus.unwrap_or(0.0)));
            put(buf, area.x - AXIS, y, AXIS - 1, &label, self.paint.strong());
        }
        let before = self.view.earlier.unwrap_or(0);
        for (x, begin) in (area.x..area.right()).zip(self.begins()) {
            let earlier = self.earlier.and_then(|e| e.columns.get(&(begin - before)));
            let total = earlier.filter(|c| c.observed).map(Column::total);
            if let Some(row) = total.filter(|total| *total > 0.0).and_then(row_of) {
                self.over(buf, x, area.bottom() - 1 - row, Sign::Earlier);
            }
        }
        if let Some(column) = self.view.cursor_column() {
            let x = area.x + u16::try_from(column).unwrap_or(0);
            let empty = |y: &u16| buf[(x, *y)].symbol() == " ";
            let free: Vec<u16> = (area.y..area.bottom()).filter(empty).collect();
            let sign = self.paint.sign(Sign::Column).to_string();
            let style = self.paint.strong();
            free.iter().for_each(|y| put(buf, x, *y, 1, &sign, style));
        }
    }

    /// Draws a sign above a stack, with the stack's colour as background. The
    /// top of a stack, and screens without colours, stay unchanged.
    fn over(&self, buf: &mut Buffer, x: u16, y: u16, sign: Sign) {
        let cell = &mut buf[(x, y)];
        let is_empty = cell.symbol() == " ";
        let is_full = self.paint.has_parts() && cell.symbol() == Paint::part(8);
        if !(is_empty || is_full) {
            return;
        }
        if is_full {
            let ground = cell.fg;
            cell.set_bg(ground);
        }
        cell.set_char(self.paint.sign(sign));
        cell.fg = ratatui::style::Color::Reset;
        if !is_empty {
            cell.set_style(self.paint.strong());
        }
    }

    /// Draws markers, the cursor and times below the picture.
    fn under(&self, buf: &mut Buffer, area: Rect) {
        let y = area.bottom();
        let base = self.paint.sign(Sign::Base).to_string();
        let faint = self.paint.faint();
        let zero = format!("{:>5} ", "0");
        put(buf, area.x - AXIS, y, AXIS - 1, &zero, faint);
        (area.x - 1..area.right()).for_each(|x| put(buf, x, y, 1, &base, faint));
        let (since, width) = (self.view.window().since, self.view.width());
        let place = |at: i64| {
            let column = (at - since).div_euclid(width);
            let x = u16::try_from(column).ok()?.checked_add(area.x)?;
            (x < area.right()).then_some(x)
        };
        let marker = self.paint.sign(Sign::Marker).to_string();
        for x in self.markers.iter().filter_map(|at| place(*at)) {
            put(buf, x, y, 1, &marker, self.paint.alarm());
        }
        if let Some(column) = self.view.cursor_column() {
            let x = area.x + u16::try_from(column).unwrap_or(0);
            let cursor = self.paint.sign(Sign::Cursor).to_string();
            put(buf, x, y, 1, &cursor, self.paint.strong());
        }
        let zone = &self.view.zone;
        let mut free = area.x;
        for (x, begin) in (area.x..area.right()).zip(self.begins()) {
            let label = label(begin, width, zone);
            let length = u16::try_from(label.len()).unwrap_or(0);
            let every = u16::try_from(label_width(width) + 4).unwrap_or(12);
            if (x - area.x).is_multiple_of(every) && x >= free && x + length <= area.right() {
                put(buf, x, y + 1, length, &label, faint);
                free = x + length + 1;
            }
        }
    }
}

/// A time below the picture, as short as the column width allows.
fn label(at: i64, width: i64, zone: &TimeZone) -> String {
    let text = zone.to_datetime(time::timestamp(at));
    let format = match width {
        ..60_000_000 => "%H:%M:%S",
        60_000_000..3_600_000_000 => "%H:%M",
        3_600_000_000..86_400_000_000 => "%d %H:%M",
        _ => "%Y-%m-%d",
    };
    text.strftime(format).to_string()
}

fn label_width(width: i64) -> usize {
    label(0, width, &TimeZone::UTC).len()
}

/// A number of sessions on the axis.
pub fn number(value: f64) -> String {
    if value >= 10.0 || value.fract().abs() < 0.05 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}
