//! A line has the alarms of the server, and the key `!` lists them.

use crate::app::Wish;
use crate::asked::Slot;
use crate::common::Scratch;
use crate::paint::Depth;
use crate::view::Window;
use crate::views_tests::{NOW, Seen, paint};
use crate::worker::Answer;
use crossterm::event::KeyCode::{Char, Enter, Esc};
use jiff::tz::TimeZone;
use std::time::Duration;
use tacho_source::time;
use tacho_tape::query::QueryError;

const LINE: &str = "3 alarms (!): 8 deadlocks; 2 forced checkpoints; slot left, which no process uses, keeps 3.00 GB of log";

fn seen(scratch: &Scratch) -> Seen {
    Seen::new(&scratch.tape(), (120, 30), paint(Depth::True, false), None)
}

/// The third line of the screen.
fn third(seen: &mut Seen) -> String {
    seen.text().lines().nth(2).unwrap_or_default().to_string()
}

#[test]
fn alarms_stand_on_a_line_without_filters() {
    let scratch = Scratch::alarmed("alarm-line", false);
    let mut seen = seen(&scratch);
    assert_eq!(third(&mut seen), LINE);
    seen.press(&[Enter]);
    assert_ne!(third(&mut seen), LINE, "a filter");
    seen.press(&[Esc]);
    assert_eq!(third(&mut seen), LINE);
    // One column for seven days is a picture of two years.
    for _ in 0..16 {
        seen.press(&[Char(']')]);
    }
    assert_ne!(third(&mut seen), LINE, "too long");
    seen.press(&[Char('!')]);
    let text = seen.text();
    assert!(
        text.contains("only for pictures of at most seven days"),
        "{text}"
    );
}

#[test]
fn a_window_without_a_bad_measurement_has_no_line() {
    let scratch = Scratch::alarmed("alarm-none", false);
    let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
    let (since, until) = (at("2026-01-01T00:01:00Z"), at("2026-01-01T00:02:00Z"));
    let window = Some(Window { since, until });
    let mut seen = Seen::new(
        &scratch.tape(),
        (120, 30),
        paint(Depth::True, false),
        window,
    );
    let slot = "1 alarm (!): slot left, which no process uses, keeps 3.00 GB of log";
    assert_eq!(third(&mut seen), slot);
    let other = Scratch::shop("alarm-shop");
    let mut seen = seen.again(&other.tape());
    assert!(!seen.text().contains("(!)"));
    seen.press(&[Char('!')]);
    let text = seen.text();
    assert!(
        text.contains("no alarm, or no measurements of the server"),
        "{text}"
    );
}

#[test]
fn an_alarm_leads_to_its_measurements() {
    let scratch = Scratch::alarmed("alarm-next", true);
    let mut seen = seen(&scratch);
    seen.press(&[Char('!'), Char('y')]);
    let next = "tacho server-history --metric wal_archive_failed --since 2025-12-31T23:51:10Z --until 2026-01-01T00:10:00Z --bucket 10s";
    assert_eq!(seen.app.wishes, [Wish::Copy(next.into())]);
    seen.press(&[Char('w')]);
    let said = &seen.app.said;
    assert!(
        said[0].starts_with("tacho server-history --tape TAPE --metric connections,"),
        "{said:?}"
    );
    assert!(said[1].ends_with("&tab=server"), "{said:?}");
}

#[test]
fn a_tick_does_not_ask_for_the_measurements_of_the_same_steps() {
    let scratch = Scratch::alarmed("alarm-steps", false);
    let mut seen = seen(&scratch);
    let end = seen.app.view.end.unwrap();
    let mut asks = |end: i64| {
        assert!(seen.app.view.followed(end));
        seen.press(&[Char('t')]);
        let asked = seen.app.view.questions(0);
        asked
            .into_iter()
            .find(|asked| asked.slot == Slot::Alarms)
            .unwrap()
            .arguments
    };
    let [first, second, third] = [1, 9, 11].map(|seconds| asks(end + seconds * 1_000_000));
    assert_eq!(first, second);
    assert_ne!(second, third);
}

#[test]
fn a_source_without_measurements_shows_the_rest() {
    let scratch = Scratch::alarmed("alarm-refused", false);
    let mut seen = seen(&scratch);
    seen.app.key(crossterm::event::KeyEvent::new(
        Char('['),
        crossterm::event::KeyModifiers::NONE,
    ));
    for asked in seen.app.questions() {
        let is_it = asked.slot == Slot::Alarms;
        let refused = QueryError::new("22023", "metric \"disk_free\" does not exist");
        let answer = Answer {
            asked,
            result: if is_it {
                Err(refused)
            } else {
                Ok(Default::default())
            },
            took: Duration::ZERO,
        };
        seen.app.told(answer, NOW);
    }
    assert_eq!(seen.app.error, None);
    assert!(!seen.text().contains("(!)"));
}
