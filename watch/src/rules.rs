//! The rules and their limits: defaults, and what a file in TOML changes.

use jiff::civil::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tacho_source::{Failure, time};

/// A rule, in the order of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Nothing was recorded lately, or the history cannot be read.
    Recorder,
    /// More sessions are active than there are CPUs.
    Load,
    /// A session waits long behind the head of a lock queue.
    Queue,
    /// A statement turned to a plan that is much slower.
    PlanChange,
    /// Transaction ids run out.
    Wraparound,
    /// A replication slot without a reader keeps WAL.
    Slot,
    /// A replica is far behind.
    Replication,
    /// Recording waits for disk space.
    Space,
    /// A file system that the server uses is almost full.
    Disk,
}

/// How bad an alarm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Warning,
    Critical,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// Limits of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub is_on: bool,
    /// An alarm begins if the value is above this limit. For a queue and a plan change, the limit
    /// itself begins one, too.
    pub above: f64,
    /// The alarm is over if the value is at most this limit; for a plan change if it is below. A
    /// value between the two limits neither begins nor ends an alarm.
    pub clear: f64,
    /// Time in µs for which the value must stay above or below a limit.
    pub hold_us: i64,
    /// Time in µs after the end of an alarm in which its object gets no new one.
    pub quiet_us: i64,
    pub severity: Severity,
}

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// All rules with their defaults.
pub const RULES: [Rule; 9] = [
    Rule::Recorder,
    Rule::Load,
    Rule::Queue,
    Rule::PlanChange,
    Rule::Wraparound,
    Rule::Slot,
    Rule::Replication,
    Rule::Space,
    Rule::Disk,
];

impl Rule {
    /// Name of the rule in the file and in alarms.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Recorder => "recorder",
            Rule::Load => "load",
            Rule::Queue => "queue",
            Rule::PlanChange => "plan_change",
            Rule::Wraparound => "wraparound",
            Rule::Slot => "slot",
            Rule::Replication => "replication",
            Rule::Space => "space",
            Rule::Disk => "disk",
        }
    }

    fn named(name: &str) -> Option<Rule> {
        RULES.into_iter().find(|rule| rule.name() == name)
    }

    /// Limits without a file.
    pub fn defaults(self) -> Limits {
        let limits = |above, clear, hold_us, quiet_us, severity| Limits {
            is_on: true,
            above,
            clear,
            hold_us,
            quiet_us,
            severity,
        };
        match self {
            Rule::Recorder => limits(120.0, 60.0, 0, 10 * MINUTE, Severity::Critical),
            Rule::Load => limits(1.0, 0.8, 2 * MINUTE, 30 * MINUTE, Severity::Warning),
            Rule::Queue => limits(30.0, 1.0, 0, 10 * MINUTE, Severity::Critical),
            Rule::PlanChange => limits(5.0, 5.0, HOUR, HOUR, Severity::Warning),
            Rule::Wraparound => limits(1e9, 9e8, 15 * MINUTE, 24 * HOUR, Severity::Critical),
            Rule::Slot => limits(10e9, 5e9, 15 * MINUTE, HOUR, Severity::Critical),
            Rule::Replication => limits(1e9, 5e8, 10 * MINUTE, HOUR, Severity::Warning),
            Rule::Space => limits(0.0, 0.0, 0, HOUR, Severity::Critical),
            Rule::Disk => limits(95.0, 90.0, 5 * MINUTE, HOUR, Severity::Critical),
        }
    }
}

/// Where alarms go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Send {
    /// Program and arguments; it reads the alarm as JSON from standard input.
    pub command: Vec<String>,
    /// Address that takes the alarm as JSON by POST.
    pub webhook: Option<String>,
    /// Address of an alertmanager: `http://host:9093/api/v2/alerts`.
    pub alertmanager: Option<String>,
}

impl Send {
    pub fn is_empty(&self) -> bool {
        *self == Send::default()
    }
}

/// Alarms that are not sent. All given members must match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mute {
    server: Option<String>,
    rule: Option<Rule>,
    object: Option<String>,
    /// Time of day, in the time zone of the program: `22:00`. May be later than `to`.
    from: Option<String>,
    to: Option<String>,
    /// Last moment of the mute, as RFC 3339.
    until: Option<String>,
}

impl Mute {
    /// True if it silences the object of a rule at a moment.
    pub fn is_of(&self, server: &str, rule: Rule, object: &str, now_us: i64) -> bool {
        let matches = |given: &Option<String>, is: &str| given.as_deref().is_none_or(|g| g == is);
        let is_before_end = end(self.until.as_ref()).is_none_or(|until| now_us <= until);
        matches(&self.server, server)
            && self.rule.is_none_or(|given| given == rule)
            && matches(&self.object, object)
            && is_before_end
            && self.is_time(now_us)
    }

    fn is_time(&self, now_us: i64) -> bool {
        let (Some(from), Some(to)) = (clock(self.from.as_ref()), clock(self.to.as_ref())) else {
            return true;
        };
        let now = time::timestamp(now_us).to_zoned(time::local()).time();
        match from <= to {
            true => from <= now && now < to,
            false => from <= now || now < to,
        }
    }

    /// The mistake in this mute, as a sentence; `None` if it is right.
    fn wrong(&self) -> Option<String> {
        let is_time = |text: &Option<String>| text.is_none() || clock(text.as_ref()).is_some();
        if !is_time(&self.from) || !is_time(&self.to) {
            return Some("a mute has a time of day that is not written as 22:00".into());
        }
        if self.until.is_some() && end(self.until.as_ref()).is_none() {
            return Some(
                "a mute has an \"until\" that is not written as 2026-12-01T00:00:00Z".into(),
            );
        }
        (self.from.is_some() != self.to.is_some())
            .then(|| "a mute has \"from\" without \"to\", or \"to\" without \"from\"".into())
    }
}

fn clock(text: Option<&String>) -> Option<Time> {
    text.and_then(|text| Time::strptime("%H:%M", text).ok())
}

/// The moment in µs since 1970; `None` if the text is not RFC 3339.
fn end(text: Option<&String>) -> Option<i64> {
    let time: jiff::Timestamp = text?.parse().ok()?;
    Some(time.as_microsecond())
}

/// A file of rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Address of `tacho web` that alarms name.
    pub page: Option<String>,
    /// Pause between two looks.
    pub every: Duration,
    pub send: Send,
    pub limits: BTreeMap<Rule, Limits>,
    pub mutes: Vec<Mute>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            page: None,
            every: Duration::from_secs(30),
            send: Send::default(),
            limits: RULES
                .into_iter()
                .map(|rule| (rule, rule.defaults()))
                .collect(),
            mutes: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    page: Option<String>,
    every: Option<String>,
    #[serde(default)]
    send: Send,
    #[serde(default)]
    rules: BTreeMap<String, Given>,
    #[serde(default)]
    mute: Vec<Mute>,
}

/// Limits that a file gives.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    on: Option<bool>,
    above: Option<f64>,
    clear: Option<f64>,
    r#for: Option<String>,
    quiet: Option<String>,
    severity: Option<Severity>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or has a mistake.
    pub fn read(path: &Path) -> Result<Config, Failure> {
        let what = format!("read file \"{}\"", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| Failure::io(&what, &e))?;
        Config::parse(&text).map_err(|message| {
            let message = format!("file \"{}\": {message}", path.display());
            Failure::usage(message).hint("docs/watch.md has all keys with their defaults.")
        })
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Its mistake, in one line.
    pub fn parse(text: &str) -> Result<Config, String> {
        let file: File = toml::from_str(text).map_err(|e| one_line(&e))?;
        let mut config = Config {
            page: file.page,
            send: file.send,
            mutes: file.mute,
            ..Config::default()
        };
        if let Some(wrong) = config.mutes.iter().find_map(Mute::wrong) {
            return Err(wrong);
        }
        if let Some(every) = file.every {
            let us = length("every", &every)?.max(SECOND);
            config.every = Duration::from_micros(u64::try_from(us).unwrap_or(0));
        }
        for (name, given) in file.rules {
            let rule = Rule::named(&name).ok_or_else(|| unknown(&name))?;
            let limits = given.over(&name, rule.defaults())?;
            config.limits.insert(rule, limits);
        }
        Ok(config)
    }
}

impl Given {
    /// The rule's default limits, replaced where the file gives others.
    fn over(self, name: &str, defaults: Limits) -> Result<Limits, String> {
        let above = self.above.unwrap_or(defaults.above);
        let share = defaults.clear / defaults.above.max(f64::MIN_POSITIVE);
        let hold = self.r#for.map(|text| length("for", &text)).transpose()?;
        let quiet = self.quiet.map(|text| length("quiet", &text)).transpose()?;
        let limits = Limits {
            is_on: self.on.unwrap_or(defaults.is_on),
            above,
            clear: self.clear.unwrap_or(above * share),
            hold_us: hold.unwrap_or(defaults.hold_us),
            quiet_us: quiet.unwrap_or(defaults.quiet_us),
            severity: self.severity.unwrap_or(defaults.severity),
        };
        match limits.clear <= limits.above {
            true => Ok(limits),
            false => Err(format!("rule \"{name}\" has \"clear\" above \"above\"")),
        }
    }
}

fn unknown(name: &str) -> String {
    let names = RULES.map(Rule::name).join(", ");
    format!("there is no rule \"{name}\"; rules are {names}")
}

fn length(key: &str, text: &str) -> Result<i64, String> {
    time::interval(text)
        .map_err(|_| format!("\"{key}\" is not a length of time such as 30s: \"{text}\""))
}

/// Message and line of a mistake in TOML.
fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_the_limits_that_it_names() {
        let text = "page = 'http://tacho'\nevery = '10s'\n[send]\nwebhook = 'http://x/'\n\
                    [rules.load]\nabove = 2.0\nfor = '5m'\n[rules.slot]\non = false\n\
                    [[mute]]\nrule = 'plan_change'\nserver = 'shop'\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.every, Duration::from_secs(10));
        let load = &config.limits[&Rule::Load];
        assert_eq!(
            (load.above, load.clear, load.hold_us),
            (2.0, 1.6, 300 * SECOND)
        );
        assert_eq!(load.quiet_us, Rule::Load.defaults().quiet_us);
        assert!(!config.limits[&Rule::Slot].is_on && config.limits[&Rule::Queue].is_on);
        assert!(config.mutes[0].is_of("shop", Rule::PlanChange, "7", 0));
        assert!(!config.mutes[0].is_of("shop", Rule::Load, "", 0));
        assert!(!config.mutes[0].is_of("mine", Rule::PlanChange, "7", 0));
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    /// The cells of the table of rules in docs/watch.md, by rule.
    fn documented() -> BTreeMap<&'static str, Vec<&'static str>> {
        let page = include_str!("../../docs/watch.md");
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        let rows = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let rows = rows.filter(|cells| cells.len() == 9);
        rows.map(|cells| (cells[1].trim_matches('`'), cells[3..8].to_vec()))
            .collect()
    }

    #[test]
    fn the_page_has_the_defaults() {
        let documented = documented();
        assert_eq!(documented.len(), RULES.len());
        let number = |cell: &str| cell.split(' ').next()?.parse::<f64>().ok();
        let length = |cell: &str| match cell {
            "" => Some(0),
            cell => time::interval(cell).ok(),
        };
        for rule in RULES {
            let [above, clear, hold, quiet, severity] = documented[rule.name()][..] else {
                panic!("{}", rule.name());
            };
            let limits = rule.defaults();
            assert_eq!(number(above), Some(limits.above), "{}", rule.name());
            assert_eq!(number(clear), Some(limits.clear), "{}", rule.name());
            assert_eq!(length(hold), Some(limits.hold_us), "{}", rule.name());
            assert_eq!(length(quiet), Some(limits.quiet_us), "{}", rule.name());
            assert_eq!(severity, limits.severity.name(), "{}", rule.name());
        }
    }

    #[test]
    fn a_mistake_is_named() {
        let wrong = |text| Config::parse(text).unwrap_err();
        assert!(
            wrong("[rules.lod]\n")
                .starts_with("there is no rule \"lod\"; rules are recorder, load,")
        );
        assert!(wrong("[rules.load]\nabove = 1.0\nclear = 2.0\n").contains("\"clear\" above"));
        assert!(wrong("every = 'often'\n").contains("\"every\" is not a length"));
        assert!(wrong("[[mute]]\nfrom = '25:00'\nto = '1:00'\n").contains("time of day"));
        assert!(wrong("[[mute]]\nfrom = '22:00'\n").contains("without"));
        assert!(wrong("[[mute]]\nuntil = 'soon'\n").contains("\"until\""));
        assert!(wrong("sned = 1\n").contains("unknown field `sned`"));
    }

    #[test]
    fn a_mute_of_the_night_goes_past_midnight() {
        let config = Config::parse("[[mute]]\nfrom = '22:00'\nto = '04:00'\n").unwrap();
        let at = |text: &str| {
            let zoned: jiff::civil::DateTime = text.parse().unwrap();
            let zoned = zoned.to_zoned(time::local()).unwrap();
            config.mutes[0].is_of("a", Rule::Load, "", zoned.timestamp().as_microsecond())
        };
        let times = [
            "2026-01-01T21:59",
            "2026-01-01T22:00",
            "2026-01-02T03:59",
            "2026-01-02T04:00",
        ];
        assert_eq!(times.map(at), [false, true, true, false]);
    }
}
