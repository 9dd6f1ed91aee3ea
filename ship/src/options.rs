//! The command line.

use crate::names::directory;
use crate::redact::Rule;
use clap::{ArgAction, Parser, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Hive, and engines that follow it, read this name as a partition without a value.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Longest name of a directory in bytes, with the slash before it.
const NAME_BYTES: usize = 256;

/// Ships finished hours of a history as Parquet files.
#[derive(Parser, Debug)]
#[command(name = "tacho ship", version, disable_help_flag = true)]
pub struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    /// Directory of the history files
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub tape: PathBuf,

    /// Destination: file:///DIRECTORY, s3://BUCKET/PREFIX, gs:// or az://
    #[arg(long, value_name = "URL", required_unless_present = "command")]
    pub to: Option<String>,

    /// Command that puts file %f as object %n, unless the object exists
    #[arg(long, value_name = "COMMAND", conflicts_with = "to", requires = "list")]
    pub command: Option<String>,

    /// Command that prints the names of the objects in directory %n, a line each
    #[arg(long, value_name = "COMMAND", requires = "command")]
    pub list: Option<String>,

    /// Time limit of a command, such as 10m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h", requires = "command")]
    pub command_limit: Duration,

    /// Time limit of a request to an object store, plus a second for each 64 KiB
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub request_limit: Duration,

    /// Bytes a second that are sent on average at most, such as 500k or 2m
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub limit_rate: Option<u64>,

    /// Share of one CPU that is used on average at most, such as 10%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub limit_cpu: Option<u32>,

    /// Name of the server, which must not change: another name ships everything again
    /// [default: the number of the recorder's directory]
    #[arg(long, value_name = "NAME", value_parser = named)]
    pub server: Option<String>,

    /// Label of the server, such as env=prod; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,

    /// Go on, and look for finished hours at this interval, such as 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Duration>,

    /// Write the number of the last shipped file into the history's directory, for
    /// retention_unshipped
    #[arg(long)]
    pub tell_retention: bool,

    /// Values that do not leave the server
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub redact: Vec<Rule>,

    /// File with a secret: redacted values become hashes keyed with it instead of nulls
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "redact")]
    pub salt: Option<PathBuf>,
}

fn named(text: &str) -> Result<String, String> {
    let refused = |why: &str| Err(why.to_string());
    match text {
        _ if text.is_empty() || text.chars().any(char::is_control) => {
            refused("a name must not be empty or contain control characters")
        }
        HIVE_NULL => refused("query engines read this name as null"),
        _ if directory("", text).len() > NAME_BYTES => {
            refused("name is too long: a directory name has at most 255 bytes")
        }
        _ => Ok(text.to_string()),
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
        _ => Err("must have the form KEY=VALUE".into()),
    }
}

/// A positive duration.
fn duration(text: &str) -> Result<Duration, String> {
    match tacho_source::time::option(text, None)? {
        Duration::ZERO => Err("must be greater than 0".to_string()),
        time => Ok(time),
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let units = [("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("", 1)];
    let lower = text.to_ascii_lowercase();
    let number = units.iter().find_map(|(unit, size): &(&str, u64)| {
        let number: u64 = lower.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*size)
    });
    let hint = || "must have the form 500k or 2m".to_string();
    number.filter(|number| *number > 0).ok_or_else(hint)
}

fn percent(text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').parse().ok();
    let hint = || "must have the form 10%".to_string();
    number
        .filter(|number| (1..=100).contains(number))
        .ok_or_else(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_labels_are_understood_or_refused() {
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5d"), Ok(Duration::from_secs(5 * 86_400)));
        for text in ["", "5", "m", "0s", "-1m", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(label("env=a=b"), Ok(("env".into(), "a=b".into())));
        assert!(label("env").is_err() && label("=x").is_err());
        assert!(named("").is_err() && named("a\nb").is_err());
        assert!(named(HIVE_NULL).is_err() && named("__hive_default_partition__").is_ok());
        // "server=" and the remaining bytes of 255; each other character takes three
        let long = [
            "a".repeat(248),
            "ä".repeat(41),
            "a".repeat(249),
            "ä".repeat(42),
        ];
        assert_eq!(
            long.map(|name| named(&name).is_ok()),
            [true, true, false, false]
        );
    }

    #[test]
    fn limits_are_understood_or_refused() {
        let sizes = ["1", "500k", "2M", "3g"].map(bytes);
        assert_eq!(sizes, [1, 512_000, 2 << 20, 3 << 30].map(Ok));
        for text in ["", "0", "k", "-1", "1.5m", "5kb", "99999999999g"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(["10%", "100"].map(percent), [Ok(10), Ok(100)]);
        for text in ["", "0%", "101%", "-1", "a"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
