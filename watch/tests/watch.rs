//! Runs `tacho-watch` on histories that `tacho import` has made. A real HTTP server takes the
//! messages of `tacho-watch`.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::History;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// A server of HTTP that answers with a status and passes on each path and body.
fn server(status: &'static str) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let path = line.split(' ').nth(1).unwrap().to_string();
            let mut length = 0;
            while line.trim() != "" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            if sender
                .send((path, serde_json::from_slice(&body).unwrap()))
                .is_err()
            {
                return;
            }
        }
    });
    (address, receiver)
}

fn received(receiver: &Receiver<(String, Value)>) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    while let Ok(one) = receiver.recv_timeout(Duration::from_millis(200)) {
        all.push(one);
    }
    all
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn file(path: &Path, text: &str) -> String {
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_queue_gives_one_alarm_and_one_end() {
    let mut history = History::begin(now() - 400);
    history.add(330, 1, 0);
    let (address, taken) = server("200 OK");
    let config = format!(
        "page = 'http://tacho.example'\n[send]\nwebhook = '{address}/hook'\nalertmanager = '{address}/api/v2/alerts'\n"
    );
    let config = file(&history.path("watch.toml"), &config);
    let state = history.path("state").display().to_string();
    let args = ["--config", &config, "--state", &state];
    assert_eq!(
        history.once(&args),
        (0, "TACHO OK - 1 server, no alarm | alarms=0".into())
    );
    assert!(received(&taken).is_empty());

    history.add(40, 1, 5);
    let (code, line) = history.once(&args);
    assert_eq!(code, 2, "{line}");
    assert!(
        line.starts_with("TACHO CRITICAL - shop queue: others wait for 3"),
        "{line}"
    );
    assert!(line.contains(" behind process 500 | alarms=1"), "{line}");
    let messages = received(&taken);
    assert_eq!(messages.len(), 2, "{messages:?}");
    let (path, hook) = &messages[0];
    assert_eq!(path, "/hook");
    assert_eq!(
        (hook["status"].as_str(), hook["rule"].as_str()),
        (Some("alarm"), Some("queue"))
    );
    assert_eq!(hook["object"], "process 500");
    assert!(
        hook["findings"][0].as_str().unwrap().contains("500"),
        "{hook}"
    );
    let page = hook["page"].as_str().unwrap();
    assert!(
        page.starts_with("http://tacho.example/?server=shop&since="),
        "{page}"
    );
    assert!(page.ends_with("&tab=locks"), "{page}");
    let (path, alerts) = &messages[1];
    assert_eq!(path, "/api/v2/alerts");
    assert_eq!(alerts[0]["labels"]["alertname"], "tacho_queue");

    // the alarm goes on: only the alertmanager, which forgets, hears of it
    assert_eq!(history.once(&args).0, 2);
    let again = received(&taken);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].1[0]["labels"], alerts[0]["labels"]);
    assert_eq!(
        again[0].1[0]["annotations"]["description"],
        alerts[0]["annotations"]["description"]
    );

    history.add(10, 1, 0);
    assert_eq!(history.once(&args).0, 0);
    let over = received(&taken);
    assert_eq!(over.len(), 2, "{over:?}");
    assert_eq!(over[0].1["status"], "over");
    assert!(over[1].1[0]["endsAt"].is_string());
    assert_eq!(history.once(&args).0, 0);
    assert!(received(&taken).is_empty());
}

#[test]
fn a_message_that_was_not_taken_is_sent_again() {
    let mut history = History::begin(now() - 200);
    history.add(150, 1, 3);
    let (refusing, _refused) = server("503 Service Unavailable");
    let (taking, taken) = server("204 No Content");
    let state = history.path("state").display().to_string();
    let with = |address: &str| {
        file(
            &history.path("watch.toml"),
            &format!("[send]\nwebhook = '{address}/'\n"),
        )
    };
    let (code, line) = history.once(&["--config", &with(&refusing), "--state", &state]);
    assert_eq!(code, 2);
    assert!(line.contains("could not send to webhook: "), "{line}");
    let (code, line) = history.once(&["--config", &with(&taking), "--state", &state]);
    assert!(code == 2 && !line.contains("could not"), "{line}");
    assert_eq!(received(&taken)[0].1["status"], "alarm");
    history.once(&["--config", &with(&taking), "--state", &state]);
    assert!(received(&taken).is_empty());
}

#[test]
fn a_command_reads_the_alarm_from_standard_input() {
    let mut history = History::begin(now() - 200);
    history.add(150, 1, 3);
    let out = history.path("out").display().to_string();
    let script = format!("cat >>{out}; echo $TACHO_STATUS $TACHO_RULE >>{out}");
    let config = format!("[send]\ncommand = ['sh', '-c', '{script}']\n");
    let config = file(&history.path("watch.toml"), &config);
    let state = history.path("state").display().to_string();
    history.once(&["--config", &config, "--state", &state]);
    let text = std::fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "alarm queue");
    let message: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(message["server"], "shop");
}

/// The command of the unit for systemd, with the files of a history, not of the system.
fn command_of_unit(history: &History, config: &str, state: &str) -> Vec<String> {
    let unit = include_str!("../tacho-watch.service");
    let mut lines = unit.lines();
    let command = lines.find_map(|line| line.strip_prefix("ExecStart="));
    let places = format!("--tape {}", history.path("shop").display());
    let command = command.unwrap().replace("$TACHO_PLACES", &places);
    let command = command.replace("/etc/tacho/watch.toml", config);
    let command = command.replace("%S/tacho-watch/state", state);
    command.split(' ').map(str::to_string).collect()
}

#[test]
fn the_command_of_the_unit_watches_and_sends_until_it_is_ended() {
    let mut history = History::begin(now() - 200);
    history.add(150, 1, 3);
    let out = history.path("out");
    let script = format!("cat >>{}", out.display());
    let config = format!("every = '1s'\n[send]\ncommand = ['sh', '-c', '{script}']\n");
    let config = file(&history.path("watch.toml"), &config);
    let state = history.path("state").display().to_string();
    let command = command_of_unit(&history, &config, &state);
    assert_eq!(command[0], "/usr/local/bin/tacho-watch");
    let mut program = Command::new(env!("CARGO_BIN_EXE_tacho-watch"));
    let mut child = program.args(&command[1..]).spawn().unwrap();
    let is_sent = || std::fs::read_to_string(&out).is_ok_and(|text| text.ends_with('\n'));
    while !is_sent() {
        assert!(child.try_wait().unwrap().is_none(), "{command:?} has ended");
        thread::sleep(Duration::from_millis(50));
    }
    let message: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(
        (&message["status"], &message["rule"]),
        (&"alarm".into(), &"queue".into())
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = std::fs::read_to_string(&state).unwrap();
    assert!(kept.contains("process 500"), "{kept}");
}

#[test]
fn a_silent_recorder_is_an_alarm_and_no_other_rule_is_measured() {
    let mut history = History::begin(now() - 700);
    history.add(500, 1, 5);
    let (code, line) = history.once(&[]);
    assert_eq!(code, 2);
    assert!(
        line.starts_with("TACHO CRITICAL - shop recorder: nothing was recorded for 2"),
        "{line}"
    );
    assert!(line.ends_with("alarms=1"), "{line}");
    std::fs::remove_dir_all(history.path("shop")).unwrap();
    let (code, line) = history.once(&[]);
    assert_eq!(code, 2);
    assert!(
        line.contains("nothing can be read: the history is missing"),
        "{line}"
    );
}

#[test]
fn a_history_that_vanished_is_an_alarm_in_the_next_run_too() {
    let mut history = History::begin(now() - 200);
    history.add(190, 1, 0);
    let root = history.path("root");
    for name in ["a", "b"] {
        std::fs::create_dir_all(&root).unwrap();
        let copy = Command::new("cp")
            .arg("-r")
            .args([history.path("shop"), root.join(name)])
            .status();
        assert!(copy.unwrap().success());
    }
    let root = root.display().to_string();
    let state = history.path("state").display().to_string();
    let args = ["--root", &root, "--state", &state];
    let all_well = (0, "TACHO OK - 3 servers, no alarm | alarms=0".to_string());
    assert_eq!(history.once(&args), all_well);
    std::fs::rename(history.path("root/b"), history.path("b")).unwrap();
    for _ in 0..2 {
        let line =
            "TACHO CRITICAL - b recorder: nothing can be read: the history is missing | alarms=1";
        assert_eq!(history.once(&args), (2, line.into()));
    }
    std::fs::rename(history.path("b"), history.path("root/b")).unwrap();
    assert_eq!(history.once(&args), all_well);
}

#[test]
fn alarms_of_the_past_follow_from_the_rules() {
    const BEGIN: i64 = 1_767_225_600;
    let mut history = History::begin(BEGIN);
    history.add(600, 2, 0);
    // a peak of a minute is no alarm, a load of five minutes is one
    history.add(60, 9, 0);
    history.add(540, 2, 0);
    history.add(300, 9, 0);
    history.add(600, 2, 0);
    let expected = [
        "2026-01-01T00:20:00Z alarm shop load: 9.0 sessions are active on 4 CPUs",
        "2026-01-01T00:27:00Z over shop load",
    ];
    assert_eq!(history.replayed("", BEGIN + 300), expected);
    assert!(
        history
            .replayed("[rules.load]\nabove = 3.0\n", BEGIN + 300)
            .is_empty()
    );
    assert!(
        history
            .replayed("[[mute]]\nrule = 'load'\n", BEGIN + 300)
            .is_empty()
    );
    let off = "[rules.load]\non = false\n[rules.queue]\nabove = 5\n";
    assert!(history.replayed(off, BEGIN + 300).is_empty());
}

#[test]
fn between_both_limits_an_alarm_goes_on_and_none_begins() {
    const BEGIN: i64 = 1_767_225_600;
    let mut history = History::begin(BEGIN);
    // 3 sessions on 4 CPUs are between 0.5 and 1.0
    for (seconds, busy) in [(600, 3), (300, 9), (600, 3), (600, 1)] {
        history.add(seconds, busy, 0);
    }
    let expected = [
        "2026-01-01T00:10:00Z alarm shop load: 9.0 sessions are active on 4 CPUs",
        "2026-01-01T00:27:00Z over shop load",
    ];
    let apart = "[rules.load]\nclear = 0.5\n";
    assert_eq!(history.replayed(apart, BEGIN + 300), expected);
    let near = "[rules.load]\nclear = 0.8\n";
    let over = history.replayed(near, BEGIN + 300).pop().unwrap();
    assert_eq!(over, "2026-01-01T00:17:00Z over shop load");
}

#[test]
fn a_file_system_that_stays_almost_full_is_an_alarm() {
    let begin = now() - 700;
    let mut history = History::begin(begin);
    let mut disks = "time,object,disk_free_bytes,disk_size_bytes\n".to_string();
    let mut server = "time,elapsed_ms\n".to_string();
    for second in (begin..begin + 690).step_by(30) {
        let time = jiff::Timestamp::from_second(second).unwrap();
        writeln!(server, "{time},30000").unwrap();
        writeln!(disks, "{time},data directory,40000000000,1000000000000").unwrap();
        let short = if second == begin { 300 } else { 30_000_000 };
        writeln!(disks, "{time},/mnt/fast,{short},1000000000").unwrap();
        writeln!(disks, "{time},history,60000000000,1000000000000").unwrap();
    }
    let server = file(&history.path("server.csv"), &server);
    let disks = file(&history.path("disks.csv"), &disks);
    let more = [format!("server={server}"), format!("server_disk={disks}")];
    history.add_with(690, 1, 0, &["--with", &more[0], "--with", &more[1]]);
    assert_eq!(
        history.once(&[]),
        (
            2,
            "TACHO CRITICAL - shop disk: the disk of the tablespace /mnt/fast is 97.0 % full: 30 MB are left; \
             shop disk: the disk of the data directory is 96.0 % full: 40.0 GB are left | alarms=2"
                .into()
        )
    );
}

#[test]
fn a_command_line_that_makes_no_sense_is_explained() {
    let history = History::begin(now());
    let config = file(
        &history.path("watch.toml"),
        "[send]\nwebhook = 'http://x/'\n",
    );
    let refused = |args: &[&str]| {
        let output = history.watch(args);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, error) = refused(&["--config", &config]);
    assert_eq!(code, Some(2));
    assert!(error.contains("hint: Give --state FILE"), "{error}");
    let wrong = file(&history.path("wrong.toml"), "[rules.lod]\n");
    let (code, error) = refused(&["--config", &wrong]);
    assert_eq!(code, Some(2));
    assert!(error.contains("there is no rule \"lod\""), "{error}");
    let (code, _) = refused(&["--config", "/nowhere", "--once"]);
    assert_eq!(code, Some(3));
}
