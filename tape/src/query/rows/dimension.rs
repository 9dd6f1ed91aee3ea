//! Dimensions: attributes by which rows are filtered and grouped, and their keys.

use super::derived::Derived;
use super::integers::Code;
use super::keys::{Codes, KeySet, Keys, LOST, View};
use super::register::Atom;
use super::root_blocker::RootBlocker;
use super::runs::Runs;
use super::tags;
use super::waits::{WAIT_EVENT, WAIT_TYPE};
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::{ColumnType, RUN, Role, SAMPLE, Schema};
use crate::format::table::Column;
use crate::query::value::error::{QueryError, QueryResult};
use std::rc::Rc;

/// Columns that hold the texts of names.
const NAMES: [(&str, &str); 2] = [("name", "encoding"), ("name", "bytes")];

/// A dimension of the catalog, or one derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name of the argument.
    pub name: String,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Several columns.
    Derived(&'static dyn Derived),
    /// Column of a dictionary that a column of `run` refers to.
    Dictionary { table: String, column: String },
    /// Column of `run` itself.
    Run { column: String },
    /// The value of a key in the tags of a statement.
    Tag { key: String },
}

/// The derived dimensions. One without a column is also in `catalog/derived.h`.
static DERIVED: [&dyn Derived; 3] = [&WAIT_EVENT, &WAIT_TYPE, &RootBlocker];

fn derived(name: &str) -> Option<&'static dyn Derived> {
    DERIVED.into_iter().find(|derived| derived.name() == name)
}

/// Names of all dimensions: the ones of a catalog in its order, then the derived ones that it does
/// not name.
pub fn names(catalog: &Schema) -> Vec<&str> {
    let columns = catalog.tables.iter().flat_map(|t| &t.columns);
    let columns = columns.filter(|c| c.role == Role::Dimension);
    let mut names: Vec<&str> = columns.map(|c| c.name.as_str()).collect();
    for derived in DERIVED {
        if !names.contains(&derived.name()) {
            names.push(derived.name());
        }
    }
    names
}

impl Dimension {
    /// Finds a dimension by name; an error names the argument `what`.
    pub fn find(catalog: &Schema, what: &str, name: &str) -> QueryResult<Dimension> {
        let derived = derived(name).map(Place::Derived);
        let tag = || {
            let key = tags::key_of(name)?.to_string();
            Some(Place::Tag { key })
        };
        let place = derived
            .or_else(|| catalog_place(catalog, name))
            .or_else(tag);
        let place = place.ok_or_else(|| {
            QueryError::undefined(format!("{what} \"{name}\" does not exist"))
                .hint(format!("Available are {}.", names(catalog).join(", ")))
        })?;
        Ok(Dimension {
            name: name.to_string(),
            place,
        })
    }

    /// True if keys are numbers.
    pub fn is_number(&self, catalog: &Schema) -> bool {
        let (table, column) = match &self.place {
            Place::Derived(derived) => return derived.is_number(),
            Place::Tag { .. } => return false,
            Place::Dictionary { table, column } => (table.as_str(), column.as_str()),
            Place::Run { column } => (run_table(catalog), column.as_str()),
        };
        catalog
            .table(table)
            .and_then(|t| t.column(column))
            .is_some_and(|c| !matches!(c.ty, ColumnType::Name | ColumnType::Enum))
    }

    /// True if a text is a key although keys are numbers.
    pub fn is_named_key(&self, text: &str) -> bool {
        matches!(self.place, Place::Derived(derived) if derived.is_named_key(text))
    }

    /// True if the key of a session never changes. False for every derived dimension: with a filter
    /// of one, `sessions` shows `no match` instead of `idle`.
    pub fn is_of_session(&self) -> bool {
        matches!(&self.place, Place::Dictionary { table, .. } if table == "session")
    }

    /// The labels of its keys, if they are an enumeration.
    pub fn labels<'c>(&self, catalog: &'c Schema) -> Option<Vec<&'c str>> {
        let (table, column) = match &self.place {
            Place::Dictionary { table, column } => (table.as_str(), column),
            Place::Run { column } => (run_table(catalog), column),
            _ => return None,
        };
        let column = catalog.table(table)?.column(column)?;
        let labels = catalog.labels(&column.target);
        (column.ty == ColumnType::Enum).then(|| labels.map(|l| l.label.as_str()).collect())
    }

    /// True if all parts of a file share the keys.
    pub fn is_shared(&self, part: &Part) -> bool {
        match &self.place {
            Place::Derived(derived) => derived.is_shared(),
            Place::Run { column } => {
                let def = part.schema().table(RUN).and_then(|t| t.column(column));
                def.is_some_and(|d| matches!(d.ty, ColumnType::Ref | ColumnType::Enum))
            }
            _ => true,
        }
    }

    /// Upper limit of the number of keys in a part, by the size of its dictionaries.
    pub fn rows(&self, part: &Part) -> usize {
        match &self.place {
            Place::Dictionary { table, .. } => part.rows(table),
            Place::Run { column } => {
                let def = part.schema().table(RUN).and_then(|t| t.column(column));
                match def.map(|d| d.ty) {
                    Some(ColumnType::Enum) => 0,
                    Some(ColumnType::Ref) => part.rows("session"),
                    _ => part.rows(RUN),
                }
            }
            Place::Derived(derived) => derived.rows(part),
            Place::Tag { .. } => part.rows(tags::STATEMENT),
        }
    }

    /// The key of every run of a part. Shared keys are made once for a view.
    pub fn resolve(&self, view: &View, runs: &Runs) -> QueryResult<Rc<Keys>> {
        if let Some(known) = view.keys.borrow().get(&self.name) {
            return Ok(known.clone());
        }
        let keys = Rc::new(self.find_keys(view, runs)?);
        if self.is_shared(view.part) {
            let mut known = view.keys.borrow_mut();
            known.insert(self.name.clone(), keys.clone());
        }
        Ok(keys)
    }

    /// The column of `run` that refers to this dimension's dictionary, and the number in each row
    /// of that dictionary. `None` if keys are not numbers of a dictionary.
    pub fn numbers(&self, part: &Part) -> QueryResult<Option<(String, Column)>> {
        match &self.place {
            Place::Dictionary { table, column } if self.is_number(part.schema()) => {
                Ok(Some((reference_to(part, table), part.ints(table, column)?)))
            }
            _ => Ok(None),
        }
    }

    /// The columns of dictionaries and runs that determine the keys. Some of them are read only if
    /// a row needs them.
    pub fn columns(&self, part: &Part) -> Vec<(String, String)> {
        let mut columns: Vec<(&str, String)> = Vec::new();
        let of_type = |table: &str| {
            let columns = part.schema().table(table);
            match columns.and_then(|t| t.column(&self.name)).map(|c| c.ty) {
                Some(ColumnType::Name) => NAMES.to_vec(),
                Some(ColumnType::Ref) => vec![("session", "pid")],
                _ => Vec::new(),
            }
        };
        let others = match &self.place {
            Place::Dictionary { table, column } => {
                columns.push((RUN, reference_to(part, table)));
                columns.push((table, column.clone()));
                of_type(table)
            }
            Place::Run { column } => {
                columns.push((RUN, column.clone()));
                of_type(RUN)
            }
            Place::Derived(derived) => [derived.columns(), &NAMES].concat(),
            Place::Tag { .. } => [&tags::COLUMNS[..], &NAMES].concat(),
        };
        let others = others.into_iter();
        columns.extend(others.map(|(table, column)| (table, column.to_string())));
        let columns = columns.into_iter();
        columns
            .map(|(table, column)| (table.to_string(), column))
            .collect()
    }

    /// Cuts the pieces of a part's runs where the key changes within one; `None` if it never does.
    pub fn cut(&self, view: &View, runs: &Runs) -> QueryResult<Option<Runs>> {
        match self.place {
            Place::Derived(derived) => derived.cut(view, runs),
            _ => Ok(None),
        }
    }

    fn find_keys(&self, view: &View, runs: &Runs) -> QueryResult<Keys> {
        match &self.place {
            Place::Dictionary { table, column } => {
                view.references(table, column, reference_to(view.part, table))
            }
            Place::Run { column } => run_keys(view, column),
            Place::Derived(derived) => derived.keys(view, runs),
            Place::Tag { key } => tags::keys(view, key),
        }
    }
}

/// Name of the table of samples in a schema.
fn run_table(catalog: &Schema) -> &'static str {
    if catalog.table(SAMPLE).is_some() {
        SAMPLE
    } else {
        RUN
    }
}

fn catalog_place(catalog: &Schema, name: &str) -> Option<Place> {
    let samples = run_table(catalog);
    let table = catalog.tables.iter().find(|t| {
        t.columns
            .iter()
            .any(|c| c.role == Role::Dimension && c.name == name)
    })?;
    let column = name.to_string();
    Some(if table.name == samples {
        Place::Run { column }
    } else {
        let table = table.name.clone();
        Place::Dictionary { table, column }
    })
}

/// The column of `run` that refers to a dictionary: the column with the dictionary's name, or the
/// first one with that target.
fn reference_to(part: &Part, table: &str) -> String {
    let columns = part.schema().table(RUN).map(|t| t.columns.as_slice());
    let columns = columns.unwrap_or_default();
    let named = columns.iter().find(|c| c.name == table);
    let found = named.or_else(|| columns.iter().find(|c| c.target == table));
    found.map_or_else(|| table.to_string(), |c| c.name.clone())
}

/// Keys of a column of `run` itself.
fn run_keys(view: &View, name: &str) -> QueryResult<Keys> {
    let def = view.part.schema().table(RUN).and_then(|t| t.column(name));
    let (mut keys, register) = (KeySet::default(), &view.register);
    let column = name.to_string();
    match def.map(|d| d.ty) {
        Some(ColumnType::Ref) => view.references("session", "pid", column),
        Some(ColumnType::Enum) => {
            let target = def.map_or("", |d| d.target.as_str());
            let lost = keys.code(register.atom(Some(LOST)));
            let mut map = vec![keys.code(Atom::Null)];
            for label in view.part.schema().labels(target) {
                let value = usize::try_from(label.value).unwrap_or(0);
                map.resize(map.len().max(value + 1), lost);
                map[value] = keys.code(register.atom(Some(&label.label)));
            }
            map.push(lost);
            Ok(keys.with(Codes::Lookup { column, map }))
        }
        _ => {
            let values = view.part.ints(RUN, name)?;
            let mut known: FastMap<i64, Code> = FastMap::default();
            let mut codes = Vec::with_capacity(values.len());
            for &value in values.iter() {
                let code = match known.get(&value) {
                    Some(code) => *code,
                    None => {
                        let key = view.key(RUN, name, value)?;
                        let code = keys.code(register.atom(key.as_deref()));
                        known.insert(value, code);
                        code
                    }
                };
                codes.push(code);
            }
            Ok(keys.with(Codes::Rows(codes)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::names;
    use crate::catalog::{derived, schema};

    #[test]
    fn derived_dimensions_have_the_names_and_order_of_the_catalog() {
        let schema = schema();
        let columns = schema.tables.iter().flat_map(|t| &t.columns);
        let names = names(&schema);
        let own = names
            .iter()
            .filter(|name| columns.clone().all(|c| c.name != **name));
        let declared = derived().iter().map(|(name, _)| name);
        assert!(
            own.eq(declared),
            "DERIVED and catalog/derived.h differ: {names:?}"
        );
    }
}
