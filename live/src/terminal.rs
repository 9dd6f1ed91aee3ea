//! The terminal: taking it, giving it back in all cases, and its events.

use crate::signal::Reply;
use crate::worker::Answer;
use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event as Input, KeyEvent, KeyEventKind,
};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, Stdout, Write, stdin, stdout};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// An event for the main loop.
pub enum Event {
    Key(KeyEvent),
    Paste(String),
    Answer(Box<Answer>),
    Signal(i32),
    /// Reply to a request for a signal.
    Server(Reply),
    /// The terminal is gone.
    Lost,
}

pub type Screen = Terminal<CrosstermBackend<Stdout>>;

/// Takes the terminal. A panic of any thread gives it back and ends the program.
///
/// # Errors
/// The terminal refuses.
pub fn take() -> io::Result<Screen> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
        std::process::exit(101);
    }));
    enter()?;
    Terminal::new(CrosstermBackend::new(stdout()))
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Gives the terminal back in its former state. Errors are ignored: the terminal
/// may be gone.
pub fn give_back() {
    let _ = execute!(
        stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        crossterm::cursor::Show
    );
    let _ = disable_raw_mode();
}

/// Takes the terminal again after the program was stopped.
///
/// # Errors
/// The terminal refuses.
pub fn take_again(screen: &mut Screen) -> io::Result<()> {
    enter()?;
    screen.clear()
}

/// Stops this program as a shell expects, until SIGCONT.
///
/// # Errors
/// The program cannot be stopped, or the terminal refuses.
pub fn suspend(screen: &mut Screen) -> io::Result<()> {
    give_back();
    signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
    take_again(screen)
}

/// Puts a text into the terminal's clipboard, which works over ssh as well.
///
/// # Errors
/// The terminal cannot be written to.
pub fn copy(text: &str) -> io::Result<()> {
    execute!(stdout(), CopyToClipboard::to_clipboard_from(text))?;
    stdout().flush()
}

/// Starts threads that send keys and signals as events.
///
/// # Errors
/// A thread could not be started, or the system refuses the signals.
pub fn listen(events: &Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH])?;
    let told = events.clone();
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if told.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
    let told = events.clone();
    thread::Builder::new().name("keys".into()).spawn(move || {
        while read(&told) {}
        let _ = told.send(Event::Lost);
    })?;
    Ok(())
}

/// Sends what was typed; false if the receiver or the terminal is gone.
/// crossterm would read a lost terminal in an endless loop.
fn read(told: &Sender<Event>) -> bool {
    let stdin = stdin();
    let mut wait = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut wait, None) {
        Ok(_) => (),
        Err(rustix::io::Errno::INTR) => return true,
        Err(_) => return false,
    }
    let seen = wait[0].revents();
    if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return false;
    }
    while let Ok(true) = event::poll(Duration::ZERO) {
        let event = match event::read() {
            Ok(Input::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
            Ok(Input::Paste(text)) => Event::Paste(text),
            Ok(_) => continue,
            Err(_) => return false,
        };
        if told.send(event).is_err() {
            return false;
        }
    }
    true
}
