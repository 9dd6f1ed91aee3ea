//! Hostile names and statements of clients: they do not control a terminal, run
//! on a page, or become links in a ticket.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::PathBuf;
use std::process::Command;

/// Sets the title, asks for the clipboard and sets colours, in both forms of escape sequences.
/// Changes the writing direction. Ends code spans, table cells and elements.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b]52;c;?\x1b\\\x1b[31m\u{9b}32m\u{9d}0;x\u{9c}\u{202e}\u{2066}\u{7f}\x08\r\
    a`b``|<script>alert(1)</script>[x](https://e.example)<img src=x onerror=alert(2)>'&@all www.e.example";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("tacho-hostile-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A history with hostile text in every column that a client, a name or a
    /// file can fill.
    fn hostile(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        let text = format!("\"{HOSTILE}\"");
        let write = |kind: &str, lines: &[String]| {
            let file = scratch.0.join(format!("{kind}.csv"));
            std::fs::write(&file, lines.join("\n") + "\n").unwrap();
            file.to_string_lossy().into_owned()
        };
        let mut sessions = vec![
            "time,tick,pid,backend_start,database,username,application,client_addr,backend_type,state,wait_event_type,wait_event,query_id,query_text,vcpus".to_string(),
        ];
        for tick in 1..4 {
            let at = format!("2026-01-01T00:00:0{}Z,{tick}", tick - 1);
            for pid in [10, 11] {
                sessions.push(format!("{at},{pid},2025-12-31T00:00:00Z,{text},{text},{text},{text},client backend,active,{text},{text},{pid},{text},4"));
            }
        }
        let sessions = write("sessions", &sessions);
        let gid = format!("\"{}\"", "g".repeat(90) + HOSTILE);
        let locks = write("locks", &[
            "time,tick,waiter,waiter_start,blocker,blocker_start,blocker_xid,blocker_gid,hard,locktype,lock_database,field1,field2,field3,modes_held,mode_requested,wait_start".to_string(),
            format!("2026-01-01T00:00:00Z,1,10,2025-12-31T00:00:00Z,,,777,{gid},1,transactionid,,777,,,128,5,2025-12-31T23:59:58Z"),
            "2026-01-01T00:00:01Z,2,10,2025-12-31T00:00:00Z,11,2025-12-31T00:00:00Z,,,1,relation,5,16400,,,8,8,2025-12-31T23:59:55Z".to_string(),
        ]);
        let markers = write(
            "markers",
            &[
                "time,kind,since,until,detail".to_string(),
                format!("2026-01-01T00:00:01Z,start,,,{text}"),
            ],
        );
        let databases = write(
            "databases",
            &[
                "time,object,xact_commit,deadlocks".to_string(),
                format!("2026-01-01T00:00:01Z,{text},5,1"),
            ],
        );
        let server = write(
            "server",
            &[
                "time,elapsed_ms,vcpus,load_1,wal_bytes,checkpoints_timed".to_string(),
                "2026-01-01T00:00:01Z,1000,4,150,100,1".to_string(),
            ],
        );
        let (_, error) = scratch.tacho(&[
            "import",
            "sessions",
            &sessions,
            &format!("--with=locks={locks}"),
            &format!("--with=markers={markers}"),
            &format!("--with=server={server}"),
            &format!("--with=server_database={databases}"),
        ]);
        assert!(
            error.starts_with("imported 6 samples in 3 ticks"),
            "{error}"
        );
        scratch
    }

    /// Standard output and error, with colours if possible.
    fn tacho(&self, args: &[&str]) -> (String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(args)
            .arg(format!("--tape={}", self.0.join("tape").display()))
            .env("CLICOLOR_FORCE", "1")
            .env_remove("NO_COLOR")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const WINDOW: [&str; 2] = [
    "--since=2026-01-01T00:00:00Z",
    "--until=2026-01-01T00:00:03Z",
];

/// Characters of an output that a terminal would obey, without line ends.
fn obeyed(text: &str) -> Vec<char> {
    let bad = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(bad).collect()
}

/// A chart without its own escape sequences.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap_or("").to_string();
    for piece in pieces {
        let (code, rest) = piece.split_once('m').unwrap();
        let known = code == "0" || code.starts_with("38;2;");
        assert!(
            known && code.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "{code}"
        );
        plain.push_str(rest);
    }
    plain
}

const DIMENSIONS: [&str; 7] = [
    "wait_event",
    "wait_event_type",
    "query_id",
    "database",
    "username",
    "application",
    "client_addr",
];

/// All questions whose answers contain texts of the history.
fn questions() -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for dimension in DIMENSIONS {
        all.push(vec!["top".into(), dimension.into(), "--by=username".into()]);
        all.push(vec!["compare".into(), dimension.into()]);
        for command in ["timeline", "chart"] {
            all.push(vec![
                command.into(),
                format!("--by={dimension}"),
                "--bucket=1s".into(),
            ]);
        }
    }
    for command in [
        "samples",
        "sessions",
        "blocking",
        "summary",
        "markers",
        "server-history",
        "aas",
        "changes",
    ] {
        all.push(vec![command.into()]);
    }
    for question in &mut all {
        let earlier = question[0] == "compare";
        let names = if earlier {
            ["since-2", "until-2"]
        } else {
            ["since", "until"]
        };
        for (name, value) in names.iter().zip(WINDOW) {
            let value = value.split_once('=').unwrap().1;
            question.push(format!("--{name}={value}"));
        }
    }
    all.push(vec!["blocking".into(), "--at=2026-01-01T00:00:01Z".into()]);
    all.push(vec!["status".into()]);
    all
}

#[test]
fn only_charts_speak_to_the_terminal() {
    let scratch = Scratch::hostile("tables");
    let mut shown = 0;
    for question in questions() {
        let words: Vec<&str> = question.iter().map(String::as_str).collect();
        let (mut text, error) = scratch.tacho(&words);
        assert_eq!(error, "", "{question:?}");
        if words[0] == "chart" {
            assert!(text.contains("\x1b[38;2;"), "{text:?}");
            text = without_colours(&text);
        }
        assert_eq!(obeyed(&text), [], "{question:?}: {text:?}");
        shown += usize::from(text.contains("owned"));
        let (json, _) = scratch.tacho(&[&words[..], &["--json"]].concat());
        assert_eq!(obeyed(&json), [], "{question:?}: {json:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
    }
    assert!(shown > DIMENSIONS.len() * 3, "{shown}");
}

#[test]
fn errors_quote_arguments_as_plain_text() {
    let scratch = Scratch::hostile("errors");
    let filter = format!("--wait-event={HOSTILE}");
    let (_, error) = scratch.tacho(&["top", &filter, "--by=\x1b]0;owned\x07"]);
    assert!(error.starts_with("error: "), "{error}");
    assert_eq!(obeyed(&error), [], "{error:?}");
}

#[test]
fn a_report_runs_and_links_nothing() {
    let scratch = Scratch::hostile("report");
    let html = scratch.tacho(&[&["report"][..], &WINDOW].concat()).0;
    let at = scratch.tacho(&["report", "--at=2026-01-01T00:00:01Z"]).0;
    for page in [&html, &at] {
        assert_eq!(obeyed(page), []);
        for refused in ["<script", "<img", "owned\x07"] {
            assert!(!page.contains(refused), "{refused}");
        }
        assert!(page.contains("&lt;script&gt;"));
    }
    let markdown = [&["report", "--format=markdown"][..], &WINDOW].concat();
    let markdown = scratch.tacho(&markdown).0;
    assert_eq!(obeyed(&markdown), []);
    assert!(
        !markdown.contains(&"g".repeat(70)),
        "a gid is cut: {markdown}"
    );
    let mut rest = String::new();
    for line in markdown.lines() {
        rest.push_str(&outside_of_code(line));
        rest.push('\n');
    }
    assert!(rest.contains("&lt;script&gt;"), "{rest}");
    for refused in ["<", "](", "://", "www.", "@all"] {
        let found = rest.replace("\\](", "").contains(refused);
        assert!(!found, "{refused}: {rest}");
    }
}

/// A line of Markdown without its code spans.
fn outside_of_code(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('\\') {
            let end = rest.char_indices().nth(2).map_or(rest.len(), |c| c.0);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let body = &rest[ticks..];
        let mut end = None;
        let mut from = 0;
        while let Some(next) = body[from..].find('`') {
            let run = body[from + next..]
                .chars()
                .take_while(|c| *c == '`')
                .count();
            if run == ticks {
                end = Some(from + next + run);
                break;
            }
            from += next + run;
        }
        rest = &body[end.unwrap()..];
    }
    out + rest
}
