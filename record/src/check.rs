//! `--check`: what can be recorded of a server, and what helps with the rest.

use crate::identity::Identity;
use crate::options::Settings;
use crate::{Stop, fail, locks, measures, sample};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tacho_dsn::{Connection, Limit};
use tacho_tape::query::plain_lines;

const CONNECT: Duration = Duration::from_secs(60);

/// One thing that is recorded.
struct Finding {
    what: &'static str,
    works: bool,
    /// What it is like, or why not.
    detail: String,
    /// SQL that helps.
    help: Option<String>,
}

impl Finding {
    fn new(what: &'static str, works: bool, detail: impl Into<String>) -> Finding {
        Finding {
            what,
            works,
            detail: detail.into(),
            help: None,
        }
    }

    /// What to run where it does not work.
    fn help(mut self, sql: String) -> Finding {
        self.help = (!self.works).then_some(sql);
        self
    }
}

/// Prints it. Exit code 1 when nothing can be recorded.
pub fn run(settings: &Settings, target: &tacho_dsn::Options, stop: &Stop) -> ExitCode {
    match find(settings, target, stop) {
        Ok(findings) => {
            let text: String = findings.iter().map(line).collect();
            let _ = std::io::stdout().write_all(plain_lines(&text).as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => fail(1, &error.to_string()),
    }
}

fn line(finding: &Finding) -> String {
    let mark = if finding.works { "yes" } else { "no " };
    let help = finding
        .help
        .as_ref()
        .map(|sql| format!("\n      run: {sql}"));
    format!(
        "{mark}  {}: {}{}\n",
        finding.what,
        finding.detail,
        help.unwrap_or_default()
    )
}

fn find(
    settings: &Settings,
    target: &tacho_dsn::Options,
    stop: &Stop,
) -> tacho_dsn::Result<Vec<Finding>> {
    let mut connection = Connection::open(target, Limit::within(CONNECT, stop.flag()))?;
    let identity = Identity::ask(&mut connection, settings.patience(), stop)?;
    let mut works = |sql: &str| {
        let limit = Limit::within(settings.patience(), stop.flag());
        let sql = [sample::PINNED, sql].concat();
        connection.query(&sql, limit).map_err(|error| error.line())
    };
    let sampled = works(&sample::question());
    let hidden = sampled
        .as_ref()
        .ok()
        .and_then(|answers| sample::read(answers))
        .map_or(0, |s| s.hidden);
    let seen = match &sampled {
        Err(error) => Finding::new("samples", false, error.clone()),
        Ok(_) if identity.sees_others => Finding::new("samples", true, "sessions of all roles"),
        Ok(_) => Finding::new(
            "samples",
            false,
            format!("only sessions of this role, {hidden} others are hidden"),
        ),
    };
    let locks = works(locks::QUESTION);
    Ok(vec![
        Finding::new("server", true, identity.describe()),
        pooler(&identity),
        seen.help(format!("GRANT pg_monitor TO {};", identity.role)),
        Finding::new(
            "blockers",
            locks.is_ok(),
            locks.err().unwrap_or_else(|| "who blocks whom".to_string()),
        ),
        query_ids(&identity),
        texts(&identity, &mut works),
        measured(&identity, &mut works),
        system(&identity),
    ])
}

fn pooler(identity: &Identity) -> Finding {
    let detail = match identity.is_pooled {
        true => {
            "a pooler stands between: when it pauses or ends connections, the history has a gap"
        }
        false => "direct",
    };
    Finding::new("connection", true, detail)
}

fn query_ids(identity: &Identity) -> Finding {
    let detail = match identity.has_query_ids {
        true => "computed",
        false => "not computed, samples have no query",
    };
    Finding::new("query identifiers", identity.has_query_ids, detail)
        .help("ALTER SYSTEM SET compute_query_id = on; SELECT pg_reload_conf();".to_string())
}

fn texts(
    identity: &Identity,
    works: &mut impl FnMut(&str) -> Result<Vec<tacho_dsn::Answer>, String>,
) -> Finding {
    let what = "query texts";
    let Some((schema, _)) = &identity.statements else {
        let detail = format!(
            "pg_stat_statements is not in database {}",
            identity.database
        );
        return Finding::new(what, false, detail)
            .help("CREATE EXTENSION pg_stat_statements;".to_string());
    };
    match works(&format!(
        "select from {schema}.pg_stat_statements(false) limit 1"
    )) {
        Ok(_) => Finding::new(what, identity.sees_others, "pg_stat_statements"),
        Err(error) => Finding::new(what, false, error),
    }
    .help(match may_enter(works) {
        true => format!("GRANT pg_read_all_stats TO {};", identity.role),
        false => format!("GRANT USAGE ON SCHEMA {schema} TO {};", identity.role),
    })
}

/// Whether this role may use what is in the schema of pg_stat_statements.
fn may_enter(works: &mut impl FnMut(&str) -> Result<Vec<tacho_dsn::Answer>, String>) -> bool {
    let question = "select has_schema_privilege(extnamespace, 'usage') from pg_extension \
        where extname = 'pg_stat_statements'";
    let answers = works(question).unwrap_or_default();
    answers
        .first()
        .is_none_or(|answer| answer.bytes(0, 0) != Some(b"f"))
}

/// What of the measurements works. Replicas are hidden rather than refused.
fn measured(
    identity: &Identity,
    works: &mut impl FnMut(&str) -> Result<Vec<tacho_dsn::Answer>, String>,
) -> Finding {
    let sources = || measures::sources(identity.version);
    let mut missing: Vec<String> = sources()
        .filter_map(|source| Some((source, works(source.sql).err()?)))
        .map(|(source, error)| format!("{} ({error})", source.what))
        .collect();
    if missing.is_empty() && !identity.sees_others {
        missing.push("replicas (hidden from this role)".to_string());
    }
    let detail = match missing.is_empty() {
        true => sources().map(|s| s.what).collect::<Vec<_>>().join(", "),
        false => format!("all but {}", missing.join(", ")),
    };
    let help = format!("GRANT pg_monitor TO {};", identity.role);
    Finding::new("measurements", missing.is_empty(), detail).help(help)
}

fn system(identity: &Identity) -> Finding {
    let works = identity.system_identifier != 0;
    let detail = match works {
        true => "tells one server from another",
        false => "not shown: another server at this address is known by its start alone",
    };
    Finding::new("system identifier", works, detail).help(format!(
        "GRANT EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint() TO {};",
        identity.role
    ))
}
