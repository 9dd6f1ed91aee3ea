//! Puts and lists objects by commands of the user, in the manner of `archive_command`:
//! `%f` is the path of a file, `%n` the name of an object or of a directory of
//! objects, `%%` a percent sign.

use crate::limits::Limits;
use crate::place::{Place, Result};
use crate::scratch::TempFile;
use rustix::process::{Pid, Signal, kill_process_group};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
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

/// Maximum number of directories whose names are known: enough for all tables of some days.
const DIRECTORIES: usize = 64;

/// Commands that put an object and list a directory.
pub struct Commands {
    put: String,
    list: String,
    limits: Limits,
    /// Names of the objects in each directory, as they were before the next put.
    known: RefCell<HashMap<String, HashSet<String>>>,
    /// Names of objects that this process has failed to put. The object in the list may be a part of
    /// one of them.
    failed: RefCell<HashSet<String>>,
}

impl Commands {
    /// `put` puts file `%f` as object `%n`, unless there is one. `list` prints the
    /// names of the objects in directory `%n`, a line each.
    ///
    /// # Errors
    /// A command lacks its escape.
    pub fn new(put: &str, list: &str, limits: Limits) -> Result<Commands> {
        // A command may contain secrets, so messages name its option.
        let lacks = |option: &str, command: &str, escape: &str| match command
            .replace("%%", "")
            .contains(escape)
        {
            true => Ok(()),
            false => Err(format!("{option} does not contain {escape}")),
        };
        lacks("--command", put, "%f")?;
        lacks("--command", put, "%n")?;
        lacks("--list", list, "%n")?;
        Ok(Commands {
            put: put.to_string(),
            list: list.to_string(),
            limits,
            known: RefCell::default(),
            failed: RefCell::default(),
        })
    }

    /// Puts an object; returns how the command ended.
    ///
    /// # Errors
    /// The command was terminated, or could not be run.
    fn put(&self, file: &Path, name: &str) -> Result<ExitStatus> {
        let command = filled(&self.put, &file.to_string_lossy(), name);
        let done = self.run(&command, &mut |_| ());
        done.map_err(|error| put_failed(&error, name))
    }

    /// True if the directory has an object of this name. Lists the directory unless its names are
    /// known.
    fn is_there(&self, directory: &str, last: &str) -> Result<bool> {
        if let Some(names) = self.known.borrow().get(directory) {
            return Ok(names.contains(last));
        }
        let mut names = HashSet::new();
        self.list(directory, &mut |name| {
            names.insert(name.to_string());
        })?;
        let is_there = names.contains(last);
        let mut known = self.known.borrow_mut();
        if known.len() >= DIRECTORIES {
            known.clear();
        }
        known.insert(directory.to_string(), names);
        Ok(is_there)
    }

    /// Runs a command and ends it if necessary. Calls `each` with every line that
    /// it prints.
    fn run(&self, command: &str, each: &mut dyn FnMut(&str)) -> Result<ExitStatus> {
        let begin = Instant::now();
        if let Some(why) = self.limits.expired(begin) {
            return Err(format!("command was not started: {why}"));
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
        done
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

/// A message about the command that puts an object. The command prints its own reason.
fn put_failed(error: &str, name: &str) -> String {
    format!("{error}\nDETAIL:  It was --command for object \"{name}\".")
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
    /// A command that fails has put nothing, or a part of the object. An object is whole if it was
    /// listed before the first put of this process.
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
        let was_there = self.is_there(directory, last)?;
        let temporary = std::env::temp_dir();
        let file = TempFile::new(&temporary, &bytes);
        let file = file.map_err(|e| {
            let temporary = temporary.display();
            format!("could not write a file in directory \"{temporary}\": {e}")
        })?;
        match self.put(file.path(), name) {
            Ok(status) if status.success() => {
                let mut known = self.known.borrow_mut();
                let names = known.entry(directory.to_string()).or_default();
                names.insert(last.to_string());
                self.failed.borrow_mut().remove(name);
                Ok(true)
            }
            Ok(_) if was_there && !self.failed.borrow().contains(name) => Ok(false),
            // Another program may have put the object meanwhile: the next program finds it.
            failed => {
                self.known.borrow_mut().remove(directory);
                self.failed.borrow_mut().insert(name.to_string());
                let status = failed?;
                Err(put_failed(&format!("command failed: {status}"), name))
            }
        }
    }

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        let command = filled(&self.list, "", directory);
        let done = self.run(&command, &mut |line| {
            let name = line.rsplit('/').next().unwrap_or(line);
            each(name.trim());
        });
        let failed =
            |error: &str| format!("{error}\nDETAIL:  It was --list for directory \"{directory}\".");
        match done {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(&format!("command failed: {status}"))),
            Err(error) => Err(failed(&error)),
        }
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
            wanted("--command does not contain %n")
        );
        assert_eq!(
            refused("cp %%f %n", "ls %n"),
            wanted("--command does not contain %f")
        );
        assert_eq!(
            refused("cp %f %n", "ls"),
            wanted("--list does not contain %n")
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
        place.knows_nothing_in("ticks");
        let error = place.put_new("ticks/x", Vec::new()).unwrap_err();
        let wanted = "command was terminated: timed out after 1 s\nDETAIL:  It was --command for object \"ticks/x\".";
        assert_eq!(error, wanted);
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

    impl Commands {
        /// The short limit of a test need not suffice for a listing.
        fn knows_nothing_in(&self, directory: &str) {
            let mut known = self.known.borrow_mut();
            known.insert(directory.to_string(), HashSet::new());
        }
    }

    /// Commands for a directory, whose put runs `after` with the target in `$t`.
    fn commands(root: &Path, after: &str, limits: Limits) -> Commands {
        let root = root.display();
        let put = format!("t={root}/%n; f=%f; mkdir -p \"${{t%/*}}\"; {after}");
        let list = format!("if [ -d {root}/%n ]; then ls {root}/%n; fi");
        Commands::new(&put, &list, limits).unwrap()
    }

    #[test]
    fn an_object_that_a_failed_command_has_left_is_no_object() {
        let root = tempfile::tempdir().unwrap();
        let half = "head -c 3 \"$f\" > \"$t\"; exit 1";
        let place = commands(root.path(), half, Limits::default());
        let wanted =
            "command failed: exit status: 1\nDETAIL:  It was --command for object \"ticks/x\".";
        // The second put finds what the first one has left.
        for _ in 0..2 {
            let put = place.put_new("ticks/x", b"whole".to_vec());
            assert_eq!(put, Err(wanted.to_string()));
            assert_eq!(std::fs::read(root.path().join("ticks/x")).unwrap(), b"who");
        }
    }

    #[test]
    fn an_object_of_a_command_that_was_ended_is_no_object() {
        let root = tempfile::tempdir().unwrap();
        let limits = Limits {
            timeout: Some(Duration::from_secs(1)),
            ..Limits::default()
        };
        let hangs = "head -c 3 \"$f\" > \"$t\"; sleep 1000";
        let place = commands(root.path(), hangs, limits);
        place.knows_nothing_in("ticks");
        let error = place.put_new("ticks/x", b"whole".to_vec()).unwrap_err();
        let wanted = "command was terminated: timed out after 1 s\n";
        assert!(error.starts_with(wanted), "{error}");
    }

    #[test]
    fn an_object_that_was_there_before_is_not_put() {
        let root = tempfile::tempdir().unwrap();
        let once = "[ ! -e \"$t\" ] && cp \"$f\" \"$t\"";
        let put = |place: &Commands, name| place.put_new(name, b"whole".to_vec());
        let first = commands(root.path(), once, Limits::default());
        assert_eq!(put(&first, "ticks/x"), Ok(true));
        assert_eq!(put(&first, "ticks/x"), Ok(false));
        let second = commands(root.path(), once, Limits::default());
        assert_eq!(put(&second, "ticks/x"), Ok(false));
        // Another program puts an object meanwhile. This one cannot tell it from a part that it has left
        // itself, so only the next program finds it.
        std::fs::write(root.path().join("ticks/y"), "whole").unwrap();
        assert!(put(&second, "ticks/y").is_err());
        assert!(put(&second, "ticks/y").is_err());
        let third = commands(root.path(), once, Limits::default());
        assert_eq!(put(&third, "ticks/y"), Ok(false));
    }
}
