//! Passwords printed by a command, such as tokens of cloud providers, which are
//! valid for minutes.

use crate::connection::Limit;
use crate::error::{Error, Result};
use rustix::process::{Pid, Signal};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Maximum length of a password in bytes: tokens of cloud providers have some thousand.
const MOST_BYTES: u64 = 1 << 16;
/// Interval of checks whether a command has ended after its output.
const TURN: Duration = Duration::from_millis(2);

/// Runs a command in the shell and returns the first line it prints. Ends the command if time is
/// up, or if the call was cancelled.
pub(crate) fn from_command(command: &str, limit: &Limit<'_>) -> Result<String> {
    let failed = |what: String| Error::new("38000", "password command failed").detail(what);
    let mut child = Command::new("sh")
        .args(["-c", command])
        // The commands of a pipe end with the shell.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(format!("The command could not be started: {e}.")))?;
    let stdout_text = child.stdout.take().map(in_background).transpose();
    let stderr_text = child.stderr.take().map(in_background).transpose();
    let (stdout_text, stderr_text) = match (stdout_text, stderr_text) {
        (Ok(stdout_text), Ok(stderr_text)) => (stdout_text, stderr_text),
        (Err(error), _) | (_, Err(error)) => {
            end(&mut child);
            return Err(failed(format!("A thread could not be started: {error}.")));
        }
    };
    let stdout_text =
        stdout_text.map_or(Ok(Vec::new()), |stdout_text| received(&stdout_text, limit));
    let ended = stdout_text.and_then(|stdout_text| Ok((stdout_text, ended(&mut child, limit)?)));
    let (stdout_text, status) = match ended {
        Ok((stdout_text, status)) => (stdout_text, status.map_err(|e| failed(format!("{e}.")))?),
        Err(error) => {
            end(&mut child);
            let what = format!(
                "The command did not end within {} s.",
                limit.time().as_secs()
            );
            return Err(if limit.is_cancelled() {
                error
            } else {
                failed(what)
            });
        }
    };
    if !status.success() {
        let text = stderr_text.and_then(|c| received(&c, limit).ok());
        let text = String::from_utf8_lossy(&text.unwrap_or_default())
            .trim()
            .to_string();
        return Err(failed(format!("{status}: {text}")));
    }
    let password = String::from_utf8_lossy(&stdout_text);
    match password.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_string()),
        _ => Err(failed("The command printed nothing.".to_string())),
    }
}

/// Waits for the command's end, which may come long after its output.
fn ended(child: &mut Child, limit: &Limit<'_>) -> Result<std::io::Result<ExitStatus>> {
    loop {
        match child.try_wait().transpose() {
            Some(status) => return Ok(status),
            None => std::thread::sleep(limit.wait()?.min(TURN)),
        }
    }
}

/// Waits for the bytes that a thread reads.
fn received(stdout_text: &Receiver<Vec<u8>>, limit: &Limit<'_>) -> Result<Vec<u8>> {
    loop {
        match stdout_text.recv_timeout(limit.wait()?) {
            Ok(bytes) => return Ok(bytes),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
        }
    }
}

/// Reads to the end, in a thread of its own.
fn in_background(input: impl Read + Send + 'static) -> std::io::Result<Receiver<Vec<u8>>> {
    let (give, take) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let _ = input.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = give.send(bytes);
    })?;
    Ok(take)
}

/// Ends the shell and all commands that it has started.
fn end(child: &mut Child) {
    let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn within(ms: u64, command: &str, cancel: &AtomicBool) -> Result<String> {
        from_command(command, &Limit::within(Duration::from_millis(ms), cancel))
    }

    fn ask(command: &str) -> Result<String> {
        within(20_000, command, &AtomicBool::new(false))
    }

    #[test]
    fn the_first_line_of_a_command_is_the_password() {
        assert_eq!(ask("printf 'se cret\\nmore\\n'"), Ok("se cret".to_string()));
    }

    #[test]
    fn a_password_command_that_fails_hangs_or_prints_nothing_is_reported() {
        let detail = |command: &str| ask(command).unwrap_err().detail.unwrap();
        assert_eq!(
            detail("echo no token >&2; exit 3"),
            "exit status: 3: no token"
        );
        assert_eq!(detail("true"), "The command printed nothing.");
        let error = within(50, "exec sleep 600", &AtomicBool::new(false)).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("38000", "password command failed")
        );
        assert_eq!(
            error.detail.as_deref(),
            Some("The command did not end within 0 s.")
        );
        let silent = "echo word; exec >&- 2>&-; exec sleep 600";
        let error = within(50, silent, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(
            error.detail.as_deref(),
            Some("The command did not end within 0 s.")
        );
    }

    #[test]
    fn the_commands_of_a_pipe_end_with_the_shell() {
        let file = std::env::temp_dir().join(format!("tacho-password-{}", std::process::id()));
        let command = format!("sleep 600 & echo $! > {}; wait | cat", file.display());
        within(500, &command, &AtomicBool::new(false)).unwrap_err();
        let pid = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        // A process that has ended and was not waited for has no command line.
        let left = || std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        let begun = std::time::Instant::now();
        while !left().is_empty() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(TURN);
        }
        assert_eq!(left(), b"");
    }

    #[test]
    fn a_command_is_ended_when_it_is_cancelled() {
        let error = within(600_000, "exec sleep 600", &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error, Error::new("57014", "canceled"));
    }
}
