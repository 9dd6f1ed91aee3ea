//! The life of a session over the selection. Each character is a piece of time
//! in the look of its main wait class.

use crate::paint::{Paint, Sign};
use crate::text::put;
use crate::view::Window;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::collections::BTreeMap;
use tacho_tape::query::SessionsRow;

/// Maximum number of pieces of a lane.
const PIECES: i64 = 400;

/// A session's life within a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    window: Window,
    /// Spans of the session: begin and end in µs since 1970, and the wait
    /// class; `None` = nothing was recorded. Idle time has no span.
    spans: Vec<(i64, i64, Option<String>)>,
}

impl Lane {
    pub fn of(window: Window) -> Lane {
        Lane {
            window,
            spans: Vec::new(),
        }
    }

    /// Adds a row of `sessions`.
    pub fn add(&mut self, row: &SessionsRow) {
        let (Some(begin), Some(end)) = (row.span_start, row.span_end) else {
            return;
        };
        let class = row.wait_event_type.as_deref();
        let cpu = row.cpu.as_ref().map(|_| "CPU");
        match row.kind.as_deref() {
            Some("sampled") => {
                let class = class.or(cpu).unwrap_or("(null)").to_string();
                self.spans.push((begin, end, Some(class)));
            }
            // Nothing was recorded in a gap.
            Some("gap") => self.spans.push((begin, end, None)),
            _ => (),
        }
    }

    /// Divides the window into `pieces` equal pieces and returns the wait class
    /// that took most time in each: `None` for idle time, `Some(None)` for time
    /// that was not recorded.
    fn pieces(&self, pieces: i64) -> Vec<Option<Option<&str>>> {
        let length = (self.window.until - self.window.since).max(1);
        let mut sums: Vec<BTreeMap<Option<&str>, i64>> = Vec::new();
        sums.resize_with(usize::try_from(pieces).unwrap_or(0), BTreeMap::new);
        let place = |at: i64| (at - self.window.since) * pieces / length;
        let begin = |piece: i64| self.window.since + (piece * length).div_euclid(pieces);
        for (since, until, class) in &self.spans {
            let (since, until) = (
                (*since).max(self.window.since),
                (*until).min(self.window.until),
            );
            if until <= since {
                continue;
            }
            let last = place(until - 1).min(pieces - 1);
            for piece in place(since).clamp(0, pieces - 1)..=last {
                let share = until.min(begin(piece + 1)) - since.max(begin(piece));
                if let Some(sums) = usize::try_from(piece).ok().and_then(|i| sums.get_mut(i)) {
                    *sums.entry(class.as_deref()).or_default() += share;
                }
            }
        }
        sums.into_iter().map(longest).collect()
    }

    /// Draws the lane.
    pub fn draw(&self, buf: &mut Buffer, area: Rect, paint: Paint) {
        let pieces = self.pieces(i64::from(area.width).min(PIECES));
        for (x, piece) in (area.x..area.right()).zip(pieces) {
            let (sign, style) = match piece {
                None => (' ', Style::new()),
                Some(None) => (paint.sign(Sign::Gap), paint.faint()),
                Some(Some(class)) => (paint.full(class), Style::new().fg(paint.color(class))),
            };
            let style = style.not_reversed();
            put(buf, x, area.y, 1, &sign.to_string(), style);
        }
    }
}

/// The class with most time in a piece: `Some(None)` for time that was not recorded, `None` without
/// any time.
fn longest(sums: BTreeMap<Option<&str>, i64>) -> Option<Option<&str>> {
    let taken = sums.into_iter().filter(|sum| sum.1 > 0);
    taken.max_by_key(|sum| sum.1).map(|sum| sum.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_the_class_with_most_time() {
        let window = Window {
            since: 0,
            until: 100,
        };
        let mut lane = Lane::of(window);
        let span = |begin, end, class: Option<&str>| (begin, end, class.map(str::to_string));
        lane.spans = vec![
            span(-50, 14, Some("CPU")),
            span(14, 20, Some("Lock")),
            span(20, 21, Some("IO")),
            span(60, 80, None),
            span(95, 500, Some("IO")),
        ];
        let pieces = lane.pieces(10);
        let shown: Vec<&str> = pieces
            .iter()
            .map(|piece| piece.map_or("", |class| class.unwrap_or("gap")))
            .collect();
        let expected = ["CPU", "Lock", "IO", "", "", "", "gap", "gap", "", "IO"];
        assert_eq!(shown, expected);
    }
}
