//! The sources that a command line names: tapes, connections, or both.

use crate::address;
use crate::server::Remote;
use clap::{Args, ValueHint};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use tacho_dsn::Options;
use tacho_source::{Ask, Failure, Server, Source, State, Tapes, pick_server};
use tacho_tape::locate::Surroundings;
use tacho_tape::query::{self, Function, QueryError, QueryResult, Sink};

/// Interval at which callers look for new history of a server.
const PACE: Duration = Duration::from_secs(1);

/// Options that name the sources of answers.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceOptions {
    /// Directory of the history files, and its name in the list of servers; may be
    /// repeated [default name: of the data directory; default: $TACHO_TAPE, else the
    /// history of $PGDATA, else of all servers that run here]
    #[arg(long, short, value_name = "[NAME=]DIR", value_hint = ValueHint::DirPath)]
    tape: Vec<String>,

    /// Every history at most four levels below a directory, named by its path from
    /// there; may be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Vec<PathBuf>,

    /// Server to ask through a connection: a connection string, a URI or a database as
    /// psql takes them, without a password; may be repeated [default name: the service,
    /// or the database and host]
    #[arg(long, value_name = "[NAME=]CONNINFO")]
    dsn: Vec<String>,

    /// Command that prints the password; it runs for each connection
    #[arg(long, value_name = "COMMAND")]
    password_command: Option<String>,
}

impl SourceOptions {
    /// The options that name servers, one a line. Two runs with equal options look at the same
    /// servers. It has no password: a connection string with one is refused.
    pub fn named(&self) -> String {
        let tapes = self.tape.iter().map(|tape| format!("tape {tape}"));
        let roots = self
            .root
            .iter()
            .map(|root| format!("root {}", root.display()));
        let servers = self.dsn.iter().map(|dsn| format!("dsn {dsn}"));
        tapes
            .chain(roots)
            .chain(servers)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The source. Tapes keep at most `cache_bytes` of columns for later questions.
    /// `application` names the sessions on servers.
    ///
    /// # Errors
    /// Nothing is named or found, a connection string is invalid or has a
    /// password, or two servers have one name.
    pub fn source(&self, cache_bytes: u64, application: &str) -> Result<Sources, Failure> {
        self.sources(cache_bytes, application)
            .map_err(|error| Failure::query(in_one_line(error)))
    }

    fn sources(&self, cache_bytes: u64, application: &str) -> QueryResult<Sources> {
        let mut tapes = Tapes::new(cache_bytes);
        if self.tape.is_empty() && self.root.is_empty() && self.dsn.is_empty() {
            tapes.add_local(&Surroundings::here())?;
        }
        for tape in &self.tape {
            tapes.add(tape)?;
        }
        self.root.iter().for_each(|r| tapes.add_root(r.clone()));
        let mut sources = Sources {
            tapes,
            remotes: BTreeMap::new(),
        };
        for dsn in &self.dsn {
            let (name, conninfo, options) = address::parse(dsn, application)?;
            let options = self.with_password_command(options);
            if sources.tapes.is_named(&name) || sources.remotes.contains_key(&name) {
                let error = QueryError::invalid(format!("server name \"{name}\" is used twice"));
                return Err(error.hint("Name one of them: NAME=CONNINFO."));
            }
            sources.remotes.insert(name, Remote::new(conninfo, options));
        }
        Ok(sources)
    }

    /// Connections to act on servers, by name. A text is `[NAME=]CONNINFO`; with
    /// several servers it needs the name. An empty text stands for the connections of
    /// `--dsn`, or without them for psql's default connection.
    ///
    /// # Errors
    /// A connection string is invalid or has a password, its server is not named
    /// or does not exist, or a server has two.
    pub fn connections(
        &self,
        texts: &[String],
        servers: &[String],
        application: &str,
    ) -> Result<BTreeMap<String, Options>, Failure> {
        let mut all = BTreeMap::new();
        let of_dsn = |text: &String| match text.is_empty() && !self.dsn.is_empty() {
            true => self.dsn.clone(),
            false => vec![text.clone()],
        };
        for text in texts.iter().flat_map(of_dsn) {
            let found = self.connection(&text, servers, application);
            let (server, options) = found.map_err(|e| usage(in_one_line(e)))?;
            if all.contains_key(&server) {
                let message = format!("more than one connection specified for server \"{server}\"");
                return Err(Failure::usage(message));
            }
            all.insert(server, options);
        }
        Ok(all)
    }

    /// Name and options of the server that a connection belongs to.
    fn connection(
        &self,
        text: &str,
        servers: &[String],
        application: &str,
    ) -> QueryResult<(String, Options)> {
        let (named, _) = address::named(text)?;
        let (called, _, options) = address::parse(text, application)?;
        let is_known = servers.contains(&called);
        let server = match (named, servers) {
            (None, [only]) => only.clone(),
            (_, servers) if is_known || servers.is_empty() => called,
            (Some(name), servers) => pick_server(Some(name), servers.to_vec())?,
            (None, servers) => {
                let message = "connection names no server";
                let hint = format!(
                    "Use the form NAME=CONNINFO. Available are {}.",
                    servers.join(", ")
                );
                return Err(QueryError::invalid(message).hint(hint));
            }
        };
        Ok((server, self.with_password_command(options)))
    }

    fn with_password_command(&self, mut options: Options) -> Options {
        options.password_command.clone_from(&self.password_command);
        options
    }
}

fn usage(error: QueryError) -> Failure {
    let failure = Failure::usage(error.message);
    match error.hint {
        Some(hint) => failure.hint(&hint),
        None => failure,
    }
}

/// Joins message and detail, because programs print only message and hint.
fn in_one_line(mut error: QueryError) -> QueryError {
    if let Some(detail) = error.detail.take() {
        error.message = format!("{}: {detail}", error.message);
    }
    error
}

/// Tapes and servers. A given name of a connection hides a found tape.
pub struct Sources {
    tapes: Tapes,
    remotes: BTreeMap<String, Remote>,
}

impl Sources {
    /// Errors of the given directories. Connections are not tried.
    ///
    /// # Errors
    /// None of the directories exists, and no connection was given.
    pub fn check(&self) -> Result<Vec<Failure>, Failure> {
        let wrong = self.tapes.problems();
        let gone = wrong.iter().filter(|(state, _)| *state == State::Missing);
        let all = self.tapes.given() + self.remotes.len();
        let is_nothing_there = all > 0 && gone.count() == all;
        let mut failures = wrong.into_iter().map(|(_, error)| Failure::place(error));
        match failures.next() {
            Some(first) if is_nothing_there => Err(first),
            first => Ok(first.into_iter().chain(failures).collect()),
        }
    }

    /// The server with the name, if it has a connection.
    fn remote(&self, name: Option<&str>) -> QueryResult<Option<&Remote>> {
        match name {
            _ if self.remotes.is_empty() => Ok(None),
            Some(name) if self.remotes.contains_key(name) => Ok(self.remotes.get(name)),
            name => {
                let mut names = self.tapes.names();
                names.extend(self.remotes.keys().cloned());
                names.sort();
                Ok(self.remotes.get(&pick_server(name, names)?))
            }
        }
    }

    /// All servers behind connections, with their states. Each server has a thread of its own, as
    /// long as the system has threads.
    fn states(&self) -> Vec<Server> {
        thread::scope(|scope| {
            let start = |(name, remote)| {
                let ask = move || Remote::state(remote);
                (name, thread::Builder::new().spawn_scoped(scope, ask))
            };
            let asked: Vec<_> = self.remotes.iter().map(start).collect();
            let server = |(name, asked): (&String, io::Result<ScopedJoinHandle<_>>)| Server {
                name: name.clone(),
                state: match asked {
                    Ok(asked) => asked.join().unwrap_or(State::Unreachable),
                    Err(_) => self.remotes[name].state(),
                },
                paused_ms: None,
            };
            asked.into_iter().map(server).collect()
        })
    }
}

impl Source for Sources {
    fn servers(&self) -> Vec<Server> {
        let mut all = self.tapes.servers();
        all.retain(|tape| !self.remotes.contains_key(&tape.name));
        all.extend(self.states());
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn functions(&self) -> &'static [Function] {
        query::list()
    }

    fn ask(&self, ask: &Ask, cancel: &AtomicBool, sink: &mut dyn Sink) -> QueryResult<()> {
        match self.remote(ask.server.as_deref())? {
            Some(remote) => remote.ask(ask, cancel, sink),
            None => self.tapes.ask(ask, cancel, sink),
        }
    }

    fn mark(&self, server: Option<&str>, text: &str) -> QueryResult<()> {
        match self.remote(server)? {
            Some(_) => {
                let message = "markers cannot be written through a connection";
                let error = QueryError::new("0A000", message);
                Err(error.hint("Run tacho mark where the history files are."))
            }
            None => self.tapes.mark(server, text),
        }
    }

    fn marks(&self, server: &str) -> bool {
        !self.remotes.contains_key(server)
    }

    fn place(&self, server: &str) -> Vec<String> {
        match self.remotes.get(server) {
            Some(remote) => vec!["--dsn".into(), remote.conninfo().into()],
            None => self.tapes.place(server),
        }
    }

    fn pace(&self, server: &str) -> Duration {
        match self.remotes.contains_key(server) {
            true => PACE,
            false => self.tapes.pace(server),
        }
    }

    fn forget(&self) {
        self.tapes.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(tape: &[&str], dsn: &[&str]) -> SourceOptions {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_string()).collect();
        SourceOptions {
            tape: owned(tape),
            dsn: owned(dsn),
            ..SourceOptions::default()
        }
    }

    fn refused(tape: &[&str], dsn: &[&str]) -> String {
        let refused = places(tape, dsn).source(0, "test");
        refused
            .err()
            .map_or(String::new(), |failure| failure.lines())
    }

    #[test]
    fn servers_have_one_name_each() {
        assert_eq!(
            refused(&["shop=/nowhere"], &["shop=host=db"]),
            "error: server name \"shop\" is used twice\nhint: Name one of them: NAME=CONNINFO.\n"
        );
        let twice = refused(&[], &["host=db dbname=app", "dbname=app host=db"]);
        assert!(twice.starts_with("error: server name \"app@db\" is used twice"));
        assert_eq!(refused(&["shop=/nowhere"], &["host=db"]), "");
    }

    fn connected(dsn: &[&str], texts: &[&str], servers: &[&str]) -> Result<String, String> {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_string()).collect::<Vec<_>>();
        let all = places(&[], dsn).connections(&owned(texts), &owned(servers), "test");
        let described =
            |(name, options): (String, Options)| format!("{name}: {}", options.describe());
        let all = all.map_err(|failure| failure.lines())?;
        Ok(all
            .into_iter()
            .map(described)
            .collect::<Vec<_>>()
            .join("; "))
    }

    #[test]
    fn a_connection_acts_on_the_named_server() {
        let ok = |found: &str| Ok(found.to_string());
        let two = &["host=db1 dbname=a", "b=host=db2"];
        let servers = &["a@db1", "b", "tape"];
        assert_eq!(
            connected(&[], &["host=db1"], &["data"]),
            ok("data: host=db1")
        );
        assert_eq!(
            connected(&[], &[""], &["data"]),
            ok("data: the default server")
        );
        assert_eq!(
            connected(two, &[""], servers),
            ok("a@db1: host=db1 dbname=a; b: host=db2")
        );
        assert_eq!(
            connected(two, &["", "tape=host=db3"], servers),
            ok("a@db1: host=db1 dbname=a; b: host=db2; tape: host=db3")
        );
        let refused = |texts: &[&str]| connected(two, texts, servers).unwrap_err();
        assert_eq!(
            refused(&["host=db3"]),
            "error: connection names no server\n\
             hint: Use the form NAME=CONNINFO. Available are a@db1, b, tape.\n"
        );
        assert_eq!(
            refused(&["c=host=db3"]),
            "error: server \"c\" does not exist\nhint: Available are a@db1, b, tape.\n"
        );
        assert_eq!(
            refused(&["", "b=host=db3"]),
            "error: more than one connection specified for server \"b\"\n"
        );
        let password = refused(&["b=host=db3 password=s3cret"]);
        assert!(password.starts_with("error: connection string contains \"password\""));
    }

    #[test]
    fn a_connection_string_that_makes_no_sense_is_explained() {
        assert_eq!(
            refused(&[], &["shop=hots=db"]),
            "error: invalid connection string: invalid connection option \"hots\"\n"
        );
    }

    #[test]
    fn a_question_without_a_server_is_one_to_the_only_one() {
        let source = places(&["a=/nowhere"], &["b=host=/nowhere"]).source(0, "test");
        let source = source.map_err(|f| f.lines()).unwrap();
        let error = source.remote(None).err().unwrap();
        assert_eq!(error.message, "no server specified");
        assert_eq!(error.hint.as_deref(), Some("Available are a, b."));
        let error = source.remote(Some("c")).err().unwrap();
        assert_eq!(error.message, "server \"c\" does not exist");
        assert!(source.remote(Some("a")).unwrap().is_none());
        assert!(source.remote(Some("b")).unwrap().is_some());
        assert_eq!(source.place("b"), ["--dsn", "host=/nowhere"]);
        let error = source.mark(Some("b"), "deploy").unwrap_err();
        let message = "markers cannot be written through a connection";
        assert_eq!((error.sqlstate, error.message.as_str()), ("0A000", message));
        let only = places(&[], &["b=host=/nowhere"]).source(0, "test");
        let only = only.map_err(|f| f.lines()).unwrap();
        assert!(only.remote(None).unwrap().is_some());
        assert_eq!(only.servers()[0].state.name(), "unreachable");
    }
}
