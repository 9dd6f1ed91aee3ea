//! A place that commands of the user reach, in the manner of
//! `archive_command`: `%f` is the path of a file, `%n` the name of the object or
//! of a directory of objects, `%%` a percent sign.

use crate::place::{Place, Result};
use crate::scratch::Scratch;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Commands that put an object and list a directory.
pub struct Commands {
    put: String,
    list: String,
}

impl Commands {
    /// A command that puts file `%f` as object `%n` unless there is one, and one
    /// that prints the names of the objects in directory `%n`, a line each.
    ///
    /// # Errors
    /// A command lacks what it is to work on.
    pub fn new(put: &str, list: &str) -> Result<Commands> {
        let lacks = |command: &str, escape: &str| match command.replace("%%", "").contains(escape) {
            true => Ok(()),
            false => Err(format!("command \"{command}\" has no {escape}")),
        };
        lacks(put, "%f")?;
        lacks(put, "%n")?;
        lacks(list, "%n")?;
        Ok(Commands {
            put: put.to_string(),
            list: list.to_string(),
        })
    }

    fn put(&self, file: &Path, name: &str) -> Result<()> {
        run(&filled(&self.put, &file.to_string_lossy(), name)).map(|_| ())
    }
}

/// A command with values in the place of what stands for them, which a shell
/// takes as they are.
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

/// Runs a command to its end; what it prints.
fn run(command: &str) -> Result<Output> {
    let done = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("could not run \"sh\": {e}"))?;
    match done.status.success() {
        true => Ok(done),
        false => Err(format!(
            "command failed: {}\nDETAIL:  The command was: {command}",
            done.status
        )),
    }
}

impl Place for Commands {
    /// A command that fails may have found that the object is there.
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let directory = std::env::temp_dir();
        let file = Scratch::new(&directory, &bytes);
        let file = file.map_err(|e| {
            let directory = directory.display();
            format!("could not write a file in directory \"{directory}\": {e}")
        })?;
        let Err(error) = self.put(file.path(), name) else {
            return Ok(true);
        };
        let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
        match self.list(directory)?.iter().any(|known| known == last) {
            true => Ok(false),
            false => Err(error),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        let listed = run(&filled(&self.list, "", directory))?;
        let names = String::from_utf8_lossy(&listed.stdout);
        let names = names
            .lines()
            .map(|line| line.rsplit('/').next().unwrap_or(line));
        Ok(names.map(|name| name.trim().to_string()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_words_of_the_shell_whatever_they_are() {
        let command = filled("cp %f 100%% %n %x %", "/tmp/a b", "it's");
        assert_eq!(command, r"cp '/tmp/a b' 100% 'it'\''s' %x %");
    }

    #[test]
    fn a_command_without_its_object_is_refused() {
        let refused = |put, list| Commands::new(put, list).err();
        assert_eq!(refused("cp %f %n", "ls %n"), None);
        let wanted = |text: &str| Some(text.to_string());
        assert_eq!(
            refused("cp %f x", "ls %n"),
            wanted("command \"cp %f x\" has no %n")
        );
        assert_eq!(
            refused("cp %%f %n", "ls %n"),
            wanted("command \"cp %%f %n\" has no %f")
        );
        assert_eq!(
            refused("cp %f %n", "ls"),
            wanted("command \"ls\" has no %n")
        );
    }
}
