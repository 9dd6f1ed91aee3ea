//! `--check`: asks a server for each thing as the recorder does. Each missing thing gets a line
//! that says how to get it on this service.

use crate::config::{self, Server};
use crate::finding::{self, Finding, State};
use crate::identity::Identity;
use crate::options::{Options, Settings};
use crate::vendor::{self, Vendor};
use crate::{Stop, fail, locks, measures, sample, statements};
use clap::Parser;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tacho_dsn::{Answer, Connection, Limit};

const CONNECT: Duration = Duration::from_secs(60);
/// Exit code if something necessary is missing.
const MISSING: u8 = 3;
/// SQLSTATE if pg_stat_statements is not loaded.
const NOT_LOADED: &str = "55000";

/// Prints what can be recorded from one server.
pub fn check_server(settings: &Settings, target: &tacho_dsn::Options, stop: &Stop) -> ExitCode {
    match find(settings, target, stop) {
        Ok(findings) => {
            print(&finding::text(&findings));
            exit_code(&findings)
        }
        Err(error) => fail(1, &error.to_string()),
    }
}

/// Checks each server of a file. The exit code is 1 if a connection fails.
pub fn check_file(file: &Path, stop: &Stop) -> ExitCode {
    let config = match config::read(file) {
        Ok(config) => config,
        Err(error) => return fail(1, &error),
    };
    let mut code = 0;
    std::thread::scope(|scope| {
        let ask = |server| scope.spawn(move || find_of(server, stop));
        let asked = config
            .servers
            .iter()
            .map(|(name, server)| (name, ask(server)));
        for (name, asked) in asked.collect::<Vec<_>>() {
            let found = asked
                .join()
                .unwrap_or_else(|_| Err("the check failed".to_string()));
            let text = match &found {
                Ok(findings) => finding::text(findings),
                Err(error) => finding::text(&[Finding::missing("connection", error.clone())]),
            };
            print(&format!("server \"{name}\"\n{text}"));
            code = match found {
                Err(_) => 1,
                Ok(findings) if code == 0 && is_missing(&findings) => MISSING,
                Ok(_) => code,
            };
        }
    });
    ExitCode::from(code)
}

fn find_of(server: &Server, stop: &Stop) -> Result<Vec<Finding>, String> {
    let target = server.target()?;
    find(&server.settings, &target, stop).map_err(|error| error.line())
}

fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn is_missing(findings: &[Finding]) -> bool {
    finding::worst(findings) >= State::Missing
}

fn exit_code(findings: &[Finding]) -> ExitCode {
    match is_missing(findings) {
        true => ExitCode::from(MISSING),
        false => ExitCode::SUCCESS,
    }
}

/// Checks a server as `tacho record --check` does without other options.
///
/// # Errors
/// The server cannot be reached, or does not answer as PostgreSQL does.
pub fn check_with_defaults(
    target: &tacho_dsn::Options,
    stop: &Stop,
) -> tacho_dsn::Result<Vec<Finding>> {
    let settings = Options::parse_from(["tacho record", "--check"]).settings;
    let target = settings.prepare(target.clone());
    find(&settings, &target, stop)
}

fn find(
    settings: &Settings,
    target: &tacho_dsn::Options,
    stop: &Stop,
) -> tacho_dsn::Result<Vec<Finding>> {
    let mut connection = Connection::open(target, Limit::within(CONNECT, stop.flag()))?;
    let identity = Identity::ask(&mut connection, settings.answer_timeout(), stop)?;
    let mut check = Check {
        settings,
        connection,
        identity,
        vendor: vendor::self_hosted(),
        stop,
    };
    let marks = check.asked(vendor::QUESTION, settings.answer_timeout())?;
    check.vendor = marks.first().map_or(check.vendor, vendor::of);
    check.find()
}

/// A check in progress.
struct Check<'a> {
    settings: &'a Settings,
    connection: Connection,
    identity: Identity,
    vendor: &'static Vendor,
    stop: &'a Stop,
}

/// SQLSTATE and message of a refusal.
type Refusal = (String, String);

impl Check<'_> {
    fn find(&mut self) -> tacho_dsn::Result<Vec<Finding>> {
        let mut findings = vec![self.server(), self.pooler(), self.samples()?];
        findings.push(self.blockers()?);
        findings.push(self.query_ids()?);
        findings.extend(self.statements()?);
        findings.push(self.measurements()?);
        findings.push(self.system());
        Ok(findings)
    }

    /// First row of an answer, as texts. Null becomes the empty text.
    fn ask<const N: usize>(&mut self, sql: &str) -> tacho_dsn::Result<[String; N]> {
        let answers = self.asked(sql, self.settings.answer_timeout())?;
        let text = |column| answers.first().and_then(|answer| answer.text(0, column));
        Ok(std::array::from_fn(|column| {
            text(column).unwrap_or_default().to_string()
        }))
    }

    fn asked(&mut self, sql: &str, time: Duration) -> tacho_dsn::Result<Vec<Answer>> {
        let sql = [&sample::set_limits(time, time), sql].concat();
        let patience = self.settings.answer_timeout() + time;
        self.connection
            .query(&sql, Limit::within(patience, self.stop.flag()))
    }

    /// Asks as the recorder does. The inner error is a refusal, the outer one the end of the
    /// connection.
    fn try_within(
        &mut self,
        sql: &str,
        time: Duration,
    ) -> tacho_dsn::Result<Result<Vec<Answer>, Refusal>> {
        match self.asked(sql, time) {
            Ok(answers) => Ok(Ok(answers)),
            Err(error) if self.connection.is_open() => Ok(Err((error.code.clone(), error.line()))),
            Err(error) => Err(error),
        }
    }

    fn grant(&self, right: &str) -> String {
        let sql = format!("GRANT {right} TO {};", self.identity.role);
        self.vendor.grant(&sql)
    }

    fn server(&self) -> Finding {
        let service = match self.vendor.name {
            "" => String::new(),
            name => format!(", {name}"),
        };
        let detail = format!("{}{service}", self.identity.describe());
        Finding::works("server", detail)
    }

    fn pooler(&self) -> Finding {
        let detail = match self.identity.is_pooled {
            true => "through a pooler: if it pauses or ends connections, the history has a gap",
            false => "direct",
        };
        Finding::works("connection", detail)
    }

    fn samples(&mut self) -> tacho_dsn::Result<Finding> {
        let half = self.settings.interval() / 2;
        let answers = match self.try_within(&sample::question(), half)? {
            Ok(answers) => answers,
            Err((_, error)) => return Ok(Finding::missing("samples", error)),
        };
        let hidden = sample::read(&answers).map_or(0, |sample| sample.hidden);
        let finding = match self.identity.sees_others {
            true => Finding::works("samples", "sessions of all roles"),
            false if self.settings.own_sessions => {
                let detail = format!(
                    "only sessions of this role, as configured; {hidden} others are hidden"
                );
                Finding::partial("samples", detail)
            }
            false => {
                let detail = format!("only sessions of this role; {hidden} others are hidden");
                Finding::missing("samples", detail)
            }
        };
        Ok(finding.help(self.grant("pg_monitor")))
    }

    fn blockers(&mut self) -> tacho_dsn::Result<Finding> {
        let half = self.settings.interval() / 2;
        Ok(match self.try_within(locks::QUESTION, half)? {
            Ok(_) => Finding::works("blockers", "who blocks whom"),
            Err((_, error)) => Finding::missing("blockers", error),
        })
    }

    /// Checks that the server computes query ids: if it does, the statement that asks has one
    /// itself.
    fn query_ids(&mut self) -> tacho_dsn::Result<Finding> {
        let what = "query identifiers";
        let [id, setting] = self.ask(
            "select query_id, current_setting('compute_query_id') \
             from pg_stat_get_activity(pg_backend_pid())",
        )?;
        if !id.is_empty() {
            return Ok(Finding::works(what, "computed"));
        }
        let detail =
            format!("not computed, samples have no query: compute_query_id is \"{setting}\"");
        Ok(Finding::missing(what, detail).help(self.vendor.set("compute_query_id", "on")))
    }

    /// Checks pg_stat_statements: texts and counters.
    fn statements(&mut self) -> tacho_dsn::Result<Vec<Finding>> {
        let Some((schema, _)) = self.identity.statements.clone() else {
            let database = &self.identity.database;
            let detail = format!("pg_stat_statements is not in database {database}");
            let missing = |what| Finding::missing(what, &*detail);
            let help = self.vendor.create_extension();
            return Ok(vec![
                missing("query texts").help(help),
                missing("statements"),
            ]);
        };
        let mut findings = Vec::new();
        if !self.settings.no_texts {
            findings.push(self.texts(&schema)?);
        }
        findings.push(self.counters(&schema)?);
        Ok(findings)
    }

    fn texts(&mut self, schema: &str) -> tacho_dsn::Result<Finding> {
        let what = "query texts";
        let question = format!(
            "select count(*) filter (where query = '<insufficient privilege>') \
             from {schema}.pg_stat_statements(true)"
        );
        let hidden = match self.try_within(&question, self.settings.answer_timeout())? {
            Err(refusal) => return self.refused(what, schema, refusal),
            Ok(answers) => answers
                .first()
                .and_then(|a| a.number(0, 0))
                .unwrap_or(0_i64),
        };
        let finding = match (self.identity.sees_others, hidden) {
            (true, 0) => Finding::works(what, "pg_stat_statements"),
            _ => Finding::missing(
                what,
                format!("only of this role; {hidden} others are hidden"),
            ),
        };
        Ok(finding.help(self.grant("pg_read_all_stats")))
    }

    /// Checks the question for counters, which the recorder asks once a minute.
    fn counters(&mut self, schema: &str) -> tacho_dsn::Result<Finding> {
        let what = "statements";
        let question = statements::question(schema);
        if let Err(refusal) = self.try_within(&question, self.settings.answer_timeout())? {
            return self.refused(what, schema, refusal);
        }
        let [installed, newest] = self.versions()?;
        Ok(match installed == newest {
            true => Finding::works(what, format!("pg_stat_statements {installed}")),
            false => {
                let detail =
                    format!("pg_stat_statements {installed} has fewer counters than {newest}");
                Finding::partial(what, detail)
            }
        }
        .help(self.update()))
    }

    fn update(&self) -> String {
        self.vendor
            .grant("ALTER EXTENSION pg_stat_statements UPDATE;")
    }

    /// Version of pg_stat_statements in this database, and the version the server would install.
    fn versions(&mut self) -> tacho_dsn::Result<[String; 2]> {
        self.ask(
            "select extversion, coalesce(default_version, extversion) from pg_extension \
             left join pg_available_extensions on name = extname \
             where extname = 'pg_stat_statements'",
        )
    }

    /// Explains why pg_stat_statements refused an answer.
    fn refused(
        &mut self,
        what: &'static str,
        schema: &str,
        (code, error): Refusal,
    ) -> tacho_dsn::Result<Finding> {
        let [installed, newest] = self.versions()?;
        let help = if code == NOT_LOADED {
            self.vendor.preload()
        } else if !self.may_use_schema()? {
            self.grant(&format!("USAGE ON SCHEMA {schema}"))
        } else if installed != newest {
            self.update()
        } else {
            self.grant("pg_read_all_stats")
        };
        Ok(Finding::missing(what, error).help(help))
    }

    /// True if this role may use the schema of pg_stat_statements.
    fn may_use_schema(&mut self) -> tacho_dsn::Result<bool> {
        let [is_allowed] = self.ask(
            "select has_schema_privilege(extnamespace, 'usage') from pg_extension \
             where extname = 'pg_stat_statements'",
        )?;
        Ok(is_allowed != "f")
    }

    /// Checks the measurements. Without rights, replicas are hidden rather than refused.
    fn measurements(&mut self) -> tacho_dsn::Result<Finding> {
        let sources: Vec<_> = measures::sources(self.identity.version).collect();
        let mut missing = Vec::new();
        for source in &sources {
            if let Err((_, error)) = self.try_within(source.sql, self.settings.answer_timeout())? {
                missing.push(format!("{} ({error})", source.what));
            }
        }
        if missing.is_empty() && !self.identity.sees_others {
            missing.push("replicas (hidden from this role)".to_string());
        }
        let all: Vec<_> = sources.iter().map(|source| source.what).collect();
        let finding = match missing.is_empty() {
            true => Finding::works("measurements", all.join(", ")),
            false => {
                let detail = format!("all but {}", missing.join(", "));
                Finding::partial("measurements", detail)
            }
        };
        let helps = !self.identity.sees_others;
        Ok(match helps {
            true => finding.help(self.grant("pg_monitor")),
            false => finding,
        })
    }

    fn system(&self) -> Finding {
        let what = "system identifier";
        if self.identity.system_identifier != 0 {
            return Finding::works(what, "identifies the server");
        }
        let detail = "not visible: a replaced server is recognized only by its start time";
        let right = "EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint()";
        Finding::partial(what, detail).help(self.grant(right))
    }
}
