//! The command line, and what of it is refused.

use crate::paint::Depth;
use clap::{ArgAction, Parser, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tacho_source::{Failure, Source, Tapes, time};
use tacho_tape::locate::Surroundings;

/// Share of the memory limit that columns are kept in.
const CACHE_SHARE: u64 = 4;

/// The performance history of PostgreSQL in a terminal.
#[derive(Parser)]
#[command(name = "tacho live", version, disable_help_flag = true)]
pub struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    /// Directory of the history files, called NAME, else as its data directory;
    /// without --tape and --root that of TACHO_TAPE, of PGDATA, or those of the
    /// servers that run here
    #[arg(long, short, value_name = "[NAME=]DIR", value_hint = ValueHint::DirPath)]
    tape: Vec<String>,

    /// Every history below a directory, called by its path from there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Vec<PathBuf>,

    /// Server to begin with; Tab goes on to the next one
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,

    /// Begin of the window: 1h, 03:12, "yesterday 14:00", RFC 3339; live
    /// without it and --until
    #[arg(long, short, value_name = "TIME")]
    pub since: Option<String>,

    /// Its end
    #[arg(long, short, value_name = "TIME")]
    pub until: Option<String>,

    /// Time zone of times, such as Europe/Berlin, or local
    #[arg(long, value_name = "ZONE", default_value = "local")]
    tz: String,

    /// Colours [default: what TERM and COLORTERM say; none where NO_COLOR is set]
    #[arg(long, value_name = "COLOURS")]
    color: Option<Depth>,

    /// No other characters than those of ASCII
    #[arg(long)]
    pub ascii: bool,

    /// Address of a tacho web that w names pages of
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8432")]
    pub web: String,

    /// Cancel queries (C) and end sessions (K) through this connection, each
    /// once it is confirmed: as psql takes it, without a password
    #[arg(long, value_name = "CONNINFO")]
    allow_signal: Option<String>,

    /// Memory that one question may take, a quarter of it for what later ones
    /// may need again
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    memory_limit_mb: u32,
}

impl Options {
    /// What answers.
    ///
    /// # Errors
    /// Nothing is named or found, or two tapes have one name.
    pub fn source(&self) -> Result<Arc<dyn Source>, Failure> {
        let mut tapes = Tapes::new(self.memory_bytes() / CACHE_SHARE);
        if self.tape.is_empty() && self.root.is_empty() {
            tapes
                .add_here(&Surroundings::here())
                .map_err(Failure::query)?;
        }
        for tape in &self.tape {
            tapes.add(tape).map_err(Failure::query)?;
        }
        self.root.iter().for_each(|r| tapes.add_root(r.clone()));
        Ok(Arc::new(tapes))
    }

    /// Where queries are cancelled and sessions ended.
    ///
    /// # Errors
    /// It is no connection string, or has a password.
    pub fn signals(&self) -> Result<Option<tacho_dsn::Options>, Failure> {
        let options = self.allow_signal.as_ref();
        let options =
            options.map(|conninfo| tacho_dsn::Options::from_argument(conninfo, "tacho live"));
        options.transpose().map_err(|error| {
            let failure = Failure::usage(error.line());
            match error.hint {
                Some(hint) => failure.hint(&hint),
                None => failure,
            }
        })
    }

    /// Bytes that one question may take.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.memory_limit_mb) << 20
    }

    /// The zone of times.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn zone(&self) -> Result<TimeZone, Failure> {
        time::zone(&self.tz).map_err(Failure::query)
    }

    /// A window to begin with, µs; nothing to begin live. An end without a begin
    /// is that of an hour.
    ///
    /// # Errors
    /// A time is not understood, or there is nothing between the two.
    pub fn window(&self, now_us: i64, zone: &TimeZone) -> Result<Option<(i64, i64)>, Failure> {
        const HOUR: i64 = 3_600_000_000;
        let at = |text: &Option<String>| {
            let at = text.as_ref().map(|text| time::moment(text, now_us, zone));
            at.transpose().map_err(Failure::query)
        };
        let (since, until) = (at(&self.since)?, at(&self.until)?);
        if since.is_none() && until.is_none() {
            return Ok(None);
        }
        let until = until.unwrap_or(now_us);
        let since = since.unwrap_or(until - HOUR);
        if since >= until {
            let message = "the window ends before it begins".to_string();
            return Err(Failure::usage(message));
        }
        Ok(Some((since, until)))
    }

    /// How many colours there are, by the environment where nothing is said.
    pub fn depth(&self, environment: &BTreeMap<&str, String>) -> Depth {
        self.color.unwrap_or_else(|| Depth::of(environment))
    }
}

impl ValueEnum for Depth {
    fn value_variants<'a>() -> &'a [Depth] {
        &[Depth::True, Depth::Many, Depth::Sixteen, Depth::None]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}
