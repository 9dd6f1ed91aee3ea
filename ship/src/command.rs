//! Puts and lists objects by commands of the user, in the manner of `archive_command`:
//! `%f` is the path of a file, `%n` the name of an object or of a directory of
//! objects, `%%` a percent sign.

use crate::limits::Limits;
use crate::place::{Place, Result};
use crate::scratch::TempFile;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a running command is checked for its end and its limits.
const TURN: Duration = Duration::from_millis(20);
/// Time for a command to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum length of a line in bytes: a longer one cannot be the name of an object.
const TOO_LONG: u64 = 8 << 10;
/// Maximum number of lines that are read before `each` takes them.
const AHEAD: usize = 64;

/// Commands that put an object and list a directory.
pub struct Commands {
    put: String,
    list: String,
    limits: Limits,
}

impl Commands {
    /// `put` puts file `%f` as object `%n`, unless there is one. `list` prints the
    /// names of the objects in directory `%n`, a line each.
    ///
    /// # Errors
    /// A command lacks its escape.
    pub fn new(put: &str, list: &str, limits: Limits) -> Result<Commands> {
        let lacks = |command: &str, escape: &str| match command.replace("%%", "").contains(escape) {
            true => Ok(()),
            false => Err(format!("command \"{command}\" does not contain {escape}")),
        };
        lacks(put, "%f")?;
        lacks(put, "%n")?;
        lacks(list, "%n")?;
        Ok(Commands {
            put: put.to_string(),
            list: list.to_string(),
            limits,
        })
    }

    fn put(&self, file: &Path, name: &str) -> Result<()> {
        let command = filled(&self.put, &file.to_string_lossy(), name);
        self.run(&command, &mut |_| ())
    }

    /// Runs a command and ends it if necessary. Calls `each` with every line that
    /// it prints.
    fn run(&self, command: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        let begin = Instant::now();
        let told = |error: String| format!("{error}\nDETAIL:  The command was: {command}");
        if let Some(why) = self.limits.expired(begin) {
            return Err(told(format!("command was not started: {why}")));
        }
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("could not run \"sh\": {e}"))?;
        let done = match reader(&mut child) {
            Ok(printed) => self.wait(&mut child, &printed, begin, each),
            Err(error) => Err(format!("could not start a thread: {error}")),
        };
        if done.is_err() {
            end(&mut child);
        }
        let status = done.map_err(told)?;
        match status.success() {
            true => Ok(()),
            false => Err(told(format!("command failed: {status}"))),
        }
    }

    /// Waits until a command has ended and its whole output is read.
    fn wait(
        &self,
        child: &mut Child,
        printed: &Receiver<String>,
        begin: Instant,
        each: &mut dyn FnMut(&str),
    ) -> Result<ExitStatus> {
        loop {
            match printed.recv_timeout(TURN) {
                Ok(line) => each(&line),
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.try_wait();
                    let status =
                        status.map_err(|e| format!("could not wait for a command: {e}"))?;
                    if let Some(status) = status {
                        return Ok(status);
                    }
                    thread::sleep(TURN);
                }
            }
            if let Some(why) = self.limits.expired(begin) {
                return Err(format!("command was terminated: {why}"));
            }
        }
    }
}

/// The command with `%f` and `%n` replaced by these values, quoted for the shell.
fn filled(command: &str, file: &str, name: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut filled = String::with_capacity(command.len() + file.len() + name.len());
    let mut rest = command;
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        let (value, after) = match after.as_bytes().first() {
            Some(b'f') => (quoted(file), &after[1..]),
            Some(b'n') => (quoted(name), &after[1..]),
            Some(b'%') => ("%".to_string(), &after[1..]),
            _ => ("%".to_string(), after),
        };
        filled.push_str(&value);
        rest = after;
    }
    filled + rest
}

/// The lines that a command prints. The command blocks until they are taken.
fn reader(child: &mut Child) -> io::Result<Receiver<String>> {
    let (lines, printed) = sync_channel(AHEAD);
    if let Some(output) = child.stdout.take() {
        thread::Builder::new().spawn(move || {
            // An error means that the receiver is gone or the pipe is broken: no more lines are
            // wanted.
            let _ = read_lines(output, |line| lines.send(line).map_err(io::Error::other));
        })?;
    }
    Ok(printed)
}

/// Calls `each` with every line. A line that is too long is skipped without being
/// held in memory.
fn read_lines(
    printed: impl Read,
    mut each: impl FnMut(String) -> io::Result<()>,
) -> io::Result<()> {
    let mut printed = BufReader::new(printed);
    let mut is_inside = false;
    loop {
        let mut line = Vec::new();
        let mut read = printed.by_ref().take(TOO_LONG);
        if read.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_ended = line.ends_with(b"\n");
        let is_whole = !is_inside && (is_ended || (line.len() as u64) < TOO_LONG);
        is_inside = !is_ended;
        if is_whole {
            each(String::from_utf8_lossy(&line).into_owned())?;
        }
    }
}

/// Ends a command and its children: SIGTERM first, SIGKILL later.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let begin = Instant::now();
    while begin.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(TURN);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

impl Place for Commands {
    /// If the command fails, perhaps because the object exists, lists the directory to
    /// find out.
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let directory = std::env::temp_dir();
        let file = TempFile::new(&directory, &bytes);
        let file = file.map_err(|e| {
            let directory = directory.display();
            format!("could not write a file in directory \"{directory}\": {e}")
        })?;
        let Err(error) = self.put(file.path(), name) else {
            return Ok(true);
        };
        if self.limits.must_stop() {
            return Err(error);
        }
        let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
        let mut is_there = false;
        self.list(directory, &mut |known| is_there |= known == last)?;
        match is_there {
            true => Ok(false),
            false => Err(error),
        }
    }

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        self.run(&filled(&self.list, "", directory), &mut |line| {
            let name = line.rsplit('/').next().unwrap_or(line);
            each(name.trim());
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_one_word_for_the_shell() {
        let command = filled("cp %f 100%% %n %x %", "/tmp/a b", "it's");
        assert_eq!(command, r"cp '/tmp/a b' 100% 'it'\''s' %x %");
    }

    #[test]
    fn a_command_without_its_object_is_refused() {
        let refused = |put, list| Commands::new(put, list, Limits::default()).err();
        assert_eq!(refused("cp %f %n", "ls %n"), None);
        let wanted = |text: &str| Some(text.to_string());
        assert_eq!(
            refused("cp %f x", "ls %n"),
            wanted("command \"cp %f x\" does not contain %n")
        );
        assert_eq!(
            refused("cp %%f %n", "ls %n"),
            wanted("command \"cp %%f %n\" does not contain %f")
        );
        assert_eq!(
            refused("cp %f %n", "ls"),
            wanted("command \"ls\" does not contain %n")
        );
    }

    #[test]
    fn lines_come_one_by_one_without_invalid_names() {
        let long = "x".repeat(TOO_LONG as usize);
        let texts = [
            "a\n",
            &format!("{long}\nb\n"),
            &format!("{long}{long}y\n"),
            "\n",
            &long[1..],
        ];
        let mut told = Vec::new();
        let each = |line| {
            told.push(line);
            Ok(())
        };
        read_lines(texts.concat().as_bytes(), each).unwrap();
        assert_eq!(told, ["a\n", "b\n", "\n", &long[1..]]);
    }

    #[test]
    fn names_come_before_the_listing_command_has_ended() {
        let root = tempfile::tempdir().unwrap();
        let told = root.path().join("told");
        let list = format!(
            "echo %n/first; until [ -e {} ]; do sleep 0.05; done; echo %n/second",
            told.display()
        );
        let limits = Limits {
            timeout: Some(Duration::from_secs(60)),
            ..Limits::default()
        };
        let place = Commands::new("cp %f %n", &list, limits).unwrap();
        let mut names = Vec::new();
        let listed = place.list("ticks/day=x", &mut |name| {
            names.push(name.to_string());
            std::fs::write(&told, "").unwrap();
        });
        assert_eq!(listed, Ok(()));
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn a_slow_command_is_ended_with_its_children() {
        let root = tempfile::tempdir().unwrap();
        let begun = root.path().join("begun");
        let limits = Limits {
            timeout: Some(Duration::from_secs(1)),
            ..Limits::default()
        };
        // The command's child inherits the pipe, and both ignore SIGTERM.
        let put = format!(
            "trap '' TERM; sleep 1000 & echo $! > {}; wait # %f %n",
            begun.display()
        );
        let place = Commands::new(&put, "true %n", limits).unwrap();
        let error = place.put_new("ticks/x", Vec::new()).unwrap_err();
        let wanted = "command was terminated: timed out after 1 s\nDETAIL:  The command was: trap";
        assert!(error.starts_with(wanted), "{error}");
        let pid = std::fs::read_to_string(&begun).unwrap();
        let state = format!("/proc/{}/stat", pid.trim());
        let is_there = || {
            let stat = std::fs::read_to_string(&state).unwrap_or_default();
            stat.contains("(sleep)") && !stat.contains("(sleep) Z")
        };
        for _ in 0..600 {
            if !is_there() {
                return;
            }
            thread::sleep(TURN * 5);
        }
        panic!("process {pid} is left");
    }
}
