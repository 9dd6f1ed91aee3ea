//! One look at a tape: every hour that is over, sealed, and not at the place in
//! this generation or a later one is put there, its tables first and `servers`
//! last. An hour counts once its object of `servers` is there; whoever stops
//! before has left objects that the next one finds by their names.

use crate::contents::{Contents, Failed, Fault, Made, common};
use crate::hours::{Counted, Counts, HOUR_MS, count, hour_of};
use crate::names::{Unit, directory};
use crate::place::{Place, Result};
use crate::redact::Redaction;
use crate::table::{Column, Kind, Object};
use crate::texts::Texts;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tacho_tape::{Part, Snapshot};

/// The table that tells which hours are complete.
pub const SERVERS: &str = "servers";
/// What is shipped of a server is redacted as the name of its object here says.
const REDACTION: &str = "redaction";
/// An hour may have rows in parts whose ticks are this far from it.
const NEAR_MS: i64 = 24 * HOUR_MS;

/// Who is shipped, and how.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of the server.
    pub server: Option<String>,
    /// What else is known of it.
    pub labels: Vec<(String, String)>,
    /// What stays on it.
    pub redaction: Redaction,
    /// Host where the tape was written, when it is known.
    pub host: Option<String>,
}

/// What a look at a tape has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Hours that are complete at the place now and were not before.
    pub hours: u64,
    /// Objects and bytes that were put.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What of the tape could not be read and was left out.
    pub damage: Vec<String>,
}

/// Ships one tape to one place.
pub struct Shipper<'p> {
    place: &'p dyn Place,
    settings: Settings,
    counted: Counted,
    /// Generations that are complete at the place, by node and hour.
    complete: HashMap<(u64, i64), u64>,
    texts: HashMap<u64, Texts>,
    /// Servers whose redaction at the place is this one's.
    claimed: BTreeSet<String>,
}

impl<'p> Shipper<'p> {
    /// Knows nothing of the place yet.
    pub fn new(place: &'p dyn Place, settings: Settings) -> Shipper<'p> {
        Shipper {
            place,
            settings,
            counted: Counted::default(),
            complete: HashMap::new(),
            texts: HashMap::new(),
            claimed: BTreeSet::new(),
        }
    }

    /// Ships what is to be shipped; `go_on` is asked before each hour.
    ///
    /// # Errors
    /// The place could not be reached or written.
    pub fn look(&mut self, tape: &Snapshot, now_ms: i64, go_on: &dyn Fn() -> bool) -> Result<Done> {
        let mut done = Done::default();
        let newest = tape.nodes().first().map(|node| node.id);
        for node in newest.map_or_else(Vec::new, |node| tape.answering(node)) {
            self.claim(self.server(node))?;
            let parts: Vec<&Part> = tape.parts(node).collect();
            for (hour, generation) in self.counted.closed(&parts, now_ms) {
                if !go_on() {
                    return Ok(done);
                }
                let unit = Unit {
                    node,
                    hour,
                    generation,
                };
                if !self.is_complete(unit)? {
                    self.hour(unit, &parts, &mut done)?;
                }
            }
        }
        // A text that is missing may be recorded until the next look.
        self.texts.clear();
        Ok(done)
    }

    fn server(&self, node: u64) -> String {
        let own = || format!("{node:016x}");
        self.settings.server.clone().unwrap_or_else(own)
    }

    /// Sees to it that all objects of a server are redacted alike: the first one
    /// that is put says how. Of two that put theirs at once one sees both.
    fn claim(&mut self, server: String) -> Result<()> {
        if self.claimed.contains(&server) {
            return Ok(());
        }
        let (own, directory) = (
            self.settings.redaction.name(),
            directory(REDACTION, &server),
        );
        let others = || -> Result<(bool, Vec<String>)> {
            let mut names = self.place.list(&directory)?;
            names.retain(|name| !name.starts_with('.'));
            let known = names.contains(&own);
            names.retain(|name| *name != own);
            Ok((known, names))
        };
        let (known, mut other) = others()?;
        if !known && other.is_empty() {
            let text = format!("{own}\n").into_bytes();
            self.place.put_new(&format!("{directory}/{own}"), text)?;
            other = others()?.1;
        }
        match other.first() {
            None => drop(self.claimed.insert(server)),
            Some(other) => {
                return Err(format!(
                    "server \"{server}\" was shipped with other redaction\nDETAIL:  It was \"{other}\", and now is \"{own}\".\nHINT:  Ship with another --server or to another place, or remove all that is there of the server and then \"{directory}\"."
                ));
            }
        }
        Ok(())
    }

    /// Is an hour at the place, in this generation or a later one? Asked once a
    /// day of hours.
    fn is_complete(&mut self, unit: Unit) -> Result<bool> {
        let known = |complete: &HashMap<_, u64>| complete.get(&(unit.node, unit.hour)).copied();
        if known(&self.complete).is_none_or(|known| known < unit.generation) {
            let directory = unit.directory(SERVERS, &self.server(unit.node));
            for file in self.place.list(&directory)? {
                if let Some(found) = unit.of_file(&file) {
                    let known = self.complete.entry((found.node, found.hour)).or_default();
                    *known = found.generation.max(*known);
                }
            }
        }
        Ok(known(&self.complete).is_some_and(|known| known >= unit.generation))
    }

    /// Ships an hour, without parts that cannot be read.
    fn hour(&mut self, mut unit: Unit, all: &[&Part], done: &mut Done) -> Result<()> {
        let begin_ms = unit.hour.saturating_mul(HOUR_MS);
        let near = |part: &&Part| {
            let without_ticks = part.min_ms() > part.max_ms();
            let is_near = part.min_ms() < begin_ms.saturating_add(HOUR_MS + NEAR_MS)
                && part.max_ms() > begin_ms.saturating_sub(NEAR_MS);
            !part.info().open && (without_ticks || is_near)
        };
        let mut parts: Vec<&Part> = all.iter().copied().filter(near).collect();
        let mut damage = Vec::new();
        let texts = self.texts.entry(unit.node).or_default();
        let (made, parts) = loop {
            let contents = Contents {
                unit,
                parts: &parts,
                all,
                redaction: &self.settings.redaction,
            };
            match contents.make(texts) {
                Ok(made) => break (made, parts),
                Err((Some(place), Fault::Tape(error))) => {
                    damage.push(error.to_string());
                    parts.remove(place);
                    let Some(left) = generation(&parts, unit.hour) else {
                        done.damage.append(&mut damage);
                        return Ok(());
                    };
                    unit.generation = left;
                }
                Err(failed) => return Err(failed_text(&failed)),
            }
        };
        done.damage.extend(damage.iter().cloned());
        if !damage.is_empty() && self.is_complete(unit)? {
            return Ok(());
        }
        self.put(unit, made, &parts, &damage, done)
    }

    fn put(
        &mut self,
        unit: Unit,
        made: Vec<Made>,
        parts: &[&Part],
        damage: &[String],
        done: &mut Done,
    ) -> Result<()> {
        let server = self.server(unit.node);
        let rows: BTreeMap<&str, u64> = made.iter().map(|m| (m.table, m.encoded.rows)).collect();
        let last = self.servers(unit, &rows, parts, damage);
        let last = last.map_err(|error| failed_text(&(None, error)))?;
        let last = last.map(|encoded| Made {
            table: SERVERS,
            encoded,
        });
        for Made { table, encoded } in made.into_iter().chain(last) {
            let bytes = encoded.bytes.len() as u64;
            let put = self
                .place
                .put_new(&unit.object(table, &server), encoded.bytes)?;
            done.objects += u64::from(put);
            done.bytes += if put { bytes } else { 0 };
            done.hours += u64::from(put && table == SERVERS);
        }
        self.complete
            .insert((unit.node, unit.hour), unit.generation);
        Ok(())
    }

    /// The object that says that an hour is complete, and of whom it is.
    fn servers(
        &self,
        unit: Unit,
        rows: &BTreeMap<&str, u64>,
        parts: &[&Part],
        damage: &[String],
    ) -> std::result::Result<Option<crate::table::Encoded>, Fault> {
        let mut object = Object::new(SERVERS, &common(unit), server_columns())?;
        let of_hour = |part: &&&Part| {
            hour_of(part.min_ms()) <= unit.hour && unit.hour <= hour_of(part.max_ms())
        };
        let identity = parts
            .iter()
            .rfind(of_hour)
            .map(|part| &part.info().identity);
        let labels = self.settings.labels.iter();
        let labels = labels.map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        let rows = rows
            .iter()
            .map(|(table, rows)| (table.to_string(), Value::from(*rows)));
        let texts = [
            Some(self.server(unit.node)),
            identity
                .and_then(|i| some(i.system_identifier))
                .map(|id| id.to_string()),
            self.settings.host.clone(),
            Some(Value::Object(labels.collect::<Map<_, _>>()).to_string()),
            Some(Value::Object(rows.collect::<Map<_, _>>()).to_string()),
            (!damage.is_empty()).then(|| damage.join("\n")),
            Some(env!("CARGO_PKG_VERSION").to_string()),
        ];
        let numbers = [
            identity
                .and_then(|i| some(u64::from(i.timeline)))
                .map(|t| t as i64),
            identity
                .map(|i| i.postmaster_start_us)
                .filter(|us| *us != 0),
        ];
        let (of_texts, of_numbers) = object.values.split_at_mut(texts.len());
        for (values, text) in of_texts.iter_mut().zip(&texts) {
            values.text(text.as_deref());
        }
        for (values, number) in of_numbers.iter_mut().zip(numbers) {
            values.number(number);
        }
        Ok(object.finish()?)
    }
}

fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// The columns of table `servers`: texts, then numbers.
fn server_columns() -> Vec<Column> {
    vec![
        Column::new(10, "server_name", Kind::Text),
        Column::new(11, "system_identifier", Kind::Text),
        Column::new(12, "host", Kind::Text),
        Column::new(13, "labels", Kind::Text),
        Column::new(14, "rows", Kind::Text),
        Column::new(15, "damage", Kind::Text),
        Column::new(16, "shipper", Kind::Text),
        Column::new(17, "timeline", Kind::Number),
        Column::new(18, "postmaster_start", Kind::Time),
    ]
}

/// The generation of an hour in some parts, if they have anything of it.
fn generation(parts: &[&Part], hour: i64) -> Option<u64> {
    let counts = parts.iter().filter_map(|part| count(part).ok());
    let of_hour = counts.filter_map(|counts: Counts| counts.get(&hour).copied());
    Some(of_hour.sum()).filter(|count| *count > 0)
}

fn failed_text(failed: &Failed) -> String {
    match &failed.1 {
        Fault::Tape(error) => error.to_string(),
        Fault::Other(text) => text.clone(),
    }
}
