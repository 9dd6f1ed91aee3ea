//! Damage that a question leaves out. If one column of a group cannot be read, the whole group is
//! left out: the question drops all results so far and starts again without it. Otherwise an answer
//! could hold half of the group. A warning names the group, whose time counts as unobserved.

use crate::format::part::{Part, PartInfo};
use crate::query::value::civil::time_text;
use crate::query::value::error::{DATA_CORRUPTED, Place, QueryError, QueryResult};
use crate::store::snapshot;
use crate::store::snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of places that a warning names.
const NAMED: usize = 5;

/// Damage found by all threads of a question.
#[derive(Clone, Default)]
pub struct Damage(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    /// Damage that the next attempt must leave out.
    errors: Vec<QueryError>,
    /// Damaged places, each with the groups that were left out because of it.
    groups: BTreeMap<Place, Vec<PartInfo>>,
    /// File and number of each group in `groups`.
    left_out: HashSet<(Arc<PathBuf>, u32)>,
    /// Damaged places of query texts; the answer lacks these texts.
    texts: BTreeSet<Place>,
    /// Notices about things that the answer lacks.
    missing: Vec<QueryError>,
}

impl Damage {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the damage and lets the pass continue, so that one pass finds all damage.
    /// [`Damage::check`] must follow before any row is answered.
    pub fn note_and_continue<T>(&self, result: QueryResult<T>) -> QueryResult<Option<T>> {
        match result {
            Err(error) if error.place.is_some() => {
                self.found().errors.push(error);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Adds a notice about something that the answer lacks.
    pub fn note_missing(&self, notice: QueryError) {
        self.found().missing.push(notice);
    }

    /// Fails if damage was found.
    pub fn check(&self) -> QueryResult<()> {
        let first = self.found().errors.first().cloned();
        first.map_or(Ok(()), Err)
    }

    /// If `result` is an error of damage, notes the damage and answers without this part (`None`).
    /// The caller must have used no row of the part before, or the answer would contain half of it.
    pub fn leave_out_part<T>(&self, part: &Part, result: QueryResult<T>) -> QueryResult<Option<T>> {
        match result {
            Err(QueryError {
                place: Some(place), ..
            }) => {
                self.add(*place, vec![part.info().clone()]);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Ignores damage in the query texts of a part: the answer lacks them.
    pub fn without_texts(&self, result: QueryResult<()>) -> QueryResult<()> {
        match result {
            Err(QueryError {
                place: Some(place), ..
            }) => {
                self.found().texts.insert(*place);
                Ok(())
            }
            other => other,
        }
    }

    /// Takes the damage found so far, one place per file and group.
    fn take_errors(&self) -> Vec<Place> {
        let errors = std::mem::take(&mut self.found().errors);
        let places = errors.into_iter().filter_map(|error| error.place);
        let mut places: Vec<Place> = places.map(|place| *place).collect();
        places.sort_by(|a, b| (&a.file, a.group, a.offset).cmp(&(&b.file, b.group, b.offset)));
        places.dedup_by(|a, b| (&a.file, a.group) == (&b.file, b.group));
        places
    }

    /// Notes the groups that were left out because of this place.
    pub fn add(&self, place: Place, mut groups: Vec<PartInfo>) {
        let found = &mut *self.found();
        groups.retain(|info| found.left_out.insert((info.file.clone(), info.group)));
        if !groups.is_empty() {
            found.groups.entry(place).or_default().extend(groups);
        }
    }

    /// True if this part was left out.
    pub fn has_left_out(&self, part: &Part) -> bool {
        let info = part.info();
        let found = self.found();
        !found.left_out.is_empty() && found.left_out.contains(&(info.file.clone(), info.group))
    }

    /// The history without the groups found damaged; `None` if there is nothing to leave out.
    pub fn leave_out(&self, store: &Snapshot) -> Option<Snapshot> {
        let places = self.take_errors();
        let keys = places
            .iter()
            .map(|place| (place.file.as_path(), place.group));
        let index: HashMap<(&Path, u32), usize> = keys.zip(0..).collect();
        let find = |info: &PartInfo| {
            let mut groups = [info.group, 0].into_iter();
            groups.find_map(|group| index.get(&(info.file.as_path(), group)).copied())
        };
        let mut store = store.clone();
        let left_out = store.leave_out(|part| find(part.info()).is_some());
        let mut groups = vec![Vec::new(); places.len()];
        for info in left_out {
            groups[find(&info)?].push(info);
        }
        let is_less = groups.iter().any(|groups| !groups.is_empty());
        for (place, groups) in places.into_iter().zip(groups) {
            self.add(place, groups);
        }
        is_less.then_some(store)
    }

    /// Warnings about the damage.
    pub fn warnings(&self) -> Vec<QueryError> {
        let found = self.found();
        let mut warnings = Vec::new();
        let groups: usize = found.groups.values().map(Vec::len).sum();
        if groups > 0 {
            let message = match groups {
                1 => "skipped a damaged group of the history".to_string(),
                _ => format!("skipped {groups} damaged groups of the history"),
            };
            let sentences = found
                .groups
                .iter()
                .map(|(place, groups)| left_out(place, groups));
            let sentences = first_sentences(sentences);
            let counts = "This time counts as unobserved.";
            warnings.push(warning(message, format!("{sentences} {counts}")));
        }
        if !found.texts.is_empty() {
            let message = "could not read query texts".to_string();
            warnings.push(warning(
                message,
                first_sentences(found.texts.iter().map(place_text)),
            ));
        }
        warnings.extend(found.missing.iter().cloned());
        warnings
    }
}

/// Warning about files that only a later version of tacho can read.
pub fn of_later_version(store: &Snapshot) -> Option<QueryError> {
    let (files, detail) = not_read(store, |damage| damage.of_later_version)?;
    let message = match files {
        1 => "a history file of a later version of tacho was not read".to_string(),
        n => format!("{n} history files of a later version of tacho were not read"),
    };
    let warning = QueryError::new("0A000", message).detail(detail);
    Some(warning.hint("Update the tacho program to the version that wrote them."))
}

/// Warning about files that could not be read at all. Their time is unknown, so every answer may
/// lack them.
pub fn of_whole_files(store: &Snapshot) -> Option<QueryError> {
    let (files, detail) = not_read(store, |damage| damage.whole && !damage.of_later_version)?;
    let message = match files {
        1 => "could not read a file of the history".to_string(),
        n => format!("could not read {n} files of the history"),
    };
    Some(warning(message, detail))
}

/// Number of files that were not read, and a detail that names them.
fn not_read(
    store: &Snapshot,
    is_it: impl Fn(&snapshot::Damage) -> bool,
) -> Option<(usize, String)> {
    let files = store.damage().iter().filter(|damage| is_it(damage));
    let sentences = files.map(|d| format!("File \"{}\": {}.", d.file.display(), d.reason));
    let sentences: Vec<String> = sentences.collect();
    let detail = || {
        format!(
            "{} This time counts as unobserved.",
            first_sentences(sentences.iter().cloned())
        )
    };
    (!sentences.is_empty()).then(|| (sentences.len(), detail()))
}

fn warning(message: String, detail: String) -> QueryError {
    QueryError::new(DATA_CORRUPTED, message)
        .detail(detail)
        .hint("Run \"tacho inspect\" on the history directory; with --repair it copies the readable data to another directory.")
}

/// The first [`NAMED`] sentences, and the number of further ones.
fn first_sentences(sentences: impl ExactSizeIterator<Item = String>) -> String {
    let more = sentences.len().saturating_sub(NAMED);
    let mut text = sentences.take(NAMED).collect::<Vec<String>>().join(" ");
    match more {
        0 => (),
        1 => text.push_str(" 1 more place is not listed."),
        _ => {
            let _ = write!(text, " {more} more places are not listed.");
        }
    }
    text
}

/// A sentence that names a damaged place: `File "0000000001.tape": damaged chunk at offset 7.`
fn place_text(place: &Place) -> String {
    let name = place.file.file_name().unwrap_or(place.file.as_os_str());
    let mut text = format!("File \"{}\": {}", name.to_string_lossy(), place.reason);
    if let Some(offset) = place.offset {
        let _ = write!(text, " at offset {offset}");
    }
    text.push('.');
    text
}

/// Same as [`place_text`], with the groups that were left out, their ticks and times.
fn left_out(place: &Place, groups: &[PartInfo]) -> String {
    let mut text = place_text(place);
    match groups {
        [one] => {
            let _ = write!(text, " Group {} was skipped", one.group);
        }
        several => {
            let _ = write!(text, " {} groups were skipped", several.len());
        }
    }
    let with_ticks = || groups.iter().filter(|g| g.first_tick <= g.last_tick);
    let first = with_ticks().min_by_key(|g| g.first_tick);
    let last = with_ticks().max_by_key(|g| g.last_tick);
    if let (Some(first), Some(last)) = (first, last) {
        let _ = write!(
            text,
            ", ticks {} to {}, {} to {}",
            first.first_tick,
            last.last_tick,
            time_text(first.min_ms.saturating_mul(1000)),
            time_text(last.max_ms.saturating_mul(1000))
        );
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, group: u32) -> Place {
        Place {
            file: PathBuf::from(file),
            group,
            offset: Some(7),
            reason: "damaged chunk".to_string(),
        }
    }

    fn info(file: &str, group: u32) -> PartInfo {
        let tick = u64::from(group);
        PartInfo {
            file: Arc::new(PathBuf::from(file)),
            group,
            first_tick: tick,
            last_tick: tick,
            ..PartInfo::default()
        }
    }

    #[test]
    fn places_that_are_not_listed_are_counted() {
        let more = |count: usize| {
            let text = first_sentences(vec!["A.".to_string(); NAMED + count].into_iter());
            text.replace("A. ", "")
        };
        assert_eq!(more(0), "A.");
        assert_eq!(more(1), "1 more place is not listed.");
        assert_eq!(more(2), "2 more places are not listed.");
    }

    /// Whichever thread is first, the warnings are the same.
    #[test]
    fn warnings_do_not_depend_on_who_met_the_damage_first() {
        let met = [
            ("b", 2, 2),
            ("a", 0, 1),
            ("b", 1, 1),
            ("a", 0, 2),
            ("a", 0, 3),
        ];
        let warnings = |order: [usize; 5]| {
            let damage = Damage::default();
            for (file, place_group, group) in order.map(|index| met[index]) {
                let place = place(file, place_group);
                damage.add(place.clone(), vec![info(file, group)]);
                let lost = QueryError::new(DATA_CORRUPTED, "");
                let lost = QueryError {
                    place: Some(Box::new(place)),
                    ..lost
                };
                damage.without_texts(Err(lost)).unwrap();
            }
            damage
                .warnings()
                .into_iter()
                .map(|w| (w.message, w.detail))
                .collect::<Vec<_>>()
        };
        let expected = warnings([1, 3, 4, 2, 0]);
        assert_eq!(expected.len(), 2);
        let detail = expected[0].1.as_deref().unwrap();
        let a = "File \"a\": damaged chunk at offset 7. 3 groups were skipped, ticks 1 to 3";
        assert!(detail.starts_with(a), "{detail}");
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 1, 3]] {
            assert_eq!(warnings(order), expected, "{order:?}");
        }
    }
}
