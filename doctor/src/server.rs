//! Findings about a server, through a connection: the extension, the SQL edition, or
//! neither. For a server without tacho this says what `tacho record` can do there.

use crate::cost::{self, Load};
use crate::facts::{Facts, length, silent_s, size};
use crate::history::{self, Disk, Gap, Limits};
use crate::preload::{CONTRIB, FILE_SETTINGS, PRELOAD, Preload, has_tacho, names, preload_with};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tacho_dsn::{Answer, Connection, Limit, Options, Result};
use tacho_record::finding::Finding;
use tacho_record::vendor::{self, Vendor};
use tacho_record::{Stop, check};

/// Name of our sessions, unless the connection string gives another.
pub const APPLICATION: &str = "tacho doctor";
const CONNECT: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(30);
/// Seconds by which the clocks of host and server may differ. With a greater difference, times are
/// hard to compare.
const CLOCK_S: f64 = 2.0;
const LOG_HELP: &str = "see the log of the server";
const EDITION_HELP: &str =
    "run: SELECT * FROM tacho.start(); its result names what can call the sampler here";
const RECORD_HINT: &str = "Or, without a restart: tacho record \"CONNINFO\" --tape DIR";
/// Maximum number of names of roles in a finding.
const MOST_ROLES: usize = 5;

/// Begins a read-only transaction whose settings do not depend on the role.
const BEGIN: &str = "begin read only; set local search_path = pg_catalog, pg_temp; \
    set local statement_timeout = '20s'; set local lock_timeout = '5s'; \
    set local timezone = 'UTC'; set local datestyle = 'ISO'; ";

/// The library is loaded if its settings are known in a session that has not called it.
const LOOK: &str = "select current_setting('server_version'), \
    pg_is_in_recovery(), \
    date_part('epoch', clock_timestamp()), \
    quote_ident(current_user), quote_ident(current_database()), \
    pg_has_role(current_user, 'pg_read_all_stats', 'usage'), \
    (select query_id from pg_stat_get_activity(pg_backend_pid())), \
    (select extversion from pg_extension where extname = 'tacho'), \
    (select quote_ident(n.nspname) from pg_depend d \
      join pg_extension e on e.oid = d.refobjid and e.extname = 'tacho' \
      join pg_proc p on p.oid = d.objid and p.proname = 'status' \
      join pg_namespace n on n.oid = p.pronamespace \
      where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_extension'::regclass \
      and d.deptype = 'e'), \
    (select default_version from pg_available_extensions where name = 'tacho'), \
    exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace \
      where nspname = 'tacho' and relname = 'setting')";

const SETTINGS: &str = "select name, setting, pending_restart from pg_settings \
    where name like 'tacho.%' \
    or name in ('shared_preload_libraries', 'track_io_timing', 'compute_query_id', 'huge_pages')";

/// Sessions that are active now, and that this role sees.
const ACTIVE: &str = "select count(*) from pg_stat_activity \
    where state = 'active' and pid <> pg_backend_pid()";

/// Roles that log in and see texts of all others. Superusers are not among them.
const READERS: &str = "select quote_ident(rolname) from pg_roles \
    where rolcanlogin and not rolsuper and pg_has_role(oid, 'pg_read_all_stats', 'usage') \
    order by rolname";

/// A server, as its connection shows it.
struct Server {
    connection: Connection,
    stop: Stop,
    vendor: &'static Vendor,
    version: String,
    in_recovery: bool,
    is_here: bool,
    /// Seconds by which the server's clock is ahead of the clock of this host.
    ahead_s: f64,
    role: String,
    database: String,
    sees_others: bool,
    has_query_id: bool,
    /// Version of the SQL objects of the extension in this database.
    extension: Option<String>,
    /// The schema of the extension.
    schema: Option<String>,
    /// True if this database has the SQL edition.
    has_edition: bool,
    /// The version that `CREATE EXTENSION` would install.
    available: Option<String>,
    settings: BTreeMap<String, Setting>,
    /// `shared_preload_libraries` of the configuration files, if it differs and may be read.
    pending: Option<String>,
}

struct Setting {
    value: String,
    /// True if the configuration files have another value, which needs a restart.
    is_pending: bool,
}

/// Connects to a server of this host.
///
/// # Errors
/// Never, for a directory and a port.
pub fn local(socket: &str, port: &str) -> Result<Options> {
    let conninfo = format!("host='{socket}' port='{port}' dbname=postgres");
    Options::from_argument(&conninfo, APPLICATION)
}

/// Looks at a server. One that is on this host has its history on a disk of this host.
///
/// # Errors
/// The server cannot be reached, or does not answer as PostgreSQL does.
pub fn examine(options: &Options, is_here: bool) -> Result<Vec<Finding>> {
    let mut server = Server::open(options)?;
    server.is_here = is_here;
    server.read_pending()?;
    let mut findings = vec![server.about(), server.clock()];
    if server.has_edition {
        findings.extend(server.recorded_by_edition()?);
    } else if server.is_loaded() || server.extension.is_some() {
        findings.push(server.library());
        findings.extend(server.recorded_by_extension()?);
    } else {
        findings.push(server.finding_not_installed());
        findings.push(server.cost()?);
        findings.push(server.readers()?);
        findings.extend(
            check::check_with_defaults(options, &server.stop)?
                .into_iter()
                .skip(1),
        );
    }
    Ok(findings)
}

impl Server {
    fn open(options: &Options) -> Result<Server> {
        let stop = Stop::default();
        let mut connection = Connection::open(options, Limit::within(CONNECT, stop.flag()))?;
        let mut ask = |sql: &str| {
            let sql = format!("{BEGIN}{sql}; commit");
            connection.query(&sql, Limit::within(ANSWER, stop.flag()))
        };
        let look = ask(LOOK)?;
        let now_s = Timestamp::now().as_microsecond() as f64 / 1e6;
        let settings = ask(SETTINGS)?;
        let marks = ask(vendor::QUESTION)?;
        let text = |column| look.first()?.text(0, column).map(str::to_string);
        let is = |column| text(column).as_deref() == Some("t");
        let known = |column| text(column).unwrap_or_default();
        Ok(Server {
            vendor: marks.first().map_or(vendor::self_hosted(), vendor::of),
            version: known(0),
            in_recovery: is(1),
            is_here: false,
            ahead_s: known(2)
                .parse()
                .map_or(0.0, |server_s: f64| server_s - now_s),
            role: known(3),
            database: known(4),
            sees_others: is(5),
            has_query_id: text(6).is_some(),
            extension: text(7),
            schema: text(8),
            has_edition: is(10),
            available: text(9),
            settings: settings.first().map(settings_of).unwrap_or_default(),
            pending: None,
            connection,
            stop,
        })
    }

    /// Reads the libraries of the configuration files. Only some roles may read them. They may have
    /// changed before the server has reloaded them, so that no restart is pending.
    fn read_pending(&mut self) -> Result<()> {
        if !self.settings.contains_key(PRELOAD) {
            return Ok(());
        }
        match self.ask(FILE_SETTINGS) {
            Err(_) if self.connection.is_open() => (),
            answers => {
                let answers = answers?;
                let list = answers.first().and_then(|answer| answer.text(0, 0));
                self.pending = list.map(str::to_string);
            }
        }
        Ok(())
    }

    fn preload(&self) -> Preload {
        match (self.settings.get(PRELOAD), &self.pending) {
            (None, _) => Preload::Unknown,
            (Some(setting), Some(list)) if names(list) != names(&setting.value) => {
                Preload::Changed(list.clone())
            }
            (Some(setting), None) if setting.is_pending => Preload::Hidden,
            (Some(setting), _) => Preload::Same(setting.value.clone()),
        }
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Answer>> {
        let sql = format!("{BEGIN}{sql}; commit");
        let stop = self.stop.clone();
        let limit = || Limit::within(ANSWER, stop.flag());
        let answers = self.connection.query(&sql, limit());
        if answers.is_err() && self.connection.is_open() {
            // An error leaves the transaction open, so the next question would fail without this
            // rollback.
            self.connection.query("rollback", limit())?;
        }
        answers
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings
            .get(name)
            .map(|setting| setting.value.as_str())
    }

    fn is_loaded(&self) -> bool {
        self.settings.contains_key("tacho.sample_interval")
    }

    fn grant(&self, sql: &str) -> String {
        self.vendor.grant(sql)
    }

    fn about(&self) -> Finding {
        let role = if self.in_recovery {
            "standby"
        } else {
            "primary"
        };
        let service = match self.vendor.name {
            "" => String::new(),
            name => format!(", {name}"),
        };
        let detail = format!(
            "PostgreSQL {}, {role}, host {}{service}",
            self.version,
            self.connection.host()
        );
        Finding::works("server", detail)
    }

    fn clock(&self) -> Finding {
        let what = "clock";
        let direction = if self.ahead_s > 0.0 {
            "ahead of"
        } else {
            "behind"
        };
        match self.ahead_s.abs() > CLOCK_S {
            false => Finding::works(what, "as on this host"),
            true => {
                let detail = format!("{:.0} s {direction} this host", self.ahead_s.abs());
                Finding::partial(what, detail).help("synchronise both by NTP")
            }
        }
    }

    /// Finds out whether the library is loaded and this database has the SQL objects.
    fn library(&self) -> Finding {
        let what = "extension";
        match (self.is_loaded(), &self.extension) {
            (true, Some(_)) => Finding::works(
                what,
                format!("preloaded, and in database {}", self.database),
            ),
            (true, None) => {
                let detail = format!(
                    "preloaded and recording, but not in database {}",
                    self.database
                );
                Finding::missing(what, detail).help(self.grant("CREATE EXTENSION tacho;"))
            }
            (false, _) => self.not_loaded(what),
        }
    }

    /// The finding for a library that is not loaded: a restart is pending, or the setting lacks it.
    fn not_loaded(&self, what: &'static str) -> Finding {
        let detail = match self.preload() {
            Preload::Changed(list) if !has_tacho(&list) => {
                format!("not loaded: {PRELOAD} has changed, and does not contain tacho")
            }
            Preload::Changed(_) | Preload::Hidden => {
                format!("not loaded: {PRELOAD} has changed, and the server was not restarted")
            }
            Preload::Same(_) | Preload::Unknown => {
                format!("not loaded: {PRELOAD} does not contain tacho")
            }
        };
        Finding::missing(what, detail).help(self.how_to_preload())
    }

    /// How to load the library beside the libraries that the next start loads. A list of the files
    /// that this role may not see must not be overwritten.
    fn how_to_preload(&self) -> String {
        match self.preload() {
            Preload::Changed(list) if has_tacho(&list) => "restart the server".to_string(),
            Preload::Same(list) | Preload::Changed(list) if self.vendor.name.is_empty() => format!(
                "run: ALTER SYSTEM SET {PRELOAD} = {}; and restart the server",
                preload_with(&list)
            ),
            Preload::Hidden => format!(
                "the configuration files have another {PRELOAD} already: append tacho to it if it is not there, and restart the server"
            ),
            _ => format!("append tacho to {PRELOAD} and restart the server"),
        }
    }

    /// The finding for a server that has neither the library loaded nor the SQL objects.
    fn finding_not_installed(&self) -> Finding {
        let what = "extension";
        match (&self.available, self.vendor.name) {
            (Some(_), _) => {
                let (preload, create) =
                    (self.how_to_preload(), self.grant("CREATE EXTENSION tacho;"));
                let help = format!("{preload}; then {create} {RECORD_HINT}");
                Finding::missing(what, "installed on the host, not loaded").help(help)
            }
            (None, "") => Finding::missing(what, "not installed on the host of the server")
                .help(format!("install it on that host. {RECORD_HINT}")),
            (None, service) => {
                let detail = format!("{service} does not offer this library");
                let help = "record through a connection: tacho record \"CONNINFO\" --tape DIR; or in SQL alone: sql/README.md";
                Finding::missing(what, detail).help(help)
            }
        }
    }

    /// The memory and the disk that the extension would take on this server.
    fn cost(&mut self) -> Result<Finding> {
        let answers = self.ask(ACTIVE)?;
        let active = answers.first().and_then(|answer| answer.number(0, 0));
        Ok(cost::estimate(Some(&Load {
            active: active.unwrap_or(0),
            has_huge_pages: self.setting("huge_pages") == Some("on"),
        })))
    }

    /// The roles that see texts of all others.
    fn readers(&mut self) -> Result<Finding> {
        let answers = self.ask(READERS)?;
        let roles = answers.first().map_or(Vec::new(), |answer| {
            let name = |row| answer.text(row, 0).map(str::to_string);
            (0..answer.rows()).filter_map(name).collect()
        });
        Ok(Finding::works("who sees texts", readers(&roles)))
    }

    /// The rows of `status()`, or the reason why there are none.
    fn facts(&mut self, schema: &str) -> Result<std::result::Result<Facts, Finding>> {
        let sql = format!("select metric, value from {schema}.status() where value is not null");
        match self.ask(&sql) {
            Ok(answers) => {
                let rows = answers.first().map(pairs).unwrap_or_default();
                Ok(Ok(Facts(rows)))
            }
            Err(error) if error.code == "42501" && self.connection.is_open() => {
                let detail = format!("permission denied for role {}", self.role);
                let help = self.grant(&format!("GRANT pg_read_all_stats TO {};", self.role));
                Ok(Err(Finding::missing("status", detail).help(help)))
            }
            Err(error) if self.connection.is_open() => {
                let help = error.hint.clone().unwrap_or_default();
                Ok(Err(Finding::broken("status", error.line()).help(help)))
            }
            Err(error) => Err(error),
        }
    }

    fn recorded_by_extension(&mut self) -> Result<Vec<Finding>> {
        let Some(schema) = self.schema.clone().filter(|_| self.is_loaded()) else {
            return Ok(Vec::new());
        };
        let facts = match self.facts(&schema)? {
            Ok(facts) => facts,
            Err(finding) => return Ok(vec![finding]),
        };
        let gap = self.gap(&schema)?;
        let interval_ms = self.setting("tacho.sample_interval");
        let interval_ms = interval_ms.and_then(|text| text.parse().ok());
        let recording = recording(&facts, interval_ms, LOG_HELP);
        let mut findings = vec![self.versions(&facts), recording];
        findings.push(history::complete(&facts, gap.as_ref()));
        findings.extend(history::damage(&facts));
        let disk = facts.text("directory").filter(|_| self.is_here);
        let disk = disk.and_then(|directory| Disk::of(Path::new(directory)));
        findings.push(history::space(&facts, Some(&self.limits()), disk));
        findings.push(self.query_ids());
        findings.push(self.texts(&facts));
        findings.push(self.statements(&facts));
        findings.push(self.plans());
        findings.push(Finding::works("blockers", "who blocks whom"));
        findings.push(cpu_kinds(&facts));
        findings.push(self.io_times());
        findings.extend(self.memory()?);
        findings.push(self.rights());
        findings.push(self.readers()?);
        Ok(findings)
    }

    fn recorded_by_edition(&mut self) -> Result<Vec<Finding>> {
        let facts = match self.facts("tacho")? {
            Ok(facts) => facts,
            Err(finding) => return Ok(vec![finding]),
        };
        let gap = self.gap("tacho")?;
        let version = facts.text("version").unwrap_or("unknown");
        let mut findings = vec![Finding::works("SQL edition", format!("version {version}"))];
        let interval_ms = facts.text("sample_interval").and_then(interval_ms);
        findings.push(recording(&facts, interval_ms, EDITION_HELP));
        findings.extend(failed_steps(&facts));
        findings.push(history::complete(&facts, gap.as_ref()));
        findings.push(history::space(&facts, None, None));
        findings.push(self.query_ids());
        findings.push(match facts.text(CONTRIB) {
            Some("available") => Finding::works("statements", CONTRIB),
            _ => Finding::missing("statements", format!("{CONTRIB} is not available"))
                .help(self.vendor.create_extension()),
        });
        findings.push(self.rights());
        findings.push(self.readers()?);
        Ok(findings)
    }

    /// The newest gap within 7 days.
    fn gap(&mut self, schema: &str) -> Result<Option<Gap>> {
        let sql = format!(
            "select period_end, detail from {schema}.markers(since => now() - interval '7 days') \
             where kind = 'gap' order by marker_time desc limit 1"
        );
        let answers = match self.ask(&sql) {
            Err(error) if self.connection.is_open() && error.code != "57014" => return Ok(None),
            answers => answers?,
        };
        let text = |answer: &Answer, column| answer.text(0, column).unwrap_or_default().to_string();
        let first = answers.first().filter(|answer| answer.rows() > 0);
        Ok(first.map(|answer| Gap {
            time: text(answer, 0),
            detail: text(answer, 1),
        }))
    }

    fn limits(&self) -> Limits {
        let number = |name| self.setting(name).and_then(|value| value.parse().ok());
        Limits {
            age_s: number("tacho.retention_age").unwrap_or(0),
            size_mb: number("tacho.retention_size").filter(|mb| *mb >= 0),
            free_mb: number("tacho.min_free_space").map_or(0, |mb| mb.max(0)),
        }
    }

    /// Compares versions: of the loaded library, the installed one and the SQL objects here.
    fn versions(&self, facts: &Facts) -> Finding {
        let what = "versions";
        let library = facts.text("version").unwrap_or_default();
        let objects = self.extension.as_deref().unwrap_or_default();
        let available = self.available.as_deref().unwrap_or(objects);
        if available != library {
            let detail =
                format!("restart pending: library {library} is running, {available} is installed");
            return Finding::partial(what, detail).help("restart the server");
        }
        if let Some(reason) = facts.text("restart_pending") {
            let detail = format!("restart pending: {reason}, {library}");
            return Finding::partial(what, detail).help("restart the server");
        }
        if objects != library {
            let detail = format!("library {library}, SQL objects {objects}");
            return Finding::partial(what, detail)
                .help(self.grant("ALTER EXTENSION tacho UPDATE;"));
        }
        Finding::works(what, format!("library and SQL objects {library}"))
    }

    fn query_ids(&self) -> Finding {
        let what = "query identifiers";
        match self.has_query_id {
            true => Finding::works(what, "computed"),
            false => {
                let value = self.setting("compute_query_id").unwrap_or("unknown");
                let detail = format!("not computed: compute_query_id is \"{value}\"");
                Finding::missing(what, detail).help(self.vendor.set("compute_query_id", "on"))
            }
        }
    }

    fn texts(&self, facts: &Facts) -> Finding {
        let what = "query texts";
        let left_out = facts.count("texts_over_limit");
        match self.setting("tacho.query_text") {
            Some("off") => Finding::partial(what, "not recorded: tacho.query_text is off")
                .help(self.vendor.set("tacho.query_text", "normalized")),
            Some("raw") => Finding::works(what, "with constants (tacho.query_text is raw)"),
            _ if left_out > 0 => {
                let detail = format!("without constants; {left_out} were truncated or omitted");
                Finding::partial(what, detail).help("raise tacho.text_limit")
            }
            _ => Finding::works(what, "without constants"),
        }
    }

    fn statements(&self, facts: &Facts) -> Finding {
        let what = "statements";
        let libraries = self.setting("shared_preload_libraries").unwrap_or_default();
        let has_contrib = names(libraries).iter().any(|name| name == CONTRIB);
        if self.setting("tacho.statements") == Some("off") {
            return Finding::partial(what, "not counted: tacho.statements is off")
                .help("set tacho.statements = on and restart the server");
        }
        match (facts.text(CONTRIB), has_contrib) {
            (Some("not replaced"), true) => {
                let detail = format!("counted twice: by tacho and by {CONTRIB}");
                Finding::partial(what, detail).help(format!(
                    "replace it by tacho: tacho.{CONTRIB} = on, see docs/drop-in.md"
                ))
            }
            (Some("not replaced") | None, _) => Finding::works(what, "counted in tacho.statements"),
            (Some(_), _) => Finding::works(what, format!("counted, also in the view {CONTRIB}")),
        }
    }

    fn plans(&self) -> Finding {
        let what = "plan identifiers";
        match self.setting("tacho.statements") {
            Some("off") => Finding::partial(what, "not computed: tacho.statements is off"),
            _ => Finding::works(what, "computed"),
        }
    }

    fn io_times(&self) -> Finding {
        let what = "I/O timing";
        match self.setting("track_io_timing") {
            Some("on") => Finding::works(what, "measured"),
            _ => Finding::partial(what, "not measured: track_io_timing is off")
                .help(self.vendor.set("track_io_timing", "on")),
        }
    }

    /// Shared memory of tacho, if this role may see it.
    fn memory(&mut self) -> Result<Option<Finding>> {
        let sql = "select sum(allocated_size) from pg_shmem_allocations where name like 'tacho%'";
        let answers = match self.ask(sql) {
            Err(_) if self.connection.is_open() => return Ok(None),
            answers => answers?,
        };
        let bytes: Option<f64> = answers.first().and_then(|answer| answer.number(0, 0));
        Ok(bytes.map(|bytes| {
            let detail = format!("{} of shared memory are reserved", size(bytes));
            Finding::works("memory", detail)
        }))
    }

    fn rights(&self) -> Finding {
        let what = "rights";
        match self.sees_others {
            true => Finding::works(
                what,
                format!("{} sees sessions and texts of all roles", self.role),
            ),
            false => {
                let detail = format!("{} sees only its own sessions and texts", self.role);
                let sql = format!("GRANT pg_read_all_stats TO {};", self.role);
                Finding::partial(what, detail).help(self.grant(&sql))
            }
        }
    }
}

/// Finds out whether samples arrive now. "Loaded and silent" is broken, not missing.
fn recording(facts: &Facts, interval_ms: Option<i64>, help: &str) -> Finding {
    let what = "recording";
    let state = facts.text("recording").unwrap_or("unknown");
    if state.starts_with("standby") {
        return Finding::partial(what, state).help("connect to the primary");
    }
    if state != "on" {
        let causes = ["reason", "writer_error"].map(|metric| facts.text(metric));
        let [reason, trouble] = match causes {
            [Some(reason), Some(error)] if reason != error => [reason, error].map(Some),
            [reason, error] => [reason.or(error), None],
        };
        let detail = [Some(state), reason].into_iter().flatten();
        let detail = detail.collect::<Vec<_>>().join(": ");
        let detail = trouble.map_or_else(|| detail.clone(), |error| format!("{detail}; {error}"));
        let step = reason.and_then(step_of).unwrap_or(help);
        return Finding::broken(what, detail).help(step);
    }
    match facts.number("last_tick_age_s") {
        Some(age_s) if age_s <= silent_s(interval_ms) => {
            let age = length(age_s);
            Finding::works(what, format!("on, the last sample {age} ago"))
        }
        Some(age_s) => {
            let age = length(age_s);
            Finding::broken(what, format!("stalled: the last sample is {age} old")).help(help)
        }
        None => Finding::partial(what, "on, no sample yet").help("check again in a few seconds"),
    }
}

/// An interval as PostgreSQL writes it, `00:01:00` or `00:00:00.5`, in ms.
fn interval_ms(text: &str) -> Option<i64> {
    let parts: Vec<f64> = text
        .split(':')
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()
        .ok()?;
    let [hours, minutes, seconds] = parts[..] else {
        return None;
    };
    Some((((hours * 60.0 + minutes) * 60.0 + seconds) * 1e3).round() as i64)
}

/// The roles that see all texts: superusers, and the first `MOST_ROLES` of `roles`.
fn readers(roles: &[String]) -> String {
    let shown = roles
        .iter()
        .take(MOST_ROLES)
        .map(|role| format!(", {role}"));
    let more = match roles.len().saturating_sub(MOST_ROLES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let all: String = shown.collect();
    format!("superusers{all}{more}; other roles see only their own")
}

/// The step that helps if recording is silent for this reason; only for reasons that newcomers
/// meet.
fn step_of(reason: &str) -> Option<&'static str> {
    let steps = [
        (
            "could not run",
            "install the tacho program there, or set tacho.program and restart the server",
        ),
        (
            "could not create directory",
            "let the user of the server write there, or set tacho.directory and restart the server",
        ),
        (
            "max_worker_processes",
            "raise max_worker_processes and restart the server",
        ),
    ];
    let step = steps.iter().find(|(part, _)| reason.contains(part));
    step.map(|(_, step)| *step)
}

/// Steps of the SQL edition that fail.
fn failed_steps(facts: &Facts) -> Vec<Finding> {
    let failed = facts
        .0
        .iter()
        .filter(|(metric, _)| metric.starts_with("failed: "));
    let finding = |(metric, value): (&String, &String)| {
        Finding::broken("step", format!("{metric}, {value}"))
            .help("fix the problem that the message names")
    };
    failed.map(finding).collect()
}

fn cpu_kinds(facts: &Facts) -> Finding {
    let what = "kinds of CPU time";
    match facts.text("cpu_kind") {
        Some("on") => Finding::works(what, "running and runnable sessions are distinguished"),
        Some(off) => Finding::partial(what, off),
        None => Finding::partial(what, "unknown"),
    }
}

fn settings_of(answer: &Answer) -> BTreeMap<String, Setting> {
    let setting = |row| {
        let value = answer.text(row, 1).unwrap_or_default().to_string();
        let is_pending = answer.text(row, 2) == Some("t");
        let name = answer.text(row, 0)?.to_string();
        Some((name, Setting { value, is_pending }))
    };
    (0..answer.rows()).filter_map(setting).collect()
}

/// Rows of two columns that both have values.
fn pairs(answer: &Answer) -> BTreeMap<String, String> {
    let pair = |row| {
        let name = answer.text(row, 0)?.to_string();
        Some((name, answer.text(row, 1)?.to_string()))
    };
    (0..answer.rows()).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::finding::State;

    #[test]
    fn an_interval_is_read_in_ms() {
        let texts = ["00:01:00", "00:00:00.01", "01:00:00", "1 day", ""];
        assert_eq!(
            texts.map(interval_ms),
            [Some(60_000), Some(10), Some(3_600_000), None, None]
        );
    }

    #[test]
    fn roles_that_see_texts_are_named() {
        let roles = |n: usize| (0..n).map(|i| format!("r{i}")).collect::<Vec<_>>();
        assert_eq!(readers(&[]), "superusers; other roles see only their own");
        assert_eq!(
            readers(&roles(7)),
            "superusers, r0, r1, r2, r3, r4, and 2 more; other roles see only their own"
        );
    }

    #[test]
    fn silent_is_broken_and_a_standby_is_not() {
        let state =
            |metrics: &[(&str, &str)]| recording(&Facts::of(metrics), Some(1_000), LOG_HELP).state;
        let on = ("recording", "on");
        assert_eq!(state(&[on, ("last_tick_age_s", "60")]), State::Works);
        assert_eq!(state(&[on, ("last_tick_age_s", "61")]), State::Broken);
        let rare = |age| {
            let facts = Facts::of(&[on, ("last_tick_age_s", age)]);
            recording(&facts, Some(60_000), LOG_HELP).state
        };
        assert_eq!(rare("180"), State::Works);
        assert_eq!(rare("181"), State::Broken);
        assert_eq!(state(&[on]), State::Partial);
        assert_eq!(
            state(&[("recording", "standby: nothing is recorded here")]),
            State::Partial
        );
        let off = Facts::of(&[
            ("recording", "off"),
            ("reason", "no program"),
            ("writer_error", "gone"),
        ]);
        assert_eq!(
            recording(&off, None, LOG_HELP).detail,
            "off: no program; gone"
        );
    }
}
