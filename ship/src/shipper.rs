//! One look at a tape. An hour is shipped if it is over, sealed, and not at the place in
//! this generation or a later one. Its tables are put first and `servers` last. An hour
//! counts once its object of `servers` is there. If the program stops before that, the
//! next one finds the objects by their names.

use crate::contents::{Contents, LeftOut, Objects, TableObject, common};
use crate::fault::Fault;
use crate::hours::{self, HOUR_MS, HoldReason, NEAR_MS, TickCounts, hour_of};
use crate::limits::STOP_REQUESTED;
use crate::names::{HourId, directory};
use crate::place::{Place, Result};
use crate::redact::Redaction;
use crate::retention::{format_time, removed_before, shipped_until};
use crate::table::{self, Column, Encoded, Object};
use crate::texts::Texts;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::SystemTime;
use tacho_tape::error::Kind;
use tacho_tape::files::directory::NODE;
use tacho_tape::{Error, Part, Snapshot};

/// The table that lists complete hours.
pub const SERVERS: &str = "servers";
/// An object in this directory has the name of the redaction used for a server.
const REDACTION: &str = "redaction";

/// The server to ship, and how.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of the server.
    pub server: Option<String>,
    /// Further facts about the server, from `--label`.
    pub labels: Vec<(String, String)>,
    /// Values that stay on the server.
    pub redaction: Redaction,
    /// Host where the tape was written, if known.
    pub host: Option<String>,
}

/// Result of a look at a tape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookResult {
    /// Hours that this look completed at the place.
    pub hours: u64,
    /// Objects that were put.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Damage of the tape that was left out.
    pub damage: Vec<String>,
    /// Nodes that are not shipped.
    pub left_out: Vec<String>,
    /// Periods that retention removed before they were shipped.
    pub lost: Vec<String>,
    /// Reasons why hours were not shipped that the next look may ship.
    pub again: Vec<String>,
}

impl LookResult {
    /// Adds the result of the next look.
    pub fn and(self, next: LookResult) -> LookResult {
        let lost = [self.lost, next.lost].concat();
        LookResult {
            lost,
            hours: self.hours + next.hours,
            objects: self.objects + next.objects,
            bytes: self.bytes + next.bytes,
            ..next
        }
    }

    fn damaged(&mut self, lost: &[Damage]) {
        for Damage { text, .. } in lost {
            if !self.damage.contains(text) {
                self.damage.push(text.clone());
            }
        }
    }
}

/// A part of the tape that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Damage {
    text: String,
    file: Option<PathBuf>,
    /// State of the file when it was read; a repair changes it.
    stamp: Option<FileState>,
    /// True if the bytes could be read, but are wrong.
    is_wrong: bool,
}

/// Length of a file in bytes, and the time of its last change.
type FileState = (u64, SystemTime);

fn stamp(file: Option<&PathBuf>) -> Option<FileState> {
    let found = std::fs::metadata(file?).ok()?;
    Some((found.len(), found.modified().ok()?))
}

impl Damage {
    /// An error, with the tables that lack rows because of it.
    fn of(error: &Error, tables: &[&str]) -> Damage {
        let name = match tables {
            [_] => "table",
            _ => "tables",
        };
        Damage {
            text: format!("{error} ({name} {})", tables.join(", ")),
            ..Damage::from(error)
        }
    }
}

impl From<&Error> for Damage {
    fn from(error: &Error) -> Damage {
        Damage {
            text: error.to_string(),
            file: error.path.clone(),
            stamp: stamp(error.path.as_ref()),
            is_wrong: matches!(error.kind, Kind::Damaged | Kind::Version),
        }
    }
}

impl Damage {
    fn is_still(&self) -> bool {
        self.is_wrong && stamp(self.file.as_ref()) == self.stamp
    }
}

/// The objects of an hour, its generation, and the damage.
type Shipment = (HourId, Vec<TableObject>, Vec<Damage>);

/// Ships one tape to one place.
pub struct Shipper<'p> {
    place: &'p dyn Place,
    settings: Settings,
    counted: TickCounts,
    /// Generations that are complete at the place, by node and hour.
    complete: HashMap<(u64, i64), u64>,
    /// Damaged hours by node and hour: the generation without damage, and the damage.
    damaged: HashMap<(u64, i64), (HourId, Vec<Damage>)>,
    texts: HashMap<u64, Texts>,
    /// First hour of each node that the last look did not ship.
    not_shipped: HashMap<u64, i64>,
    /// Servers whose redaction at the place equals ours.
    claimed: BTreeSet<String>,
    /// True if some process writes the logs of the tape, so they get more rows.
    are_written: bool,
    /// Hours that the last look holds back, and why.
    held: Vec<String>,
}

impl<'p> Shipper<'p> {
    /// Creates a shipper that knows nothing about the place yet.
    pub fn new(place: &'p dyn Place, settings: Settings) -> Shipper<'p> {
        Shipper {
            place,
            settings,
            counted: TickCounts::default(),
            complete: HashMap::new(),
            damaged: HashMap::new(),
            texts: HashMap::new(),
            not_shipped: HashMap::new(),
            claimed: BTreeSet::new(),
            are_written: true,
            held: Vec::new(),
        }
    }

    /// Sets whether some process writes the logs of the tape. If not, logs are shipped as
    /// if they were sealed.
    pub fn logs_are_written(&mut self, are_written: bool) {
        self.are_written = are_written;
    }

    /// Hours that the last look holds back, and why.
    pub fn held(&self) -> &[String] {
        &self.held
    }

    /// Ships all hours that are due. Calls `go_on` before each hour.
    ///
    /// # Errors
    /// The place could not be reached or written.
    pub fn ship_due_hours(
        &mut self,
        tape: &Snapshot,
        now_ms: i64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<LookResult> {
        let mut done = LookResult::default();
        // A missing text may have been recorded since the last look.
        self.texts.clear();
        self.not_shipped.clear();
        self.held.clear();
        let unread = tape.damage().iter().filter(|damage| damage.whole);
        done.damage.extend(unread.map(|damage| {
            let (file, reason) = (damage.file.display(), &damage.reason);
            format!("could not read file \"{file}\": {reason}")
        }));
        for node in nodes(tape, &mut done)? {
            self.claim_redaction(self.server(node))?;
            if !self.node(node, tape, now_ms, go_on, &mut done)? {
                done.again.push(STOP_REQUESTED.to_string());
                return Ok(done);
            }
        }
        self.counted.forget_others();
        Ok(done)
    }

    /// The number up to which the last look has shipped all files of the tape completely.
    ///
    /// # Errors
    /// A file could not be read; a later attempt may succeed.
    pub fn shipped_until(&self, tape: &Snapshot) -> Result<u64> {
        shipped_until(tape, &self.not_shipped)
    }

    /// Ships the hours of one node; false if `go_on` stopped it.
    fn node(
        &mut self,
        node: u64,
        tape: &Snapshot,
        now_ms: i64,
        go_on: &dyn Fn() -> bool,
        done: &mut LookResult,
    ) -> Result<bool> {
        let parts: Vec<&Part> = tape.parts(node).collect();
        let closed = match self.counted.closed(&parts, now_ms, self.are_written) {
            Ok(closed) => closed,
            Err(error) => {
                done.again.push(error.to_string());
                return Ok(true);
            }
        };
        let damage: Vec<Damage> = closed.damage.iter().map(Damage::from).collect();
        done.damaged(&damage);
        self.held.extend(closed.held.map(held_text));
        let is_there = |of: &(u64, i64)| of.0 != node || closed.counts.contains_key(&of.1);
        self.complete.retain(|of, _| is_there(of));
        self.damaged.retain(|of, _| is_there(of));
        let mut not_shipped = closed.end;
        for (hour, count) in closed.counts {
            if !go_on() {
                return Ok(false);
            }
            let hour_id = HourId::new(node, hour, count, true);
            if !self.is_complete(hour_id)? && !self.is_known_damage(hour_id, done) {
                self.hour(hour_id, &parts, done)?;
            }
            if !self.is_known_complete(hour_id) && !self.damaged.contains_key(&(node, hour)) {
                not_shipped = not_shipped.min(hour);
            }
        }
        self.not_shipped.insert(node, not_shipped);
        Ok(true)
    }

    /// True if the hour had the same damage at an earlier look.
    fn is_known_damage(&mut self, hour_id: HourId, done: &mut LookResult) -> bool {
        let known = self.damaged.remove(&(hour_id.node, hour_id.hour));
        let known = known.filter(|(of, lost)| *of == hour_id && lost.iter().all(Damage::is_still));
        let Some(known) = known else {
            return false;
        };
        done.damaged(&known.1);
        self.damaged.insert((hour_id.node, hour_id.hour), known);
        true
    }

    fn server(&self, node: u64) -> String {
        let own = || format!("{node:016x}");
        self.settings.server.clone().unwrap_or_else(own)
    }

    /// Makes sure that all objects of a server are redacted alike. The first object under
    /// `REDACTION` decides. If two programs put theirs at once, at least one sees both
    /// and fails.
    fn claim_redaction(&mut self, server: String) -> Result<()> {
        if self.claimed.contains(&server) {
            return Ok(());
        }
        let (own, directory) = (
            self.settings.redaction.name(),
            directory(REDACTION, &server),
        );
        let find = || -> Result<(bool, Option<String>)> {
            let (mut is_known, mut other) = (false, None);
            self.place.list(&directory, &mut |name| {
                if name == own {
                    is_known = true;
                } else if other.is_none() && !name.starts_with('.') {
                    other = Some(name.to_string());
                }
            })?;
            Ok((is_known, other))
        };
        let (is_known, mut other) = find()?;
        if !is_known && other.is_none() {
            let text = format!("{own}\n").into_bytes();
            self.place.put_new(&format!("{directory}/{own}"), text)?;
            other = find()?.1;
        }
        match other {
            None => drop(self.claimed.insert(server)),
            Some(other) => {
                return Err(format!(
                    "server \"{server}\" was shipped with a different redaction\nDETAIL:  It was shipped with \"{other}\", and is now to be shipped with \"{own}\".\nHINT:  Use another --server or destination, or remove the objects of the server there and then \"{directory}\"."
                ));
            }
        }
        Ok(())
    }

    /// True if an hour is at the place, in this generation or a later one. One list of a day's
    /// objects answers for all hours of the day.
    fn is_complete(&mut self, hour_id: HourId) -> Result<bool> {
        if !self.is_known_complete(hour_id) {
            let directory = hour_id.directory(SERVERS, &self.server(hour_id.node));
            let mut newest = HashMap::new();
            self.place.list(&directory, &mut |file| {
                if let Some(found) = hour_id.parse_file_name(file) {
                    let known: &mut u64 = newest.entry((found.node, found.hour)).or_default();
                    *known = found.generation.max(*known);
                }
            })?;
            for (of, generation) in newest {
                let known = self.complete.entry(of).or_default();
                *known = generation.max(*known);
            }
        }
        Ok(self.is_known_complete(hour_id))
    }

    /// True if an earlier list or put showed the hour as complete.
    fn is_known_complete(&self, hour_id: HourId) -> bool {
        let known = self.complete.get(&(hour_id.node, hour_id.hour));
        known.is_some_and(|known| *known >= hour_id.generation)
    }

    /// Ships an hour without its damaged parts.
    fn hour(&mut self, whole: HourId, all: &[&Part], done: &mut LookResult) -> Result<()> {
        let near = all.iter().copied();
        let parts: Vec<&Part> = near.filter(|part| self.is_near(part, whole)).collect();
        let (hour_id, made, lost) = match self.make(whole, &parts, all) {
            Ok(found) => found,
            Err(Fault::Tape(error)) => {
                done.again.push(error.to_string());
                return Ok(());
            }
            Err(Fault::Other(text)) => return Err(text),
        };
        done.damaged(&lost);
        let is_needed = !made.is_empty() && (lost.is_empty() || !self.is_complete(hour_id)?);
        if is_needed {
            self.put(hour_id, made, &parts, &lost, done)?;
        }
        if !lost.is_empty() {
            self.damaged.insert((whole.node, whole.hour), (whole, lost));
        }
        Ok(())
    }

    /// True if a part may have rows of an hour.
    fn is_near(&self, part: &Part, hour_id: HourId) -> bool {
        let begin_ms = hour_id.hour.saturating_mul(HOUR_MS);
        let without_ticks = part.min_ms() > part.max_ms();
        let is_near = part.min_ms() < begin_ms.saturating_add(HOUR_MS + NEAR_MS)
            && part.max_ms() > begin_ms.saturating_sub(NEAR_MS);
        let is_log = self.are_written && part.info().open;
        !is_log && (without_ticks || is_near)
    }

    /// Encodes an hour as Parquet objects, one per table. Their names contain the hour's
    /// generation, which counts its ticks and markers (`HourId`). A damaged part that is left out
    /// makes the generation smaller; then all objects of the hour are encoded again, under the
    /// smaller one.
    fn make(
        &mut self,
        whole: HourId,
        parts: &[&Part],
        all: &[&Part],
    ) -> std::result::Result<Shipment, Fault> {
        let texts = self.texts.entry(whole.node).or_default();
        texts.limit_memory();
        let mut hour_id = whole;
        loop {
            let contents = Contents {
                hour_id,
                parts,
                all,
                redaction: &self.settings.redaction,
            };
            let objects = contents.make(texts)?;
            let lost = lost_of(&objects, texts);
            let own = unit_of(whole, parts, &objects.left_out, lost.is_empty())?;
            if own.generation >= hour_id.generation {
                return Ok((hour_id, objects.made, lost));
            }
            hour_id = own;
        }
    }

    fn put(
        &mut self,
        hour_id: HourId,
        made: Vec<TableObject>,
        parts: &[&Part],
        lost: &[Damage],
        done: &mut LookResult,
    ) -> Result<()> {
        let server = self.server(hour_id.node);
        let rows: BTreeMap<&str, u64> = made.iter().map(|m| (m.table, m.encoded.rows)).collect();
        let last = self.servers(hour_id, &rows, parts, lost);
        let last = last.map_err(|error| error.to_string())?;
        let last = last.map(|encoded| TableObject {
            table: SERVERS,
            encoded,
        });
        for TableObject { table, encoded } in made.into_iter().chain(last) {
            let bytes = encoded.bytes.len() as u64;
            let put = self
                .place
                .put_new(&hour_id.object(table, &server), encoded.bytes)?;
            done.objects += u64::from(put);
            done.bytes += if put { bytes } else { 0 };
            done.hours += u64::from(put && table == SERVERS);
        }
        // Damage was reported before.
        let lost = parts
            .iter()
            .filter_map(|p| removed_before(p, hour_id.hour).ok());
        done.lost.extend(lost.flatten());
        self.complete
            .insert((hour_id.node, hour_id.hour), hour_id.generation);
        Ok(())
    }

    /// The object that marks an hour as complete and describes its server.
    fn servers(
        &self,
        hour_id: HourId,
        rows: &BTreeMap<&str, u64>,
        parts: &[&Part],
        lost: &[Damage],
    ) -> parquet::errors::Result<Option<Encoded>> {
        let damage: Vec<&str> = lost.iter().map(|lost| lost.text.as_str()).collect();
        let mut object = Object::new(SERVERS, &common(hour_id), server_columns())?;
        let of_hour = |part: &&&Part| {
            hour_of(part.min_ms()) <= hour_id.hour && hour_id.hour <= hour_of(part.max_ms())
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
            Some(self.server(hour_id.node)),
            identity
                .and_then(|i| non_zero(i.system_identifier))
                .map(|id| id.to_string()),
            self.settings.host.clone(),
            Some(Value::Object(labels.collect::<Map<_, _>>()).to_string()),
            Some(Value::Object(rows.collect::<Map<_, _>>()).to_string()),
            (!damage.is_empty()).then(|| damage.join("\n")),
            Some(env!("CARGO_PKG_VERSION").to_string()),
        ];
        let numbers = [
            identity
                .and_then(|i| non_zero(u64::from(i.timeline)))
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
        object.finish()
    }
}

fn non_zero(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// The columns of table `servers`: texts, then numbers.
fn server_columns() -> Vec<Column> {
    vec![
        Column::new(10, "server_name", table::Kind::Text),
        Column::new(11, "system_identifier", table::Kind::Text),
        Column::new(12, "host", table::Kind::Text),
        Column::new(13, "labels", table::Kind::Text),
        Column::new(14, "rows", table::Kind::Text),
        Column::new(15, "damage", table::Kind::Text),
        Column::new(16, "shipper", table::Kind::Text),
        Column::new(17, "timeline", table::Kind::Number),
        Column::new(18, "postmaster_start", table::Kind::Time),
    ]
}

/// The nodes (histories) of a tape that this server recorded, newest first. Histories that were
/// copied in from other servers are skipped and reported: their own servers ship them.
fn nodes(tape: &Snapshot, done: &mut LookResult) -> Result<Vec<u64>> {
    let mut nodes: Vec<u64> = tape.nodes().iter().map(|node| node.id).collect();
    let unread = tape
        .damage()
        .iter()
        .find(|damage| damage.file.ends_with(NODE));
    if let Some(damage) = unread
        && nodes.len() > 1
    {
        let (file, reason) = (damage.file.display(), &damage.reason);
        return Err(format!(
            "could not read file \"{file}\": {reason}\nDETAIL:  This file lists the nodes whose histories were copied from other servers."
        ));
    }
    let (other_servers, own) = nodes
        .iter()
        .partition(|node| tape.other_servers().contains(node));
    nodes = own;
    let told = |node: u64| {
        format!("node {node:016x} was skipped: its history was copied from another server")
    };
    let other_servers: Vec<u64> = other_servers;
    done.left_out.extend(other_servers.into_iter().map(told));
    Ok(nodes)
}

/// A message with the first hour that is held back, and the reason.
fn held_text((hour, wait): (i64, HoldReason)) -> String {
    let time = |hour: i64| format_time(hour.saturating_mul(HOUR_MS));
    let why = match wait {
        HoldReason::End => "this hour has not ended".to_string(),
        HoldReason::Log(file) => format!("a process is writing file \"{}\"", file.display()),
        HoldReason::Statistics => format!(
            "statistics of statements may still be recorded until {}",
            time(hour + 2)
        ),
    };
    format!("held back from {} on: {why}", time(hour))
}

/// Damage of an hour, with the tables that lack rows because of it.
fn lost_of(objects: &Objects, texts: &Texts) -> Vec<Damage> {
    let left_out = objects.left_out.iter();
    let left_out = left_out.map(|left| Damage::of(&left.error, left.tables));
    let hidden = texts.damage(&objects.queries).iter();
    let hidden = hidden.map(|error| Damage::of(error, &["texts"]));
    let mut lost: Vec<Damage> = left_out.chain(hidden).collect();
    lost.sort();
    lost.dedup();
    lost
}

/// The generation of an hour. Only parts that no table lacks are counted.
fn unit_of(
    whole: HourId,
    parts: &[&Part],
    left_out: &[LeftOut],
    is_whole: bool,
) -> tacho_tape::Result<HourId> {
    if is_whole {
        return Ok(whole);
    }
    let is_left_out = |part: &Part| left_out.iter().any(|left| std::ptr::eq(left.part, part));
    let mut count = 0;
    for part in parts.iter().filter(|part| !is_left_out(part)) {
        let counts = hours::count(part, &mut Vec::new())?;
        count += counts.get(&whole.hour).copied().unwrap_or(0);
    }
    Ok(HourId::new(whole.node, whole.hour, count, false))
}
