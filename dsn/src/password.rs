//! A password that a program prints, as those of cloud providers do, whose
//! tokens are good for minutes.

use crate::error::{Error, Result};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest password that is taken: tokens of clouds have some thousand bytes.
const MOST_BYTES: u64 = 1 << 16;

/// Runs a command by the shell and takes the first line it prints.
pub(crate) fn of_command(command: &str, patience: Duration) -> Result<String> {
    let failed = |what: String| Error::new("38000", "password command failed").detail(what);
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(format!("It could not be started: {e}.")))?;
    let said = child.stdout.take().map(in_background);
    let complained = child.stderr.take().map(in_background);
    let Some(said) = said.and_then(|said| said.recv_timeout(patience).ok()) else {
        end(&mut child);
        return Err(failed(format!(
            "It did not end within {} s.",
            patience.as_secs()
        )));
    };
    let status = child.wait().map_err(|e| failed(format!("{e}.")))?;
    if !status.success() {
        let text = complained.and_then(|c| c.recv_timeout(patience).ok());
        let text = String::from_utf8_lossy(&text.unwrap_or_default())
            .trim()
            .to_string();
        return Err(failed(format!("{status}: {text}")));
    }
    let password = String::from_utf8_lossy(&said);
    match password.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_string()),
        _ => Err(failed("It printed nothing.".to_string())),
    }
}

/// All that is read until the end, by a thread of its own.
fn in_background(input: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (give, take) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = input.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = give.send(bytes);
    });
    take
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(command: &str) -> Result<String> {
        of_command(command, Duration::from_secs(20))
    }

    #[test]
    fn the_first_line_of_a_command_is_the_password() {
        assert_eq!(ask("printf 'se cret\\nmore\\n'"), Ok("se cret".to_string()));
    }

    #[test]
    fn a_command_that_fails_prints_nothing_or_does_not_end_says_so() {
        let detail = |command: &str| ask(command).unwrap_err().detail.unwrap();
        assert_eq!(
            detail("echo no token >&2; exit 3"),
            "exit status: 3: no token"
        );
        assert_eq!(detail("true"), "It printed nothing.");
        let error = of_command("exec sleep 600", Duration::from_millis(50)).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("38000", "password command failed")
        );
        assert_eq!(error.detail.as_deref(), Some("It did not end within 0 s."));
    }
}
