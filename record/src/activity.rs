//! Reads the texts of statements from the sessions that run them: always for query ids without a
//! text, with `--raw-texts` also for statements without a query id.

use crate::names::Names;
use crate::sample::Session;
use crate::texts::{OfSessions, Text, Texts};
use std::collections::HashMap;
use tacho_dsn::Answer;

/// Identifies the execution of a statement: PID, start of the process in µs and start of the
/// statement in ms, both since 1970.
type Run = (i64, i64, i64);

/// Text keys of statements without a query id, by execution.
#[derive(Default)]
pub struct Activity {
    keys: HashMap<Run, i64>,
}

fn run(session: &Session) -> Run {
    (
        session.pid,
        session.backend_start_us,
        session.query_start_ms,
    )
}

impl Activity {
    /// Gives sessions the text keys known from earlier ticks. Returns the question for the missing
    /// texts, if any. Forgets executions that have ended.
    pub fn question(&mut self, sessions: &mut [Session], texts: &Texts) -> Option<String> {
        let of_sessions = texts.session_text_choice();
        if of_sessions == OfSessions::None {
            return None;
        }
        let mut known = std::mem::take(&mut self.keys);
        let mut wanted = Vec::new();
        for session in sessions.iter_mut().filter(|s| !s.state.is_empty()) {
            if session.query_id != 0 {
                if texts.lacks(session.query_id) {
                    wanted.push(session.pid.to_string());
                }
            } else if let Some(key) = known.remove(&run(session)) {
                session.text_key = key;
                self.keys.insert(run(session), key);
            } else if of_sessions == OfSessions::All {
                wanted.push(session.pid.to_string());
            }
        }
        let pids = wanted.join(",");
        // A cut text fills `track_activity_query_size`, less its final NUL and up to three bytes of
        // a character that did not fit.
        (!wanted.is_empty()).then(|| {
            format!(
                "select pid, (date_part('epoch', query_start) * 1e6)::int8 / 1000, query, \
                 octet_length(query) >= \
                   pg_size_bytes(current_setting('track_activity_query_size')) - 4 \
                 from pg_catalog.pg_stat_get_activity(null) where pid in ({pids}) \
                 and query <> '<insufficient privilege>'"
            )
        })
    }

    /// Takes an answer. Skips sessions that have begun another statement since the sample.
    pub fn take(
        &mut self,
        answer: &Answer,
        sessions: &mut [Session],
        texts: &mut Texts,
        names: &Names,
    ) -> Vec<Text> {
        let mut found = Vec::new();
        for row in 0..answer.rows() {
            let (pid, start) = (answer.number(row, 0), answer.number(row, 1).unwrap_or(0));
            let session = sessions.iter_mut().find(|s| Some(s.pid) == pid);
            let Some(session) = session.filter(|s| s.query_start_ms == start) else {
                continue;
            };
            let bytes = answer.bytes(row, 2).unwrap_or_default();
            let encoding = names.encoding(session.database);
            let is_cut = answer.bytes(row, 3) == Some(b"t");
            let text = texts.of_session(session, bytes, encoding, is_cut);
            if session.query_id == 0 {
                // The key 0 of an empty text is remembered, so that no later tick asks for the
                // text.
                session.text_key = if bytes.is_empty() { 0 } else { text.key() };
                self.keys.insert(run(session), session.text_key);
            } else if !texts.lacks(session.query_id) {
                continue;
            } else {
                texts.mark_recorded(session.query_id);
            }
            if !bytes.is_empty() {
                found.push(text);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_query_is_read_once_and_forgotten_with_its_end() {
        let session = |pid, query_id, query_start_ms| Session {
            pid,
            query_id,
            query_start_ms,
            state: "active".to_string(),
            ..Session::default()
        };
        let mut texts = Texts::new(true);
        let mut activity = Activity::default();
        let mut sessions = [session(1, 0, 5), session(2, 7, 5), Session::default()];
        let asked = |question: Option<String>| {
            let question = question?;
            let (_, pids) = question.split_once("pid in (")?;
            Some(pids.split_once(')')?.0.to_string())
        };
        assert_eq!(
            asked(activity.question(&mut sessions, &texts)),
            Some("1,2".to_string())
        );
        texts.mark_recorded(7);
        activity.keys.insert((1, 0, 5), 99);
        assert_eq!(asked(activity.question(&mut sessions, &texts)), None);
        assert_eq!(sessions[0].text_key, 99);
        let mut next = [session(1, 0, 6)];
        let again = asked(activity.question(&mut next, &texts));
        assert_eq!((again, activity.keys.len()), (Some("1".to_string()), 0));

        let mut refused = Texts::new(false);
        let mut sessions = [session(1, 0, 5), session(2, 7, 5)];
        assert_eq!(asked(activity.question(&mut sessions, &refused)), None);
        refused.refuse();
        let queries = asked(activity.question(&mut sessions, &refused));
        assert_eq!(queries, Some("2".to_string()));
    }
}
