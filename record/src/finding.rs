//! The findings of `tacho-record --check`: one line per capability of the
//! server, with the step that makes it work if it does not.

use serde::Serialize;
use tacho_tape::query::plain_lines;

/// State of the checked capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Works completely.
    Works,
    /// Works in part; nothing necessary is missing.
    Partial,
    /// The capability is missing, and something needs it.
    Missing,
    /// The capability is set up, but fails.
    Broken,
}

impl State {
    /// The first word of a line.
    fn mark(self) -> &'static str {
        match self {
            State::Works => "yes",
            State::Partial => "part",
            State::Missing => "no",
            State::Broken => "FAIL",
        }
    }
}

/// Result for one checked thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the thing.
    #[serde(rename = "name")]
    pub what: &'static str,
    /// State of the thing.
    pub state: State,
    /// Details, or the reason why it does not work.
    pub detail: String,
    /// The step that helps; `None` if the thing works.
    pub help: Option<String>,
}

impl Finding {
    fn new(what: &'static str, state: State, detail: impl Into<String>) -> Finding {
        Finding {
            what,
            state,
            detail: detail.into(),
            help: None,
        }
    }

    /// A thing that works.
    pub fn works(what: &'static str, detail: impl Into<String>) -> Finding {
        Finding::new(what, State::Works, detail)
    }

    /// A thing that gives less than it could.
    pub fn partial(what: &'static str, detail: impl Into<String>) -> Finding {
        Finding::new(what, State::Partial, detail)
    }

    /// A thing that is missing.
    pub fn missing(what: &'static str, detail: impl Into<String>) -> Finding {
        Finding::new(what, State::Missing, detail)
    }

    /// A thing that was set up and fails.
    pub fn broken(what: &'static str, detail: impl Into<String>) -> Finding {
        Finding::new(what, State::Broken, detail)
    }

    /// Adds the step that makes it work.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = (self.state != State::Works).then(|| help.into());
        self
    }

    /// The finding as text: a line, and one more for the step.
    fn lines(&self) -> String {
        let help = self.help.as_ref();
        let help = help.map_or_else(String::new, |help| format!("\n      {help}"));
        format!(
            "{:<4} {}: {}{help}\n",
            self.state.mark(),
            self.what,
            self.detail
        )
    }
}

/// All findings as text, without control characters.
pub fn text(findings: &[Finding]) -> String {
    let lines: String = findings.iter().map(Finding::lines).collect();
    plain_lines(&lines)
}

/// The worst state of all findings; `Works` if there are none.
pub fn worst(findings: &[Finding]) -> State {
    let states = findings.iter().map(|finding| finding.state);
    states.max().unwrap_or(State::Works)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_that_works_needs_no_step() {
        let works = Finding::works("samples", "all").help("run: x");
        let missing = Finding::missing("samples", "none").help("run: x");
        let all = [works, missing];
        assert_eq!(
            text(&all),
            "yes  samples: all\nno   samples: none\n      run: x\n"
        );
        assert_eq!(worst(&all), State::Missing);
        assert_eq!(worst(&[]), State::Works);
    }
}
