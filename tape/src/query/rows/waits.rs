//! The dimensions `wait_event` and `wait_event_type`. A run without a wait event has the kind of its
//! CPU activity instead.

use super::derived::Derived;
use super::integers::Reference;
use super::keys::{Codes, KeySet, Keys, LOST, View};
use super::register::Atom;
use super::runs::Runs;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;

/// The columns that determine the keys of both dimensions.
const COLUMNS: [(&str, &str); 4] = [
    (RUN, pg::WAIT),
    (RUN, pg::CPU),
    (pg::WAIT, pg::WAIT_TYPE),
    (pg::WAIT, pg::WAIT_EVENT),
];

/// A dimension of waits.
pub struct Waits {
    name: &'static str,
    keys: fn(&View) -> QueryResult<Keys>,
}

/// Class and name of the wait event, or the kind of CPU activity.
pub static WAIT_EVENT: Waits = Waits {
    name: pg::WAIT_EVENT,
    keys: |view| wait_keys(view, pg::wait_key, pg::cpu_key),
};

/// Class of the wait event, or CPU.
pub static WAIT_TYPE: Waits = Waits {
    name: pg::WAIT_TYPE,
    keys: |view| {
        let class = |class: Option<&str>, _: Option<&str>| class.map(str::to_string);
        wait_keys(view, class, |_| pg::CPU_CLASS.to_string())
    },
};

impl Derived for Waits {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_number(&self) -> bool {
        false
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn rows(&self, part: &Part) -> usize {
        part.rows(pg::WAIT)
    }

    fn columns(&self) -> &'static [(&'static str, &'static str)] {
        &COLUMNS
    }

    fn keys(&self, view: &View, _: &Runs) -> QueryResult<Keys> {
        (self.keys)(view)
    }
}

/// Keys made of class and name of a wait event.
fn wait_keys(
    view: &View,
    wait_key: impl Fn(Option<&str>, Option<&str>) -> Option<String>,
    cpu_key: impl Fn(&str) -> String,
) -> QueryResult<Keys> {
    let (mut keys, register) = (KeySet::default(), &view.register);
    let mut wait_map = vec![keys.code(Atom::Null)];
    for (class, event) in wait_events(view)? {
        let key = wait_key(class.as_deref(), event.as_deref());
        wait_map.push(keys.code(register.atom(key.as_deref())));
    }
    let lost = keys.code(register.atom(Some(LOST)));
    wait_map.push(lost);
    let mut cpu_map = vec![keys.code(Atom::Null)];
    for label in view.part.schema().labels(pg::CPU) {
        let value = usize::try_from(label.value).unwrap_or(0);
        cpu_map.resize(cpu_map.len().max(value + 1), lost);
        cpu_map[value] = keys.code(register.atom(Some(&cpu_key(&label.label))));
    }
    cpu_map.push(lost);
    Ok(keys.with(Codes::Wait { wait_map, cpu_map }))
}

/// Class and name of each wait event of a part.
pub fn wait_events(view: &View) -> QueryResult<Vec<(Option<String>, Option<String>)>> {
    let class = view.part.ints(pg::WAIT, pg::WAIT_TYPE)?;
    let event = view.part.ints(pg::WAIT, pg::WAIT_EVENT)?;
    let pairs = class.iter().zip(event.iter());
    pairs
        .map(|(c, e)| Ok((view.name(Reference(*c))?, view.name(Reference(*e))?)))
        .collect()
}
