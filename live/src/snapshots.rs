//! Compares every view and state with files of `tests/expected`, which people
//! have reviewed: one file per view and size. `TACHO_ACCEPT=1` writes them again.

use crate::common::{HOSTILE, Scratch};
use crate::paint::Depth;
use crate::signal::{Act, Reply, Session};
use crate::view::Window;
use crate::views_tests::{NOW, Seen, lines, paint};
use crossterm::event::KeyCode::{self, Char, Down, Enter, Left};
use jiff::tz::TimeZone;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;
use std::path::Path;
use tacho_source::time;
use tacho_tape::query::QueryError;

/// Kinds of terminals, by the name of their section.
const KINDS: [(&str, Depth, bool); 4] = [
    ("UTF-8", Depth::True, false),
    ("ASCII", Depth::None, true),
    ("no colours", Depth::None, false),
    ("16 colours", Depth::Sixteen, false),
];

/// Views: name, and keys that lead there.
const VIEWS: [(&str, &[KeyCode]); 17] = [
    ("live", &[]),
    ("cursor", &[Left, Left]),
    ("events", &[Enter]),
    ("queries", &[Char('q'), Down]),
    ("sessions", &[Char('s')]),
    ("life", &[Char('s'), Enter]),
    ("locks", &[Char('b')]),
    ("marker", &[Char('M'), Char('M')]),
    ("compare", &[Char('['), Char('['), Char('v')]),
    (
        "compare-queries",
        &[Char('['), Char('['), Char('q'), Char('v'), Down],
    ),
    ("findings", &[Char('['), Char('c')]),
    ("plans", &[Char('q'), Char('p')]),
    ("help", &[Char('?')]),
    ("command", &[Char('q'), Char('w')]),
    ("goto", &[Char('g'), Char('3')]),
    ("copied", &[Char('q'), Char('y')]),
    ("paused", &[Char(' ')]),
];

/// Leads from the live view to a state.
type Lead = fn(&mut Seen, &Scratch);

/// States that need more than keys.
const STATES: [(&str, Lead); 21] = [
    ("past", |seen, _| {
        let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
        let (since, until) = (at("2026-01-01T00:04:50Z"), at("2026-01-01T00:05:50Z"));
        seen.app.view.show(Window { since, until });
        seen.press(&[Char('s')]);
    }),
    ("filter", |seen, _| {
        seen.press(&[Char('q')]);
        seen.write("/application=report");
    }),
    ("filtered", |seen, _| {
        seen.write("e/application=report");
        seen.press(&[Enter]);
        seen.write("/query_id=!11");
        seen.press(&[Enter]);
    }),
    ("not-a-filter", |seen, _| {
        seen.write("/colour=red");
        seen.press(&[Enter]);
    }),
    ("without-sense", |seen, _| {
        seen.write("/state=idle");
        seen.press(&[Enter]);
    }),
    ("no-locks", |seen, _| {
        seen.write("g00:02:00");
        seen.press(&[Enter, Char('b')]);
    }),
    ("late", |seen, _| {
        seen.now += 3_600_000_000;
        seen.look();
    }),
    ("silent", |seen, _| {
        seen.app.look();
        seen.app.listen(seen.now);
        seen.app.listen(seen.now + 75_900_000);
    }),
    ("not-recorded", |seen, _| {
        seen.write("g00:07:10");
        seen.press(&[Enter]);
    }),
    ("missing", |seen, scratch| {
        std::fs::rename(scratch.tape(), scratch.0.join("away")).unwrap();
        seen.look();
        std::fs::rename(scratch.0.join("away"), scratch.tape()).unwrap();
        // The place of the test must not matter.
        let error = seen.app.error.as_mut().unwrap();
        let here = scratch.tape().display().to_string();
        error.message = error
            .message
            .replace(&here, "/var/lib/postgresql/15/main/tacho");
    }),
    ("no-rights", |seen, _| {
        let what = "could not open file \"/var/lib/postgresql/15/main/tacho/node\": \
                    Permission denied (os error 13)";
        let error = QueryError::new("42501", what);
        seen.app.look();
        seen.fail(&error);
    }),
    ("empty", |seen, scratch| {
        let empty = scratch.0.join("empty");
        std::fs::create_dir_all(&empty).unwrap();
        *seen = seen.again(&empty);
        elsewhere(seen, &empty);
    }),
    ("damaged", |seen, _| {
        let other = Scratch::shop("damaged");
        other.damage();
        *seen = seen.again(&other.tape());
    }),
    ("partly-damaged", |seen, _| {
        let other = Scratch::shop("partly");
        other.damage();
        other.append();
        *seen = seen.again(&other.tape());
    }),
    ("not-allowed", |seen, _| seen.press(&[Char('s'), Char('C')])),
    ("confirm", |seen, _| {
        seen.app.signalled.extend(seen.app.view.server.clone());
        seen.press(&[Char('b'), Char('C')]);
        let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
        let session = Session {
            pid: 600,
            begin: at("2025-12-31T00:00:00Z"),
            query_begin: Some(at("2026-01-01T00:05:00Z")),
            user: "ann".into(),
            database: "shop".into(),
            application: HOSTILE.into(),
            state: "active".into(),
            query: "update item set qty = qty - $1 where id = $2 ".repeat(9),
        };
        seen.app.server_said(Reply::Found(Act::Cancel, session));
    }),
    ("alarmed", |seen, _| {
        let other = Scratch::alarmed("alarmed", false);
        *seen = seen.again(&other.tape());
    }),
    ("alarms", |seen, _| {
        let other = Scratch::alarmed("alarms", true);
        *seen = seen.again(&other.tape());
        seen.press(&[Char('!'), Down]);
    }),
    ("trees", |seen, _| {
        let other = Scratch::explained("explained");
        *seen = seen.again(&other.tape());
        show_plans(seen);
        seen.press(&[Char('d'), Down, Down, Down]);
    }),
    ("typed-plans", |seen, _| {
        let other = Scratch::explained("typed");
        *seen = seen.again(&other.tape());
        show_plans(seen);
    }),
    ("asking", |seen, _| {
        seen.app.view.list = crate::view::List::Sessions;
        seen.app.open(Some("shop".into()), Vec::new(), None);
    }),
];

/// Shows the plans of the query that runs by another plan, two minutes before that and eight after.
fn show_plans(seen: &mut Seen) {
    let at = |text: &str| time::moment(text, NOW, &TimeZone::UTC).unwrap();
    let (since, until) = (at("2026-01-01T00:10:00Z"), at("2026-01-01T00:20:00Z"));
    seen.app.view.show(Window { since, until });
    seen.press(&[Char('q'), Char('p')]);
}

/// Replaces the test's directory in the error.
fn elsewhere(seen: &mut Seen, here: &Path) {
    let error = seen.app.error.as_mut().unwrap();
    let here = here.display().to_string();
    let named = error
        .message
        .replace(&here, "/var/lib/postgresql/15/main/tacho");
    error.message = named;
}

/// A letter per cell for its colour of 16. Cells without a colour: `*` bold, `-`
/// dim, `#` reversed.
fn colors(buffer: &Buffer) -> String {
    let letter = |color| match color {
        Color::Green => 'g',
        Color::Blue => 'b',
        Color::Magenta => 'm',
        Color::Red => 'r',
        Color::LightRed => 'R',
        Color::LightGreen => 'G',
        Color::Reset => ' ',
        _ => '?',
    };
    let marks = [
        (Modifier::REVERSED, '#'),
        (Modifier::BOLD, '*'),
        (Modifier::DIM, '-'),
    ];
    let mark = |cell: &Cell| {
        let found = marks.iter().find(|mark| cell.modifier.contains(mark.0));
        let is_seen = cell.symbol() != " " || cell.modifier.contains(Modifier::REVERSED);
        found.filter(|_| is_seen).map_or(' ', |mark| mark.1)
    };
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let cells = (0..buffer.area.width).map(|x| &buffer[(x, y)]);
        let line: String = cells
            .map(|cell| match (letter(cell.fg), letter(cell.bg)) {
                (' ', ' ') => mark(cell),
                (' ', ground) => ground,
                (color, _) => color,
            })
            .collect();
        writeln!(out, "{}", line.trim_end()).unwrap();
    }
    out
}

/// Compares a view on each kind of terminal with its file.
fn expect(scratch: &Scratch, name: &str, lead: &dyn Fn(&mut Seen)) {
    for size in [(80, 24), (200, 60)] {
        let mut shown = String::new();
        for (kind, depth, ascii) in KINDS {
            let mut seen = Seen::new(&scratch.tape(), size, paint(depth, ascii), None);
            lead(&mut seen);
            let buffer = seen.buffer();
            let drawn = match depth {
                Depth::Sixteen => colors(&buffer),
                _ => lines(&buffer),
            };
            if ascii {
                is_ascii(name, &drawn);
            }
            let is_plain = |c: &Cell| c.fg == Color::Reset && c.bg == Color::Reset;
            assert!(depth != Depth::None || buffer.content().iter().all(is_plain));
            writeln!(shown, "==== {kind}\n{drawn}").unwrap();
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected");
        let path = path.join(format!("{name}-{}.txt", size.0));
        if std::env::var_os("TACHO_ACCEPT").is_some() {
            std::fs::write(&path, &shown).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            expected == shown,
            "{} is not as expected:\n{shown}\nexpected:\n{expected}",
            path.display()
        );
    }
}

/// Everything is ASCII except texts of clients.
fn is_ascii(name: &str, drawn: &str) {
    let ours = drawn.replace(['漢', '字', '\u{fffd}'], "");
    assert!(ours.is_ascii(), "{name}\n{drawn}");
}

#[test]
fn every_view_is_drawn_as_expected() {
    let scratch = Scratch::shop("views");
    for (name, keys) in VIEWS {
        expect(&scratch, name, &|seen| seen.press(keys));
    }
}

#[test]
fn every_state_is_drawn_as_expected() {
    let scratch = Scratch::shop("states");
    for (name, lead) in STATES {
        expect(&scratch, name, &|seen| lead(seen, &scratch));
    }
}

#[test]
fn every_expected_file_belongs_to_a_view() {
    let names = VIEWS.iter().map(|view| view.0);
    let names: Vec<&str> = names.chain(STATES.iter().map(|state| state.0)).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected");
    for file in std::fs::read_dir(path).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let name = file
            .trim_end_matches("-80.txt")
            .trim_end_matches("-200.txt");
        assert!(names.contains(&name), "{file}");
    }
}
