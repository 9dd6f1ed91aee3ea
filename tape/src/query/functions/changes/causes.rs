//! Each effect follows from its best candidate; a cause has all effects that do.

use super::candidates::{Candidate, What};
use super::effects::Effect;
use super::rules::{RULES, Rule};
use std::cmp::Reverse;

/// A candidate, and what follows from it.
#[derive(Debug)]
pub struct Cause<'a> {
    pub candidate: &'a Candidate,
    pub rule: Rule,
    /// Effects that take it as the best candidate, or else effects that it could
    /// explain too.
    pub effects: Vec<&'a Effect>,
    /// It is the best candidate of an effect.
    pub is_best: bool,
}

impl Cause<'_> {
    /// The difference that it explains, in ten-thousandths of a session.
    pub fn difference(&self) -> i128 {
        let all = self.effects.iter();
        all.map(|effect| effect.line.difference()).sum()
    }

    /// When it began to have an effect: a lock from the begin of its statement on.
    pub fn time(&self) -> i64 {
        time(self.candidate, self.rule)
    }

    /// How long before the first of its effects it happened, µs.
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

/// A candidate that an effect can follow from.
struct Match {
    candidate: usize,
    rule: Rule,
    distance: i64,
}

/// The causes: first those that are best for an effect, by what they explain; then
/// others that could have caused one.
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

/// A candidate that is best for an effect is listed once, with such effects alone.
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

/// The candidates of an effect, the best first.
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
        if let Some(rule) = RULES.iter().find(fits) {
            matches.push(Match {
                candidate: at,
                rule: rule.rule,
                distance: (began - time(candidate, rule.rule)).abs(),
            });
        }
    }
    matches.sort_by_key(|one| (one.rule, one.distance, one.candidate));
    matches
}

/// Notable effects that follow from nothing that was recorded.
pub fn unexplained<'a>(effects: &'a [Effect], causes: &[Cause]) -> Vec<&'a Effect> {
    let explains = |effect: &Effect| {
        let mut best = causes.iter().filter(|cause| cause.is_best);
        best.any(|cause| cause.effects.iter().any(|own| std::ptr::eq(*own, effect)))
    };
    let notable = effects.iter().filter(|effect| effect.is_notable);
    notable.filter(|effect| !explains(effect)).collect()
}

impl What {
    /// The word for it in the column `dimension`.
    pub fn name(&self) -> &str {
        match self {
            What::Event(event) => event.kind(),
            What::Holder(_) => "blocker",
            What::Clients { .. } => "clients",
            What::Work(_) => "statement",
            What::Connections { .. } => "connections",
        }
    }
}
