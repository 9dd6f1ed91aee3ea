//! Matches effects to candidates. Each effect follows from its best candidate; a
//! cause is a candidate with all effects that follow from it.

use super::candidates::{Candidate, What};
use super::effects::Effect;
use super::rules::{RULES, Rule};
use std::cmp::Reverse;

/// After a change that acts at once, the effect must begin within this time in µs.
const AT_ONCE: i64 = 5_000_000;
/// The begin of an effect is uncertain by the time of this many of its samples, at
/// one sample a second.
const SAMPLES: i64 = 3;

/// A candidate and the effects that follow from it.
#[derive(Debug)]
pub struct Cause<'a> {
    pub candidate: &'a Candidate,
    pub rule: Rule,
    /// Effects for which it is the best candidate. If there is none: effects that
    /// it could explain less well than another candidate.
    pub effects: Vec<&'a Effect>,
    /// True if it is the best candidate of at least one effect.
    pub is_best: bool,
}

impl Cause<'_> {
    /// Sum of the differences of its effects, in ten-thousandths of a session.
    pub fn difference(&self) -> i128 {
        let all = self.effects.iter();
        all.map(|effect| effect.line.difference()).sum()
    }

    /// Time from which it could have an effect, in µs since 1970. A statement that
    /// holds a lock acts from its begin on.
    pub fn time(&self) -> i64 {
        time(self.candidate, self.rule)
    }

    /// Time from the cause to the begin of its first effect, in µs. It is negative
    /// if the effect seems to begin first.
    pub fn lead(&self) -> Option<i64> {
        let began = self.effects.iter().filter_map(|e| e.stretch).map(|s| s.0);
        began.min().map(|began| began - self.time())
    }
}

fn time(candidate: &Candidate, rule: Rule) -> i64 {
    match rule {
        Rule::ChangeHoldsLock => candidate.begin(),
        _ => candidate.time,
    }
}

/// A candidate from which one effect can follow.
struct Match {
    candidate: usize,
    rule: Rule,
    distance: i64,
}

/// The causes. The best candidates of effects come first, ordered by the
/// difference that they explain; the other candidates that could have caused an
/// effect follow.
pub fn causes<'a>(effects: &'a [Effect], candidates: &'a [Candidate]) -> Vec<Cause<'a>> {
    let mut causes: Vec<Cause> = Vec::new();
    for is_best in [true, false] {
        for effect in effects.iter().filter(|effect| effect.is_notable) {
            let matches = matches(effect, candidates);
            let wanted = match is_best {
                true => &matches[..matches.len().min(1)],
                false => matches.get(1..).unwrap_or_default(),
            };
            for one in wanted {
                add(
                    &mut causes,
                    &candidates[one.candidate],
                    one.rule,
                    effect,
                    is_best,
                );
            }
        }
    }
    causes.sort_by_key(|cause| {
        let distance = cause.lead().map_or(i64::MAX, i64::abs);
        (
            Reverse(cause.is_best),
            Reverse(cause.difference()),
            cause.rule,
            distance,
            cause.candidate.time,
        )
    });
    causes
}

/// Adds an effect to the cause of a candidate. A candidate is listed once: if it
/// is the best of some effect, only such effects are added.
fn add<'a>(
    causes: &mut Vec<Cause<'a>>,
    candidate: &'a Candidate,
    rule: Rule,
    effect: &'a Effect,
    is_best: bool,
) {
    let known = causes
        .iter_mut()
        .find(|known| std::ptr::eq(known.candidate, candidate));
    match known {
        Some(known) if known.is_best == is_best => known.effects.push(effect),
        Some(_) => (),
        None => causes.push(Cause {
            candidate,
            rule,
            effects: vec![effect],
            is_best,
        }),
    }
}

/// The candidates from which an effect can follow, the best first: by rule, then
/// by distance in time.
fn matches(effect: &Effect, candidates: &[Candidate]) -> Vec<Match> {
    let Some((began, ended)) = effect.stretch else {
        return Vec::new();
    };
    let slack = (ended - began) / 20;
    let mut matches: Vec<Match> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        if !candidate.precedes(began, slack) {
            continue;
        }
        let fits = |rule: &&super::rules::Described| rule.rule.fits(candidate, effect);
        let found = RULES.iter().find(fits);
        // Before its commit, no other session sees a change.
        let lead = began.saturating_sub(candidate.time);
        let is_refuted = |rule: Rule| {
            let unsure = slack.max(AT_ONCE).max(SAMPLES * effect.us_a_sample());
            rule.acts_at_once() && lead > unsure && effect.was_called_in(lead)
        };
        if let Some(rule) = found.filter(|rule| !is_refuted(rule.rule)) {
            matches.push(Match {
                candidate: at,
                rule: rule.rule,
                distance: (began - time(candidate, rule.rule)).abs(),
            });
        }
    }
    matches.sort_by_key(|one| (one.rule, one.distance, one.candidate));
    let is_explained = matches
        .first()
        .is_some_and(|one| one.rule < Rule::TableScanned);
    if is_explained {
        // Scans of the table follow from the stronger cause.
        matches.retain(|one| one.rule != Rule::TableScanned);
    }
    matches
}

/// Notable effects without a cause.
pub fn unexplained<'a>(effects: &'a [Effect], causes: &[Cause]) -> Vec<&'a Effect> {
    let explains = |effect: &Effect| {
        let mut best = causes.iter().filter(|cause| cause.is_best);
        best.any(|cause| cause.effects.iter().any(|own| std::ptr::eq(*own, effect)))
    };
    let notable = effects.iter().filter(|effect| effect.is_notable);
    notable.filter(|effect| !explains(effect)).collect()
}

impl What {
    /// Word for the kind of candidate, in the column `dimension`.
    pub fn name(&self) -> &str {
        match self {
            What::Event(event) => event.kind(),
            What::Holder(_) => "blocker",
            What::Clients { .. } => "clients",
            What::Work(_) => "statement",
            What::Planned(_) => "planner",
            What::Scanned(_) => "table",
            What::Autovacuum(_) => "autovacuum",
            What::Connections { .. } => "connections",
            What::Replica(_) => "replica",
            What::Snapshot(_) => "snapshot",
            What::Host(_) => "host",
        }
    }
}
