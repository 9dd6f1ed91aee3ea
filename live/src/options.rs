//! The command line, and what of it is refused.

use crate::paint::Depth;
use clap::{ArgAction, Parser, ValueEnum};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::sync::Arc;
use tacho_remote::Places;
use tacho_source::{Failure, Source, time};

/// Name of our sessions, unless a connection string gives another.
const APPLICATION: &str = "tacho live";
/// Share of the memory limit that columns are kept in.
const CACHE_SHARE: u64 = 4;

/// The performance history of PostgreSQL in a terminal.
#[derive(Parser)]
#[command(name = "tacho live", version, disable_help_flag = true)]
pub struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    places: Places,

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

    /// Cancel queries (C) and end sessions (K), each once it is confirmed,
    /// through this connection to server NAME, as psql takes it, without a
    /// password; without CONNINFO through those of --dsn
    #[arg(long, value_name = "[NAME=]CONNINFO", num_args = 0..=1, default_missing_value = "")]
    allow_signal: Vec<String>,

    /// Memory that one question may take, a quarter of it for what later ones
    /// may need again
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    memory_limit_mb: u32,
}

impl Options {
    /// What answers.
    ///
    /// # Errors
    /// As of [`Places::source`].
    pub fn source(&self) -> Result<Arc<dyn Source>, Failure> {
        let cache_bytes = self.memory_bytes() / CACHE_SHARE;
        Ok(Arc::new(self.places.source(cache_bytes, APPLICATION)?))
    }

    /// Where queries are cancelled and sessions ended, by server.
    ///
    /// # Errors
    /// As of [`Places::connections`].
    pub fn signals(
        &self,
        servers: &[String],
    ) -> Result<BTreeMap<String, tacho_dsn::Options>, Failure> {
        self.places
            .connections(&self.allow_signal, servers, APPLICATION)
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
