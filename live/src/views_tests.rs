//! Every view as it is drawn, beside what was looked at by people: files of
//! `tests/expected`. `TACHO_ACCEPT=1` writes them anew.

use crate::app::App;
use crate::common::{Scratch, tacho};
use crate::paint::{Depth, Paint};
use crate::screen;
use crate::view::Window;
use crate::worker::answer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tacho_source::{Source, Tapes, time};

const NOW: i64 = 1_767_226_201_000_000;

/// A program without a thread and a terminal.
struct Seen {
    app: App,
    tapes: Tapes,
    size: (u16, u16),
}

impl Seen {
    fn new(tape: &Path, size: (u16, u16), paint: Paint, window: Option<Window>) -> Seen {
        let mut tapes = Tapes::new(1 << 20);
        tapes.add(&format!("shop={}", tape.display())).unwrap();
        let web = "http://127.0.0.1:8432".to_string();
        let mut app = App::new(TimeZone::UTC, paint, web);
        app.servers = vec!["shop".into()];
        app.resize(screen::columns(size.0));
        let place = vec!["--tape".into(), "TAPE".into()];
        app.open(Some("shop".into()), place, window);
        let mut seen = Seen { app, tapes, size };
        seen.settle();
        seen
    }

    /// Answers everything that is asked.
    fn settle(&mut self) {
        loop {
            let asked = self.app.questions();
            if asked.is_empty() {
                return;
            }
            for asked in asked {
                let ask = asked.ask(self.app.view.server.as_deref(), 64 << 20);
                let cancel = AtomicBool::new(false);
                let answer = answer(&self.tapes as &dyn Source, asked, &ask, &cancel);
                self.app.told(answer, NOW);
            }
        }
    }

    fn press(&mut self, keys: &[KeyCode]) {
        for key in keys {
            self.app.key(KeyEvent::new(*key, KeyModifiers::NONE));
            self.settle();
        }
    }

    fn write(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(&[Char(c)]));
    }

    fn buffer(&mut self) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).unwrap();
        let app = &self.app;
        let drawn = terminal.draw(|frame| screen::draw(app, frame.buffer_mut()));
        drawn.unwrap().buffer.clone()
    }

    fn text(&mut self) -> String {
        lines(&self.buffer())
    }
}

fn lines(buffer: &Buffer) -> String {
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

/// Colours of the picture, a letter a cell: what colour there is in 16.
fn colors(buffer: &Buffer) -> String {
    let letter = |color| match color {
        Color::Green => 'g',
        Color::Blue => 'b',
        Color::Magenta => 'm',
        Color::Red => 'r',
        Color::LightRed => 'R',
        Color::LightGreen => 'G',
        Color::Reset => '.',
        _ => '?',
    };
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let cells = (0..buffer.area.width).map(|x| &buffer[(x, y)]);
        let line: String = cells
            .map(|cell| match (letter(cell.fg), letter(cell.bg)) {
                ('.', '.') => ' ',
                ('.', ground) => ground,
                (color, _) => color,
            })
            .collect();
        writeln!(out, "{}", line.trim_end()).unwrap();
    }
    out
}

fn expect(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(name);
    if std::env::var_os("TACHO_ACCEPT").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == shown,
        "{name} is not as expected:\n{shown}\nexpected:\n{expected}"
    );
}

fn paint(depth: Depth, ascii: bool) -> Paint {
    Paint { depth, ascii }
}

use KeyCode::{Char, Down, Enter, Esc, Left};

/// Keys that lead to each view, and its name.
const VIEWS: [(&str, &[KeyCode]); 11] = [
    ("live", &[]),
    ("events", &[Enter]),
    ("queries", &[Char('q'), Down]),
    ("sessions", &[Char('s')]),
    ("life", &[Char('s'), Enter]),
    ("locks", &[Char('b')]),
    ("marker", &[Char('M'), Char('M')]),
    ("compare", &[Char(']'), Char('['), Char('c')]),
    ("help", &[Char('?')]),
    ("command", &[Char('q'), Char('w')]),
    ("goto", &[Char('g'), Char('3')]),
];

#[test]
fn every_view_is_drawn_as_expected() {
    let scratch = Scratch::shop("views");
    for (size, name) in [((80, 24), "80"), ((200, 60), "200")] {
        for (view, keys) in VIEWS {
            for (depth, ascii, kind) in [
                (Depth::True, false, "utf8"),
                (Depth::None, false, "mono"),
                (Depth::None, true, "ascii"),
            ] {
                // What differs is the picture and bars: two views show both.
                if kind != "utf8" && !matches!(view, "live" | "sessions") {
                    continue;
                }
                let mut seen = Seen::new(&scratch.tape(), size, paint(depth, ascii), None);
                seen.press(keys);
                expect(&format!("{view}-{name}-{kind}.txt"), &seen.text());
            }
        }
    }
}

#[test]
fn sixteen_colours_and_none_are_those_of_the_classes() {
    let scratch = Scratch::shop("colours");
    for size in [(80, 24), (200, 60)] {
        let mut seen = Seen::new(&scratch.tape(), size, paint(Depth::Sixteen, false), None);
        let name = format!("live-{}-16colours.txt", size.0);
        expect(&name, &colors(&seen.buffer()));
        let mut seen = Seen::new(&scratch.tape(), size, paint(Depth::None, false), None);
        let buffer = seen.buffer();
        let is_plain = |c: &ratatui::buffer::Cell| c.fg == Color::Reset && c.bg == Color::Reset;
        assert!(buffer.content().iter().all(is_plain));
    }
}

#[test]
fn without_other_characters_everything_is_ascii() {
    let scratch = Scratch::shop("ascii");
    for (_, keys) in VIEWS {
        let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::None, true), None);
        seen.press(keys);
        // Texts of clients stay what they are.
        let text = seen.text().replace(['漢', '字', '\u{fffd}', '�', '␛'], "");
        assert!(text.is_ascii(), "{text}");
    }
}

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
        text.contains("life of a session") && text.contains("[pid=500]"),
        "{text}"
    );
    assert!(text.contains("idle in transaction"), "{text}");
    seen.press(&[Esc]);
    assert!(seen.text().contains("locks at 00:05:39"));
}

/// The figures of a list are those of `tacho … --json` with the command that w
/// says.
#[test]
fn figures_are_those_of_the_command_that_is_shown() {
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
fn a_directory_that_vanishes_is_said_and_one_that_comes_back_is_shown() {
    let scratch = Scratch::shop("vanish");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    let before = seen.text();
    let away = scratch.0.join("away");
    std::fs::rename(scratch.tape(), &away).unwrap();
    seen.app.look();
    seen.settle();
    let text = seen.text();
    assert!(
        text.contains("unreadable") && text.contains("tried again"),
        "{text}"
    );
    assert!(seen.app.looks_after().is_some());
    std::fs::rename(&away, scratch.tape()).unwrap();
    seen.app.look();
    seen.settle();
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
        text.contains("1s a column") && text.contains("past (End: live)"),
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
fn a_question_without_sense_is_said_once_and_left_with_esc() {
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
    // Queues are those of the whole server.
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
    let files = std::fs::read_dir(scratch.tape()).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let tape = files.find(|path| path.extension().is_some_and(|e| e == "tape"));
    let tape = tape.unwrap();
    let mut bytes = std::fs::read(&tape).unwrap();
    bytes[400..800].fill(0);
    std::fs::write(&tape, &bytes).unwrap();
    let paint = paint(Depth::True, false);
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint, None);
    let text = seen.text();
    let said = "no tick of the history can be read (XX001)";
    assert!(text.contains(said) && text.contains("unreadable"), "{text}");
    // What comes after it can be read.
    scratch.append();
    seen.app.look();
    seen.settle();
    let text = seen.text();
    assert!(
        text.contains("damaged places: 1;") && text.contains("00:11:00"),
        "{text}"
    );
    seen.press(&[Down]);
    assert!(!seen.text().contains("damaged"));
}

#[test]
fn what_did_not_change_is_not_drawn_again() {
    let scratch = Scratch::shop("dirty");
    let mut seen = Seen::new(&scratch.tape(), (80, 24), paint(Depth::True, false), None);
    seen.app.dirty = false;
    seen.app.look();
    seen.settle();
    assert!(!seen.app.dirty);
    seen.press(&[Char(' ')]);
    assert_eq!(seen.app.looks_after(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No cell of a screen holds what a terminal obeys, whatever is written.
    #[test]
    fn no_text_reaches_the_terminal_as_an_order(text in "\\PC*|[\u{0}-\u{ff}]*|.*") {
        let mut app = App::new(TimeZone::UTC, paint(Depth::True, false), String::new());
        app.resize(screen::columns(80));
        app.open(Some(text.clone()), Vec::new(), None);
        app.message = Some(text.clone());
        app.table.left = text.clone();
        app.table.right = text.clone();
        app.table.items = vec![crate::list::Item {
            left: text.clone(),
            right: text.clone(),
            detail: text.clone(),
            bar: vec![(text.clone(), 1.0)],
            ..crate::list::Item::default()
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
