//! The loop: connect, sample, and after a fault connect again. Whatever was not
//! seen is a gap whose marker says why.

use crate::Stop;
use crate::activity::Activity;
use crate::batch::Batch;
use crate::budget;
use crate::clock::{Clock, Due};
use crate::health::Health;
use crate::identity::Identity;
use crate::locks::{self, Edge};
use crate::log::Log;
use crate::measures::{self, Measures, Source};
use crate::names::{Kind, Names};
use crate::options::Settings;
use crate::output::{Output, put_marker};
use crate::rows::{self, Tick};
use crate::sample::{self, Sample, Session};
use crate::statements::{self, Statements};
use crate::texts::{Text, Texts};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tacho_dsn::{Answer, Connection, Error, Limit};
use tacho_tape::write::recording::{now, random};

/// To connect, host after host.
const CONNECT: Duration = Duration::from_secs(60);
/// Between two attempts: from, to, with up to as much again at random.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// A hole of so many slots has a marker also when nothing went wrong.
const LONG: i64 = 3;
/// How often it is looked after the writer and for signals.
const TURN: Duration = Duration::from_millis(100);

/// Records one server.
pub struct Recorder<'a> {
    settings: &'a Settings,
    target: tacho_dsn::Options,
    output: Output,
    stop: Stop,
    clock: Clock,
    begin: Instant,
    names: Names,
    texts: Texts,
    activity: Activity,
    statements: Statements,
    measures: Measures,
    identity: Option<Identity>,
    /// Why there were no ticks since the last one.
    trouble: Option<String>,
    /// Slots without a tick, said once a connection.
    missed: i64,
    health: Arc<Health>,
    log: Log,
}

impl<'a> Recorder<'a> {
    /// Into `output`.
    pub fn new(
        settings: &'a Settings,
        target: tacho_dsn::Options,
        output: Output,
        stop: Stop,
    ) -> Self {
        Recorder {
            settings,
            target,
            stop,
            clock: Clock::new(settings.interval(), output.recorded_ms()),
            output,
            begin: Instant::now(),
            names: Names::default(),
            texts: Texts::default(),
            activity: Activity::default(),
            statements: Statements::default(),
            measures: Measures::default(),
            identity: None,
            trouble: None,
            missed: 0,
            health: Arc::default(),
            log: Log::default(),
        }
    }

    /// One of many, which tells how it is doing.
    pub fn with(mut self, health: Arc<Health>, log: Log) -> Self {
        health.update(|c| c.oldest = self.settings.patience() * 2);
        self.health = health;
        self.log = log;
        self
    }

    /// Until a signal.
    ///
    /// # Errors
    /// The directory is gone, or not all could be written.
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
        self.put_stop();
        match self.output.finish() {
            true => Ok(()),
            false => Err("not all that was recorded could be written".to_string()),
        }
    }

    /// Something went wrong: the first cause counts, and is logged once.
    fn note(&mut self, error: &Error) {
        if self.trouble.is_none() && !self.stop.is_set() {
            let line = error.line().replace('\n', " ");
            self.log.warning(&format!("nothing is recorded: {line}"));
            self.health.update(|c| c.trouble = Some(line.clone()));
            self.trouble = Some(line);
        }
    }

    fn mono_us(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Waits, looking after the writer.
    fn pause(&mut self, time: Duration) -> Result<(), String> {
        let until = Instant::now() + time;
        loop {
            if !self.output.turn() {
                return Err("the directory of the history was removed or replaced".to_string());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.is_set() {
                return Ok(());
            }
            std::thread::sleep(left.min(TURN));
        }
    }

    /// As long as a connection lasts. The inner error is the server's.
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
            let asked = [Self::measures, Self::statements, Self::texts];
            for ask in asked {
                if budget::is_exhausted() {
                    let text = "memory is short: only samples are recorded";
                    self.log.once(text);
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
        self.meet(&mut connection)?;
        Ok(connection)
    }

    /// Asks which server it is.
    fn meet(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        let identity = Identity::ask(connection, self.settings.patience(), &self.stop)?;
        self.log
            .say(&format!("connected to {}", identity.describe()));
        self.health.update(|c| {
            c.connected = Some(identity.describe());
            c.refused.clear();
        });
        self.measures.probe();
        let before = self.identity.replace(identity.clone());
        if before
            .as_ref()
            .is_none_or(|before| identity.is_another(before))
        {
            self.begin_life(&identity, before.as_ref());
        } else if before.is_some_and(|before| before.in_recovery && !identity.in_recovery) {
            self.put_promotion(&identity);
        }
        Ok(())
    }

    fn begin_life(&mut self, identity: &Identity, before: Option<&Identity>) {
        let trouble = self.trouble.take();
        let reason = match before {
            None => "the recorder did not run".to_string(),
            Some(_) => trouble.unwrap_or_else(|| "the server was started again".to_string()),
        };
        self.output.begin_life(identity, self.settings, &reason);
        self.clock.begin_life();
        self.names.forget();
        self.texts.forget();
        self.measures.forget();
        let what = match before {
            None => "recorder started",
            Some(before) if before.system_identifier != identity.system_identifier => {
                self.statements = Statements::default();
                "another server answers"
            }
            // It ran already when the other one answered.
            Some(_) if self.clock.last_us() > Some(identity.postmaster_start_us) => {
                self.statements = Statements::default();
                "another server of the same system answers"
            }
            Some(_) => "server started again",
        };
        self.put_now("start", &format!("{what}, {}", identity.describe()));
    }

    fn put_promotion(&mut self, identity: &Identity) {
        let detail = format!("the standby has become a primary: {}", identity.describe());
        self.put_now("promotion", &detail);
    }

    fn put_stop(&mut self) {
        if self.identity.is_some() {
            self.put_now("stop", "recorder stopped");
        }
    }

    /// A marker of this moment, by the server's clock where it is known.
    fn put_now(&mut self, kind: &str, detail: &str) {
        let known = self.clock.server_us(self.mono_us()).map(|us| us / 1_000);
        let time = known.unwrap_or_else(|| now().wall_ms);
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

    fn ask(
        &self,
        connection: &mut Connection,
        statement: Duration,
        question: &str,
    ) -> tacho_dsn::Result<Vec<Answer>> {
        let sql = [&sample::limits(statement), question].concat();
        connection.query(
            &sql,
            Limit::within(self.settings.patience(), self.stop.flag()),
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
            // A pooler has led to another server, and nobody was cut off.
            self.meet(connection)?;
        }
        let end_ms = self.clock.end_ms();
        let Some(due) = self.clock.take(sample.server_us, within_us) else {
            return Ok(());
        };
        // The hole before the first tick of a life has the reason of that.
        if due.missed >= LONG && due.tick > due.missed + 1 {
            self.explain(within_us);
        }
        let (edges, unresolved) = self.blockers(connection, &mut sample)?;
        self.look_up(connection, &sample)?;
        let texts = self.raw_texts(connection, &mut sample)?;
        let mut batch = self.batch(due.slot_ms);
        self.put_gap(&mut batch, end_ms, due.slot_ms, due.missed);
        let identity = self.identity.as_ref();
        let was_standby = identity.is_some_and(|i| i.in_recovery);
        let tick = Tick {
            due,
            interval_ms: i64::try_from(self.settings.interval).unwrap_or(i64::MAX),
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
        for text in texts {
            text.put(&mut batch, &mut self.output.dictionary, &self.names);
        }
        self.output.put(batch);
        self.tell(&due, self.mono_us() - before_us);
        for session in &sample.sessions {
            self.texts.want(session.query_id, due.slot_ms);
        }
        if was_standby && !sample.in_recovery {
            self.promoted();
        }
        Ok(())
    }

    /// There was no tick for long, and no error: an answer was late, or we were.
    fn explain(&mut self, [asked_us, answered_us]: [i64; 2]) {
        let (took_us, interval_us) = (answered_us - asked_us, self.settings.interval * 1_000);
        let reason = match u64::try_from(took_us) {
            Ok(took_us) if took_us >= interval_us => {
                format!("the server answered after {} ms", took_us / 1_000)
            }
            _ => "the recorder was held up".to_string(),
        };
        self.trouble.get_or_insert(reason);
    }

    fn tell(&self, due: &Due, waited_us: i64) {
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

    /// Says why there was nothing since the last tick.
    fn put_gap(&mut self, batch: &mut Batch, end_ms: Option<i64>, slot_ms: i64, missed: i64) {
        self.missed += missed;
        let reason = self.trouble.take();
        if let (Some(reason), Some(end_ms)) = (reason, end_ms)
            && end_ms < slot_ms
        {
            let times = [slot_ms, end_ms, slot_ms];
            put_marker(batch, &mut self.output.dictionary, "gap", times, &reason);
            self.log.say(&format!(
                "recording goes on; slots without a tick since it began: {}",
                self.missed
            ));
        }
    }

    /// Who blocks whom, if anybody waits for a lock. Blockers that are idle are
    /// added to the sample.
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
            sample
                .sessions
                .extend(self.idle_blockers(connection, &idle)?);
        }
        Ok((edges, left_out))
    }

    fn idle_blockers(
        &self,
        connection: &mut Connection,
        pids: &[i64],
    ) -> tacho_dsn::Result<Vec<Session>> {
        let answers = self.ask(
            connection,
            self.settings.interval() / 2,
            &sample::question_about(pids),
        )?;
        Ok(answers
            .first()
            .map(sample::read_blockers)
            .unwrap_or_default())
    }

    fn look_up(&mut self, connection: &mut Connection, sample: &Sample) -> tacho_dsn::Result<()> {
        let now_ms = self.mono_us() / 1_000;
        for session in &sample.sessions {
            self.names.want(Kind::Database, session.database, now_ms);
            self.names.want(Kind::Role, session.user, now_ms);
        }
        let Some(question) = self.names.question() else {
            return Ok(());
        };
        match self.ask(connection, self.settings.interval() / 2, &question) {
            Ok(answers) => self.names.take(&answers, now_ms),
            Err(error) if connection.is_open() => {
                self.refuse(&error);
                self.names.take(&[], now_ms);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Measurements of the server, once an interval.
    fn measures(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
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
        let answers = match self.measures.works() {
            None => self.probe_measures(connection)?,
            Some(works) => {
                let works = works.to_vec();
                let sql: Vec<&str> = works.iter().map(|source| source.sql).collect();
                let answers = self.ask(connection, self.settings.patience(), &sql.join("; "));
                // One of them is refused now: which one, the next reading finds out.
                let answers = answers.inspect_err(|_| self.measures.probe())?;
                works.into_iter().zip(answers).collect()
            }
        };
        let reading = self.measures.take(&answers, self.mono_us() / 1_000);
        let mut batch = self.batch(server_ms);
        reading.put(
            &mut batch,
            &mut self.output.dictionary,
            server_ms,
            self.settings.vcpus_x100(),
        );
        self.output.put(batch);
        Ok(())
    }

    /// Asks each source alone; those that are refused are told once.
    fn probe_measures(
        &mut self,
        connection: &mut Connection,
    ) -> tacho_dsn::Result<Vec<(&'static Source, Answer)>> {
        let version = self.identity.as_ref().map_or(0, |i| i.version);
        let mut answers = Vec::new();
        for source in measures::sources(version) {
            match self.ask(connection, self.settings.patience(), source.sql) {
                Ok(answer) => answers.extend(answer.into_iter().map(|answer| (source, answer))),
                Err(error) if connection.is_open() => {
                    let line = format!(
                        "measurements of {} are refused: {}",
                        source.what,
                        error.line()
                    );
                    self.refuse_line(line);
                }
                Err(error) => return Err(error),
            }
        }
        let works = answers.iter().map(|(source, _)| *source).collect();
        self.measures.set_works(works);
        Ok(answers)
    }

    /// What statements have counted, once an interval.
    fn statements(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
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
            self.settings.patience(),
            &statements::question(&schema),
        )?;
        let Some(pass) = self.statements.take(&answers, server_ms) else {
            return Ok(());
        };
        let now_ms = self.mono_us() / 1_000;
        pass.want(&mut self.names, now_ms);
        if let Some(question) = self.names.question() {
            let answers = self.ask(connection, self.settings.patience(), &question)?;
            self.names.take(&answers, now_ms);
        }
        pass.query_ids()
            .for_each(|id| self.texts.want(id, server_ms));
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
        Ok(())
    }

    /// What sessions run as they sent it, where that is wanted.
    fn raw_texts(
        &mut self,
        connection: &mut Connection,
        sample: &mut Sample,
    ) -> tacho_dsn::Result<Vec<Text>> {
        if !self.settings.raw_texts {
            return Ok(Vec::new());
        }
        let sessions = &mut sample.sessions;
        let Some(question) = self.activity.question(sessions, &self.texts) else {
            return Ok(Vec::new());
        };
        let answers = self.ask(connection, self.settings.interval() / 2, &question)?;
        let answer = answers.first();
        Ok(answer.map_or_else(Vec::new, |answer| {
            self.activity.take(answer, sessions, &mut self.texts)
        }))
    }

    /// Texts of queries that were not met before.
    fn texts(&mut self, connection: &mut Connection) -> tacho_dsn::Result<()> {
        if self.output.take_lost() {
            self.texts.forget();
            self.activity = Activity::default();
        }
        let statements = self.identity.as_ref().and_then(|i| i.statements.clone());
        let Some((schema, _)) = statements.filter(|_| !self.settings.no_texts) else {
            return Ok(());
        };
        let now_ms = self.mono_us() / 1_000;
        let Some(question) = self.texts.question(&schema, now_ms) else {
            return Ok(());
        };
        let answers = self.ask(connection, self.settings.patience(), &question)?;
        let texts = self.texts.take(&answers, &mut self.names, now_ms);
        if let Some(question) = self.names.question() {
            let answers = self.ask(connection, self.settings.interval() / 2, &question)?;
            self.names.take(&answers, now_ms);
        }
        let base_ms = self.clock.server_us(self.mono_us()).unwrap_or(0) / 1_000;
        let mut batch = self.batch(base_ms);
        for text in texts {
            text.put(&mut batch, &mut self.output.dictionary, &self.names);
        }
        self.output.put(batch);
        Ok(())
    }

    /// Something besides the samples was refused: said once.
    fn refuse(&mut self, error: &Error) {
        self.refuse_line(error.line());
    }

    fn refuse_line(&mut self, line: String) {
        self.log.once(&line);
        self.health.update(|c| c.refuse(line));
    }
}

/// Of 1, at random.
fn fraction() -> f64 {
    (random() >> 11) as f64 / (1_u64 << 53) as f64
}
