//! The command line, and its refusals.

use crate::paint::Depth;
use clap::{ArgAction, Parser, ValueEnum};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::sync::Arc;
use tacho_remote::SourceOptions;
use tacho_source::{Failure, Source, time};

/// Name of our sessions, unless a connection string gives another.
const APPLICATION: &str = "tacho live";
/// Divisor of the memory limit: columns may use a quarter.
const CACHE_SHARE: u64 = 4;

/// The performance history of PostgreSQL in a terminal.
#[derive(Parser)]
#[command(name = "tacho live", version, disable_help_flag = true)]
pub struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    places: SourceOptions,

    /// Server to show first; Tab shows the next one
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,

    /// Start of a window: 1h, 03:12, "yesterday 14:00", RFC 3339 [default: live]
    #[arg(long, short, value_name = "TIME")]
    pub since: Option<String>,

    /// End of the window, exclusive
    #[arg(long, short, value_name = "TIME")]
    pub until: Option<String>,

    /// Time zone of times, such as Europe/Berlin, or local
    #[arg(long, value_name = "ZONE", default_value = "local")]
    tz: String,

    /// Colours [default: by TERM and COLORTERM; none if NO_COLOR is set]
    #[arg(long, value_name = "COLOURS")]
    color: Option<Depth>,

    /// Draw only with ASCII characters [default: if TERM is dumb or the locale is not
    /// UTF-8]
    #[arg(long)]
    ascii: bool,

    /// Address of a tacho web; the key w prints addresses of its pages
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8432")]
    pub web: String,

    /// Let C cancel queries and K end sessions of server NAME, through this connection
    /// (without a password); without CONNINFO through the connections of --dsn
    #[arg(long, value_name = "[NAME=]CONNINFO", num_args = 0..=1, default_missing_value = "")]
    allow_signal: Vec<String>,

    /// MB of memory that one question may take
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    memory_limit_mb: u32,
}

impl Options {
    /// The source of answers.
    ///
    /// # Errors
    /// As [`SourceOptions::source`].
    pub fn source(&self) -> Result<Arc<dyn Source>, Failure> {
        let cache_bytes = self.memory_bytes() / CACHE_SHARE;
        Ok(Arc::new(self.places.source(cache_bytes, APPLICATION)?))
    }

    /// Connections for signals, by server.
    ///
    /// # Errors
    /// As [`SourceOptions::connections`].
    pub fn signals(
        &self,
        servers: &[String],
    ) -> Result<BTreeMap<String, tacho_dsn::Options>, Failure> {
        self.places
            .connections(&self.allow_signal, servers, APPLICATION)
    }

    /// Maximum memory of a question, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.memory_limit_mb) << 20
    }

    /// Time zone of displayed times.
    ///
    /// # Errors
    /// The zone does not exist.
    pub fn zone(&self) -> Result<TimeZone, Failure> {
        time::zone(&self.tz).map_err(Failure::query)
    }

    /// The window at the start, µs since 1970; `None` starts live. An end without a begin means the
    /// hour before the end.
    ///
    /// # Errors
    /// A time is not understood, or the window is empty.
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
            let message = "--since must be before --until".to_string();
            return Err(Failure::usage(message));
        }
        Ok(Some((since, until)))
    }

    /// Number of colours: from `--color`, otherwise from the environment.
    pub fn depth(&self, environment: &BTreeMap<&str, String>) -> Depth {
        self.color.unwrap_or_else(|| Depth::of(environment))
    }

    /// True if the screen is limited to ASCII: by `--ascii`, otherwise by the environment.
    pub fn ascii(&self, environment: &BTreeMap<&str, String>) -> bool {
        self.ascii || draws_ascii(environment)
    }
}

/// True if the terminal or the locale is limited to ASCII. The first non-empty one of LC_ALL,
/// LC_CTYPE and LANG gives the locale.
fn draws_ascii(environment: &BTreeMap<&str, String>) -> bool {
    let value = |name: &str| environment.get(name).map_or("", String::as_str);
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(value);
    let locale = locale.into_iter().find(|locale| !locale.is_empty());
    let locale = locale.unwrap_or("C").to_ascii_lowercase();
    value("TERM") == "dumb" || !(locale.contains("utf-8") || locale.contains("utf8"))
}

impl ValueEnum for Depth {
    fn value_variants<'a>() -> &'a [Depth] {
        &[Depth::True, Depth::Many, Depth::Sixteen, Depth::None]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_and_a_locale_without_utf8_get_ascii() {
        for (expected, given) in [
            (false, "TERM=xterm LANG=C.UTF-8"),
            (false, "TERM=xterm LANG=de_DE.utf8@euro"),
            (false, "TERM=xterm LC_ALL=en_US.UTF-8 LANG=C"),
            (false, "TERM=xterm LC_ALL= LC_CTYPE=UTF-8 LANG=C"),
            (true, "TERM=dumb LANG=C.UTF-8"),
            (true, "TERM=xterm LC_ALL=C LANG=C.UTF-8"),
            (true, "TERM=xterm LC_CTYPE=de_DE.ISO-8859-1 LANG=C.UTF-8"),
            (true, "TERM=xterm LANG=POSIX"),
            (true, "TERM=xterm"),
        ] {
            let words = given.split(' ').filter_map(|word| word.split_once('='));
            let environment = words.map(|(name, value)| (name, value.to_string()));
            assert_eq!(draws_ascii(&environment.collect()), expected, "{given}");
        }
    }
}
