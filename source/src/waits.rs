//! Wait events explained: what a session waits for, when that is normal, and what to look at
//! next. The texts are in `catalog/waits.txt`, which is compiled in.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

const TEXT: &str = include_str!("../../catalog/waits.txt");
/// Majors of PostgreSQL for an entry of the file that names none.
const ALL: RangeInclusive<u8> = 15..=19;
/// Stands before the majors of an entry that is not in PostgreSQL's list of events.
const OURS: &str = "tacho";
/// Ends the majors of an entry that a minor release added.
const MINOR: &str = "minor";
/// Text of "next" if no further step is known.
const UNKNOWN: &str = "-";

/// An explained wait event, or type of wait events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// `IO:DataFileRead`, as the newest major spells it; a type is `IO`.
    pub name: &'static str,
    /// Majors of PostgreSQL that list it; `None` for types and for the kinds of work on a CPU.
    pub majors: Option<RangeInclusive<u8>>,
    /// True if a minor release added the event: older servers of these majors lack it.
    pub is_of_minor: bool,
    /// The thing that the session waits for.
    pub is: &'static str,
    /// When to expect it.
    pub normal: &'static str,
    /// The next thing to look at; `None` if no further step is known.
    pub next: Option<&'static str>,
}

/// An explanation of one name, which may be a name that PostgreSQL does not list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The name as the dictionary spells it, or as the caller wrote it.
    pub name: String,
    /// Why only its type is explained; `None` for a listed event.
    pub note: Option<&'static str>,
    /// The entry of the event or of its type.
    pub wait: &'static Wait,
}

impl Wait {
    /// The text of "next", also if no step is known.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        self.next.unwrap_or("No further step is known.")
    }

    /// "PostgreSQL 17 to 19"; empty for an entry that PostgreSQL does not list.
    #[must_use]
    pub fn versions(&self) -> String {
        let added = if self.is_of_minor {
            ", in minor releases"
        } else {
            ""
        };
        match &self.majors {
            None => String::new(),
            Some(majors) if majors.start() == majors.end() => {
                format!("PostgreSQL {}{added}", majors.start())
            }
            Some(majors) => {
                format!("PostgreSQL {} to {}{added}", majors.start(), majors.end())
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let event = self.name.split_once(':').map(|(_, event)| event);
        self.name.eq_ignore_ascii_case(name)
            || event.is_some_and(|event| event.eq_ignore_ascii_case(name))
    }
}

impl Display for Explanation {
    /// Lines for a terminal, without a newline at the end.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        if let Some(note) = self.note {
            writeln!(f, "  note    {note}")?;
        }
        writeln!(f, "  is      {}", self.wait.is)?;
        writeln!(f, "  normal  {}", self.wait.normal)?;
        write!(f, "  next    {}", self.wait.next_step())?;
        match self.wait.versions() {
            versions if versions.is_empty() => Ok(()),
            versions => write!(f, "\n  in      {versions}"),
        }
    }
}

/// All entries, types first, in the order of the file.
#[must_use]
pub fn all() -> &'static [Wait] {
    static WAITS: OnceLock<Vec<Wait>> = OnceLock::new();
    WAITS.get_or_init(|| entries(TEXT).collect())
}

/// Explains a key of dimension `wait_event`: `IO:DataFileRead`, `CPU*`. An event that is not
/// listed has the explanation of its type and a note; `None` if the type is not known either.
#[must_use]
pub fn of_key(key: &str) -> Option<Explanation> {
    let (class, event) = key.split_once(':').unwrap_or((key, ""));
    let key = if key == "CPU*" { "CPU:CPU*" } else { key };
    if let Some(wait) = named(key) {
        return Some(listed(wait));
    }
    let wait = named(class)?;
    let note = match (wait.name, event) {
        (_, "") => None,
        ("CPU", _) => None,
        ("Extension", _) => Some("An extension has given its wait this name."),
        ("InjectionPoint", _) => Some("A test of developers has given its wait this name."),
        ("LWLock", _) => Some(
            "PostgreSQL 15 to 19 has no such lock: it belongs to an extension or to a newer major.",
        ),
        _ => Some("PostgreSQL 15 to 19 has no such event: it belongs to another major."),
    };
    Some(Explanation {
        name: key.to_string(),
        note,
        wait,
    })
}

/// Explains a name as a person writes it: a key, or an event without its type, in any case.
/// Several types can have an event of one name, as `WALWrite`.
#[must_use]
pub fn find(name: &str) -> Vec<Explanation> {
    let found: Vec<Explanation> = all()
        .iter()
        .filter(|wait| wait.has(name))
        .map(listed)
        .collect();
    match found.is_empty() {
        true => of_key(name).into_iter().collect(),
        false => found,
    }
}

/// Names that contain a part of `name`, ignoring case: suggestions for a name that is not known.
#[must_use]
pub fn similar(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    let event = name.rsplit(':').next().unwrap_or_default();
    let names = all().iter().map(|wait| wait.name);
    let close = |known: &&str| {
        let known = known.to_ascii_lowercase();
        let of_known = known.rsplit(':').next().unwrap_or_default();
        !event.is_empty() && (of_known.contains(event) || event.contains(of_known))
    };
    names.filter(close).take(5).collect()
}

fn listed(wait: &'static Wait) -> Explanation {
    Explanation {
        name: wait.name.to_string(),
        note: None,
        wait,
    }
}

fn named(key: &str) -> Option<&'static Wait> {
    all()
        .iter()
        .find(|wait| wait.name.eq_ignore_ascii_case(key))
}

/// Entries of the file. A malformed entry is left out; a test counts the entries.
fn entries(text: &'static str) -> impl Iterator<Item = Wait> {
    text.split("\n\n").filter_map(entry)
}

fn entry(block: &'static str) -> Option<Wait> {
    let mut lines = block.lines().filter(|line| !line.starts_with('#'));
    let mut words = lines.next()?.split(' ');
    let name = words.next()?;
    let majors = match words.next() {
        None => Some(ALL),
        Some(OURS) => None,
        Some(majors) => Some(range(majors)?),
    };
    let is_of_minor = words.next() == Some(MINOR);
    let mut field = |key: &str| {
        let line = lines.next()?;
        line.strip_prefix(key)?.strip_prefix(' ')
    };
    let (is, normal, next) = (field("is")?, field("normal")?, field("next")?);
    Some(Wait {
        name,
        majors,
        is_of_minor,
        is,
        normal,
        next: (next != UNKNOWN).then_some(next),
    })
}

/// A range of majors as the file has it: `17-19` or `15`.
fn range(text: &str) -> Option<RangeInclusive<u8>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_of_the_file_is_whole_and_named_once() {
        let next = TEXT.lines().filter(|line| line.starts_with("next "));
        assert_eq!(all().len(), next.count());
        let names: BTreeSet<String> = all()
            .iter()
            .map(|wait| wait.name.to_ascii_lowercase())
            .collect();
        assert_eq!(names.len(), all().len());
        for wait in all() {
            assert!(
                wait.is.ends_with('.') && wait.normal.ends_with('.'),
                "{wait:?}"
            );
            assert!(!wait.next_step().is_empty(), "{wait:?}");
            let (class, _) = wait.name.split_once(':').unwrap_or((wait.name, ""));
            assert!(named(class).is_some(), "{wait:?}");
        }
    }

    #[test]
    fn an_event_is_found_by_its_key_or_its_name_in_any_case() {
        let names = |name| -> Vec<String> { find(name).into_iter().map(|e| e.name).collect() };
        assert_eq!(names("IO:WALSync"), ["IO:WalSync"]);
        assert_eq!(names("walwrite"), ["IO:WalWrite", "LWLock:WALWrite"]);
        assert_eq!(names("Lock"), ["Lock"]);
        assert_eq!(names("CPU*"), ["CPU:CPU*"]);
        assert!(names("no such event").is_empty());
        assert_eq!(similar("DataFileReed"), Vec::<&str>::new());
        assert_eq!(similar("filesyncu"), ["IO:ControlFileSyncUpdate"]);
    }

    #[test]
    fn a_wait_of_an_extension_is_named_as_such() {
        let explained = of_key("Extension:CubeJoin").unwrap();
        assert_eq!(explained.name, "Extension:CubeJoin");
        assert_eq!(
            explained.note,
            Some("An extension has given its wait this name.")
        );
        assert_eq!(explained.wait.name, "Extension");
        assert!(
            of_key("LWLock:CubeCache")
                .unwrap()
                .note
                .unwrap()
                .contains("extension")
        );
        assert!(of_key("Extension:Extension").unwrap().note.is_none());
        assert_eq!(of_key("Cube:Join"), None);
    }

    #[test]
    fn an_entry_tells_the_majors_that_have_it() {
        let versions = |key| of_key(key).unwrap().wait.versions();
        assert_eq!(versions("IO:RelationMapSync"), "PostgreSQL 15");
        assert_eq!(versions("Buffer:BufferShared"), "PostgreSQL 19");
        assert_eq!(versions("IPC:CheckpointDelayStart"), "PostgreSQL 17 to 19");
        let upstream = versions("IPC:WalReceiverUpstreamCatchup");
        assert_eq!(upstream, "PostgreSQL 15 to 19, in minor releases");
        assert_eq!(versions("IO"), "");
    }

    #[test]
    fn an_explanation_is_text_for_a_terminal() {
        let shown = of_key("IPC:HashBuildElect").unwrap().to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "IPC:HashBuildElect");
        assert_eq!(lines[3], "  next    No further step is known.");
        assert_eq!(lines[4], "  in      PostgreSQL 15 to 19");
    }
}
