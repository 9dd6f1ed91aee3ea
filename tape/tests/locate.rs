//! Finds the history without a name from the user. Directories and files are real; a directory of
//! links replaces `/proc`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tacho_tape::locate::{Running, Surroundings, of_data_directory, running};

struct Host(PathBuf);

impl Host {
    fn new(name: &str) -> Host {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("locate-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("proc/self")).unwrap();
        fs::write(path.join("proc/uptime"), "1").unwrap();
        Host(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Adds a process with a working directory.
    fn process(&self, pid: u32, cwd: &str) {
        let process = self.path(&format!("proc/{pid}"));
        fs::create_dir(&process).unwrap();
        fs::write(process.join("comm"), "postgres\n").unwrap();
        symlink(self.path(cwd), process.join("cwd")).unwrap();
    }

    /// Adds the data directory of a postmaster.
    fn data(&self, name: &str, pid: u32) {
        fs::create_dir(self.path(name)).unwrap();
        self.file(
            &format!("{name}/postmaster.pid"),
            &format!("{pid}\n{name}\n"),
        );
    }

    fn directory(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn running(&self) -> Running {
        running(&self.path("proc"))
    }

    fn tapes(&self) -> Vec<PathBuf> {
        self.running().tapes.into_iter().collect()
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            tape: None,
            data: None,
            processes: self.path("proc"),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_named_tape_comes_first_then_the_data_directory_then_the_server_that_runs() {
    let host = Host::new("order");
    host.data("data", 100);
    host.directory("data/tacho");
    host.process(100, "data");
    let mut surroundings = host.surroundings();
    assert_eq!(surroundings.tape(), Ok(host.path("data/tacho")));
    surroundings.data = Some("/elsewhere".into());
    assert_eq!(surroundings.tape(), Ok("/elsewhere/tacho".into()));
    surroundings.tape = Some("named".into());
    assert_eq!(surroundings.tape(), Ok("named".into()));
}

#[test]
fn a_server_differs_from_its_children_other_processes_and_ended_ones() {
    let host = Host::new("processes");
    host.data("data", 100);
    host.directory("data/tacho");
    host.process(100, "data");
    host.process(101, "data"); // a backend
    host.process(102, "nowhere"); // its directory was removed
    host.data("ended", 99);
    host.directory("ended/tacho");
    host.process(103, "ended"); // a shell there
    host.data("without", 104);
    host.process(104, "without"); // it does not record
    host.directory("odd");
    host.file("odd/postmaster.pid", "not a number\n");
    host.process(105, "odd");
    assert_eq!(host.tapes(), [host.path("data/tacho")]);
    assert!(!host.running().hidden);
    assert_eq!(running(&host.path("none")), Running::default());
}

#[test]
fn several_servers_are_an_error_that_lists_their_directories() {
    let host = Host::new("several");
    for (pid, data) in [(100, "b"), (200, "a")] {
        host.data(data, pid);
        host.directory(&format!("{data}/tacho"));
        host.process(pid, data);
    }
    let error = host.surroundings().tape().unwrap_err();
    assert_eq!(error.sqlstate, "22023");
    assert_eq!(
        error.message,
        "more than one server running here has a history"
    );
    let listed = format!(
        "The directories are \"{}\", \"{}\".",
        host.path("a/tacho").display(),
        host.path("b/tacho").display()
    );
    assert_eq!(error.detail, Some(listed));
    let hint = "Specify one directory with --tape or in TACHO_TAPE.";
    assert_eq!(error.hint.as_deref(), Some(hint));
}

#[test]
fn without_a_server_the_error_names_the_option() {
    let error = Host::new("none").surroundings().tape().unwrap_err();
    let message = "no history directory specified, and no server running here has one";
    assert_eq!((error.sqlstate, error.message.as_str()), ("22023", message));
    assert_eq!(error.detail, None);
    let hint = "Specify the directory with --tape or in TACHO_TAPE: it is the setting tacho.directory, by default tacho in the data directory.";
    assert_eq!(error.hint.as_deref(), Some(hint));
}

#[test]
fn the_setting_counts_as_the_server_reads_it() {
    let host = Host::new("setting");
    host.data("data", 100);
    let data = host.path("data");
    let of = |text: &str| {
        host.file("data/postgresql.conf", text);
        of_data_directory(&data)
    };
    let cases = [
        ("", data.join("tacho")),
        ("#tacho.directory = '/a'\n", data.join("tacho")),
        ("tacho.directory = '/a b' # there\n", "/a b".into()),
        ("  Tacho.Directory='/a''b\\'c'\n", "/a'b'c".into()),
        ("tacho.directory below#\n", data.join("below")),
        (
            "tacho.directory = '/a'\ntacho.directory = '../b'\n",
            data.join("../b"),
        ),
        ("tacho.directory = '/open\n", data.join("tacho")),
        ("tacho.directory = '/back\\", data.join("tacho")),
        ("tacho.directory = ''\n", data.join("tacho")),
        ("tacho.directory\n", data.join("tacho")),
        (
            "tacho.directory_other = '/a'\nätacho.directory = 'ä'\n",
            data.join("tacho"),
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(of(text), wanted, "{text}");
    }
    of("tacho.directory = '/plain'\n");
    host.file(
        "data/postgresql.auto.conf",
        "tacho.directory = '/altered'\n",
    );
    assert_eq!(of_data_directory(&data), Path::new("/altered"));
    let started = "/bin/postgres \"-D\" \"/data\" \"-c\" \"tacho.directory=/given here\"\n";
    host.file("data/postmaster.opts", started);
    assert_eq!(of_data_directory(&data), Path::new("/given here"));
}

#[test]
fn a_configuration_file_elsewhere_is_read() {
    let host = Host::new("configuration");
    host.data("data", 100);
    host.directory("history");
    host.process(100, "data");
    let (file, history) = (host.path("main.conf"), host.path("history"));
    for option in ["-c\" \"", "--", "-c"] {
        let option = format!(
            "postgres \"-D\" \"x\" \"{option}config_file={}\"\n",
            file.display()
        );
        host.file("data/postmaster.opts", &option);
        host.file(
            "main.conf",
            &format!("tacho.directory = '{}'\n", history.display()),
        );
        assert_eq!(host.tapes(), std::slice::from_ref(&history), "{option}");
        host.file("main.conf", "");
        assert!(host.tapes().is_empty(), "{option}");
    }
}

#[test]
fn files_that_would_block_are_not_read() {
    let host = Host::new("fifo");
    host.directory("data/tacho");
    host.process(100, "data");
    let made = std::process::Command::new("mkfifo")
        .arg(host.path("data/postmaster.pid"))
        .status();
    assert!(made.unwrap().success());
    assert!(host.tapes().is_empty());
}
