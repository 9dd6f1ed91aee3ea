//! `record.toml`: the servers to record. A server's keys are the options of the command line, with
//! the same names, ranges and defaults.

use crate::options::{APPLICATION, Settings};
use clap::{CommandFactory, Parser};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use toml::Value;

/// Keys that identify a server.
const IDENTITY: [&str; 3] = ["name", "service", "conninfo"];
/// Maximum length of a server's name in bytes: it becomes the name of a directory.
const LONGEST_NAME: usize = 200;

/// Content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Directory that holds a directory for each server.
    pub root: PathBuf,
    /// Address of health and metrics over HTTP.
    pub listen: Option<SocketAddr>,
    /// Memory limit for all servers together.
    pub memory_bytes: u64,
    pub servers: BTreeMap<String, Server>,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub conninfo: String,
    /// True if the conninfo has a password and only the owner can read the file.
    pub is_private: bool,
    pub settings: Settings,
}

type Section = BTreeMap<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    root: PathBuf,
    listen: Option<SocketAddr>,
    /// Maximum number of servers, because each has one connection.
    #[serde(default = "most_connections")]
    connections: usize,
    #[serde(default = "most_memory")]
    memory_mb: u64,
    #[serde(default)]
    defaults: Section,
    #[serde(default)]
    server: Vec<Section>,
}

fn most_connections() -> usize {
    250
}

fn most_memory() -> u64 {
    1024
}

/// Options of a section, for clap.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct SettingsArgs {
    #[command(flatten)]
    settings: Settings,
}

/// Reads a file. A relative `root` is relative to the file.
///
/// # Errors
/// The file cannot be read or is invalid. The message names each fault and its place, on one
/// line or several.
pub fn read(path: &Path) -> Result<Config, String> {
    let failed = |e| format!("could not read file \"{}\": {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = "docs/record.md has an example of this file.";
        format!("{}\nHINT:  {hint}", failed(error))
    })?;
    let mode = std::fs::metadata(path)
        .map_err(failed)?
        .permissions()
        .mode();
    let config = parse(&text, mode & 0o077 == 0);
    let mut config =
        config.map_err(|e| format!("file \"{}\": {}", path.display(), e.trim_end()))?;
    let beside = path.parent().unwrap_or(Path::new(""));
    config.root = beside.join(config.root);
    Ok(config)
}

fn parse(text: &str, is_private: bool) -> Result<Config, String> {
    let file: File = toml::from_str(text).map_err(|e| with_line_number(&e, text))?;
    if file
        .listen
        .is_some_and(|address| !address.ip().is_loopback())
    {
        return Err("\"listen\" must be an address of the loopback interface".to_string());
    }
    if file.server.len() > file.connections {
        let (count, most) = (file.server.len(), file.connections);
        return Err(format!(
            "too many servers: {count}, but \"connections\" is {most}"
        ));
    }
    if file.server.is_empty() {
        return Err("no [[server]] is configured".to_string());
    }
    for key in settings_of(&file.defaults) {
        check_key(key).map_err(|e| format!("[defaults]: {e}"))?;
    }
    let mut servers = BTreeMap::new();
    for section in &file.server {
        let name = name_of(section)?;
        let server = server(section, &file.defaults, is_private);
        let server = server.map_err(|e| format!("server \"{name}\": {e}"))?;
        if servers.insert(name.clone(), server).is_some() {
            return Err(format!("server name \"{name}\" is used twice"));
        }
    }
    Ok(Config {
        root: file.root,
        listen: file.listen,
        memory_bytes: file.memory_mb << 20,
        servers,
    })
}

/// The fault and its line number. The line itself may contain a password and is not shown.
fn with_line_number(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| before.matches('\n').count() + 1);
    let line = line.map(|line| format!("line {line}: "));
    line.unwrap_or_default() + error.message()
}

/// Checks the name, which is also the name of a directory.
fn name_of(section: &Section) -> Result<String, String> {
    let name = match section.get("name") {
        Some(Value::String(name)) => name,
        _ => return Err("each [[server]] needs a \"name\" that is a string".to_string()),
    };
    let is_bad = |c: char| c == '/' || c.is_control();
    if name.is_empty()
        || name.starts_with('.')
        || name.len() > LONGEST_NAME
        || name.contains(is_bad)
    {
        return Err(format!(
            "invalid server name {name:?}: it must be usable as a directory name"
        ));
    }
    Ok(name.clone())
}

fn server(section: &Section, defaults: &Section, is_private: bool) -> Result<Server, String> {
    if let Some(word) = IDENTITY.iter().find(|word| defaults.contains_key(**word)) {
        return Err(format!("\"{word}\" is not allowed in [defaults]"));
    }
    let conninfo = match (section.get("service"), section.get("conninfo")) {
        (Some(Value::String(service)), None) => format!("service={}", quoted(service)),
        (None, Some(Value::String(conninfo))) => conninfo.clone(),
        _ => {
            return Err(
                "exactly one of \"service\" and \"conninfo\" must be set, as a string".to_string(),
            );
        }
    };
    let keys: BTreeSet<&String> = settings_of(defaults).chain(settings_of(section)).collect();
    let mut arguments = Vec::new();
    for key in keys {
        check_key(key)?;
        let value = section.get(key).or_else(|| defaults.get(key));
        arguments.extend(
            value
                .map(|value| argument(key, value))
                .transpose()?
                .flatten(),
        );
    }
    let given = SettingsArgs::try_parse_from(arguments).map_err(|e| said(&e))?;
    let server = Server {
        is_private: is_private && has_password(&conninfo),
        conninfo,
        settings: given.settings,
    };
    server.target().map(|_| server)
}

/// Turns a key into an option of the command line; `None` for a switch that is off.
fn argument(key: &str, value: &Value) -> Result<Option<String>, String> {
    let option = key.replace('_', "-");
    match value {
        Value::Boolean(false) => Ok(None),
        Value::Boolean(true) => Ok(Some(format!("--{option}"))),
        Value::Integer(number) => Ok(Some(format!("--{option}={number}"))),
        Value::String(text) => Ok(Some(format!("--{option}={text}"))),
        _ => Err(format!(
            "\"{key}\" must be a number, a string, true or false"
        )),
    }
}

/// The keys of a server's section except those that name the server. All of them must be options of
/// the command line.
fn settings_of(section: &Section) -> impl Iterator<Item = &String> {
    section
        .keys()
        .filter(|key| !IDENTITY.contains(&key.as_str()))
}

/// Options that a section may have: the key, and the form in clap's messages.
static OPTIONS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut command = SettingsArgs::command();
    command.build();
    let named = |argument: &clap::Arg| {
        let key = argument.get_long()?.replace('-', "_");
        Some((key, format!("'{argument}'")))
    };
    command.get_arguments().filter_map(named).collect()
});

/// Checks that a key exists; the error names the most similar key.
fn check_key(key: &str) -> Result<(), String> {
    let key = key.replace('-', "_");
    if OPTIONS.iter().any(|option| option.0 == key) {
        return Ok(());
    }
    let nearest = OPTIONS
        .iter()
        .map(|option| (strsim::levenshtein(&option.0, &key), &option.0));
    Err(match nearest.min() {
        Some((0..=3, nearest)) => format!("unknown key \"{key}\", did you mean \"{nearest}\"?"),
        _ => format!("unknown key \"{key}\""),
    })
}

/// Turns clap's message about options into one line about keys.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("error: ").to_string();
    OPTIONS.iter().fold(line, |line, (key, shown)| {
        line.replace(shown, &format!("\"{key}\""))
    })
}

/// Quotes a value for a connection string.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// True if the conninfo has a password or cannot be parsed.
fn has_password(conninfo: &str) -> bool {
    tacho_dsn::Options::from_argument(conninfo, APPLICATION).is_err()
}

impl Server {
    /// How to connect to the server.
    ///
    /// # Errors
    /// The conninfo is invalid, or has a password that others can read.
    pub fn target(&self) -> Result<tacho_dsn::Options, String> {
        let options = tacho_dsn::Options::from_file(&self.conninfo, APPLICATION);
        // libpq's detail quotes the value, which may be a password.
        let options = options.map_err(|e| e.message)?;
        if has_password(&self.conninfo) && !self.is_private {
            let hint = "Run chmod 600 on the file, or use a password file or --password-command.";
            return Err(format!(
                "conninfo contains a password, and others can read the file\nHINT:  {hint}"
            ));
        }
        Ok(self.settings.prepare(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(servers: &str) -> Result<Config, String> {
        parse(&format!("root = '/r'\n{servers}"), false)
    }

    fn refused(servers: &str) -> String {
        of(servers).unwrap_err()
    }

    #[test]
    fn keys_are_options_and_a_server_beats_the_defaults() {
        let config = of("
            listen = '127.0.0.1:8433'
            memory_mb = 64
            [defaults]
            interval = 500
            no_texts = true
            [[server]]
            name = 'a'
            service = \"it's\"
            [[server]]
            name = 'b'
            conninfo = 'host=db'
            interval = '2s'
            no_texts = false
            vcpus = 8
            password_command = 'get token'");
        let config = config.unwrap();
        assert_eq!(
            (config.root.to_str(), config.memory_bytes),
            (Some("/r"), 64 << 20)
        );
        let said = |name: &str| {
            let server = &config.servers[name];
            let s = &server.settings;
            (
                server.conninfo.clone(),
                s.interval,
                s.no_texts,
                s.vcpus,
                s.flush_interval,
            )
        };
        assert_eq!(
            said("a"),
            ("service='it\\'s'".to_string(), 500, true, None, 5_000)
        );
        assert_eq!(
            said("b"),
            ("host=db".to_string(), 2_000, false, Some(8), 5_000)
        );
        let command = config.servers["b"].target().unwrap().password_command;
        assert_eq!(command.as_deref(), Some("get token"));
    }

    #[test]
    fn invalid_settings_are_reported_with_their_server() {
        let a = "[[server]]\nname = 'a'\n";
        let with = |line: &str| refused(&format!("{a}conninfo = 'host=db'\n{line}"));
        assert_eq!(
            with("interval = 5"),
            "server \"a\": invalid value '5' for \"interval\": must be between 100 ms and 60000 ms"
        );
        assert_eq!(with("pace = 5"), "server \"a\": unknown key \"pace\"");
        assert_eq!(
            with("intervall = 5"),
            "server \"a\": unknown key \"intervall\", did you mean \"interval\"?"
        );
        assert_eq!(
            refused(&format!(
                "[defaults]\nno_text = true\n{a}conninfo = 'host=db'"
            )),
            "[defaults]: unknown key \"no_text\", did you mean \"no_texts\"?"
        );
        assert_eq!(
            with("no_texts = true\nraw_texts = true"),
            "server \"a\": the argument \"no_texts\" cannot be used with \"raw_texts\""
        );
        assert_eq!(
            with("interval = [1]"),
            "server \"a\": \"interval\" must be a number, a string, true or false"
        );
        assert_eq!(
            with(&format!("{a}conninfo = 'host=db'")),
            "server name \"a\" is used twice"
        );
        let both = "exactly one of \"service\" and \"conninfo\" must be set, as a string";
        assert_eq!(with("service = 'x'"), format!("server \"a\": {both}"));
        assert_eq!(refused(a), format!("server \"a\": {both}"));
        assert_eq!(
            refused("[[server]]\nname = '../a'"),
            "invalid server name \"../a\": it must be usable as a directory name"
        );
        assert_eq!(
            refused(&format!("connections = 0\n{a}conninfo = ''")),
            "too many servers: 1, but \"connections\" is 0"
        );
        assert_eq!(
            refused("listen = '0.0.0.0:1'"),
            "\"listen\" must be an address of the loopback interface"
        );
        assert!(refused("rot = 1").contains("unknown field `rot`"));
        assert_eq!(refused(""), "no [[server]] is configured");
        assert!(
            refused("[defaults]\nname = 'x'\n[[server]]\nname = 'a'")
                .ends_with("is not allowed in [defaults]")
        );
    }

    #[test]
    fn a_password_is_taken_from_a_file_that_others_cannot_read() {
        let text = "root = '/r'\n[[server]]\nname = 'a'\nconninfo = 'host=db password=s3cret'";
        let error = parse(text, false).unwrap_err();
        assert!(
            error.contains("others can read the file") && !error.contains("s3cret"),
            "{error}"
        );
        assert!(parse(text, true).is_ok());
        let other = text.replace("password=s3cret", "");
        let servers = |is_private| parse(&other, is_private).unwrap().servers;
        assert_eq!(
            servers(true),
            servers(false),
            "the mode of the file changes nothing"
        );
    }

    #[test]
    fn a_password_in_a_line_that_makes_no_sense_is_not_told() {
        let told = |line: &str| {
            let text = format!("root = '/r'\n[[server]]\nname = 'a'\n{line}\n");
            let error = parse(&text, true).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
            error
        };
        let error = told("conninfo = \"host=db password=s3cret");
        assert!(error.starts_with("line 4: "), "{error}");
        for line in [
            "conninfo = 'host=db password=my s3cret'",
            "conninfo = 'postgresql://u:s3cret@[db/app'",
        ] {
            assert_eq!(told(line), "server \"a\": invalid connection string");
        }
    }
}
