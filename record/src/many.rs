//! Records many servers: each has a thread, a connection and a directory of its
//! own, so that a hanging server delays no other. SIGHUP reads the file again;
//! unchanged servers keep running.

use crate::config::{self, Config, Server};
use crate::health::{Health, HealthTable};
use crate::log::Log;
use crate::output::Output;
use crate::recorder::Recorder;
use crate::{Stop, budget, fail, http};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tacho_tape::write::recording::Recording;

/// Interval of checks for signals and ended threads.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Pause before another attempt if a directory cannot be used.
const PAUSE: Duration = Duration::from_secs(5);
/// At the end, a thread that needs longer is abandoned.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A server that is recorded.
struct Running {
    server: Server,
    stop: Stop,
    thread: JoinHandle<()>,
}

struct Recorders {
    path: PathBuf,
    config: Config,
    running: BTreeMap<String, Running>,
    /// Servers asked to end. A new server of the same name begins when the old
    /// one has ended.
    stopping: Vec<(String, Running)>,
    table: Arc<HealthTable>,
    log: Log,
}

/// Records all servers of a configuration file until a signal. Exit code 1 if
/// the file cannot be read at the start, or if another program uses the address
/// of `listen`.
pub fn run(path: &Path, stop: &Stop, reload: &Stop) -> ExitCode {
    let config = match config::read(path) {
        Ok(config) => config,
        Err(error) => return fail(1, &error),
    };
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.root);
    if let Err(error) = made {
        let root = config.root.display();
        return fail(
            1,
            &format!("could not create directory \"{root}\": {error}"),
        );
    }
    let table = Arc::new(HealthTable::default());
    if let Some(address) = config.listen
        && let Err(error) = http::serve(address, table.clone())
    {
        return fail(1, &format!("could not listen on {address}: {error}"));
    }
    let many = Recorders {
        path: path.to_path_buf(),
        config,
        running: BTreeMap::new(),
        stopping: Vec::new(),
        table,
        log: Log::default(),
    };
    many.run(stop, reload);
    ExitCode::SUCCESS
}

impl Recorders {
    fn run(mut self, stop: &Stop, reload: &Stop) {
        self.apply_shared_settings();
        while !stop.is_set() {
            if reload.take() {
                self.reload();
            }
            self.remove_ended();
            self.start();
            std::thread::sleep(CHECK_INTERVAL);
        }
        self.end();
    }

    /// Reads the file again; a bad file changes nothing.
    fn reload(&mut self) {
        let mut config = match config::read(&self.path) {
            Ok(config) => config,
            Err(error) => {
                let text = format!("configuration was not reloaded: {error}");
                return self.log.error(&text);
            }
        };
        if config.root != self.config.root || config.listen != self.config.listen {
            let text = "\"root\" and \"listen\" cannot be changed without a restart";
            self.log.warning(text);
            config.root.clone_from(&self.config.root);
            config.listen = self.config.listen;
        }
        self.config = config;
        self.apply_shared_settings();
        let names: Vec<String> = self.running.keys().cloned().collect();
        for name in names {
            let is_same =
                self.config.servers.get(&name) == self.running.get(&name).map(|r| &r.server);
            if !is_same && let Some(running) = self.running.remove(&name) {
                running.stop.set();
                self.stopping.push((name, running));
            }
        }
        let count = self.config.servers.len();
        self.log
            .info(&format!("configuration reloaded, servers: {count}"));
    }

    /// Applies the settings that all servers share.
    fn apply_shared_settings(&mut self) {
        budget::set(self.config.memory_bytes);
        if let Err(warning) = budget::descriptors(self.config.servers.len()) {
            self.log.warning(&warning);
        }
    }

    fn remove_ended(&mut self) {
        let table = &self.table;
        self.stopping.retain(|(name, running)| {
            let has_ended = running.thread.is_finished();
            if has_ended {
                table.remove(name);
            }
            !has_ended
        });
    }

    /// Starts servers that are not recorded yet.
    fn start(&mut self) {
        let servers = self.config.servers.clone();
        for (name, server) in servers {
            let is_there =
                self.running.contains_key(&name) || self.stopping.iter().any(|l| l.0 == name);
            if is_there {
                continue;
            }
            let (stop, health) = (Stop::default(), self.table.add(&name));
            let directory = self.config.root.join(&name);
            let log = Log::of(&name);
            let (its_stop, its_server) = (stop.clone(), server.clone());
            let thread = std::thread::Builder::new().name("server".to_string());
            let record = move || record(&directory, &its_server, &its_stop, &health, &log);
            match thread.spawn(record) {
                Ok(thread) => {
                    let running = Running {
                        server,
                        stop,
                        thread,
                    };
                    self.running.insert(name, running);
                }
                // The next turn tries again.
                Err(error) => self
                    .log
                    .warn_once(&format!("could not start a thread: {error}")),
            }
        }
    }

    /// Ends all servers at once; each writes its remaining frames.
    fn end(mut self) {
        for running in self.running.values() {
            running.stop.set();
        }
        self.stopping.extend(std::mem::take(&mut self.running));
        let until = Instant::now() + STOP_TIMEOUT;
        while !self.stopping.is_empty() && Instant::now() < until {
            self.remove_ended();
            std::thread::sleep(CHECK_INTERVAL / 10);
        }
        for (name, _) in &self.stopping {
            self.log.warning(&format!(
                "recorder of server \"{name}\" did not stop in time and was abandoned"
            ));
        }
    }
}

/// Records one server until `stop` is set. Errors and panics lead to another
/// attempt.
fn record(directory: &Path, server: &Server, stop: &Stop, health: &Arc<Health>, log: &Log) {
    while !stop.is_set() {
        let once = AssertUnwindSafe(|| once(directory, server, stop, health, log));
        let ended = catch_unwind(once).unwrap_or_else(|_| Err("internal error".to_string()));
        if let Err(message) = ended {
            health.update(|c| {
                c.trouble = Some(message.clone());
                c.connected = None;
            });
            log.warn_once(&message);
            stop.wait(PAUSE);
        }
    }
}

fn once(
    directory: &Path,
    server: &Server,
    stop: &Stop,
    health: &Arc<Health>,
    log: &Log,
) -> Result<(), String> {
    let recording = Recording::open(directory, Duration::ZERO).map_err(|e| e.to_string())?;
    let output = Output::new(recording, log.clone(), health.clone());
    let recorder = Recorder::new(
        &server.settings,
        server.target()?,
        directory,
        output,
        stop.clone(),
    );
    recorder.with(health.clone(), log.clone()).run()
}
