//! Questions about a day of samples, asked of tacho and of the SQL edition, each
//! with the same load in it: 50 sessions active at every second,
//! each in any of 21 wait events and any of 200 queries, drawn independently.

use super::access::Access;
use super::process::{Running, Stop, run};
use super::scenario::{Form, History};
use super::statement::milliseconds;
use super::stats::median;
use super::store::Metrics;
use super::waits::{Profile, Waits};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// 2026-03-01 00:00:00 UTC.
const BEGIN: &str = "2026-03-01 00:00:00+00";
const EDITION_DAY: &str = include_str!("../../../bench/sql_edition.sql");

/// SQL of the installations that are no libraries.
#[derive(Debug, Clone, Default)]
pub struct Installers {
    /// sql/tacho.sql.
    pub edition: Option<PathBuf>,
}

impl Installers {
    /// The option that names what a form needs, when it was not given.
    pub fn lacks(&self, form: Form) -> Option<&'static str> {
        match form {
            Form::Edition if self.edition.is_none() => Some("--edition"),
            _ => None,
        }
    }
}

/// Database that a form is asked in.
fn database(form: Form) -> &'static str {
    match form {
        Form::Edition => "edition",
        _ => "postgres",
    }
}

/// What a server with the tape needs.
pub fn settings(access: &Access, form: Form) -> BTreeMap<String, String> {
    let tape = access.scratch.join("tape").display().to_string();
    let settings = match form {
        Form::Tape => vec![
            ("tacho.directory", tape.as_str()),
            ("tacho.sample_interval", "60s"),
            ("tacho.retention_age", "0"),
            ("tacho.retention_size", "0"),
        ],
        _ => Vec::new(),
    };
    let owned = settings.into_iter();
    owned.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// Puts the day into a form; the server runs.
pub fn fill(
    access: &Access,
    history: &History,
    form: Form,
    installers: &Installers,
    stop: &Stop,
) -> Result<()> {
    match form {
        Form::Tape => import(access, history.hours, stop),
        Form::Edition => {
            install(
                access,
                form,
                installers.edition.as_deref(),
                EDITION_DAY,
                stop,
            )?;
            for hour in 0..history.hours {
                let sql = format!("set work_mem = '256MB'; call uniform_hour('{BEGIN}', {hour})");
                ask(access, form, &[&sql], stop)?;
            }
            let packed = format!(
                "select tacho._roll_up_hours(tacho._ms('{BEGIN}'::timestamptz + interval '2 days'), 100)"
            );
            ask(
                access,
                form,
                &[&packed, "vacuum full tacho.hot", "vacuum analyze"],
                stop,
            )
        }
        Form::Arrays | Form::Pco => Ok(()),
    }
}

fn ask(access: &Access, form: Form, sql: &[&str], stop: &Stop) -> Result<()> {
    let mut psql = access.psql_on(database(form));
    for sql in sql {
        psql.args(["-c", sql]);
    }
    run(&mut psql, stop)
        .map(drop)
        .context("could not make the history")
}

/// Makes the database and runs an installer in it, which may include files.
fn install(
    access: &Access,
    form: Form,
    installer: Option<&Path>,
    more: &str,
    stop: &Stop,
) -> Result<()> {
    let installer = installer.context("no installer was given")?;
    access.sql(&format!("create database {}", database(form)), stop)?;
    let installer = installer.canonicalize();
    let mut psql = access.psql_as_caller(database(form));
    psql.arg("-f")
        .arg(installer.context("could not find the installer")?);
    run(&mut psql, stop).context("could not install")?;
    ask(access, form, &[more], stop)
}

/// Imports the day with this program.
fn import(access: &Access, hours: u32, stop: &Stop) -> Result<()> {
    let tape = access.scratch.join("tape");
    let mut import = Command::new(std::env::current_exe()?);
    import
        .args(["import", "sessions", "-", "--node", "1", "--tape"])
        .arg(&tape);
    let mut import = Running::start(import.stdin(Stdio::piped()))?;
    let mut out = BufWriter::new(import.input().context("no input")?);
    let written = write_day(&mut out, hours).and_then(|()| out.flush());
    drop(out);
    import.finish(stop)?;
    written.context("could not import the history")?;
    access.own(&tape)
}

fn write_day(out: &mut impl Write, hours: u32) -> std::io::Result<()> {
    writeln!(
        out,
        "time,pid,backend_start,database,username,application,state,wait_event_type,wait_event,query_id"
    )?;
    let begin: jiff::Timestamp = "2026-03-01T00:00:00Z"
        .parse()
        .map_err(std::io::Error::other)?;
    let mut random = 1_u64;
    let mut below = |n: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let classes = ["IO", "LWLock", "Lock", "IPC"];
    for second in 0..i64::from(hours) * 3_600 {
        let at = begin + jiff::SignedDuration::from_secs(second);
        for s in 0..50 {
            let wait = below(21);
            let wait = match usize::try_from(wait % 4) {
                Ok(class) if wait < 20 => format!("{},Event{wait}", classes[class]),
                _ => ",".to_owned(),
            };
            writeln!(
                out,
                "{at},{},2026-02-28T00:00:{s:02}Z,db{},user{},app{},active,{wait},{}",
                1_000 + s,
                s % 2,
                s % 5,
                s % 3,
                below(200) + 1
            )?;
        }
    }
    Ok(())
}

/// Asks once to warm up, then five times.
pub fn measure(
    access: &Access,
    history: &History,
    form: Form,
    question: &str,
    stop: &Stop,
) -> Result<(Metrics, Profile)> {
    let mut questions = history.questions.iter();
    let question = questions.find(|q| q.name == question);
    let sql = statement(
        &question.context("there is no such question")?.sql,
        form,
        history.hours,
    );
    let waits = Waits::start(access)?;
    let mut psql = access.psql_on(database(form));
    psql.args(["-c", "set jit = off", "-c", &sql, "-c", "\\timing on"]);
    for _ in 0..5 {
        psql.args(["-c", &sql]);
    }
    let text = run(&mut psql, stop).with_context(|| format!("could not run \"{sql}\""))?;
    let times: Vec<f64> = text.lines().filter_map(|l| milliseconds(l).ok()).collect();
    let ms = median(&times).context("psql did not say how long it took")?;
    let bytes = match form {
        Form::Tape => super::codec::size(&access.scratch.join("tape"))?,
        _ => {
            let sql = "select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' \
                       and relnamespace = 'tacho'::regnamespace";
            let size = run(access.psql_on(database(form)).args(["-c", sql]), stop)?;
            size.trim().parse().context("a size that is no number")?
        }
    };
    let metrics = [("ms", ms), ("size_mib", bytes / f64::from(1 << 20))];
    let metrics = metrics.map(|(name, value)| (name.to_owned(), value));
    Ok((Metrics::from(metrics), waits.end()?))
}

/// A question in the words of a form.
fn statement(sql: &str, form: Form, hours: u32) -> String {
    let at = |hour: u32| format!("timestamptz '{BEGIN}' + interval '{hour} hours'");
    let node = match form {
        Form::Tape => ", node => '0000000000000001'",
        _ => "",
    };
    sql.replace("{hour}", &at(hours.saturating_sub(1)))
        .replace("{begin}", &at(0))
        .replace("{end}", &at(hours))
        .replace("{node}", node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_in_the_words_of_each_form() {
        let sql = "tacho.top(since => {hour}, until => {end}{node})";
        let since = "timestamptz '2026-03-01 00:00:00+00' + interval '5 hours'";
        let until = "timestamptz '2026-03-01 00:00:00+00' + interval '6 hours'";
        assert_eq!(
            statement(sql, Form::Edition, 6),
            format!("tacho.top(since => {since}, until => {until})")
        );
        let tape = statement(sql, Form::Tape, 6);
        assert!(tape.ends_with(", node => '0000000000000001')"), "{tape}");
    }

    #[test]
    fn the_day_has_fifty_samples_a_second() {
        let mut text = Vec::new();
        write_day(&mut text, 1).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text.lines().count(), 1 + 3_600 * 50);
        let line = text.lines().nth(1).expect("a line");
        assert!(
            line.starts_with(
                "2026-03-01T00:00:00Z,1000,2026-02-28T00:00:00Z,db0,user0,app0,active,"
            )
        );
    }
}
