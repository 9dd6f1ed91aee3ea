//! State of the program, and the effects of keys. It puts questions into a queue and
//! receives answers, so it knows neither threads nor a terminal.

use crate::asked::{Asked, Slot, status};
use crate::command::{command_line, web_address};
use crate::list::Made;
use crate::load::Load;
use crate::paint::Paint;
use crate::signal::{Act, Request, Session};
use crate::table::Table;
use crate::trees;
use crate::view::{Filter, List, SECOND, View, WIDTHS, Window};
use crate::worker::Answer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tacho_source::rows::{Rows, Status};
use tacho_source::{Arguments, time};
use tacho_tape::query::{BlockingRow, QueryError};

/// A last tick that is older than this, in µs, is late.
const LATE: i64 = 5 * SECOND;
/// Time, µs, after which a question without an answer raises an alarm.
const SILENCE: i64 = 15 * SECOND;
/// Shortest and longest time between two looks at the history for new ticks.
const LOOK: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(30);
/// The time to the next look is this multiple of the time that the last answers took.
const SHARE: u32 = 100;

/// The kind of input in the prompt at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    GoTo(String),
    Filter(String),
}

/// Content that is shown over the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    Help,
    /// The lines of the equivalent command, and of the address of the page.
    Command(Vec<String>),
    /// The action that `y` confirms, and its session.
    Confirm(Act, Box<Session>),
}

/// A request to the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Quit,
    Suspend,
    Copy(String),
    Redraw,
    Signal(Request),
}

/// Answers, and the arguments of their questions.
#[derive(Default)]
struct Answers {
    rows: BTreeMap<Slot, (Arguments, Rows)>,
    load: Option<Load>,
    earlier: Option<Load>,
}

/// Direction of the search for a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    Later,
    Earlier,
}

pub struct App {
    pub view: View,
    pub paint: Paint,
    pub prompt: Option<Prompt>,
    pub over: Option<Over>,
    /// A message until the next key.
    pub message: Option<String>,
    /// Error of the last questions, which is shown.
    pub error: Option<QueryError>,
    /// Error of the questions in progress.
    failure: Option<QueryError>,
    /// Notice about the answers.
    pub notice: Option<String>,
    /// The reasons why the list lacks something.
    reasons: Vec<String>,
    /// Number of damaged places in the history.
    damaged: String,
    /// Age of the last tick, µs in whole seconds, if it is late.
    pub late: Option<i64>,
    /// Time that a question has waited for its answer, µs in whole seconds, if that is
    /// long.
    pub silent: Option<i64>,
    /// Time in µs since 1970 since which questions wait for the next answer.
    waits_since: Option<i64>,
    pub table: Table,
    /// The moment of the tree of blockers, µs since 1970.
    pub moment: Option<i64>,
    /// True if the screen must be drawn again.
    pub dirty: bool,
    /// Lines that the key `w` showed last.
    pub said: Vec<String>,
    pub servers: Vec<String>,
    pub wishes: Vec<Wish>,
    pub home: TimeZone,
    /// Servers on which queries may be cancelled and sessions ended.
    pub signalled: BTreeSet<String>,
    /// True while the server looks up a session and no key was pressed since.
    pub is_aiming: bool,
    web: String,
    /// The words that name the server on a command line.
    place: Vec<String>,
    answers: Answers,
    /// Number of the current view; it grows with each change. Answers for other views are ignored.
    pub number: u64,
    queue: Vec<Asked>,
    pending: usize,
    /// Time that the answers since the last look took, all together.
    took: Duration,
    /// Search for a marker: direction, begin, and number of markers to skip.
    pub seek: Option<(Seek, i64, usize)>,
    /// The window of the command line, until the first answer shows it.
    begin: Option<Window>,
}

fn whole_seconds(us: i64) -> i64 {
    us / SECOND * SECOND
}

impl App {
    pub fn new(zone: TimeZone, paint: Paint, web: String) -> App {
        App {
            view: View::new(zone.clone()),
            paint,
            prompt: None,
            over: None,
            message: None,
            error: None,
            failure: None,
            notice: None,
            reasons: Vec::new(),
            damaged: "0".into(),
            late: None,
            silent: None,
            waits_since: None,
            table: Table::default(),
            moment: None,
            dirty: true,
            said: Vec::new(),
            servers: Vec::new(),
            wishes: Vec::new(),
            home: zone,
            signalled: BTreeSet::new(),
            is_aiming: false,
            web,
            place: Vec::new(),
            answers: Answers::default(),
            number: 1,
            queue: Vec::new(),
            pending: 0,
            took: Duration::ZERO,
            seek: None,
            begin: None,
        }
    }

    /// Opens a server, live or with a window.
    pub fn open(&mut self, server: Option<String>, place: Vec<String>, window: Option<Window>) {
        self.view.server = server;
        self.place = place;
        self.begin = window;
        self.answers = Answers::default();
        (self.table, self.error, self.view.end) = (Table::default(), None, None);
        self.begin_anew();
        self.put(status(self.number));
    }

    /// Takes the waiting questions, which the caller asks now.
    pub fn questions(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.queue)
    }

    /// True if every question has its answer.
    pub fn is_idle(&self) -> bool {
        self.pending == 0 && self.queue.is_empty()
    }

    /// Time until the next look at the history for new ticks; `None` for a window in the past.
    /// Answers should take at most a hundredth of a CPU.
    pub fn looks_after(&self) -> Option<Duration> {
        let follows = self.view.live && !self.view.paused;
        if !self.is_idle() {
            return Some(LOOK);
        }
        let wanted = follows || self.is_tried_again();
        wanted.then(|| (self.took * SHARE).clamp(LOOK, MOST))
    }

    /// Called when the time of [`App::looks_after`] is over. Looks for new ticks in the history, or
    /// measures how long a question has waited.
    pub fn passes(&mut self, now_us: i64) {
        match self.is_idle() {
            true => self.look(),
            false => self.listen(now_us),
        }
    }

    /// Measures how long a question has waited for its answer.
    pub fn listen(&mut self, now_us: i64) {
        let since = match self.is_idle() {
            true => None,
            false => Some(self.waits_since.unwrap_or(now_us)),
        };
        self.waits_since = since;
        let waited = since.map(|since| whole_seconds(now_us - since));
        let silent = waited.filter(|waited| *waited >= SILENCE);
        self.dirty |= silent != self.silent;
        self.silent = silent;
    }

    /// True if failed questions are repeated: after any error except invalid arguments (class
    /// `22`).
    pub fn is_tried_again(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|error| !error.sqlstate.starts_with("22"))
    }

    /// Requests the status of the server. If it shows newer ticks, the other questions are
    /// repeated.
    pub fn look(&mut self) {
        self.took = Duration::ZERO;
        self.put(status(self.number));
    }

    /// The load, and the load of the earlier window.
    pub fn loads(&self) -> (Option<&Load>, Option<&Load>) {
        (self.answers.load.as_ref(), self.answers.earlier.as_ref())
    }

    /// Rows of the last answer for a slot, if there is one.
    pub fn rows(&self, slot: Slot) -> Option<&Rows> {
        self.answers.rows.get(&slot).map(|answer| &answer.1)
    }

    /// Puts a question into the queue.
    pub fn put(&mut self, asked: Asked) {
        self.pending += 1;
        self.queue.push(asked);
    }

    /// Begins another view: drops open questions, and ignores answers that still come.
    pub fn begin_anew(&mut self) {
        self.number += 1;
        self.pending = 0;
        self.queue.clear();
        self.seek = None;
        self.failure = None;
    }

    /// Puts the questions without an answer into the queue; with `all`, after a tick, every
    /// question.
    pub fn ask(&mut self, all: bool) {
        if self.view.end.is_none() {
            return;
        }
        self.begin_anew();
        for asked in self.view.questions(self.number) {
            let known = self.answers.rows.get(&asked.slot);
            let is_changed = known.is_none_or(|known| known.0 != asked.arguments);
            // The window of alarms has steps: the same window has the same answer.
            if is_changed || all && asked.slot != Slot::Alarms {
                self.put(asked);
            }
        }
        if self.view.list == List::Locks && !self.queue.iter().any(|a| a.slot == Slot::Heads) {
            self.climb();
        }
        if self.is_idle() {
            self.error = None;
        }
        if self.view.earlier.is_none() {
            self.answers.earlier = None;
            self.answers.rows.remove(&Slot::Earlier);
        }
        if !self.view.has_alarms() {
            self.answers.rows.remove(&Slot::Alarms);
        }
        self.make_table();
        self.dirty = true;
    }

    /// Takes an answer.
    pub fn told(&mut self, answer: Answer, now_us: i64) {
        self.waits_since = None;
        self.listen(now_us);
        if answer.asked.view != self.number {
            return;
        }
        self.pending = self.pending.saturating_sub(1);
        self.took += answer.took;
        let is_status = answer.asked.slot == Slot::Status;
        match answer.result {
            Ok(answered) => self.answered(answer.asked, answered, now_us),
            // The rest of the screen is as good without alarms. A source that lacks measurements has
            // none; after another error the next question asks again.
            Err(error) if answer.asked.slot == Slot::Alarms && self.view.list != List::Alarms => {
                if error.sqlstate == "22023" || error.sqlstate.starts_with("42") {
                    self.answered(answer.asked, Default::default(), now_us);
                }
            }
            Err(error) => self.failed(answer.asked.slot, error),
        }
        // An error disappears only when every question has its answer, so that nothing
        // flickers.
        if !is_status && self.is_idle() && self.error != self.failure {
            self.error = self.failure.clone();
            self.dirty = true;
        }
    }

    fn answered(&mut self, asked: Asked, answered: (Rows, Vec<QueryError>), now_us: i64) {
        let (rows, notices) = answered;
        match asked.slot {
            Slot::Status => return self.followed(&Status::of(&rows), now_us),
            Slot::Markers if self.seek.is_some() => return self.found(&rows),
            _ => (),
        }
        if asked.slot == Slot::Load {
            self.notice = notices.iter().find_map(left_out);
        }
        if asked.slot == Slot::List {
            self.reasons = notices.iter().map(error_line).collect();
        }
        let slot = asked.slot;
        let same = self.answers.rows.get(&slot).is_some_and(|r| r.1 == rows);
        let kept = (asked.arguments, rows);
        self.answers.rows.insert(slot, kept);
        if !same || slot == Slot::Heads {
            self.take(slot);
        }
    }

    /// Updates the display from an answer.
    fn take(&mut self, slot: Slot) {
        self.dirty = true;
        match slot {
            Slot::Load => {
                let width = self.view.width();
                self.answers.load = self.rows(slot).map(|rows| Load::of(rows.read(), width));
            }
            Slot::Earlier => {
                let width = self.view.width();
                self.answers.earlier = self.rows(slot).map(|rows| Load::of(rows.read(), width));
            }
            Slot::Heads => self.climb(),
            Slot::List | Slot::Costs | Slot::Tree | Slot::Alarms => self.make_table(),
            Slot::Markers | Slot::Status => (),
        }
    }

    /// Asks for the tree of the longest queue, at the last moment when the queue
    /// existed.
    fn climb(&mut self) {
        let selection = self.view.selection();
        let heads: Vec<BlockingRow> = self.rows(Slot::Heads).map_or(Vec::new(), Rows::read);
        self.moment = heads.first().and_then(|head| head.last_seen);
        match self.moment {
            Some(at) => {
                let at = at.clamp(selection.since, selection.until - 1);
                let (function, arguments) = self.view.tree(at);
                let known = self.answers.rows.get(&Slot::Tree);
                if known.is_some_and(|known| known.0 == arguments) {
                    self.make_table();
                    return;
                }
                let (slot, view) = (Slot::Tree, self.number);
                self.put(Asked {
                    slot,
                    view,
                    function,
                    arguments,
                });
            }
            None => {
                self.answers.rows.remove(&Slot::Tree);
                self.make_table();
            }
        }
    }

    fn make_table(&mut self) {
        let slot = match self.view.list {
            List::Locks => Slot::Tree,
            List::Alarms => Slot::Alarms,
            _ => Slot::List,
        };
        let listed = match self.view.list {
            List::Locks => self.moment.map(|_| ()),
            _ => {
                let asked = self.view.listed().1;
                let known = self.answers.rows.get(&slot);
                known.filter(|k| alike(&k.0, &asked)).map(|_| ())
            }
        };
        let empty = Rows::default();
        let rows = listed.and_then(|()| self.rows(slot)).unwrap_or(&empty);
        let made = Made {
            view: &self.view,
            rows,
            costs: self.rows(Slot::Costs),
            is_compared: self.view.list.is_compared() && self.view.earlier.is_some(),
            reasons: &self.reasons,
        };
        self.table = made.table();
        let last = self.table.items.len().saturating_sub(1);
        self.view.row = self.view.row.min(last);
    }

    /// Takes the answer of `status`: the end of the history.
    fn followed(&mut self, status: &Status, now_us: i64) {
        let Some(last) = status.time("last_tick_time") else {
            return self.failed(Slot::Status, without_ticks(status));
        };
        let damaged = status.metric("damaged_places").unwrap_or("0");
        if damaged != self.damaged {
            (self.damaged, self.dirty) = (damaged.to_string(), true);
            let message = format!("damaged parts: {damaged}; run tacho inspect to list them");
            self.message = Some(message);
        }
        let end = last + SECOND;
        let late = Some(now_us - end).filter(|age| *age > LATE);
        let late = late.map(whole_seconds);
        self.dirty |= late != self.late;
        self.late = late;
        let moved = self.view.followed(end);
        if let Some(window) = self.begin.take() {
            self.view.show(window);
        }
        if moved || self.is_tried_again() {
            self.ask(true);
        }
    }

    fn failed(&mut self, slot: Slot, error: QueryError) {
        if slot == Slot::Status {
            self.begin_anew();
            self.dirty |= self.error.as_ref() != Some(&error);
            self.error = Some(error.clone());
        }
        self.failure = Some(error);
    }

    /// Sets the number of columns of the picture.
    pub fn resize(&mut self, columns: usize) {
        if self.view.resize(columns) {
            self.ask(false);
        }
        self.dirty = true;
    }

    /// Pasted text goes to the prompt.
    pub fn paste(&mut self, text: &str) {
        if let Some(Prompt::GoTo(line) | Prompt::Filter(line)) = &mut self.prompt {
            line.extend(text.chars().filter(|c| !c.is_control()));
            self.dirty = true;
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) {
        self.dirty = true;
        self.message = None;
        self.is_aiming = false;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => self.wishes.push(Wish::Quit),
                KeyCode::Char('z') => self.wishes.push(Wish::Suspend),
                KeyCode::Char('l') => self.wishes.push(Wish::Redraw),
                _ => (),
            }
        } else if self.prompt.is_some() {
            self.write(key.code);
        } else if let Some(Over::Confirm(act, session)) = &self.over {
            let (act, session) = (*act, Session::clone(session));
            self.over = None;
            self.confirm(act, session, key.code);
        } else if let Some(over) = self.over.take() {
            // Any key closes it. The keys that opened it, Esc and Enter do nothing
            // else.
            if !matches!(
                key.code,
                KeyCode::Esc | KeyCode::Enter | KeyCode::Char('?' | 'w')
            ) || (over == Over::Help && key.code == KeyCode::Char('w'))
            {
                self.press(key.code);
            }
        } else {
            self.press(key.code);
        }
    }

    fn press(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('Q') => self.wishes.push(Wish::Quit),
            KeyCode::Char('?') => self.over = Some(Over::Help),
            KeyCode::Char('w') => self.say(),
            KeyCode::Char('y') => self.copy(),
            KeyCode::Char('g') => self.prompt = Some(Prompt::GoTo(String::new())),
            KeyCode::Char('/') => self.prompt = Some(Prompt::Filter(String::new())),
            KeyCode::Char('m') => self.seek(Seek::Later),
            KeyCode::Char('M') => self.seek(Seek::Earlier),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Tab => self.next_server(),
            KeyCode::Char('C') => self.aim(Act::Cancel),
            KeyCode::Char('K') => self.aim(Act::End),
            _ => {
                self.turn(code);
                self.ask(false);
            }
        }
    }

    /// Handles keys that change the view.
    fn turn(&mut self, code: KeyCode) {
        let view = &mut self.view;
        match code {
            KeyCode::Left => view.step(-1),
            KeyCode::Right => view.step(1),
            KeyCode::PageUp => view.page(-1),
            KeyCode::PageDown => view.page(1),
            KeyCode::End => view.go_live(),
            KeyCode::Char('[') => view.zoom(-1),
            KeyCode::Char(']') => view.zoom(1),
            KeyCode::Char(' ') if view.live && !view.paused => view.paused = true,
            KeyCode::Char(' ') => view.go_live(),
            KeyCode::Char('e') => view.turn(List::Events),
            KeyCode::Char('q') => view.turn(List::Queries),
            KeyCode::Char('s') => view.turn(List::Sessions),
            KeyCode::Char('a') => view.turn(List::Tags),
            KeyCode::Char('b') => view.turn(List::Locks),
            KeyCode::Char('x') => view.forget(),
            KeyCode::Char('c') => view.turn(List::Findings),
            KeyCode::Char('!') => view.turn(List::Alarms),
            KeyCode::Char('p') => self.plans(),
            KeyCode::Char('d') => view.differ(trees::chosen(&self.table, view.row)),
            KeyCode::Char('v') => self.compare(),
            KeyCode::Char('t') => self.turn_zone(),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc | KeyCode::Backspace => view.leave(),
            _ => (),
        }
    }

    fn choose(&mut self, by: isize) {
        let last = self.table.items.len().saturating_sub(1);
        self.view.row = self.view.row.saturating_add_signed(by).min(last);
    }

    /// Opens the chosen row.
    fn enter(&mut self) {
        let chosen = self.table.items.get(self.view.row);
        let Some(key) = chosen.and_then(|item| item.key.clone()) else {
            return;
        };
        let (list, dimension, alone) = match self.view.list {
            List::Classes => (List::Events, "wait_event_type", false),
            List::Events => (List::Queries, "wait_event", false),
            List::Tags => (List::Queries, "tags", false),
            List::Queries => (List::Sessions, "query_id", false),
            List::Findings => (List::Queries, "query_id", true),
            List::Plans | List::Trees | List::Alarms => return,
            List::Sessions | List::Locks | List::Spans => (List::Spans, "pid", true),
        };
        self.view.enter(list, Filter::key(dimension, &key), alone);
    }

    /// Shows the plans of the chosen query, or of the query that a filter lets through.
    fn plans(&mut self) {
        let chosen = self.table.items.get(self.view.row);
        let key = chosen.and_then(|item| item.key.clone());
        let is_query = matches!(self.view.list, List::Queries | List::Findings);
        let key = key.filter(|key| is_query && key.parse::<i64>().is_ok());
        match (key, self.view.query()) {
            (Some(key), _) => {
                let filter = Filter::key("query_id", &key);
                self.view.enter(List::Plans, filter, true);
            }
            (None, Some(_)) => self.view.turn(List::Plans),
            (None, None) => self.message = Some("choose a query first (q)".into()),
        }
    }

    /// Changes the comparison: the previous window, yesterday, last week, none.
    fn compare(&mut self) {
        let window = self.view.window();
        let length = window.until - window.since;
        let (day, week) = (WIDTHS[17], WIDTHS[18]);
        self.view.earlier = match self.view.earlier {
            None => Some(length),
            Some(by) if by == day => Some(week),
            Some(by) if by == week => None,
            Some(_) => Some(day),
        };
        self.view.row = 0;
    }

    fn turn_zone(&mut self) {
        let is_home = self.view.zone == self.home;
        self.view.zone = match (is_home, time::is_utc(&self.home)) {
            (true, true) => time::local(),
            (true, false) => TimeZone::UTC,
            (false, _) => self.home.clone(),
        };
        let name = time::zone_name(&self.view.zone);
        self.message = Some(format!("times are in {name}"));
    }

    /// Shows the list's question as a command and an address.
    fn say(&mut self) {
        let (function, arguments) = match (self.view.list, self.moment) {
            (List::Locks, Some(at)) => self.view.tree(at),
            _ => self.view.listed(),
        };
        let moment = self.moment.filter(|_| self.view.list == List::Locks);
        self.said = vec![
            command_line(function, &arguments, &self.place),
            web_address(&self.web, &self.view, moment),
        ];
        self.over = Some(Over::Command(self.said.clone()));
    }

    fn copy(&mut self) {
        let chosen = self.table.items.get(self.view.row);
        match chosen.map(|item| item.copied.clone()) {
            Some(text) if !text.is_empty() => {
                self.message = Some(format!("copied: {text}"));
                self.wishes.push(Wish::Copy(text));
            }
            _ => self.message = Some("nothing to copy".into()),
        }
    }

    fn next_server(&mut self) {
        let server = self.view.server.as_deref();
        let at = self.servers.iter().position(|s| Some(s.as_str()) == server);
        let next = at.map_or(0, |at| at + 1) % self.servers.len().max(1);
        match self.servers.get(next) {
            Some(name) if Some(name.as_str()) != server => {
                let name = Some(name.clone());
                self.open(name, Vec::new(), None);
            }
            _ => self.message = Some("there is no other server".into()),
        }
    }

    /// Sets the words that name the server on a command line.
    pub fn placed(&mut self, place: Vec<String>) {
        self.place = place;
    }

    /// Handles a key in a prompt.
    fn write(&mut self, code: KeyCode) {
        let Some(Prompt::GoTo(line) | Prompt::Filter(line)) = &mut self.prompt else {
            return;
        };
        match code {
            KeyCode::Char(c) => line.push(c),
            KeyCode::Backspace => drop(line.pop()),
            KeyCode::Esc => self.prompt = None,
            KeyCode::Enter => match self.prompt.take() {
                Some(Prompt::GoTo(line)) => self.go_to(&line),
                Some(Prompt::Filter(line)) => self.filter(&line),
                None => (),
            },
            _ => (),
        }
    }

    fn go_to(&mut self, text: &str) {
        let now = self.view.end.unwrap_or_default();
        match time::moment(text, now, &self.view.zone) {
            Ok(at) => {
                self.view.go_to(at);
                self.ask(false);
            }
            Err(error) => self.message = Some(error_line(&error)),
        }
    }

    /// Adds a filter such as `application=web`; an empty text removes all filters.
    fn filter(&mut self, text: &str) {
        if text.trim().is_empty() {
            self.view.forget();
        } else {
            match Filter::parse(text) {
                Ok(filter) => self.view.enter(self.view.list, filter, false),
                Err(message) => {
                    self.message = Some(message);
                    return;
                }
            }
        }
        self.ask(false);
    }
}

/// True if `b` is the question of `a` about another window. Then the rows of `a` stay on the screen
/// until the new ones come.
fn alike(a: &Arguments, b: &Arguments) -> bool {
    let of = |all: &Arguments| all.get("dimension").cloned().or(all.get("n").cloned());
    let kind = |all: &Arguments| {
        (
            of(all),
            all.contains_key("since_1"),
            all.get("scope").or(all.get("plan_id")).cloned(),
        )
    };
    kind(a) == kind(b)
}

/// Error of a history without ticks: none was taken, or none can be read.
fn without_ticks(status: &Status) -> QueryError {
    match status.metric("damaged_places") {
        Some("0") | None => QueryError::new("58P01", "nothing is recorded yet"),
        Some(places) => QueryError::new("XX001", "no tick of the history can be read")
            .detail(format!("Damaged places: {places}."))
            .hint("\"tacho inspect\" names them."),
    }
}

/// The text of a notice about history that could not be read; `None` for other notices.
fn left_out(notice: &QueryError) -> Option<String> {
    let is_left_out = notice.sqlstate.starts_with("XX") || notice.sqlstate == "0A000";
    let detail = notice.detail.as_deref().unwrap_or_default();
    is_left_out.then(|| format!("{}. {detail}", notice.message))
}

/// An error on one line.
pub fn error_line(error: &QueryError) -> String {
    match &error.hint {
        Some(hint) => format!("{}. {hint}", error.message),
        None => error.message.clone(),
    }
}
