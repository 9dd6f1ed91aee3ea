//! The main loop: connect, sample, connect again after a fault. A time without
//! samples is a gap; its marker says why.

mod beside;

use crate::Stop;
use crate::activity::Activity;
use crate::aside::BackgroundQuestion;
use crate::batch::Batch;
use crate::budget;
use crate::changed_settings::ChangedSettings;
use crate::clock::{Clock, Due};
use crate::health::Health;
use crate::identity::Identity;
use crate::locks::{self, Edge};
use crate::log::Log;
use crate::measures::Measures;
use crate::names::{Kind, Names};
use crate::options::Settings;
use crate::output::{Output, put_marker};
use crate::relations::{self, RelationName, Relations};
use crate::rows::{self, Tick};
use crate::sample::{self, Sample};
use crate::statements::Statements;
use crate::texts::Texts;
use crate::trouble::GapReasons;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tacho_dsn::{Answer, Connection, Error, Limit};
use tacho_tape::write::clock::{now, random};

/// Maximum time to connect, for all hosts of the connection string together.
const CONNECT: Duration = Duration::from_secs(60);
/// Shortest and longest pause between two attempts; up to the same time is added at
/// random.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// A hole of at least this many slots gets a marker even if nothing went wrong.
const LONG_HOLE_SLOTS: i64 = 3;
/// Interval at which a pause checks the writer and signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Records one server.
pub struct Recorder<'a> {
    settings: &'a Settings,
    target: tacho_dsn::Options,
    output: Output,
    stop: Stop,
    clock: Clock,
    started_at: Instant,
    names: Names,
    relations: Relations,
    texts: Texts,
    /// Asks for texts on a connection of its own.
    aside: BackgroundQuestion,
    /// True if the history has a marker that texts are missing.
    lacks_texts: bool,
    /// True if the log has said how to try a connection that fails.
    has_advised: bool,
    activity: Activity,
    statements: Statements,
    measures: Measures,
    changed_settings: ChangedSettings,
    identity: Option<Identity>,
    /// Causes of missing ticks since the last tick.
    trouble: GapReasons,
    /// End of the last slot in which all sessions were seen, ms since 1970.
    seen_ms: Option<i64>,
    /// Number of slots without a tick since the last one; logged when recording goes on after a
    /// fault.
    missed: i64,
    health: Arc<Health>,
    log: Log,
}

impl<'a> Recorder<'a> {
    /// Records into `output`, which writes to `directory`.
    pub fn new(
        settings: &'a Settings,
        target: tacho_dsn::Options,
        directory: &Path,
        output: Output,
        stop: Stop,
    ) -> Self {
        Recorder {
            settings,
            target,
            stop,
            clock: Clock::new(settings.interval(), output.recorded_ms()),
            output,
            started_at: Instant::now(),
            names: Names::default(),
            relations: Relations::default(),
            texts: Texts::new(settings.raw_texts),
            aside: BackgroundQuestion::default(),
            lacks_texts: false,
            has_advised: false,
            activity: Activity::default(),
            statements: Statements::default(),
            measures: Measures::default(),
            changed_settings: ChangedSettings::new(directory),
            identity: None,
            trouble: GapReasons::default(),
            seen_ms: None,
            missed: 0,
            health: Arc::default(),
            log: Log::default(),
        }
    }

    /// Same recorder for one server of many: it reports its condition to `health`, and writes to
    /// `log`.
    pub fn with(mut self, health: Arc<Health>, log: Log) -> Self {
        health.update(|c| c.max_tick_age = self.settings.answer_timeout() * 2);
        self.health = health;
        self.log = log;
        self
    }

    /// Records until a signal.
    ///
    /// # Errors
    /// The directory is gone, or some frames could not be written.
    pub fn run(mut self) -> Result<(), String> {
        let mut back_off = BACK_OFF.0;
        while !self.stop.is_set() {
            let ticks = self.clock.end_ms();
            if let Err(error) = self.connect_and_record()? {
                self.note(&error);
            }
            self.health.update(|c| c.connected = None);
            if self.clock.end_ms() != ticks {
                back_off = BACK_OFF.0;
            }
            self.pause(back_off + back_off.mul_f64(fraction()))?;
            back_off = (back_off * 2).min(BACK_OFF.1);
        }
        self.aside.finish();
        self.put_stop();
        match self.output.finish() {
            true => Ok(()),
            false => Err("some recorded data could not be written".to_string()),
        }
    }

    /// Notes an error, except at the end of the program. If no connection has ever
    /// worked, the connection string may be wrong.
    fn note(&mut self, error: &Error) {
        if self.stop.is_set() {
            return;
        }
        self.fault(error.line().replace('\n', " "));
        if self.identity.is_none() && !std::mem::replace(&mut self.has_advised, true) {
            self.log.info(&format!(
                "retrying until the connection works; the connection string means: {}; to find \
                 the fault, run tacho record --check \"host=HOST port=5432 dbname=DB user=USER\"",
                self.target.describe()
            ));
        }
    }

    /// Notes why nothing is recorded. Logs the cause and returns true if it is a new one.
    fn fault(&mut self, cause: String) -> bool {
        let is_new = self.trouble.add(&cause);
        if is_new {
            self.log.warning(&format!("not recording: {cause}"));
        }
        self.health.update(|c| c.trouble = Some(cause));
        is_new
    }

    fn mono_us(&self) -> i64 {
        i64::try_from(self.started_at.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Waits, and keeps the writer working meanwhile.
    fn pause(&mut self, time: Duration) -> Result<(), String> {
        let until = Instant::now() + time;
        loop {
            if !self.output.flush_due() {
                return Err("the directory of the history was removed or replaced".to_string());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.is_set() {
                return Ok(());
            }
            std::thread::sleep(left.min(CHECK_INTERVAL));
        }
    }

    /// Records as long as a connection lasts. The inner error is the server's; after the outer
    /// one nothing can be recorded any more.
    fn connect_and_record(&mut self) -> Result<tacho_dsn::Result<()>, String> {
        let mut connection = match self.connect() {
            Ok(connection) => connection,
            Err(error) => return Ok(Err(error)),
        };
        while !self.stop.is_set() {
            let mono_us = self.mono_us();
            self.pause(self.clock.wait(mono_us))?;
            if self.stop.is_set() {
                break;
            }
            let ticked = self.tick(&mut connection);
            let mono_us = self.mono_us();
            self.clock.plan(mono_us, fraction());
            match ticked {
                Ok(()) => (),
                Err(error) if connection.is_open() => self.note(&error),
                Err(error) => return Ok(Err(error)),
            }
            let asked = [
                Self::measures,
                Self::statements,
                Self::texts,
                Self::changed_settings,
            ];
            for ask in asked {
                if budget::is_exhausted() {
                    let text = "memory limit reached: only samples are recorded";
                    self.log.warn_once(text);
                } else if let Err(error) = ask(self, &mut connection) {
                    if !connection.is_open() {
                        return Ok(Err(error));
                    }
                    self.refuse(&error);
                }
            }
        }
        Ok(Ok(()))
    }

    fn connect(&mut self) -> tacho_dsn::Result<Connection> {
        let mut connection =
            Connection::open(&self.target, Limit::within(CONNECT, self.stop.flag()))?;
        self.health.update(|c| c.connects += 1);
        self.identify_server(&mut connection)?;
        self.disable_idle_timeout(&mut connection)?;
        Ok(connection)
    }

    /// Keeps the server from ending the session between two ticks. Behind a pooler the setting
    /// would apply to other clients, so it is not made there.
    fn disable_idle_timeout(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        if self.identity.as_ref().is_some_and(|i| i.is_pooled) {
            return Ok(());
        }
        let limit = Limit::within(self.settings.answer_timeout(), self.stop.flag());
        match connection.query("set idle_session_timeout = 0", limit) {
            Err(error) if !connection.is_open() => Err(error),
            _ => Ok(()),
        }
    }

    /// Finds out which server answers.
    fn identify_server(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        let mut identity = Identity::ask(connection, self.settings.answer_timeout(), &self.stop)?;
        identity.keep_system(self.identity.as_ref());
        self.log
            .info(&format!("connected to {}", identity.describe()));
        self.health.update(|c| {
            c.connected = Some(identity.describe());
            c.refused.clear();
        });
        self.measures.probe();
        self.clock.set_reference(identity.server_us, self.mono_us());
        self.output.dictionary.encoding = identity.encoding;
        let before = self.identity.replace(identity.clone());
        if before
            .as_ref()
            .is_none_or(|before| identity.is_another(before))
        {
            self.begin_life(&identity, before.as_ref());
            return Ok(());
        }
        if before
            .as_ref()
            .is_some_and(|before| identity.has_crashed(before))
        {
            let detail = "all sessions of the server were ended by the crash of a process";
            self.put_at(
                identity.checkpointer_start_us / 1_000,
                "crash recovery",
                detail,
            );
        }
        if before.is_some_and(|before| before.in_recovery && !identity.in_recovery) {
            self.put_promotion(&identity);
        }
        Ok(())
    }

    fn begin_life(&mut self, identity: &Identity, before: Option<&Identity>) {
        let reason = match (before, self.trouble.take()) {
            (None, None) => "the recorder did not run".to_string(),
            (None, Some(trouble)) => format!("the recorder did not run, then: {trouble}"),
            (Some(_), trouble) => {
                trouble.unwrap_or_else(|| "the server was started again".to_string())
            }
        };
        self.output.begin_life(identity, self.settings, &reason);
        self.clock.begin_life();
        self.names.forget();
        self.texts.forget();
        self.aside.forget();
        self.relations = Relations::default();
        self.measures.forget();
        if before.is_none() {
            self.warn_of_another(identity.system_identifier);
        }
        let is_other = before.is_some_and(|before| identity.is_of_another_system(before));
        self.changed_settings
            .begin_life(identity.system_identifier, is_other);
        let what = match before {
            None => "recorder started",
            Some(before) if identity.is_of_another_system(before) => {
                self.statements = Statements::default();
                "connected to another server"
            }
            // This server was running already while the other one answered.
            Some(_) if self.clock.last_us() > Some(identity.postmaster_start_us) => {
                self.statements = Statements::default();
                "connected to another server of the same system"
            }
            Some(before) if identity.has_recovered(before) => {
                "server restarted after a crash or an immediate shutdown"
            }
            Some(_) => "server restarted",
        };
        let detail = format!("{what}, {}", identity.describe());
        self.put_at(identity.server_us / 1_000, "start", &detail);
    }

    /// Warns if the directory was begun with another server: answers mix both.
    fn warn_of_another(&self, system_identifier: u64) {
        let Some(earlier) = self.changed_settings.earlier_system() else {
            return;
        };
        if ![0, system_identifier].contains(&earlier) {
            self.log.warning(&format!(
                "this directory has the history of another server, system {earlier}: \
                 answers mix both; use a separate directory for each server (--tape)"
            ));
        }
    }

    fn put_promotion(&mut self, identity: &Identity) {
        let detail = format!("the standby was promoted: {}", identity.describe());
        self.put_now("promotion", &detail);
    }

    /// Writes the last marker. If something went wrong since the last tick, a failed tick and a
    /// marker of the gap say why.
    fn put_stop(&mut self) {
        if self.identity.is_none() {
            return;
        }
        if !self.trouble.is_none()
            && let Some(due) = self.clock.failed_tick(self.mono_us())
        {
            self.missed += due.missed;
            let mut batch = self.batch(due.slot_ms);
            let reason = self.put_gap(&mut batch, due.slot_ms).unwrap_or_default();
            self.put_failed(&mut batch, &due, &reason, 0);
            self.output.put(batch);
        }
        self.put_now("stop", "recorder stopped");
    }

    fn put_failed(&mut self, batch: &mut Batch, due: &Due, reason: &str, hidden: i64) {
        let (interval_ms, dictionary) = (self.interval_ms(), &mut self.output.dictionary);
        rows::put_failed(batch, dictionary, due, interval_ms, reason, hidden);
    }

    fn interval_ms(&self) -> i64 {
        i64::try_from(self.settings.interval).unwrap_or(i64::MAX)
    }

    /// Adds a marker for this moment, by the server's clock if known.
    fn put_now(&mut self, kind: &str, detail: &str) {
        let known = self.clock.server_us(self.mono_us()).map(|us| us / 1_000);
        self.put_at(known.unwrap_or_else(|| now().wall_ms), kind, detail);
    }

    fn put_at(&mut self, time: i64, kind: &str, detail: &str) {
        let mut batch = self.batch(time);
        put_marker(
            &mut batch,
            &mut self.output.dictionary,
            kind,
            [time, 0, 0],
            detail,
        );
        self.output.put(batch);
    }

    fn batch(&mut self, base_ms: i64) -> Batch {
        self.output.dictionary.begin_frame(self.mono_us() / 1_000);
        Batch::new(base_ms)
    }

    /// Asks a question. It waits for a lock for half an interval at most, because no tick is taken
    /// meanwhile.
    fn ask(
        &self,
        connection: &mut Connection,
        statement: Duration,
        question: &str,
    ) -> tacho_dsn::Result<Vec<Answer>> {
        let lock = statement.min(self.settings.interval() / 2);
        let sql = [&sample::set_limits(statement, lock), question].concat();
        connection.query(
            &sql,
            Limit::within(self.settings.answer_timeout(), self.stop.flag()),
        )
    }

    fn tick(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        let half = self.settings.interval() / 2;
        let before_us = self.mono_us();
        let answers = self.ask(connection, half, &sample::question())?;
        let within_us = [before_us, self.mono_us()];
        let Some(mut sample) = sample::read(&answers) else {
            return Ok(());
        };
        let known = self.identity.as_ref().map(|i| i.postmaster_start_us);
        if known != Some(sample.postmaster_start_us) {
            // A pooler has switched to another server without ending the
            // connection.
            self.identify_server(connection)?;
        }
        let Some(due) = self.clock.take(sample.server_us, within_us) else {
            return Ok(());
        };
        // A hole before the first tick of a life is explained by the start of that
        // life.
        if due.missed >= LONG_HOLE_SLOTS && due.tick > due.missed + 1 {
            self.explain(within_us);
        }
        self.missed += due.missed;
        if sample.hidden > 0 && !self.settings.own_sessions {
            self.put_hidden(&due, sample.hidden);
            return Ok(());
        }
        let (edges, unresolved) = self.blockers(connection, &mut sample)?;
        self.look_up(connection, &sample)?;
        let relations = self.relation_names(connection, &edges)?;
        let texts = self.session_texts(connection, &mut sample)?;
        let mut batch = self.batch(due.slot_ms);
        if self.put_gap(&mut batch, due.slot_ms).is_some() {
            let missed = self.missed;
            let text = "recording resumed; slots without a tick since the start";
            self.log.info(&format!("{text}: {missed}"));
        }
        self.seen_ms = Some(due.slot_ms + self.interval_ms());
        let identity = self.identity.as_ref();
        let was_standby = identity.is_some_and(|i| i.in_recovery);
        let tick = Tick {
            due,
            interval_ms: self.interval_ms(),
            max_connections: identity.map_or(0, |i| i.max_connections),
            vcpus_x100: self.settings.vcpus_x100(),
            edges: &edges,
            unresolved,
        };
        rows::put(
            &mut batch,
            &mut self.output.dictionary,
            &self.names,
            &sample,
            &tick,
        );
        for relation in relations {
            relation.put(&mut batch, &mut self.output.dictionary, due.slot_ms);
        }
        for text in texts {
            text.put(&mut batch, &mut self.output.dictionary, &self.names);
        }
        self.output.put(batch);
        self.update_health(&due, self.mono_us() - before_us);
        for session in &sample.sessions {
            self.texts.request(session.query_id, due.slot_ms);
        }
        if was_standby && !sample.in_recovery {
            self.promoted();
        }
        Ok(())
    }

    /// Explains a long hole without an error: the answer was late, or the recorder was
    /// delayed.
    fn explain(&mut self, [asked_us, answered_us]: [i64; 2]) {
        let (took_us, interval_us) = (answered_us - asked_us, self.settings.interval * 1_000);
        let reason = match u64::try_from(took_us) {
            Ok(took_us) if took_us >= interval_us => {
                format!("the server answered after {} ms", took_us / 1_000)
            }
            _ => "the recorder was delayed".to_string(),
        };
        if self.trouble.is_none() {
            self.trouble.add(&reason);
        }
    }

    /// Records a failed tick, because sessions are hidden from the role. Without
    /// them the load would be too small.
    fn put_hidden(&mut self, due: &Due, hidden: i64) {
        let role = self.identity.as_ref().map_or("", |i| i.role.as_str());
        let reason = format!("sessions of others are hidden from role {role}, see pg_monitor");
        if self.fault(reason.clone()) {
            self.put_at(due.slot_ms, "recording paused", &reason);
        }
        let mut batch = self.batch(due.slot_ms);
        self.put_failed(&mut batch, due, &reason, hidden);
        self.output.put(batch);
    }

    fn update_health(&self, due: &Due, waited_us: i64) {
        self.health.update(|c| {
            c.trouble = None;
            c.ticks += 1;
            c.late_ticks += u64::from(due.late);
            c.missed_slots += u64::try_from(due.missed).unwrap_or(0);
            c.waited_us += u64::try_from(waited_us).unwrap_or(0);
            c.last_tick = Some(Instant::now());
        });
    }

    fn promoted(&mut self) {
        if let Some(mut identity) = self.identity.take() {
            identity.in_recovery = false;
            self.put_promotion(&identity);
            self.identity = Some(identity);
        }
    }

    /// Adds a marker for the gap until this moment, if there is one, and returns
    /// the reason.
    fn put_gap(&mut self, batch: &mut Batch, until_ms: i64) -> Option<String> {
        let reason = self.trouble.take()?;
        if let Some(seen_ms) = self.seen_ms
            && seen_ms < until_ms
        {
            let times = [until_ms, seen_ms, until_ms];
            put_marker(batch, &mut self.output.dictionary, "gap", times, &reason);
        }
        Some(reason)
    }

    /// Finds blockers if a session waits for a lock. Adds idle blockers to the
    /// sample.
    fn blockers(
        &mut self,
        connection: &mut Connection,
        sample: &mut Sample,
    ) -> tacho_dsn::Result<(Vec<Edge>, i64)> {
        let waiters = sample
            .sessions
            .iter()
            .filter(|s| s.wait_type == "Lock")
            .count();
        if waiters == 0 {
            return Ok((Vec::new(), 0));
        }
        let half = self.settings.interval() / 2;
        let locks = match self.ask(connection, half, locks::QUESTION) {
            Ok(answers) => answers.first().map(locks::read).unwrap_or_default(),
            Err(error) if connection.is_open() => {
                self.refuse(&error);
                return Ok((Vec::new(), i64::try_from(waiters).unwrap_or(i64::MAX)));
            }
            Err(error) => return Err(error),
        };
        let leaders = sample.sessions.iter().filter(|s| s.leader != 0);
        let leaders: HashMap<i64, i64> = leaders.map(|s| (s.pid, s.leader)).collect();
        let since_ms =
            sample.server_us / 1_000 - i64::try_from(self.settings.interval).unwrap_or(0);
        let (mut edges, left_out) = locks::edges(&locks, since_ms, &leaders);
        let seen: HashSet<i64> = sample.sessions.iter().map(|s| s.pid).collect();
        edges.retain(|edge| seen.contains(&edge.waiter));
        let mut idle: Vec<i64> = edges.iter().map(|e| e.blocker).collect();
        idle.retain(|pid| *pid != 0 && !seen.contains(pid));
        idle.sort_unstable();
        idle.dedup();
        if !idle.is_empty() {
            let question = sample::question_about(&idle);
            let answers = self.ask_or_refuse(connection, &question)?;
            let blockers = answers.first().map(sample::read_blockers);
            sample.sessions.extend(blockers.unwrap_or_default());
        }
        self.name_prepared(connection, &mut edges)?;
        Ok((edges, left_out))
    }

    /// Looks up the names of prepared transactions among the blockers.
    fn name_prepared(
        &mut self,
        connection: &mut Connection,
        edges: &mut [Edge],
    ) -> tacho_dsn::Result<()> {
        let Some(question) = locks::names_question(edges) else {
            return Ok(());
        };
        let answers = self.ask_or_refuse(connection, &question)?;
        answers.iter().for_each(|answer| locks::name(edges, answer));
        Ok(())
    }

    /// Looks up the names of relations that sessions wait for.
    fn relation_names(
        &mut self,
        connection: &mut Connection,
        edges: &[Edge],
    ) -> tacho_dsn::Result<Vec<RelationName>> {
        let now_ms = self.mono_us() / 1_000;
        let Some(question) = self.relations.question(edges, now_ms) else {
            return Ok(Vec::new());
        };
        let answers = self.ask_or_refuse(connection, &question)?;
        Ok(answers.first().map(relations::read).unwrap_or_default())
    }

    /// Asks a question of a tick. If the server refuses it, the log says so, and there is no answer.
    fn ask_or_refuse(
        &mut self,
        connection: &mut Connection,
        question: &str,
    ) -> tacho_dsn::Result<Vec<Answer>> {
        match self.ask(connection, self.settings.interval() / 2, question) {
            Err(error) if connection.is_open() => {
                self.refuse(&error);
                Ok(Vec::new())
            }
            answered => answered,
        }
    }

    fn look_up(&mut self, connection: &mut Connection, sample: &Sample) -> tacho_dsn::Result<()> {
        let now_ms = self.mono_us() / 1_000;
        for session in &sample.sessions {
            self.names.request(Kind::Database, session.database, now_ms);
            self.names.request(Kind::Role, session.user, now_ms);
        }
        let Some(question) = self.names.question() else {
            return Ok(());
        };
        let answers = self.ask_or_refuse(connection, &question)?;
        self.names.take(&answers, now_ms);
        Ok(())
    }
}

/// A random number from 0 to below 1.
fn fraction() -> f64 {
    (random() >> 11) as f64 / (1_u64 << 53) as f64
}
