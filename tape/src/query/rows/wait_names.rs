//! Completes names without a class in filters by wait event: `ClientRead` becomes
//! `Client:ClientRead`.

use super::dimension::Dimension;
use super::keys::View;
use super::waits::wait_events;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use crate::query::value::vocabulary as pg;
use std::collections::BTreeSet;

/// Completes the names in filters by the wait events of some parts.
///
/// # Errors
/// Several classes have the event, or a part could not be read.
pub fn complete<'a>(
    filters: &mut [(Dimension, Filter)],
    run: Run,
    parts: impl IntoIterator<Item = &'a Part>,
) -> QueryResult<()> {
    let is_bare = |item: &Option<String>| item.as_ref().is_some_and(|v| !v.contains(':'));
    let waits = filters.iter_mut().filter(|(d, _)| d.name == pg::WAIT_EVENT);
    let mut items: Vec<&mut Option<String>> = waits.flat_map(|(_, f)| f.items_mut()).collect();
    items.retain(|item| is_bare(item));
    if items.is_empty() {
        return Ok(());
    }
    let known = known(run, parts)?;
    items.into_iter().try_for_each(|item| qualify(item, &known))
}

/// The wait events of some parts, and the kinds of CPU activity.
fn known<'a>(run: Run, parts: impl IntoIterator<Item = &'a Part>) -> QueryResult<BTreeSet<String>> {
    let labels = run.catalog.labels(pg::CPU);
    let mut known: BTreeSet<String> = labels.map(|label| pg::cpu_key(&label.label)).collect();
    for part in parts {
        let view = View::new(part, run.decode).canceled_by(run.cancel);
        view.check_cancel()?;
        let events = run.damage.note_and_continue(wait_events(&view))?;
        for (class, event) in events.into_iter().flatten() {
            known.extend(pg::wait_key(class.as_deref(), event.as_deref()));
        }
    }
    run.damage.check()?;
    Ok(known)
}

/// `ClientRead` becomes `Client:ClientRead` if only one class has this event.
fn qualify(item: &mut Option<String>, known: &BTreeSet<String>) -> QueryResult<()> {
    let Some(bare) = item.as_deref() else {
        return Ok(());
    };
    if known.contains(bare) {
        return Ok(());
    }
    let found: Vec<&String> = known
        .iter()
        .filter(|key| key.split_once(':').is_some_and(|(_, event)| event == bare))
        .collect();
    if found.len() > 1 {
        let candidates: Vec<&str> = found.iter().map(|s| s.as_str()).collect();
        return Err(
            QueryError::invalid(format!("wait event \"{bare}\" is ambiguous"))
                .detail(format!("Candidates are {}.", candidates.join(", ")))
                .hint("Write class and name as Type:Event."),
        );
    }
    if let Some(one) = found.first() {
        *item = Some((*one).clone());
    }
    Ok(())
}
