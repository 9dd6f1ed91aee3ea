//! Why nothing is recorded: the first cause, the newest cause, and how often.

/// Causes since the last tick.
#[derive(Debug, Default)]
pub struct GapReasons {
    first: String,
    newest: String,
    times: u64,
}

impl GapReasons {
    /// Adds a cause. Returns true if it differs from the previous one.
    pub fn add(&mut self, cause: &str) -> bool {
        let is_new = self.times == 0 || self.newest != cause;
        if self.times == 0 {
            self.first = cause.to_string();
        }
        if is_new {
            self.newest = cause.to_string();
        }
        self.times += 1;
        is_new
    }

    /// True if nothing went wrong.
    pub fn is_none(&self) -> bool {
        self.times == 0
    }

    /// Describes and clears the causes; `None` if nothing went wrong.
    pub fn take(&mut self) -> Option<String> {
        let GapReasons {
            first,
            newest,
            times,
        } = std::mem::take(self);
        match times {
            0 => None,
            1 => Some(first),
            _ if first == newest => Some(format!("{first} ({times} times)")),
            _ => Some(format!("{first}; at last {newest} ({times} failures)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_has_its_first_and_its_last_cause_and_how_often() {
        let told = |causes: &[&str]| {
            let mut trouble = GapReasons::default();
            let news: Vec<bool> = causes.iter().map(|cause| trouble.add(cause)).collect();
            (news, trouble.take(), trouble.is_none())
        };
        let text = |text: &str| Some(text.to_string());
        assert_eq!(told(&[]), (vec![], None, true));
        assert_eq!(told(&["lost"]), (vec![true], text("lost"), true));
        let twice = (vec![true, false], text("lost (2 times)"), true);
        assert_eq!(told(&["lost", "lost"]), twice);
        let causes = ["lost", "refused", "refused", "no password"];
        let news = vec![true, true, false, true];
        let detail = "lost; at last no password (4 failures)";
        assert_eq!(told(&causes), (news, text(detail), true));
    }
}
