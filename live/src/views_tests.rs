//! Keys and the resulting screens, without a thread or a terminal.

use crate::app::{App, Wish};
use crate::common::{Scratch, tacho};
use crate::paint::{Depth, Paint};
use crate::screen;
use crate::signal::{Act, Reply, Request, Session, Target};
use crate::view::Window;
use crate::worker::{Answer, answer};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Modifier;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tacho_source::{Source, Tapes, time};
use tacho_tape::query::QueryError;

/// A second after the history's last tick.
pub const NOW: i64 = 1_767_226_201_000_000;

/// Most bytes of kept columns.
const CACHE: u64 = 128 << 10;

/// The program without a thread or a terminal.
pub struct Seen {
    pub app: App,
    tapes: Tapes,
    size: (u16, u16),
    /// Time on the clock, µs.
    pub now: i64,
}

impl Seen {
    pub fn new(tape: &Path, size: (u16, u16), paint: Paint, window: Option<Window>) -> Seen {
        let mut tapes = Tapes::new(CACHE);
        tapes.add(&format!("shop={}", tape.display())).unwrap();
        let web = "http://127.0.0.1:8432".to_string();
        let mut app = App::new(TimeZone::UTC, paint, web);
        app.servers = vec!["shop".into()];
        app.resize(screen::columns(size.0));
        let place = vec!["--tape".into(), "TAPE".into()];
        app.open(Some("shop".into()), place, window);
        let mut seen = Seen {
            app,
            tapes,
            size,
            now: NOW,
        };
        seen.settle();
        seen
    }

    /// Answers all questions.
    pub fn settle(&mut self) {
        loop {
            let asked = self.app.questions();
            if asked.is_empty() {
                return;
            }
            for asked in asked {
                let ask = asked.ask(self.app.view.server.as_deref(), 64 << 20);
                let cancel = AtomicBool::new(false);
                let answer = answer(&self.tapes as &dyn Source, asked, &ask, &cancel);
                self.app.told(answer, self.now);
            }
        }
    }

    /// The same terminal on another history.
    pub fn again(&self, tape: &Path) -> Seen {
        Seen::new(tape, self.size, self.app.paint, None)
    }

    /// Fails all questions.
    pub fn fail(&mut self, error: &QueryError) {
        for asked in self.app.questions() {
            let answer = Answer {
                asked,
                result: Err(error.clone()),
                took: Duration::ZERO,
            };
            self.app.told(answer, self.now);
        }
    }

    /// Looks for something new.
    pub fn look(&mut self) {
        self.app.look();
        self.settle();
    }

    pub fn press(&mut self, keys: &[KeyCode]) {
        for key in keys {
            self.app.key(KeyEvent::new(*key, KeyModifiers::NONE));
            self.settle();
        }
    }

    pub fn write(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(&[Char(c)]));
    }

    pub fn buffer(&mut self) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).unwrap();
        let app = &self.app;
        let drawn = terminal.draw(|frame| screen::draw(app, frame.buffer_mut()));
        drawn.unwrap().buffer.clone()
    }

    pub fn text(&mut self) -> String {
        lines(&self.buffer())
    }
}

pub fn lines(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
                skip = unicode_columns(symbol).saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        writeln!(out, "{}", line.trim_end()).unwrap();
    }
    out
}

fn unicode_columns(symbol: &str) -> usize {
    ratatui::text::Span::raw(symbol).width()
}

pub fn paint(depth: Depth, ascii: bool) -> Paint {
    Paint { depth, ascii }
}

use KeyCode::{Char, Down, Enter, Esc, Left};

#[test]
fn the_root_blocker_is_found_with_three_keys() {
    let scratch = Scratch::shop("root");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    seen.press(&[Char('b')]);
    let text = seen.text();
    assert!(text.contains("locks at 00:05:39"), "{text}");
    let head = text.lines().find(|line| line.starts_with("500")).unwrap();
    assert!(
        head.contains("40") && head.contains("idle in transaction"),
        "{head}"
    );
    seen.press(&[Enter]);
    let text = seen.text();
    assert!(
        text.contains("history of a session") && text.contains("[pid=500]"),
        "{text}"
    );
    assert!(text.contains("idle in transaction"), "{text}");
    seen.press(&[Esc]);
    assert!(seen.text().contains("locks at 00:05:39"));
}

/// A list has the same figures as `tacho … --json` with the command that `w`
/// shows.
#[test]
fn figures_equal_the_output_of_the_shown_command() {
    let scratch = Scratch::shop("figures");
    let tape = scratch.tape().display().to_string();
    for keys in [
        &[][..],
        &[Enter],
        &[Enter, Enter],
        &[Char('q')],
        &[Left, Left],
    ] {
        let mut seen = Seen::new(&scratch.tape(), (200, 60), paint(Depth::True, false), None);
        seen.press(keys);
        let shown: Vec<(String, f64)> = seen
            .app
            .table
            .items
            .iter()
            .map(|item| {
                let figure = item.left.split_whitespace().next().unwrap();
                (
                    item.key.clone().unwrap_or("(other)".into()),
                    figure.parse().unwrap(),
                )
            })
            .collect();
        assert!(!shown.is_empty());
        seen.press(&[Char('w')]);
        let words: Vec<&str> = seen.app.said[0].split(' ').skip(1).collect();
        let mut words: Vec<&str> = words
            .iter()
            .map(|word| {
                if *word == "TAPE" {
                    tape.as_str()
                } else {
                    *word
                }
            })
            .collect();
        words.push("--json");
        let output = tacho(&words);
        assert!(output.status.success(), "{words:?} {output:?}");
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let mut answered: Vec<(String, f64)> = Vec::new();
        for row in rows {
            let key = row["key"].as_str().unwrap_or("(null)").to_string();
            let figure = row["avg_aas"].as_f64().unwrap();
            match answered.iter_mut().find(|known| known.0 == key) {
                Some(known) => known.1 += figure,
                None => answered.push((key, figure)),
            }
        }
        let rounded = |(key, figure): &(String, f64)| (key.clone(), format!("{figure:.2}"));
        let answered: Vec<_> = answered.iter().map(rounded).collect();
        assert_eq!(shown.iter().map(rounded).collect::<Vec<_>>(), answered);
    }
}

#[test]
fn a_vanished_directory_is_reported_and_a_returned_one_is_shown() {
    let scratch = Scratch::shop("vanish");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    let before = seen.text();
    let away = scratch.0.join("away");
    std::fs::rename(scratch.tape(), &away).unwrap();
    seen.look();
    let text = seen.text();
    assert!(
        text.contains("unreadable") && text.contains("Retrying"),
        "{text}"
    );
    assert!(seen.app.looks_after().is_some());
    std::fs::rename(&away, scratch.tape()).unwrap();
    seen.look();
    assert_eq!(seen.text(), before);
}

#[test]
fn a_window_may_be_given_and_time_is_gone_to() {
    let scratch = Scratch::shop("window");
    let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
    let window = Window {
        since: at("2026-01-01T00:05:00Z"),
        until: at("2026-01-01T00:06:00Z"),
    };
    let paint = paint(Depth::True, false);
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint, Some(window));
    let text = seen.text();
    assert!(
        text.contains("1 column = 1s") && text.contains("past (End: live)"),
        "{text}"
    );
    seen.write("g00:05:10");
    seen.press(&[Enter]);
    let text = seen.text();
    assert!(text.contains("00:05:10–00:05:11"), "{text}");
    assert!(
        text.contains("41.50 active") || text.contains("active"),
        "{text}"
    );
    seen.write("gsoon");
    seen.press(&[Enter]);
    assert!(seen.text().contains("invalid time \"soon\""));
    seen.write("/application=batch");
    seen.press(&[Enter]);
    assert!(seen.text().contains("[application=batch]"));
    seen.write("/colour=red");
    seen.press(&[Enter]);
    assert!(seen.text().contains("write NAME=VALUE"));
}

#[test]
fn a_key_lists_tags_and_a_filter_takes_one_key_of_them() {
    let scratch = Scratch::tagged("tags");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    seen.press(&[Char('a')]);
    let text = seen.text();
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("33.3")).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows[0].ends_with("controller=orders,action=show"), "{text}");
    assert!(rows[1].ends_with("job=mail"), "{text}");
    assert!(rows[2].ends_with("(null)"), "{text}");
    seen.press(&[Enter]);
    let text = seen.text();
    let filter = "queries 23:58:00–00:10:01  [tags=\"controller=orders,action=show\"]";
    assert!(text.contains(filter), "{text}");
    assert!(
        text.contains("select 1") && !text.contains("select 2"),
        "{text}"
    );
    seen.press(&[Char('x')]);
    seen.write("/tag:job=mail");
    seen.press(&[Enter]);
    let text = seen.text();
    assert!(text.contains("[tag:job=mail]"), "{text}");
    assert!(
        text.contains("select 2") && !text.contains("select 1"),
        "{text}"
    );
}

#[test]
fn a_refused_question_is_reported_once_until_esc() {
    let scratch = Scratch::shop("sense");
    let paint = paint(Depth::True, false);
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint, None);
    seen.press(&[Char(' ')]);
    let before = seen.text();
    seen.write("/state=idle");
    seen.press(&[Enter]);
    let text = seen.text();
    assert!(
        text.contains("filter \"state\" is outside the scope"),
        "{text}"
    );
    assert!(
        text.contains("Esc goes back.") && text.contains("paused"),
        "{text}"
    );
    assert_eq!(seen.app.looks_after(), None);
    seen.press(&[Esc]);
    assert_eq!(seen.text(), before);
    // Queues concern the whole server.
    seen.press(&[Char('b')]);
    seen.write("/application=web");
    seen.press(&[Enter]);
    let text = seen.text();
    assert!(
        text.contains("\n500 ") && !text.contains("[application"),
        "{text}"
    );
    seen.press(&[Esc, Char('x'), Esc]);
    assert_eq!(seen.text(), before);
}

#[test]
fn keys_that_are_faster_than_answers_are_counted() {
    let scratch = Scratch::shop("fast");
    let paint = paint(Depth::True, false);
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint, None);
    for _ in 0..2 {
        seen.app.key(KeyEvent::new(Char('M'), KeyModifiers::NONE));
    }
    seen.settle();
    assert!(seen.text().contains("settings changed"), "{}", seen.text());
    seen.press(&[Char('M')]);
    assert!(seen.text().contains("there is no earlier marker"));
}

#[test]
fn a_history_that_cannot_be_read_is_not_called_empty() {
    let scratch = Scratch::shop("damage");
    scratch.damage();
    let paint = paint(Depth::True, false);
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint, None);
    let text = seen.text();
    let said = "no tick of the history can be read (XX001)";
    assert!(text.contains(said) && text.contains("unreadable"), "{text}");
    // History after the damage can be read.
    scratch.append();
    seen.look();
    let text = seen.text();
    assert!(
        text.contains("damaged parts: 1;") && text.contains("00:11:00"),
        "{text}"
    );
    seen.press(&[Down]);
    let text = seen.text();
    let last = text.lines().last().unwrap();
    let said = "could not read a file of the history. File \"";
    assert!(last.starts_with(said) && last.ends_with('…'), "{text}");
}

#[test]
fn unchanged_cells_are_not_drawn_again() {
    let scratch = Scratch::shop("dirty");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    seen.app.dirty = false;
    seen.look();
    assert!(!seen.app.dirty);
    seen.press(&[Char(' ')]);
    assert_eq!(seen.app.looks_after(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No cell of a screen contains a control sequence, for any text.
    #[test]
    fn no_text_reaches_the_terminal_as_an_order(text in "\\PC*|[\u{0}-\u{ff}]*|.*") {
        let mut app = App::new(TimeZone::UTC, paint(Depth::True, false), String::new());
        app.resize(screen::columns(80));
        app.open(Some(text.clone()), Vec::new(), None);
        app.message = Some(text.clone());
        app.table.left = text.clone();
        app.table.right = text.clone();
        app.table.items = vec![crate::table::Item {
            left: text.clone(),
            right: text.clone(),
            detail: text.clone(),
            bar: vec![(text.clone(), 1.0)],
            ..crate::table::Item::default()
        }];
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let drawn = terminal.draw(|frame| screen::draw(&app, frame.buffer_mut())).unwrap();
        for cell in drawn.buffer.content() {
            let obeyed = cell.symbol().chars().find(|c| {
                c.is_control() || "\u{200e}\u{200f}\u{202a}\u{202b}\u{202d}\u{202e}\u{2066}\u{2069}".contains(*c)
            });
            prop_assert_eq!(obeyed, None);
        }
    }
}

#[test]
fn a_chosen_row_is_seen_without_colours() {
    let scratch = Scratch::shop("chosen");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::None, true), None);
    let buffer = seen.buffer();
    let is_chosen = |y: &u16| buffer[(0, *y)].modifier.contains(Modifier::REVERSED);
    assert_eq!((0..24).filter(is_chosen).count(), 1);
}

/// Only the confirmed session is signalled, and only with `y`.
#[test]
fn only_y_signals_and_only_whom_was_confirmed() {
    let scratch = Scratch::shop("signal");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    seen.press(&[Char('b'), Char('K')]);
    assert!(seen.app.wishes.is_empty() && seen.text().contains("--allow-signal"));
    seen.app.signalled.extend(seen.app.view.server.clone());
    seen.press(&[Esc, Char('K')]);
    assert!(seen.app.wishes.is_empty() && seen.text().contains("choose a session"));
    // The head of the queue: as recorded, and until when.
    seen.press(&[Char('b'), Char('K')]);
    let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
    let target = Target {
        pid: 500,
        begin: Some(at("2025-12-31T00:00:00Z")),
    };
    let until = at("2026-01-01T00:10:00Z");
    let look = Wish::Signal(Request::Look(Act::End, target, until));
    assert_eq!(
        std::mem::take(&mut seen.app.wishes),
        std::slice::from_ref(&look)
    );
    let session = Session {
        pid: 500,
        begin: 7,
        ..Session::default()
    };
    let found = Reply::Found(Act::End, session.clone());
    for key in [Enter, Esc, Char('n'), Char('Y'), Char('K')] {
        seen.app.is_aiming = true;
        seen.app.server_said(found.clone());
        assert!(seen.text().contains("End this session?"));
        seen.press(&[key]);
        assert!(seen.app.wishes.is_empty() && seen.text().contains("canceled; no signal was sent"));
    }
    // A key pressed before the confirmation opens is not an answer.
    seen.press(&[Char('K'), Down]);
    seen.app.wishes.clear();
    seen.app.server_said(found.clone());
    seen.press(&[Char('y')]);
    let copied = std::mem::take(&mut seen.app.wishes);
    assert_eq!(copied, [Wish::Copy("600".into())]);
    seen.press(&[Char('K')]);
    seen.app.wishes.clear();
    seen.app.server_said(found);
    seen.press(&[Char('y')]);
    let told = Wish::Signal(Request::Do(Act::End, session));
    assert_eq!(std::mem::take(&mut seen.app.wishes), [told]);
    seen.press(&[Char('y')]);
    assert_eq!(seen.app.wishes.len(), 1);
    assert!(matches!(seen.app.wishes[0], Wish::Copy(_)));
}
