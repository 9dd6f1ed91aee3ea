//! `tacho-live`: the history of a server in a terminal. It builds on
//! `tacho-source` and only reads. Exit codes: 0 quit or ended by a signal, 1
//! failure, 2 usage.

mod alarms;
mod app;
mod asked;
mod chart;
mod command;
mod confirm;
mod found;
mod lanes;
mod list;
mod load;
mod options;
mod paint;
mod screen;
mod seek;
mod signal;
mod table;
mod terminal;
mod text;
mod trees;
mod view;
mod worker;

#[cfg(test)]
mod alarms_tests;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
#[cfg(test)]
mod flat_tests;
#[cfg(test)]
mod found_tests;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod views_tests;

use app::{App, Wish};
use clap::Parser;
use jiff::Timestamp;
use options::Options;
use paint::Paint;
use signal::Request;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGTSTP, SIGWINCH};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;
use tacho_source::{Failure, Source, State};
use terminal::{Event, Screen};
use view::Window;
use worker::Worker;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(said) => {
            said.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let _ = io::stderr().write_all(failure.lines().as_bytes());
            ExitCode::from(failure.code)
        }
    }
}

fn now_us() -> i64 {
    Timestamp::now().as_microsecond()
}

/// Runs until the user quits. Returns the lines that `w` showed last.
fn run(options: &Options) -> Result<Vec<String>, Failure> {
    let zone = options.zone()?;
    let window = options.window(now_us(), &zone)?;
    let source = options.source()?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let failure = Failure::usage("standard input and output must be a terminal".into());
        return Err(failure.hint("In scripts, use tacho top, tacho timeline and others."));
    }
    let names = [
        "TERM",
        "COLORTERM",
        "NO_COLOR",
        "LC_ALL",
        "LC_CTYPE",
        "LANG",
    ];
    let environment = names.map(|name| (name, std::env::var(name).unwrap_or_default()));
    let environment = environment.into_iter().collect();
    let paint = Paint {
        depth: options.depth(&environment),
        ascii: options.ascii(&environment),
    };
    let mut app = App::new(zone, paint, options.web.clone());
    let window = window.map(|(since, until)| Window { since, until });
    begin(&mut app, &*source, options, window)?;
    let signals = options.signals(&app.servers)?;
    app.signalled = signals.keys().cloned().collect();
    let (events, happened) = channel();
    let told = events.clone();
    let worker = Worker::start(Arc::clone(&source), move |answer| {
        told.send(Event::Answer(Box::new(answer))).is_ok()
    });
    let worker = worker.map_err(|e| Failure::io("start a thread", &e))?;
    terminal::listen(&events).map_err(|e| Failure::io("start a thread", &e))?;
    let mut screen = terminal::take().map_err(|e| Failure::io("use the terminal", &e))?;
    let program = Program {
        source: &*source,
        worker,
        memory_bytes: options.memory_bytes(),
        signals,
        events,
    };
    let ended = program.go(&mut app, &mut screen, &happened);
    terminal::give_back();
    match ended {
        Ok(()) => Ok(app.said),
        Err(error) => Err(Failure::io("use the terminal", &error)),
    }
}

/// Chooses the first server: the named one, otherwise the first with history.
fn begin(
    app: &mut App,
    source: &dyn Source,
    options: &Options,
    window: Option<Window>,
) -> Result<(), Failure> {
    let servers = source.servers();
    app.servers = servers.iter().map(|server| server.name.clone()).collect();
    let recorded = servers.iter().find(|s| s.state == State::Recorded);
    let first = recorded.or(servers.first()).map(|s| s.name.clone());
    let server = match &options.server {
        Some(name) if !app.servers.contains(name) => {
            let failure = Failure::usage(format!("server \"{name}\" does not exist"));
            let hint = format!("Available are {}.", app.servers.join(", "));
            return Err(failure.hint(&hint));
        }
        Some(name) => Some(name.clone()),
        None => first,
    };
    let place = server.as_deref().map(|name| source.place(name));
    app.open(server, place.unwrap_or_default(), window);
    Ok(())
}

/// Asks questions and draws.
struct Program<'a> {
    source: &'a dyn Source,
    worker: Worker,
    memory_bytes: u64,
    /// Connections for signals, by server.
    signals: BTreeMap<String, tacho_dsn::Options>,
    events: Sender<Event>,
}

impl Program<'_> {
    /// Main loop: asks the queued questions, draws changes, waits for an event.
    fn go(&self, app: &mut App, screen: &mut Screen, events: &Receiver<Event>) -> io::Result<()> {
        app.resize(screen::columns(screen.size()?.width));
        loop {
            for asked in app.questions() {
                let ask = asked.ask(app.view.server.as_deref(), self.memory_bytes);
                self.worker.ask(asked, ask);
            }
            app.listen(now_us());
            if std::mem::take(&mut app.dirty) {
                screen.draw(|frame| screen::draw(app, frame.buffer_mut()))?;
            }
            let Some(event) = wait(app, events) else {
                app.passes(now_us());
                continue;
            };
            if !self.happened(app, screen, event)? {
                return Ok(());
            }
            // Further events are handled before the next drawing.
            while let Ok(event) = events.try_recv() {
                if !self.happened(app, screen, event)? {
                    return Ok(());
                }
            }
        }
    }

    /// Handles an event; false if the program ends.
    fn happened(&self, app: &mut App, screen: &mut Screen, event: Event) -> io::Result<bool> {
        match event {
            Event::Key(key) => app.key(key),
            Event::Paste(text) => app.paste(&text),
            Event::Answer(answer) => app.told(*answer, now_us()),
            Event::Server(reply) => app.server_said(reply),
            Event::Signal(SIGWINCH) => {
                screen.autoresize()?;
                app.resize(screen::columns(screen.size()?.width));
            }
            Event::Signal(SIGTSTP) => app.wishes.push(Wish::Suspend),
            Event::Signal(SIGCONT) => {
                terminal::take_again(screen)?;
                app.dirty = true;
            }
            Event::Signal(SIGHUP) | Event::Lost => {
                return Err(io::Error::other("terminal was closed"));
            }
            Event::Signal(_) => return Ok(false),
        }
        for wish in std::mem::take(&mut app.wishes) {
            match wish {
                Wish::Quit => return Ok(false),
                Wish::Suspend => {
                    terminal::suspend(screen)?;
                    app.resize(screen::columns(screen.size()?.width));
                }
                Wish::Copy(text) => terminal::copy(&text)?,
                Wish::Redraw => screen.clear()?,
                Wish::Signal(request) => self.signal(app, request)?,
            }
        }
        if let Some(server) = app.view.server.clone() {
            app.placed(self.source.place(&server));
        }
        Ok(true)
    }
}

impl Program<'_> {
    /// Asks the server on a thread of its own, because it may take long.
    fn signal(&self, app: &App, request: Request) -> io::Result<()> {
        let server = app.view.server.as_ref();
        let Some(options) = server.and_then(|name| self.signals.get(name)).cloned() else {
            return Ok(());
        };
        let told = self.events.clone();
        let thread = std::thread::Builder::new().name("server".into());
        thread.spawn(move || {
            let _ = told.send(Event::Server(signal::answer(&options, &request)));
        })?;
        Ok(())
    }
}

/// Waits for the next event. `None` if the wait has lasted `looks_after`: then
/// it is time to look for new ticks.
fn wait(app: &App, events: &Receiver<Event>) -> Option<Event> {
    let Some(after) = app.looks_after() else {
        return Some(events.recv().unwrap_or(Event::Lost));
    };
    let begun = Instant::now();
    match events.recv_timeout(after.saturating_sub(begun.elapsed())) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Event::Lost),
    }
}
