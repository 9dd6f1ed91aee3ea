//! The keys `c` and `p` show the findings of a window and the plans of a query.

use crate::app::Wish;
use crate::common::Scratch;
use crate::paint::Depth;
use crate::view::Window;
use crate::views_tests::{NOW, Seen, paint};
use crossterm::event::KeyCode::{Char, Down, Enter, Esc};
use jiff::tz::TimeZone;
use tacho_source::time;

const CAUSE: &str = "DROP INDEX app.orders_customer on app.orders, role deploy, database shop, application migrate, when query 81 got another plan and slower, from 0.20 to";

/// Ten minutes, two of them before the index is dropped.
fn seen(scratch: &Scratch) -> Seen {
    let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
    let window = Window {
        since: at("2026-01-01T00:10:00Z"),
        until: at("2026-01-01T00:20:00Z"),
    };
    let paint = paint(Depth::True, false);
    Seen::new(&scratch.tape(), (80, 24), paint, Some(window))
}

/// The lines of the screen without line breaks.
fn joined(seen: &mut Seen) -> String {
    let text = seen.text();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join(" ")
}

#[test]
fn a_key_shows_the_cause_its_sentence_and_the_command_that_shows_more() {
    let scratch = Scratch::dropped("found");
    let mut seen = seen(&scratch);
    seen.press(&[Char('c')]);
    let text = seen.text();
    assert!(text.contains("what changed 00:07:50"), "{text}");
    let row = text
        .lines()
        .find(|line| line.starts_with("00:12:00"))
        .unwrap();
    assert!(
        row.starts_with("00:12:00 cause   100.0 index dropped       DROP INDEX"),
        "{row}"
    );
    assert!(joined(&mut seen).contains(CAUSE), "{}", seen.text());
    seen.press(&[Char('y')]);
    let next = "tacho markers --since 2026-01-01T00:11:00Z --until 2026-01-01T00:13:00Z";
    assert_eq!(
        std::mem::take(&mut seen.app.wishes),
        [Wish::Copy(next.into())]
    );
    seen.press(&[Enter]);
    let text = seen.text();
    assert!(
        text.contains("queries") && text.contains("[query_id=81]"),
        "{text}"
    );
}

#[test]
fn beside_a_window_that_was_not_recorded_there_is_nothing_to_compare_with() {
    let scratch = Scratch::shop("found-first");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    seen.press(&[Char('c')]);
    let text = seen.text();
    let said = "nothing to compare with: 23:45:40 to 23:57:50 was not recorded";
    assert!(joined(&mut seen).contains(said), "{text}");
}

#[test]
fn the_plans_of_the_chosen_query_are_a_key_away() {
    let scratch = Scratch::dropped("plans");
    let mut seen = seen(&scratch);
    seen.press(&[Char('p')]);
    assert!(seen.text().contains("choose a query first (q)"));
    seen.press(&[Char('q'), Char('p')]);
    let text = seen.text();
    assert!(
        text.contains("plans 00:07:50") && text.contains("[query_id=81]"),
        "{text}"
    );
    let turned = "changed 00:12:00           0.20 ms to 210.00 ms, 1050 times";
    assert!(text.contains(turned), "{text}");
    let plans: Vec<&str> = text.lines().filter(|line| line.starts_with("50")).collect();
    assert_eq!(plans.len(), 2, "{text}");
    assert!(
        plans[0].starts_with(
            "502                  100.0 00:12:00 00:20:00    4800  210.00      3.00  -"
        ),
        "{}",
        plans[0]
    );
    assert!(
        plans[1].starts_with(
            "501                    0.0 00:08:00 00:12:00    2400    0.20      3.00  -"
        ),
        "{}",
        plans[1]
    );
    seen.press(&[Down, Char('y')]);
    assert_eq!(seen.app.wishes, [Wish::Copy("502".into())]);
}

#[test]
fn two_plans_without_trees_say_why() {
    let scratch = Scratch::dropped("trees");
    let mut seen = seen(&scratch);
    seen.press(&[Char('q'), Char('d')]);
    assert!(seen.text().contains("queries"), "d needs a list of plans");
    for (keys, first, second) in [(&[][..], "501", "502"), (&[Down], "502", "501")] {
        seen.press(&[Char('p')]);
        seen.press(keys);
        seen.press(&[Char('d')]);
        let text = seen.text();
        let lines: Vec<&str> = text.lines().collect();
        let at = lines
            .iter()
            .position(|line| line.contains("two plans"))
            .unwrap();
        assert_eq!(
            lines[at + 1].trim_end(),
            format!("plan {first:<36}plan {second}"),
            "{text}"
        );
        for (line, plan) in [(at + 2, first), (at + 3, second)] {
            let reason = format!("plan {plan} has no tree in the history");
            assert!(lines[line].starts_with(&reason), "{text}");
        }
        seen.press(&[Esc, Esc]);
    }
}
