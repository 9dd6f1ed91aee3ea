//! `tacho live` in a real terminal: tmux types keys and returns the screen.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{ROOT, Scratch, tacho};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A terminal of its own.
struct Terminal {
    socket: String,
}

fn tmux(socket: &str, args: &[&str]) -> String {
    let mut command = Command::new("tmux");
    command.args(["-L", socket, "-f", "/dev/null"]).args(args);
    // Independent of the environment of the test.
    command
        .env_remove("TMUX")
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8");
    let output = command.env_remove("NO_COLOR").output();
    let output = output.unwrap_or_else(|e| panic!("tmux, which tools/prereq.sh installs: {e}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn live(scratch: &Scratch, more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tacho-live");
    let tape = scratch.tape();
    format!("{program} --tape shop={} --tz UTC {more}", tape.display())
}

impl Terminal {
    /// Runs a shell command on 80 × 24.
    fn new(name: &str, command: &str) -> Terminal {
        let socket = format!("tacho-live-{name}-{}", std::process::id());
        let size = ["-x", "80", "-y", "24"];
        let start = [&["-u", "new-session", "-d"][..], &size, &[command]].concat();
        tmux(&socket, &start);
        Terminal { socket }
    }

    fn tmux(&self, args: &[&str]) -> String {
        tmux(&self.socket, args)
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"][..], keys].concat());
    }

    /// The screen; wrapped lines are joined.
    fn screen(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p", "-J"]);
        let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    fn variable(&self, name: &str) -> String {
        let text = self.tmux(&["display-message", "-p", &format!("#{{{name}}}")]);
        text.trim().to_string()
    }

    /// Polls until the screen shows `what`.
    fn shows(&self, what: &str) -> String {
        until(what, || {
            let screen = self.screen();
            screen
                .contains(what)
                .then_some(screen)
                .ok_or_else(|| self.screen())
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Polls for at most a minute.
fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if begun.elapsed() > Duration::from_secs(60) => {
                panic!("\"{what}\" does not come:\n{seen}")
            }
            Err(_) => sleep(Duration::from_millis(50)),
        }
    }
}

/// A user sees the storm, finds its root with one key, moves in time, and the
/// printed command gives the shown answer.
#[test]
fn an_incident_is_found_and_asked_again_on_the_command_line() {
    let scratch = Scratch::shop("incident");
    let command = format!("sh -c '{}; echo ended $?; cat'", live(&scratch, ""));
    let terminal = Terminal::new("incident", &command);
    let screen = terminal.shows("58.4");
    assert!(
        screen.contains("Lock") && screen.contains("not recorded"),
        "{screen}"
    );
    terminal.keys(&["b"]);
    let screen = terminal.shows(&format!("\n{ROOT} "));
    assert!(screen.contains("locks at 00:05:39"), "{screen}");
    let head = screen.lines().find(|line| line.starts_with(ROOT)).unwrap();
    assert!(head.contains(" 40 "), "{head}");
    // Leaves the list, goes to the marker before the storm, then one column
    // further.
    terminal.keys(&["Escape"]);
    terminal.shows("wait classes");
    // Nothing was recorded before this history.
    terminal.keys(&["c"]);
    terminal.shows("nothing to compare with");
    terminal.keys(&["Escape"]);
    terminal.shows("wait classes");
    terminal.keys(&["M"]);
    terminal.shows("gap: writer was slow");
    terminal.keys(&["M"]);
    terminal.shows("settings changed: work_mem");
    terminal.keys(&["Right"]);
    terminal.shows("00:05:00–00:05:10");
    let screen = terminal.shows("40.00");
    let lock = screen
        .lines()
        .find(|line| line.trim_end().ends_with(" Lock"))
        .unwrap();
    assert!(lock.trim_start().starts_with("40.00"), "{lock}");
    terminal.keys(&["w"]);
    terminal.shows("Both are printed");
    terminal.keys(&["Q"]);
    let screen = terminal.shows("ended 0");
    let line = screen.lines().find(|l| l.starts_with("tacho ")).unwrap();
    let address = screen.lines().find(|l| l.starts_with("http://")).unwrap();
    assert!(address.contains("tab=waits") && address.contains("since=2026-01-01T00:05:00Z"));
    let words: Vec<&str> = line.split(' ').skip(1).chain(["--json"]).collect();
    let output = tacho(&words);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows[0]["key"], "Lock");
    assert_eq!(rows[0]["avg_aas"].as_f64(), Some(40.0));
}

#[test]
fn the_view_follows_the_recording_and_reports_a_missing_directory() {
    let scratch = Scratch::shop("follows");
    let terminal = Terminal::new("follows", &live(&scratch, "--ascii"));
    terminal.shows("-00:10:00 UTC");
    scratch.append();
    terminal.shows("-00:11:00 UTC");
    let away = scratch.0.join("away");
    std::fs::rename(scratch.tape(), &away).unwrap();
    terminal.shows("Retrying every second.");
    std::fs::rename(&away, scratch.tape()).unwrap();
    terminal.shows("-00:11:00 UTC");
    terminal.shows("wait classes 2");
}

/// The seconds of an age after a text on the screen.
fn seconds_after(screen: &str, what: &str) -> Option<u64> {
    let rest = screen.split(what).nth(1)?;
    rest.split('s').next()?.parse().ok()
}

#[test]
fn the_age_of_the_last_tick_is_counted_up() {
    let scratch = Scratch::shop("ages");
    let path = scratch.0.join("now.csv");
    let head = "time,pid,state,cpu,backend_type\n".to_string();
    let at = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(10);
    let row = format!("{at},1,active,running,client backend\n");
    std::fs::write(&path, head + &row).unwrap();
    let (path, tape) = (path.display(), scratch.tape());
    let import = ["import", "sessions", &path.to_string(), "--append"];
    let tape = ["--tape", &tape.display().to_string()].map(str::to_string);
    let tape: Vec<&str> = tape.iter().map(String::as_str).collect();
    let output = tacho(&[&import[..], &tape].concat());
    assert!(output.status.success(), "{output:?}");
    let terminal = Terminal::new("ages", &live(&scratch, "--ascii"));
    let age = |least: u64| {
        until("no tick for", || {
            let screen = terminal.screen();
            let age = seconds_after(&screen, "no tick for ");
            age.filter(|age| *age >= least).ok_or(screen)
        })
    };
    let first = age(1);
    age(first + 2);
}

#[test]
fn tab_goes_to_the_next_server_and_w_names_it() {
    let scratch = Scratch::shop("servers");
    let copy = scratch.0.join("copy");
    let mut copied = Command::new("cp");
    copied.arg("-r").arg(scratch.tape()).arg(&copy);
    assert!(copied.status().unwrap().success());
    let more = format!("--tape spare={} --server shop", copy.display());
    let terminal = Terminal::new("servers", &live(&scratch, &more));
    assert!(terminal.shows("wait classes 2").starts_with("shop "));
    terminal.keys(&["Tab"]);
    until("spare", || {
        let screen = terminal.screen();
        let is_there = screen.starts_with("spare ") && screen.contains("58.4");
        if is_there { Ok(()) } else { Err(screen) }
    });
    terminal.keys(&["w"]);
    terminal.shows("server=spare");
    let screen = terminal.screen().replace('\n', "");
    assert!(
        screen.contains(&format!("--tape {}", copy.display())),
        "{screen}"
    );
}

#[test]
fn texts_of_clients_are_not_obeyed() {
    let scratch = Scratch::shop("hostile");
    let terminal = Terminal::new("hostile", &live(&scratch, ""));
    let title = terminal.variable("pane_title");
    terminal.keys(&["q"]);
    terminal.shows("select '");
    terminal.keys(&["Down", "Down", "y"]);
    terminal.shows("copied: select");
    assert_eq!(terminal.variable("pane_title"), title);
    assert_ne!(title, "mine");
}

#[test]
fn the_view_follows_the_size_of_the_window_and_reports_a_small_one() {
    let scratch = Scratch::shop("resize");
    let terminal = Terminal::new("resize", &live(&scratch, ""));
    terminal.shows("1 column = 10s");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    let filled = |line: &str| line.ends_with("1 column = 10s") && line.chars().count() == 120;
    until("120 columns", || {
        let screen = terminal.screen();
        let there = screen.lines().any(filled);
        if there { Ok(()) } else { Err(screen) }
    });
    terminal.tmux(&["resize-window", "-x", "30", "-y", "10"]);
    terminal.shows("too small: needs 40 x 14");
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.shows("wait classes");
}

#[test]
fn the_program_is_suspended_and_goes_on() {
    let scratch = Scratch::shop("suspend");
    let terminal = Terminal::new("suspend", "env PS1=ready: ENV= sh -i");
    terminal.shows("ready:");
    terminal.keys(&[&live(&scratch, "--ascii"), "Enter"]);
    terminal.shows("wait classes");
    assert_eq!(terminal.variable("alternate_on"), "1");
    terminal.keys(&["C-z"]);
    terminal.shows("Stopped");
    assert_eq!(terminal.variable("alternate_on"), "0");
    terminal.keys(&["fg", "Enter"]);
    terminal.shows("wait classes");
    terminal.keys(&["q"]);
    terminal.shows("mean ms");
    terminal.keys(&["C-c"]);
    terminal.shows("ready:");
    assert_eq!(terminal.variable("alternate_on"), "0");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let scratch = Scratch::shop("signal");
    let pid_file = scratch.0.join("pid");
    // The shell prints its PID and replaces itself with the program.
    let script = format!(
        "sh -c 'sh -c \"echo \\$\\$ >{}; exec {}\"; echo ended $?; stty -a; cat'",
        pid_file.display(),
        live(&scratch, "")
    );
    let terminal = Terminal::new("signal", &script);
    terminal.shows("wait classes");
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let killed = Command::new("kill").args(["-TERM", pid.trim()]).status();
    assert!(killed.unwrap().success());
    let screen = terminal.shows("-extproc").replace('\n', " ");
    assert!(screen.contains("ended 0"), "{screen}");
    assert!(
        screen.contains(" icanon") && screen.contains(" echo "),
        "{screen}"
    );
    assert_eq!(terminal.variable("alternate_on"), "0");
}

#[test]
fn the_program_ends_with_its_terminal() {
    let scratch = Scratch::shop("lost");
    // Also if no signal comes: a shell that ignores hangups.
    for (name, before) in [("lost", ""), ("ignored", "trap \"\" HUP; ")] {
        let command = format!("sh -c '{before}exec {}'", live(&scratch, ""));
        let terminal = Terminal::new(name, &command);
        terminal.shows("wait classes");
        let pid = terminal.variable("pane_pid");
        drop(terminal);
        let process = std::path::PathBuf::from(format!("/proc/{pid}"));
        until("the end", || match process.exists() {
            false => Ok(()),
            true => Err(pid.clone()),
        });
    }
}

#[test]
fn the_program_reports_a_missing_terminal() {
    let scratch = Scratch::shop("none");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-live"));
    let output = command.arg("--tape").arg(scratch.tape()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: standard input and output must be a terminal\n\
         hint: In scripts, use tacho top, tacho timeline and others.\n"
    );
}
