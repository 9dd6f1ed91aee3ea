//! Questions about a day of samples, asked of tacho, of the SQL edition and of
//! pg_ash. Each has the same load: 50 sessions active in every second, each with
//! one of 21 wait events and one of 200 queries, drawn independently.

use super::access::Access;
use super::process::{Running, Stop, run};
use super::scenario::{Form, History, Question, Variant};
use super::statement::milliseconds;
use super::stats::median;
use super::store::{CUT_OFF, Metrics};
use super::waits::{Profile, Waits};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// 2026-03-01 00:00:00 UTC.
const BEGIN: &str = "2026-03-01 00:00:00+00";
/// The server's message at the limit; our servers speak English.
const TIMEOUT: &str = "canceling statement due to statement timeout";
const EDITION_DAY: &str = include_str!("../../bench/sql_edition.sql");

/// Begin of pg_ash's history, which follows the server's clock.
const ASH_BEGIN: &str = "create table history_begin as \
     select date_trunc('hour', now()) - interval '{hours} hours' as at";

/// The version of pg_ash of an installer, by the readers it creates.
pub fn ash(installer: &str) -> Form {
    match installer.contains("function ash.top_waits_at(") {
        true => Form::Ash1,
        false => Form::Ash2,
    }
}

/// The database that holds the history of a variant.
fn database(variant: &Variant) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    match variant.form {
        Some(Form::Tape) | None => "postgres".to_owned(),
        _ => variant.name.to_lowercase().chars().map(plain).collect(),
    }
}

/// Settings of a server with the tape.
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

/// Stores the day in a form; the server is running.
pub fn fill(access: &Access, history: &History, variant: &Variant, stop: &Stop) -> Result<()> {
    match variant.form {
        Some(Form::Tape) => import(access, history.hours, stop),
        Some(Form::Edition) => {
            install(access, variant, stop)?;
            for hour in 0..history.hours {
                let sql = format!("set work_mem = '256MB'; call uniform_hour('{BEGIN}', {hour})");
                ask(access, variant, &[&sql], stop)?;
            }
            let packed = format!(
                "select tacho._roll_up_hours(tacho._ms('{BEGIN}'::timestamptz + interval '2 days'), 100)"
            );
            let whole = [&packed, "vacuum full tacho.hot", "vacuum analyze"];
            ask(access, variant, &whole, stop)
        }
        Some(Form::Ash1 | Form::Ash2) => fill_ash(access, history, variant, stop),
        _ => bail!("unknown form of samples"),
    }
}

fn fill_ash(access: &Access, history: &History, variant: &Variant, stop: &Stop) -> Result<()> {
    install(access, variant, stop)?;
    let begin = ASH_BEGIN.replace("{hours}", &history.hours.to_string());
    ask(access, variant, &[&begin], stop)?;
    for hour in 0..history.hours {
        let sql = format!(
            "set work_mem = '256MB'; do $$ declare day timestamptz := (select at from history_begin); \
             begin call ash_hour(day, {hour}); end $$"
        );
        ask(access, variant, &[&sql], stop)?;
    }
    ask(access, variant, &["vacuum analyze"], stop)?;
    if variant.form == Some(Form::Ash2) {
        let sums = [
            "select ash.rollup_minute(100000)",
            "select ash.rollup_hour()",
        ];
        ask(access, variant, &sums, stop)?;
    }
    ask(access, variant, &["vacuum analyze"], stop)
}

fn ask(access: &Access, variant: &Variant, sql: &[&str], stop: &Stop) -> Result<()> {
    let mut psql = access.psql_on(&database(variant));
    for sql in sql {
        psql.args(["-c", sql]);
    }
    run(&mut psql, stop)
        .map(drop)
        .context("could not make the history")
}

/// Creates the database of a variant, and runs its installer there.
fn install(access: &Access, variant: &Variant, stop: &Stop) -> Result<()> {
    let installer = variant.installer.as_ref();
    let installer = installer.context("no installer specified")?;
    let database = database(variant);
    access.sql(&format!("create database {database}"), stop)?;
    run_installer(access, &database, installer, stop)?;
    ask(access, variant, &[EDITION_DAY], stop)
}

/// Runs an installer, which may include files.
pub fn run_installer(access: &Access, database: &str, installer: &Path, stop: &Stop) -> Result<()> {
    let installer = installer
        .canonicalize()
        .with_context(|| format!("could not find \"{}\"", installer.display()))?;
    let mut psql = access.psql_as_caller(database);
    psql.arg("-f").arg(&installer);
    run(&mut psql, stop).map(drop).context("could not install")
}

/// Imports the day with `tacho` from the directory of this program.
fn import(access: &Access, hours: u32, stop: &Stop) -> Result<()> {
    let tape = access.scratch.join("tape");
    let mut import = Command::new(std::env::current_exe()?.with_file_name("tacho"));
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

/// Asks once to warm up, then five times, or less often if that would take
/// longer than the limit. An answer that takes longer than the limit counts as
/// long as the limit, and is marked.
pub fn measure(
    access: &Access,
    history: &History,
    variant: &Variant,
    question: &str,
    stop: &Stop,
) -> Result<(Metrics, Profile)> {
    let mut questions = history.questions.iter();
    let question = questions.find(|q| q.name == question);
    let question = question.context("there is no such question")?;
    let form = variant.form.context("the variant has no form")?;
    let sql = statement(question, form, history.hours)?;
    let waits = Waits::of(access, &database(variant))?;
    let limit = history.limit_s.map(|s| f64::from(s) * 1e3);
    let answered = timed(access, variant, &sql, limit, stop)?;
    let cut_off = limit.filter(|_| answered.is_none());
    let ms = answered.or(limit).context("there is no limit")?;
    let bytes = match form {
        Form::Tape => super::codec::size(&access.scratch.join("tape"))?,
        Form::Ash1 | Form::Ash2 => tables(access, variant, "ash", stop)?,
        _ => tables(access, variant, "tacho", stop)?,
    };
    let metrics = [
        ("ms", Some(ms)),
        ("size_mib", Some(bytes / f64::from(1 << 20))),
        (CUT_OFF, cut_off),
    ];
    let named = metrics.map(|(name, value)| Some((name.to_owned(), value?)));
    Ok((named.into_iter().flatten().collect(), waits.end()?))
}

/// Median time of an answer in ms; `None` if one took longer than the limit.
fn timed(
    access: &Access,
    variant: &Variant,
    sql: &str,
    limit: Option<f64>,
    stop: &Stop,
) -> Result<Option<f64>> {
    let ask = |warm, times| executions(access, variant, sql, (warm, times, limit), stop);
    let (warm, times) = match limit {
        None => (1, 5),
        Some(limit) => match ask(0, 1)?.as_deref() {
            Some([once, ..]) => fitting(*once, limit),
            _ => return Ok(None),
        },
    };
    Ok(ask(warm, times)?.as_deref().and_then(median))
}

/// How often to ask, to warm up and for the time, if one answer takes `once`:
/// five times, or less often if these would take longer than the limit together.
fn fitting(once: f64, limit: f64) -> (usize, usize) {
    match limit / once.max(f64::MIN_POSITIVE) {
        fits if fits >= 6.0 => (1, 5),
        fits => (0, (fits as usize).max(1)),
    }
}

/// Times of answers in one session in ms, after some that do not count. `None`
/// if one took longer than the limit.
fn executions(
    access: &Access,
    variant: &Variant,
    sql: &str,
    (warm, times, limit): (usize, usize, Option<f64>),
    stop: &Stop,
) -> Result<Option<Vec<f64>>> {
    let limit = format!("set statement_timeout = {}", limit.unwrap_or(0.0));
    let mut psql = access.psql_on(&database(variant));
    psql.args(["-c", "set jit = off", "-c", &limit]);
    for n in 0..warm + times {
        if n == warm {
            psql.args(["-c", "\\timing on"]);
        }
        psql.args(["-c", sql]);
    }
    let text = match run(&mut psql, stop) {
        Err(error) if format!("{error:#}").contains(TIMEOUT) => return Ok(None),
        text => text.with_context(|| format!("could not run \"{sql}\""))?,
    };
    let answers: Vec<f64> = text.lines().filter_map(|l| milliseconds(l).ok()).collect();
    ensure!(
        answers.len() == times,
        "psql did not report the time of each answer"
    );
    Ok(Some(answers))
}

/// Bytes of all tables in a schema, with indexes and TOAST.
fn tables(access: &Access, variant: &Variant, schema: &str, stop: &Stop) -> Result<f64> {
    let sql = format!(
        "select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' \
         and relnamespace = '{schema}'::regnamespace"
    );
    let mut psql = access.psql_on(&database(variant));
    let size = run(psql.args(["-c", &sql]), stop)?;
    size.trim().parse().context("size is not a number")
}

/// The SQL of a question for a form.
fn statement(question: &Question, form: Form, hours: u32) -> Result<String> {
    let sql = match form {
        Form::Ash1 => question.ash1.as_ref(),
        Form::Ash2 => question.ash2.as_ref(),
        _ => Some(&question.sql),
    };
    let sql = sql.with_context(|| format!("question \"{}\" is not for pg_ash", question.name))?;
    let at = |hour: u32| match form {
        Form::Ash1 | Form::Ash2 => {
            format!("(select at + interval '{hour} hours' from history_begin)")
        }
        _ => format!("timestamptz '{BEGIN}' + interval '{hour} hours'"),
    };
    let node = match form {
        Form::Tape => ", node => '0000000000000001'",
        _ => "",
    };
    Ok(sql
        .replace("{hour}", &at(hours.saturating_sub(1)))
        .replace("{begin}", &at(0))
        .replace("{end}", &at(hours))
        .replace("{node}", node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_questions_are_repeated_less_often() {
        assert_eq!(fitting(5.0, 5_000.0), (1, 5));
        assert_eq!(fitting(833.0, 5_000.0), (1, 5));
        assert_eq!(fitting(900.0, 5_000.0), (0, 5));
        assert_eq!(fitting(2_100.0, 5_000.0), (0, 2));
        assert_eq!(fitting(4_900.0, 5_000.0), (0, 1));
        assert_eq!(fitting(0.0, 5_000.0), (1, 5));
    }

    #[test]
    fn a_question_has_the_words_of_each_form() {
        let question = Question {
            name: "q".into(),
            sql: "tacho.top(since => {hour}, until => {end}{node})".into(),
            ash1: Some("ash.top_waits_at({hour}, {end})".into()),
            ash2: None,
        };
        let ask = |form| statement(&question, form, 6);
        let since = "timestamptz '2026-03-01 00:00:00+00' + interval '5 hours'";
        let until = "timestamptz '2026-03-01 00:00:00+00' + interval '6 hours'";
        assert_eq!(
            ask(Form::Edition).expect("asked"),
            format!("tacho.top(since => {since}, until => {until})")
        );
        let tape = ask(Form::Tape).expect("asked");
        assert!(tape.ends_with(", node => '0000000000000001')"), "{tape}");
        let at = |hour| format!("(select at + interval '{hour} hours' from history_begin)");
        assert_eq!(
            ask(Form::Ash1).expect("asked"),
            format!("ash.top_waits_at({}, {})", at(5), at(6))
        );
        let error = ask(Form::Ash2).expect_err("no words");
        assert_eq!(format!("{error}"), "question \"q\" is not for pg_ash");
    }

    #[test]
    fn pg_ash_is_recognised_by_its_readers_and_has_a_database_of_its_own() {
        assert_eq!(
            ash("create or replace function ash.top_waits_at(\n"),
            Form::Ash1
        );
        assert_eq!(ash("create or replace function ash.top(\n"), Form::Ash2);
        let variant = Variant {
            name: "pg_ash (ash-1.0)".into(),
            form: Some(Form::Ash1),
            ..Variant::default()
        };
        assert_eq!(database(&variant), "pg_ash__ash_1_0_");
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
