//! Questions besides the samples: measurements, counters of statements, and texts.
//! If the server refuses them, sampling continues.

use super::Recorder;
use crate::activity::Activity;
use crate::aside::Outcome;
use crate::measures::{self, Source};
use crate::output::{put_changed_setting, put_marker};
use crate::sample::{self, Sample};
use crate::statements;
use crate::texts::Text;
use std::time::Duration;
use tacho_dsn::{Answer, Connection, Error};

/// SQLSTATE of a question that waited too long for a lock.
const LOCKED: &str = "55P03";

impl Recorder<'_> {
    /// Measurements of the server, once an interval.
    pub(super) fn measures(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        let server_ms = self.clock.server_us(self.mono_us()).map(|us| us / 1_000);
        let (Some(server_ms), 1..) = (server_ms, self.settings.server_interval) else {
            return Ok(());
        };
        if !self
            .measures
            .is_due(server_ms, self.settings.server_interval)
        {
            return Ok(());
        }
        let answers = match self.measures.working_sources() {
            None => self.probe_measures(connection)?,
            Some(works) => {
                let works = works.to_vec();
                let sql: Vec<&str> = works.iter().map(|source| source.sql).collect();
                let answers = self.ask(connection, self.settings.answer_timeout(), &sql.join("; "));
                // One of the sources is refused now; the next reading probes which.
                let answers = answers.inspect_err(|_| self.measures.probe())?;
                works.into_iter().zip(answers).collect()
            }
        };
        let reading = self.measures.take(&answers, self.mono_us() / 1_000);
        let mut batch = self.batch(server_ms);
        reading.write_rows(
            &mut batch,
            &mut self.output.dictionary,
            server_ms,
            self.settings.vcpus_x100(),
        );
        self.output.put(batch);
        Ok(())
    }

    /// Asks each source alone. The log names each refused source once. After a locked source, the
    /// next reading probes again.
    fn probe_measures(
        &mut self,
        connection: &mut Connection,
    ) -> tacho_dsn::Result<Vec<(&'static Source, Answer)>> {
        let version = self.identity.as_ref().map_or(0, |i| i.version);
        let mut answers = Vec::new();
        let mut is_locked = false;
        for source in measures::sources(version) {
            match self.ask(connection, self.settings.answer_timeout(), source.sql) {
                Ok(answer) => answers.extend(answer.into_iter().map(|answer| (source, answer))),
                Err(error) if connection.is_open() => {
                    is_locked |= error.code == LOCKED;
                    let line = format!(
                        "could not read measurements of {}: {}",
                        source.what,
                        error.line()
                    );
                    self.refuse_line(line);
                }
                Err(error) => return Err(error),
            }
        }
        if !is_locked {
            let works = answers.iter().map(|(source, _)| *source).collect();
            self.measures.set_working_sources(works);
        }
        Ok(answers)
    }

    /// Puts a marker for each changed setting.
    pub(super) fn changed_settings(
        &mut self,
        connection: &mut Connection,
    ) -> tacho_dsn::Result<()> {
        let server_ms = self.clock.server_us(self.mono_us()).map(|us| us / 1_000);
        let Some(server_ms) = server_ms.filter(|ms| self.changed_settings.is_due(*ms)) else {
            return Ok(());
        };
        let question = self.changed_settings.question();
        let answers = self.ask(connection, self.settings.answer_timeout(), &question)?;
        let answer = answers.first();
        let Some(changes) = answer.and_then(|a| self.changed_settings.take(a, server_ms)) else {
            return Ok(());
        };
        let mut batch = self.batch(server_ms);
        let dictionary = &mut self.output.dictionary;
        for change in &changes.listed {
            put_changed_setting(&mut batch, dictionary, change);
        }
        if changes.left_out > 0 {
            let detail = format!("{} more settings have changed", changes.left_out);
            let times = [server_ms, 0, 0];
            put_marker(&mut batch, dictionary, "settings changed", times, &detail);
        }
        self.output.put(batch);
        let system = self.identity.as_ref().map_or(0, |i| i.system_identifier);
        if let Err(error) = self.changed_settings.keep(system) {
            self.log
                .warn_once(&format!("could not save the settings: {error}"));
        }
        Ok(())
    }

    /// Counters of statements, once an interval.
    pub(super) fn statements(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        let known = self.identity.as_ref().and_then(|i| i.statements.clone());
        let server_ms = self.clock.server_us(self.mono_us()).map(|us| us / 1_000);
        let (Some((schema, _)), Some(server_ms)) = (known, server_ms) else {
            return Ok(());
        };
        if !self
            .statements
            .is_due(server_ms, self.settings.statements_interval)
        {
            return Ok(());
        }
        let answers = self.ask(
            connection,
            self.settings.answer_timeout(),
            &statements::question(&schema),
        )?;
        let Some(pass) = self.statements.take(&answers, server_ms) else {
            return Ok(());
        };
        let now_ms = self.mono_us() / 1_000;
        pass.request(&mut self.names, now_ms);
        let named = self.needed_names(connection, self.settings.answer_timeout(), now_ms);
        pass.query_ids()
            .for_each(|id| self.texts.request(id, server_ms));
        if let Some(reset_ms) = pass.reset_ms {
            let mut batch = self.batch(server_ms);
            let detail = "statistics of all statements were reset";
            let times = [reset_ms, 0, 0];
            put_marker(
                &mut batch,
                &mut self.output.dictionary,
                "statistics reset",
                times,
                detail,
            );
            self.output.put(batch);
        }
        for frame in 0.. {
            let mut batch = self.batch(pass.time_ms());
            let more = pass.put(frame, &mut batch, &mut self.output.dictionary, &self.names);
            self.output.put(batch);
            if !more {
                break;
            }
        }
        named
    }

    /// Asks for the names that are needed. Rows are put also if that fails: the next ones have the
    /// names.
    fn needed_names(
        &mut self,
        connection: &mut Connection,
        limit: Duration,
        now_ms: i64,
    ) -> tacho_dsn::Result<()> {
        if let Some(question) = self.names.question() {
            let answers = self.ask(connection, limit, &question)?;
            self.names.take(&answers, now_ms);
        }
        Ok(())
    }

    /// Texts of the statements that sessions run, if wanted.
    pub(super) fn session_texts(
        &mut self,
        connection: &mut Connection,
        sample: &mut Sample,
    ) -> tacho_dsn::Result<Vec<Text>> {
        let sessions = &mut sample.sessions;
        let Some(question) = self.activity.question(sessions, &self.texts) else {
            return Ok(Vec::new());
        };
        let answers = self.ask_or_refuse(connection, &question)?;
        let answer = answers.first();
        Ok(answer.map_or_else(Vec::new, |answer| {
            self.activity
                .take(answer, sessions, &mut self.texts, &self.names)
        }))
    }

    /// Texts of queries that are new.
    pub(super) fn texts(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        if self.output.take_lost() {
            self.texts.forget();
            self.activity = Activity::default();
        }
        if let Some(outcome) = self.aside.take() {
            self.take_texts(connection, outcome)?;
        }
        let statements = self.identity.as_ref().and_then(|i| i.statements.clone());
        let Some((schema, _)) = statements.filter(|_| !self.settings.no_texts) else {
            return Ok(());
        };
        if self.aside.is_asking() {
            return Ok(());
        }
        if let Some(question) = self.texts.question(&schema, self.mono_us() / 1_000) {
            let limit = self.settings.answer_timeout() * 2;
            let sql = [&sample::set_limits(limit, limit), question.as_str()].concat();
            let given = limit + self.settings.answer_timeout();
            self.aside.ask(&self.target, sql, given, &self.stop);
        }
        Ok(())
    }

    /// Takes the answer to the question for texts.
    fn take_texts(
        &mut self,
        connection: &mut Connection,
        outcome: Outcome,
    ) -> tacho_dsn::Result<()> {
        let now_ms = self.mono_us() / 1_000;
        let took_ms = i64::try_from(outcome.took.as_millis()).unwrap_or(i64::MAX / 1_000);
        let is_slow = self.texts.note_duration(took_ms, now_ms);
        let answers = match outcome.answers {
            Ok(answers) => answers,
            Err(error) => {
                if error.code == "57014" {
                    self.texts.back_off(now_ms);
                }
                self.texts.refuse();
                self.miss_texts(&error);
                return Ok(());
            }
        };
        self.lacks_texts = false;
        if is_slow {
            let text = "reading query texts takes more than a second: it is done less often";
            self.log.warn_once(text);
        }
        let encoding = self.identity.as_ref().map_or(0, |i| i.encoding);
        let texts = self.texts.take(&answers, &mut self.names, encoding, now_ms);
        let named = self.needed_names(connection, self.settings.interval() / 2, now_ms);
        let base_ms = self.clock.server_us(self.mono_us()).unwrap_or(0) / 1_000;
        let mut batch = self.batch(base_ms);
        for text in texts {
            text.put(&mut batch, &mut self.output.dictionary, &self.names);
        }
        self.output.put(batch);
        named
    }

    /// Reports that the server does not show texts: in the log, on the health page,
    /// and once in the history until it shows them again.
    fn miss_texts(&mut self, error: &Error) {
        let line = format!(
            "query texts are taken only from running sessions: {}",
            error.line()
        );
        if !std::mem::replace(&mut self.lacks_texts, true) {
            self.put_now("texts left out", &line);
        }
        self.refuse_line(line);
    }

    /// Reports once that a question besides the samples was refused.
    pub(super) fn refuse(&mut self, error: &Error) {
        self.refuse_line(error.line());
    }

    pub(super) fn refuse_line(&mut self, line: String) {
        self.log.warn_once(&line);
        self.health.update(|c| c.refuse(line));
    }
}
