//! `tacho import sessions`: all or nothing, lines named by number.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn tape(&self) -> &Path {
        &self.0
    }

    /// Names of the history files.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "lock")
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str], tape: &Path, input: &str) -> Output {
    let tape = tape.to_str().unwrap();
    common::tacho(&[args, &["--tape", tape]].concat(), input.as_bytes())
}

fn import(tape: &Path, more: &[&str], input: &str) -> Output {
    let mut args = vec!["import", "sessions", "-"];
    args.extend(more);
    run(&args, tape, input)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `avg_aas` and ticks of the first of January 2026.
fn load(tape: &Path) -> String {
    let window = ["--since=2026-01-01", "--until=2026-01-02", "--format=copy"];
    let output = run(&[&["query", "aas"], &window[..]].concat(), tape, "");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let get = |name| row[names.iter().position(|n| *n == name).unwrap()];
    format!("{} {}", get("avg_aas"), get("ticks_observed"))
}

const GOOD: &str = "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:01Z,\n";

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let scratch = Scratch::new("import-usage");
    for (words, wanted) in [
        (
            &["--interval", "0"][..],
            "error: invalid interval \"0\"\nhint: Use whole",
        ),
        (
            &["--interval", "15000d"],
            "error: invalid interval \"15000d\"\nhint: Use whole",
        ),
        (
            &["--node", "xyz"],
            "error: invalid node \"xyz\"\nhint: Use up to",
        ),
        (
            &["--with", "locks"],
            "error: invalid value \"locks\" for --with\nhint: Use the form",
        ),
        (&["--with", "moods=/dev/null"], "error: "),
    ] {
        let output = import(scratch.tape(), words, GOOD);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).starts_with(wanted), "{}", stderr(&output));
    }
}

#[test]
fn a_file_is_imported_once() {
    let scratch = Scratch::new("import-once");
    assert_eq!(
        stderr(&import(scratch.tape(), &[], GOOD)),
        "imported 1 samples in 2 ticks\n"
    );
    assert_eq!(load(scratch.tape()), "0.5000 2");
    let again = import(scratch.tape(), &[], GOOD);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("already contains history\nhint: Use --append"));
    assert_eq!(load(scratch.tape()), "0.5000 2");
}

#[test]
fn later_times_are_appended() {
    let scratch = Scratch::new("import-append");
    import(scratch.tape(), &["--node=a1"], GOOD);
    let later = "time,pid\n2026-01-01T00:00:02Z,1\n2026-01-01T00:00:02Z,2\n";
    let output = import(scratch.tape(), &["--append"], later);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(load(scratch.tape()), "1.0000 3");
    let earlier = import(scratch.tape(), &["--append"], GOOD);
    assert_eq!(
        stderr(&earlier),
        "error: line 2: time is not later than the previous time\nhint: Lines must be sorted by time.\n"
    );
    assert_eq!(load(scratch.tape()), "1.0000 3");
}

#[test]
fn histories_of_one_server_answer_together() {
    let scratch = Scratch::new("import-system");
    let later = "time,pid\n2026-01-01T00:00:02Z,1\n2026-01-01T00:00:02Z,2\n";
    let first = import(scratch.tape(), &["--node=a1", "--system=7"], GOOD);
    assert!(first.status.success(), "{first:?}");
    import(scratch.tape(), &["--node=b2", "--system=8"], later);
    assert_eq!(load(scratch.tape()), "2.0000 1");
    let again = "time,pid\n2026-01-01T00:00:03Z,1\n2026-01-01T00:00:04Z,1\n";
    import(scratch.tape(), &["--node=c3", "--system=7"], again);
    assert_eq!(load(scratch.tape()), "0.7500 4");
    let more = "time,pid\n2026-01-01T00:00:05Z,1\n";
    let other = ["--append", "--node=c3", "--system=8"];
    assert_eq!(
        stderr(&import(scratch.tape(), &other, more)),
        "error: history belongs to system 7, not 8\nhint: Omit --system, or specify another --node.\n"
    );
    assert_eq!(load(scratch.tape()), "0.7500 4");
}

#[test]
fn a_bad_line_is_named_and_nothing_is_written() {
    let cases = [
        (
            "time,pid\n2026-01-01T00:00:00Z,x\n",
            "line 2: invalid value \"x\" for column \"pid\"",
        ),
        (
            "time,pid\nnow,1\n",
            "line 2: invalid value \"now\" for column \"time\"",
        ),
        (
            "time,pid\n2026-01-01T00:00:00Z\n",
            "line 2: expected 2 fields, found 1",
        ),
        ("pid\n1\n", "line 1: column \"time\" is missing"),
        ("time,mood\n", "line 1: unknown column \"mood\""),
        ("time,time\n", "line 1: column \"time\" occurs twice"),
        ("", "the input is empty"),
        (
            "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-01T01:00:00Z,1\n2026-01-01T01:00:00Z,1\n",
            "line 4: process 1 occurs twice in one tick",
        ),
        (
            "time,pid\n2026-01-01T00:00:01Z,1\n2026-01-01T00:00:00Z,1\n",
            "line 3: time is not later than the previous time",
        ),
        (
            "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:00.5Z,1\n",
            "line 3: time is 500 ms after the previous time, less than the interval",
        ),
        (
            "time,tick,pid\n2026-01-01T00:00:00Z,4611686018427387904,1\n",
            "line 2: tick 4611686018427387904 is too large",
        ),
        (
            "time,tick,pid\n2026-01-01T00:00:00Z,2,1\n2026-01-01T00:00:01Z,1,1\n",
            "line 3: tick is not later than the previous tick",
        ),
        (
            "time,pid,state\n2026-01-01T00:00:00Z,1,bored\n",
            "line 2: invalid value \"bored\" for column \"state\"",
        ),
        (
            "time,interval_ms,pid\n2026-01-01T00:00:00Z,1099511627776,1\n",
            "line 2: invalid value \"1099511627776\" for column \"interval_ms\"",
        ),
    ];
    for (input, message) in cases {
        let scratch = Scratch::new("import-bad");
        let output = import(scratch.tape(), &[], input);
        assert_eq!(output.status.code(), Some(1), "{input}");
        let first = stderr(&output);
        assert_eq!(first.lines().next().unwrap(), format!("error: {message}"));
        assert_eq!(scratch.files(), [] as [&str; 0], "{input}");
    }
}

#[test]
fn a_pid_may_repeat_with_another_start() {
    let scratch = Scratch::new("import-start");
    let input = "time,pid,backend_start\n\
        2026-01-01T00:00:00Z,1,2025-12-31T00:00:00Z\n\
        2026-01-01T00:00:00Z,1,2025-12-31T00:00:01Z\n";
    let output = import(scratch.tape(), &["--interval", "10s"], input);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(load(scratch.tape()), "2.0000 1");
}

#[test]
fn a_directory_in_use_is_refused() {
    let scratch = Scratch::new("import-lock");
    std::fs::create_dir(scratch.tape()).unwrap();
    let lock = std::fs::File::create(scratch.tape().join("lock")).unwrap();
    lock.lock().unwrap();
    let output = import(scratch.tape(), &[], GOOD);
    assert!(stderr(&output).contains("is in use by another process"));
}

#[test]
fn later_times_are_appended_up_to_the_largest_tick() {
    let scratch = Scratch::new("import-last-tick");
    let last = "time,tick,pid\n2026-01-01T00:00:00Z,4611686018427387902,1\n";
    assert!(import(scratch.tape(), &[], last).status.success());
    let next = "time,pid\n2026-01-01T00:00:01Z,1\n";
    assert!(import(scratch.tape(), &["--append"], next).status.success());
    assert_eq!(load(scratch.tape()), "1.0000 2");
    for header in [
        "time,pid\n2026-01-01T00:00:02Z,1\n",
        "time,tick,pid\n2026-01-01T00:00:02Z,1,1\n",
    ] {
        let output = import(scratch.tape(), &["--append"], header);
        let message = "error: line 2: tick 4611686018427387904 is too large\n\
            hint: At most 4611686018427387903 is possible.\n";
        assert_eq!(stderr(&output), message);
    }
    assert_eq!(load(scratch.tape()), "1.0000 2");
}

#[test]
fn times_before_1970_at_its_begin_and_of_the_year_9999_are_times() {
    for time in [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "9999-12-30T00:00:00Z",
    ] {
        let scratch = Scratch::new("import-times");
        let input = format!("time,pid\n{time},1\n");
        assert!(
            import(scratch.tape(), &[], &input).status.success(),
            "{time}"
        );
        let window = ["--since=0001-01-01", "--until=9999-12-30T12:00:00Z"];
        let exported = run(
            &[&["export", "sessions"], &window[..]].concat(),
            scratch.tape(),
            "",
        );
        let text = String::from_utf8(exported.stdout).unwrap();
        let row = text.lines().nth(1).unwrap();
        assert!(row.starts_with(&format!("{time},1,")), "{row}");
        let copy = Scratch::new("import-times-copy");
        let again = import(copy.tape(), &[], &text);
        assert!(again.status.success(), "{time}: {again:?}");
        let exported = run(
            &[&["export", "sessions"], &window[..]].concat(),
            copy.tape(),
            "",
        );
        assert_eq!(String::from_utf8(exported.stdout).unwrap(), text);
    }
}

#[test]
fn a_header_may_name_any_columns_in_any_order() {
    let scratch = Scratch::new("import-columns");
    let input = "cpu,query_id,time,wait_event,pid,wait_event_type\n\
        ,-5,2026-01-01T00:00:00Z,DataFileRead,1,IO\n\
        running,,2026-01-01T00:00:00Z,,2,\n\
        ,,2026-01-01T00:00:01Z,,,\n";
    assert!(import(scratch.tape(), &[], input).status.success());
    assert_eq!(load(scratch.tape()), "1.0000 2");
    let window = ["--since=2026-01-01", "--until=2026-01-02", "--format=copy"];
    let by = ["query", "top", "--dimension=wait_event", "--by=query_id"];
    let output = run(&[&by, &window[..]].concat(), scratch.tape(), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    let at = ["key", "by_key", "backend_seconds"]
        .map(|name| names.iter().position(|n| *n == name).unwrap());
    let rows: Vec<[&str; 3]> = text
        .lines()
        .skip(1)
        .filter(|line| *line != "\\.")
        .map(|line| at.map(|i| line.split('\t').nth(i).unwrap()))
        .collect();
    assert_eq!(
        rows,
        [
            ["CPU:running", "(no query id)", "1.0000"],
            ["IO:DataFileRead", "-5", "1.0000"]
        ]
    );
}

#[test]
fn the_next_import_removes_files_of_a_killed_import() {
    let scratch = Scratch::new("import-left");
    let left = scratch.tape().join("import-4242");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("0000000001.tmp"), "half").unwrap();
    std::fs::create_dir(scratch.tape().join("import-notes")).unwrap();
    assert!(import(scratch.tape(), &[], GOOD).status.success());
    assert_eq!(scratch.files(), ["0000000001.tape", "import-notes"]);
}

#[test]
fn files_that_cannot_all_be_shown_are_not_shown_at_all() {
    let scratch = Scratch::new("import-all");
    // A directory blocks the file of the second day.
    let way = scratch.tape().join("0000000002.tape");
    std::fs::create_dir_all(way.join("full")).unwrap();
    let days = "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-02T00:00:00Z,1\n";
    let output = import(scratch.tape(), &[], days);
    assert!(
        stderr(&output).contains("could not rename file"),
        "{output:?}"
    );
    assert_eq!(scratch.files(), ["0000000002.tape"]);
}

/// Rows of each kind with times of their own, at one second of the first minute
/// of January 2026.
fn timed(second: u32) -> [(&'static str, String); 4] {
    let time = format!("2026-01-01T00:00:{second:02}Z");
    [
        (
            "statements",
            format!("time,query_id,calls\n{time},7,3\n{time},8,4\n"),
        ),
        ("server", format!("time,elapsed_ms\n{time},10000\n")),
        (
            "server_database",
            format!("time,object,deadlocks\n{time},shop,1\n"),
        ),
        ("markers", format!("time,kind\n{time},start\n")),
    ]
}

fn import_kind(tape: &Path, kind: &str, more: &[&str], input: &str) -> Output {
    run(&[&["import", kind, "-"], more].concat(), tape, input)
}

fn rows(tape: &Path, kind: &str) -> usize {
    let output = run(&["export", kind], tape, "");
    String::from_utf8(output.stdout).unwrap().lines().count() - 1
}

#[test]
fn sessions_are_appended_to_statements_that_were_imported_first() {
    let scratch = Scratch::new("import-statements-first");
    let [(kind, statements), ..] = timed(1);
    let first = import_kind(scratch.tape(), kind, &[], &statements);
    assert_eq!(stderr(&first), "imported 2 rows of statements\n");
    let sessions = import(scratch.tape(), &["--append"], GOOD);
    assert_eq!(stderr(&sessions), "imported 1 samples in 2 ticks\n");
    let later = "time,tick,pid\n2026-01-01T00:00:02Z,1,1\n";
    assert!(
        import(scratch.tape(), &["--append"], later)
            .status
            .success()
    );
    assert_eq!(load(scratch.tape()), "0.6667 3");
    assert_eq!(rows(scratch.tape(), "statements"), 2);
}

#[test]
fn ticks_behind_a_file_without_ticks_hide_none_of_those_before_it() {
    let scratch = Scratch::new("import-hidden");
    let day = |minutes: std::ops::Range<u32>| {
        let line = |m| format!("2026-01-01T00:{m:02}:00Z,1\n");
        format!("time,pid\n{}", minutes.map(line).collect::<String>())
    };
    let minutely = ["--interval=1min", "--append"];
    import(scratch.tape(), &["--interval=1min"], &day(0..3));
    for (kind, input) in timed(30) {
        import_kind(scratch.tape(), kind, &["--append"], &input);
    }
    let output = import(scratch.tape(), &minutely, &day(3..10));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(load(scratch.tape()), "1.0000 10");
    let again = import(scratch.tape(), &minutely, &day(9..11));
    assert!(stderr(&again).contains("line 2: time is not later"));
}

#[test]
fn rows_that_are_there_are_not_appended_again() {
    let scratch = Scratch::new("import-twice");
    import(scratch.tape(), &[], GOOD);
    for (kind, input) in timed(1) {
        let count = input.lines().count() - 1;
        let first = import_kind(scratch.tape(), kind, &["--append"], &input);
        assert_eq!(stderr(&first), format!("imported {count} rows of {kind}\n"));
        let again = import_kind(scratch.tape(), kind, &["--append"], &input);
        let message = format!(
            "error: line 2: time is not later than the newest of {kind} in the history, 2026-01-01T00:00:01Z\n\
            hint: Remove the lines up to that time.\n"
        );
        assert_eq!(stderr(&again), message);
        assert_eq!(again.status.code(), Some(1));
        assert_eq!(rows(scratch.tape(), kind), count, "{kind}");
    }
    for (kind, input) in timed(2) {
        let later = import_kind(scratch.tape(), kind, &["--append"], &input);
        assert!(later.status.success(), "{kind}: {later:?}");
    }
    assert_eq!(rows(scratch.tape(), "statements"), 4);
}

#[test]
fn texts_that_are_there_are_passed_over() {
    let scratch = Scratch::new("import-texts-twice");
    import(scratch.tape(), &[], GOOD);
    let texts = "time,query_id,query_text\n,7,select 7\n,8,\"select\n8\"\n";
    let first = import_kind(scratch.tape(), "texts", &["--append"], texts);
    assert_eq!(stderr(&first), "imported 2 rows of texts\n");
    let more = "query_text,time,query_id\nselect 7,,7\nselect 9,,9\n";
    let again = import_kind(scratch.tape(), "texts", &["--append"], more);
    assert_eq!(
        stderr(&again),
        "imported 1 rows of texts (1 already present)\n"
    );
    assert_eq!(rows(scratch.tape(), "texts"), 4, "one has two lines");
}

#[test]
fn imported_files_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("import-mode");
    assert!(import(scratch.tape(), &[], GOOD).status.success());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(scratch.tape()), 0o700);
    for entry in std::fs::read_dir(scratch.tape()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
