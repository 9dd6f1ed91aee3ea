//! The command line.

use clap::{ArgAction, Args, Parser, ValueHint};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use tacho_source::time;

/// Name of our sessions, unless the connection string gives another.
pub const APPLICATION: &str = "tacho record";

/// Records the performance history of servers to which you can only connect.
#[derive(Parser)]
#[command(name = "tacho record", version, disable_help_flag = true)]
pub struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    /// Connection string or URI as psql takes it, without a password
    #[arg(value_name = "CONNINFO", default_value = "")]
    pub conninfo: String,

    /// Directory of the history files
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present_any = ["check", "config"])]
    pub tape: Option<PathBuf>,

    /// Print what can be recorded of the server, or of each server of --config, and how
    /// to get the rest
    #[arg(long)]
    pub check: bool,

    /// Record the servers of a file (record.toml); SIGHUP reads it again
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["conninfo", "tape", "Settings"])]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub settings: Settings,
}

/// Settings of one recorded server.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Command that prints the password; it runs for each connection
    #[arg(long, value_name = "COMMAND")]
    pub password_command: Option<String>,

    /// Time between two samples, such as 500ms or 1s; a number without a unit is ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = milliseconds::<u64>(100..=60_000))]
    pub interval: u64,

    /// Time between two records of the counters of statements
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = milliseconds::<i64>(1_000..=3_600_000))]
    pub statements_interval: i64,

    /// Time between two measurements of the server as a whole, 0 = none
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = milliseconds::<i64>(0..=3_600_000))]
    pub server_interval: i64,

    /// CPUs of the server, for the line in charts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub vcpus: Option<u16>,

    /// Record no texts of queries
    #[arg(long)]
    pub no_texts: bool,

    /// Record texts with their constants, and also the texts of running queries as the
    /// clients sent them
    #[arg(long, conflicts_with = "no_texts")]
    pub raw_texts: bool,

    /// Record only the sessions that the role may see, although the server hides
    /// others; without this, a tick with hidden sessions has failed
    #[arg(long)]
    pub own_sessions: bool,

    /// Time between two synchronisations of the history to disk
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = milliseconds::<u64>(1..=600_000))]
    pub flush_interval: u64,

    /// Days after which history is removed, 0 = never
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    pub retention_age: u32,

    /// MB of history above which the oldest is removed, 0 = no limit [default: 4096 or
    /// 5 % of the file system, whichever is less]
    #[arg(long, value_name = "MB")]
    pub retention_size: Option<u32>,

    /// MB up to which the history may grow because of files that
    /// `tacho ship --tell-retention` has not shipped yet, 0 = they are not kept
    #[arg(long, value_name = "MB", default_value_t = 0)]
    pub retention_unshipped: u32,

    /// MB of the file system that stay free: with less, nothing is written
    #[arg(long, value_name = "MB", default_value_t = 1_024)]
    pub min_free_space: u32,
}

/// Parses a length of time within limits, in ms.
fn milliseconds<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let time = time::option(text, Some("ms"))?;
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let is_whole = time == Duration::from_millis(ms);
        let value = T::try_from(ms)
            .ok()
            .filter(|_| is_whole && limits.contains(&ms));
        value.ok_or_else(|| {
            let (least, most) = (limits.start(), limits.end());
            format!("must be between {least} ms and {most} ms")
        })
    }
}

impl Options {
    /// How to connect to the server.
    ///
    /// # Errors
    /// The connection string is invalid or has a password.
    pub fn target(&self) -> tacho_dsn::Result<tacho_dsn::Options> {
        let target = tacho_dsn::Options::from_argument(&self.conninfo, APPLICATION)?;
        Ok(self.settings.prepare(target))
    }
}

impl Settings {
    /// Adds the settings that every connection of the recorder needs.
    pub fn prepare(&self, mut target: tacho_dsn::Options) -> tacho_dsn::Options {
        // Names and texts arrive as the server stores them, in any encoding.
        target.client_encoding = Some("SQL_ASCII".to_string());
        target.password_command.clone_from(&self.password_command);
        target
    }

    /// Time between two samples.
    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.interval)
    }

    /// CPUs of the server in hundredths; 0 = not known.
    pub fn vcpus_x100(&self) -> i64 {
        self.vcpus.map_or(0, |n| i64::from(n) * 100)
    }

    /// Time to wait for an answer before the connection is given up.
    pub fn answer_timeout(&self) -> Duration {
        (self.interval() * 2).max(Duration::from_secs(5))
    }

    /// Settings of the writer: name and value.
    pub fn of_writer(&self) -> impl Iterator<Item = (&'static str, String)> {
        let size = self.retention_size.map_or(-1, i64::from);
        [
            ("flush_interval_ms", self.flush_interval.to_string()),
            (
                "retention_age_s",
                (u64::from(self.retention_age) * 86_400).to_string(),
            ),
            ("retention_size_mb", size.to_string()),
            (
                "retention_unshipped_mb",
                self.retention_unshipped.to_string(),
            ),
            ("min_free_space_mb", self.min_free_space.to_string()),
        ]
        .into_iter()
    }
}
