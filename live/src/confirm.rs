//! Keys that cancel a query or end a session. The server looks up the session,
//! the user confirms, the server gets the signal.

use crate::app::{App, Over, Wish};
use crate::signal::{Act, Reply, Request, Session};
use crossterm::event::KeyCode;

impl App {
    /// Looks up the chosen session on the server.
    pub fn aim(&mut self, act: Act) {
        let server = self.view.server.as_deref().unwrap_or_default();
        if !self.signalled.contains(server) {
            let message = "to cancel queries and end sessions, start with --allow-signal CONNINFO";
            self.message = Some(match self.servers.len() {
                0 | 1 => message.into(),
                _ => format!(
                    "{} of this server",
                    message.replace("CONNINFO", "NAME=CONNINFO")
                ),
            });
            return;
        }
        let chosen = self.table.items.get(self.view.row);
        let Some(target) = chosen.and_then(|item| item.session.clone()) else {
            self.message = Some("choose a session first, with s or b".into());
            return;
        };
        self.message = Some(format!("asking the server about session {}", target.pid));
        let seen = match self.moment {
            Some(at) if target.begin.is_none() => at,
            _ => self.view.selection().until,
        };
        self.is_aiming = true;
        self.wishes
            .push(Wish::Signal(Request::Look(act, target, seen)));
    }

    /// Takes the server's reply. If the user has pressed a key meanwhile, no
    /// confirmation opens: the next key might be taken for the answer.
    pub fn server_said(&mut self, reply: Reply) {
        match reply {
            Reply::Found(act, session) if self.is_aiming => {
                self.message = None;
                self.over = Some(Over::Confirm(act, Box::new(session)));
            }
            Reply::Found(..) => return,
            Reply::Said(text) => self.message = Some(text),
        }
        self.is_aiming = false;
        self.dirty = true;
    }

    /// Signals the session if the key is `y`.
    pub(crate) fn confirm(&mut self, act: Act, session: Session, code: KeyCode) {
        if code == KeyCode::Char('y') {
            self.message = Some("sending the signal".into());
            self.wishes.push(Wish::Signal(Request::Do(act, session)));
        } else {
            self.message = Some("canceled; no signal was sent".into());
        }
    }
}
