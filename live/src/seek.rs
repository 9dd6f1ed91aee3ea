//! The keys that go to the next or the previous marker.

use crate::app::{App, Seek};
use crate::asked::{Asked, Slot};
use crate::view::argument;
use tacho_source::Arguments;
use tacho_source::rows::Rows;
use tacho_tape::query::MarkersRow;

impl App {
    /// Starts a search for the next marker before or after the cursor.
    pub fn seek(&mut self, seek: Seek) {
        let Some(end) = self.view.end else { return };
        // The key was pressed again before the answer: skip one marker more.
        if let Some(known) = self.seek.as_mut().filter(|known| known.0 == seek) {
            known.2 += 1;
            return;
        }
        let selection = self.view.selection();
        let has_cursor = self.view.cursor_column().is_some();
        let from = match (has_cursor, seek) {
            (true, Seek::Earlier) => selection.since,
            (false, Seek::Earlier) => selection.until,
            (true, Seek::Later) => selection.since + self.view.width(),
            (false, Seek::Later) => selection.since,
        };
        let (since, until) = match seek {
            Seek::Later => (from, end.max(from + 1)),
            Seek::Earlier => (0, from),
        };
        let mut arguments = Arguments::new();
        arguments.insert("since".into(), argument(since));
        arguments.insert("until".into(), argument(until));
        self.begin_anew();
        self.seek = Some((seek, from, 0));
        let (slot, view) = (Slot::Markers, self.number);
        self.put(Asked {
            slot,
            view,
            function: "markers",
            arguments,
        });
    }

    /// Goes to the marker of the search.
    pub fn found(&mut self, rows: &Rows) {
        let Some((seek, from, passed)) = self.seek.take() else {
            return;
        };
        let rows: Vec<MarkersRow> = rows.read();
        let times = rows.iter().filter_map(|row| row.marker_time);
        let mut times: Vec<i64> = match seek {
            Seek::Later => times.filter(|at| *at >= from).collect(),
            Seek::Earlier => times.filter(|at| *at < from).collect(),
        };
        times.sort_unstable();
        times.dedup();
        if seek == Seek::Earlier {
            times.reverse();
        }
        let found = times.get(passed).or(times.last()).copied();
        self.dirty = true;
        match (found, seek) {
            (Some(at), _) => {
                self.view.go_to(at);
                self.ask(false);
            }
            (None, Seek::Later) => self.message = Some("there is no later marker".into()),
            (None, Seek::Earlier) => self.message = Some("there is no earlier marker".into()),
        }
    }
}
