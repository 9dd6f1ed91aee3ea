//! `tacho export`: history as CSV, every stored column. Times are written in
//! UTC, with Z.

use super::say;
use crate::exchange::export::{Failed, Window, export};
use crate::readers::args::TAPE_HELP;
use crate::readers::report;
use clap::ValueHint;
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tacho_source::catalog;
use tacho_source::exchange;
use tacho_source::time;
use tacho_tape::query::{QueryError, QueryResult};
use tacho_tape::{Part, Snapshot, locate};

/// Arguments of `tacho export`.
#[derive(clap::Args)]
pub struct Args {
    /// sessions, locks, counts, texts, server, markers or statements
    #[arg(value_name = "KIND")]
    kind: String,

    #[arg(long, short, value_name = "DIR", help = TAPE_HELP, value_hint = ValueHint::DirPath)]
    tape: Option<PathBuf>,

    /// Recorder, in hexadecimal [default: the newest]
    #[arg(long, value_name = "ID")]
    node: Option<String>,

    /// Start: 1h, 03:12, "yesterday 14:00", RFC 3339; without a zone in TZ, else
    /// in the zone of the system [default: the oldest]
    #[arg(long, short, value_name = "TIME")]
    since: Option<String>,

    /// End, exclusive [default: the newest]
    #[arg(long, short, value_name = "TIME")]
    until: Option<String>,
}

/// Writes the rows to standard output. Exit code 1 if some were damaged.
pub fn run(args: &Args) -> ExitCode {
    let tape = match locate::tape(args.tape.as_deref()) {
        Ok(tape) => tape,
        Err(error) => return report(&error),
    };
    match args.export(&tape) {
        Ok(damage) => {
            for error in &damage {
                say(format_args!("warning: skipped unreadable history: {error}"));
            }
            ExitCode::from(u8::from(!damage.is_empty()))
        }
        Err(error) => report(&error),
    }
}

/// An error of the history or the output.
fn failed(message: String) -> QueryError {
    QueryError::new("58000", message)
}

impl Args {
    fn export(&self, tape: &Path) -> QueryResult<Vec<tacho_tape::Error>> {
        let schema = catalog::schema().clone().with_runs();
        let kinds = exchange::kinds(&schema).join(", ");
        let unknown = || {
            QueryError::undefined(format!("unknown kind \"{}\"", self.kind))
                .hint(format!("Available are {kinds}."))
        };
        let window = self.window()?;
        let store = Snapshot::open(tape).map_err(|e| failed(e.to_string()))?;
        let parts = self.parts(&store)?;
        if parts.is_empty() && exchange::table_of(&schema, &self.kind).is_some() {
            let message = format!("directory \"{}\" has no history", tape.display());
            return Err(failed(message));
        }
        let out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
        let mut damage = Vec::new();
        match export(&self.kind, &schema, &parts, window, out, &mut damage) {
            // A reader that has gone is not a failure.
            Err(Failed::Output(e)) if e.kind() == ErrorKind::BrokenPipe => (),
            Err(Failed::Output(e)) => return Err(failed(format!("could not write output: {e}"))),
            Err(Failed::Kind) => return Err(unknown()),
            Ok(()) => (),
        }
        let later = store.later_damage();
        damage.extend(store.damage().iter().chain(&later).map(|found| {
            tacho_tape::Error::damaged(found.reason.clone())
                .at(&found.file)
                .offset(found.offset)
        }));
        Ok(damage)
    }

    fn window(&self) -> QueryResult<Window> {
        let now = jiff::Timestamp::now().as_microsecond();
        let zone = time::readers_zone()?;
        let moment = |text: &Option<String>, default| match text {
            Some(text) => time::moment(text, now, &zone),
            None => Ok(default),
        };
        Ok(Window {
            since: moment(&self.since, i64::MIN)?,
            until: moment(&self.until, i64::MAX)?,
        })
    }

    fn parts<'s>(&self, store: &'s Snapshot) -> QueryResult<Vec<&'s Part>> {
        let nodes = store.nodes();
        let node = match &self.node {
            None => nodes.first(),
            Some(text) => {
                let id = u64::from_str_radix(text, 16).ok();
                let found = nodes.iter().find(|n| Some(n.id) == id);
                let missing = || QueryError::undefined(format!("node \"{text}\" does not exist"));
                Some(found.ok_or_else(missing)?)
            }
        };
        Ok(node.map_or_else(Vec::new, |n| store.parts(n.id).collect()))
    }
}
