//! Child processes of an experiment. Each has a process group of its own, is
//! never left behind, and Ctrl-C ends the wait for it.

use super::install::Account;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The user pressed Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Set to end the experiment.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that SIGINT, SIGTERM and SIGHUP set.
    pub fn on_signals() -> Result<Self> {
        let stop = Self::default();
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// Fails once the flag is set.
    pub fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Interrupted.into()),
            false => Ok(()),
        }
    }

    /// Sleeps; fails if the flag is set meanwhile.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = std::time::Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// A running child. It is killed with its group when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
    output: File,
    errors: File,
}

/// Lets a command run as another user, as root must for PostgreSQL.
pub fn as_account(command: &mut Command, account: Option<&Account>) {
    if let Some(account) = account {
        command
            .uid(account.uid)
            .gid(account.gid)
            .env("HOME", "/tmp")
            .env("USER", &account.name)
            .env("LOGNAME", &account.name);
    }
}

impl Running {
    /// Starts a command in a group of its own. Its output goes to files, so
    /// that no pipe fills.
    pub fn start(command: &mut Command) -> Result<Self> {
        let output = scratch()?;
        command.stdout(output.try_clone()?);
        Self::spawn(command, output)
    }

    /// Starts a command whose output is read while it runs.
    pub fn piped(command: &mut Command) -> Result<Self> {
        Self::spawn(command.stdout(Stdio::piped()), scratch()?)
    }

    fn spawn(command: &mut Command, output: File) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let errors = scratch()?;
        let child = command
            .stderr(errors.try_clone()?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("could not run \"{name}\""))?;
        Ok(Self {
            child,
            name,
            output,
            errors,
        })
    }

    /// Standard input of the child, if it was piped.
    pub fn input(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Output of the child, if it was piped.
    pub fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for the child's end and returns its output. A failure is an error
    /// with the child's last message.
    pub fn finish(mut self, stop: &Stop) -> Result<String> {
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            stop.sleep(Duration::from_millis(10))?;
        };
        let output = read(&mut self.output)?;
        self.judge(status)?;
        Ok(output)
    }

    /// Fails if the child has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                self.judge(status)?;
                bail!("\"{}\" has ended", self.name)
            }
        }
    }

    /// Interrupts the child as Ctrl-C does, and waits for its end, with any
    /// exit code.
    pub fn interrupt(mut self, stop: &Stop) -> Result<()> {
        self.signal(Signal::INT);
        while self.child.try_wait()?.is_none() {
            stop.sleep(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Ends the child and returns its output so far.
    pub fn end(mut self) -> Result<String> {
        self.kill();
        read(&mut self.output)
    }

    fn judge(&mut self, status: ExitStatus) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        let errors = read(&mut self.errors)?;
        bail!(
            "\"{}\" failed ({status}): {}",
            self.name,
            last_error_line(&errors).unwrap_or("no message")
        )
    }

    fn kill(&mut self) {
        if self.signal(Signal::KILL) {
            let _ = self.child.wait();
        }
    }

    /// Sends a signal to the child's process group; false if the child has
    /// ended.
    fn signal(&mut self, signal: Signal) -> bool {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        match (self.child.try_wait(), pid) {
            (Ok(None), Some(pid)) => {
                let _ = kill_process_group(pid, signal);
                true
            }
            _ => false,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The line of messages with the reason: the last one with an error, otherwise
/// the last one.
pub fn last_error_line(text: &str) -> Option<&str> {
    let said = |line: &&str| {
        ["error:", "ERROR:", "FATAL:"]
            .iter()
            .any(|e| line.contains(e))
    };
    let last = || text.lines().rfind(|line| !line.trim().is_empty());
    text.lines().rfind(said).or_else(last)
}

/// Runs a command to its end and returns its output.
pub fn run(command: &mut Command, stop: &Stop) -> Result<String> {
    Running::start(command.stdin(Stdio::null()))?.finish(stop)
}

/// True if a program of this name is in the PATH.
pub fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A temporary file without a name.
fn scratch() -> Result<File> {
    tempfile::tempfile().context("could not make a temporary file")
}

fn read(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_is_returned_and_a_failure_has_the_last_message() {
        let stop = Stop::default();
        assert_eq!(run(&mut sh("echo yes"), &stop).expect("runs"), "yes\n");
        let error = run(&mut sh("echo a >&2; echo b >&2; exit 3"), &stop).expect_err("fails");
        assert_eq!(format!("{error}"), "\"sh\" failed (exit status: 3): b");
    }

    #[test]
    fn the_telling_line_is_the_error_not_what_follows_it() {
        let text = "NOTICE: a\npsql: error: connection failed: no\n\tIs the server running?\n";
        assert_eq!(
            last_error_line(text),
            Some("psql: error: connection failed: no")
        );
        assert_eq!(last_error_line("a\nb\n\n"), Some("b"));
        assert_eq!(last_error_line("\n"), None);
    }

    #[test]
    fn an_interrupt_ends_the_child_and_its_children() {
        let stop = Stop::default();
        let mut command = sh("sleep 600 & echo $!; wait");
        let mut running = Running::start(command.stdin(Stdio::null())).expect("starts");
        let grandchild = loop {
            let text = read(&mut running.output).expect("reads");
            if let Some(pid) = text.strip_suffix('\n') {
                break pid.to_owned();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        stop.0.store(true, Ordering::Relaxed);
        let error = running.finish(&stop).expect_err("interrupted");
        assert!(error.is::<Interrupted>());
        let state = || std::fs::read_to_string(format!("/proc/{grandchild}/stat"));
        while state().is_ok_and(|s| !s.contains(") Z")) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
