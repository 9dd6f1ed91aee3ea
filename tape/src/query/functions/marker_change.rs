//! A change that a marker records: its columns and its sentence.
//!
//! Example: command "DROP INDEX", object "orders_customer", role "deploy" and database
//! "shop" read as "DROP INDEX orders_customer, role deploy, database shop".

use crate::Column;
use crate::format::part::Part;
use crate::query::rows::keys::View;
use crate::query::value::error::QueryResult;
use std::fmt::Write;
use std::sync::Arc;

/// Shown for the value of a setting that was not set.
const NOT_SET: &str = "(not set)";

type Text = Option<Arc<str>>;

/// A change of the schema or of a setting; all empty for other markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// `CREATE INDEX`; `None` if only the new value of a setting was seen.
    pub command: Text,
    pub object_class: Text,
    pub object_oid: i64,
    pub object_name: Text,
    pub database: Text,
    pub username: Text,
    pub application: Text,
    pub client_addr: Text,
    pub old_value: Text,
    pub new_value: Text,
    pub outcome: Text,
    /// Number of further changes without a marker.
    pub left_out: i64,
}

/// The columns of one part.
pub struct ChangeColumns {
    texts: [(&'static str, Column); 10],
    object_oid: Column,
    left_out: Column,
}

impl ChangeColumns {
    /// Reads the columns. A history that is older than these columns has zeros in them.
    pub fn read(part: &Part) -> QueryResult<ChangeColumns> {
        let column = |name| part.ints("marker", name);
        let text = |name| Ok::<_, crate::Error>((name, column(name)?));
        Ok(ChangeColumns {
            texts: [
                text("command")?,
                text("object_class")?,
                text("object_name")?,
                text("database")?,
                text("username")?,
                text("application")?,
                text("client_addr")?,
                text("old_value")?,
                text("new_value")?,
                text("outcome")?,
            ],
            object_oid: column("object_oid")?,
            left_out: column("left_out")?,
        })
    }

    pub fn of(&self, row: usize, view: &View) -> QueryResult<Change> {
        let text = |index: usize| -> QueryResult<Text> {
            let (name, column) = &self.texts[index];
            Ok(view.key("marker", name, column[row])?.map(Into::into))
        };
        Ok(Change {
            command: text(0)?,
            object_class: text(1)?,
            object_oid: self.object_oid[row],
            object_name: text(2)?,
            database: text(3)?,
            username: text(4)?,
            application: text(5)?,
            client_addr: text(6)?,
            old_value: text(7)?,
            new_value: text(8)?,
            outcome: text(9)?,
            left_out: self.left_out[row],
        })
    }
}

impl Change {
    /// Hides application and client address of other roles' sessions from a role that may see only
    /// its own, as `pg_stat_activity` does.
    pub fn shown_to(mut self, owner: Option<&str>) -> Change {
        if owner.is_some() && self.username.as_deref() != owner {
            self.application = None;
            self.client_addr = None;
        }
        self
    }

    /// The sentence of a change. `rest` is the marker's stored detail; other markers have only
    /// that.
    pub fn described(&self, rest: Option<String>, lasted_ms: i64) -> Option<String> {
        match (&self.command, &self.object_name) {
            (Some(command), _) => Some(self.statement(command, rest.as_deref(), lasted_ms)),
            (None, Some(name)) => Some(self.setting(name, rest.as_deref())),
            (None, None) if self.left_out > 0 => Some(format!(
                "{} more schema changes are not listed",
                self.left_out
            )),
            (None, None) => rest,
        }
    }

    fn statement(&self, command: &str, rest: Option<&str>, lasted_ms: i64) -> String {
        let words = [Some(command), self.object_name.as_deref(), rest];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        let mut text = words.join(" ");
        let named = [
            ("role", &self.username),
            ("database", &self.database),
            ("application", &self.application),
            ("client", &self.client_addr),
        ];
        for (label, name) in named {
            if let Some(name) = name {
                let _ = write!(text, ", {label} {name}");
            }
        }
        match self.outcome.as_deref() {
            Some("prepared") => text += " (prepared, not committed)",
            Some("rolled back") => {
                let tenths = lasted_ms.saturating_add(50) / 100;
                let _ = write!(
                    text,
                    " (rolled back after {}.{} s)",
                    tenths / 10,
                    tenths % 10
                );
            }
            _ => (),
        }
        if self.left_out > 0 {
            let _ = write!(text, ", and {} more in this transaction", self.left_out);
        }
        text
    }

    fn setting(&self, name: &str, place: Option<&str>) -> String {
        let mut text = name.to_string();
        if let Some(role) = &self.username {
            let _ = write!(text, " of role {role}");
        }
        if let Some(database) = &self.database {
            let link = if self.username.is_some() { "in" } else { "of" };
            let _ = write!(text, " {link} database {database}");
        }
        let value = |value: &Text| value.clone().unwrap_or_else(|| NOT_SET.into());
        let (old, new) = (value(&self.old_value), value(&self.new_value));
        let _ = write!(text, ": {old} -> {new}");
        if let Some(place) = place {
            let _ = write!(text, " ({place})");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Some(text.into())
    }

    fn drop_index() -> Change {
        Change {
            command: text("DROP INDEX"),
            object_class: text("index"),
            object_name: text("app.orders_customer"),
            username: text("deploy"),
            database: text("shop"),
            application: text("migrate"),
            client_addr: text("10.0.0.7"),
            ..Change::default()
        }
    }

    fn described(change: &Change, rest: &str, lasted_ms: i64) -> String {
        let rest = (!rest.is_empty()).then(|| rest.to_string());
        change.described(rest, lasted_ms).unwrap_or_default()
    }

    #[test]
    fn a_statement_names_its_object_and_who_ran_it() {
        let by = ", role deploy, database shop, application migrate, client 10.0.0.7";
        let mut change = drop_index();
        let dropped = format!("DROP INDEX app.orders_customer{by}");
        assert_eq!(described(&change, "", 0), dropped);
        change.outcome = text("prepared");
        assert_eq!(
            described(&change, "", 0),
            format!("{dropped} (prepared, not committed)")
        );
        change.outcome = text("rolled back");
        change.left_out = 84;
        assert_eq!(
            described(&change, "", 3_150),
            format!("{dropped} (rolled back after 3.2 s), and 84 more in this transaction")
        );
        let created = Change {
            command: text("CREATE INDEX"),
            object_name: text("later"),
            username: None,
            ..drop_index()
        };
        assert_eq!(
            described(&created, "on app.orders", 0),
            "CREATE INDEX later on app.orders, database shop, application migrate, client 10.0.0.7"
        );
    }

    #[test]
    fn a_setting_has_both_values_and_its_place() {
        let mut change = Change {
            object_class: text("setting"),
            object_name: text("work_mem"),
            old_value: text("4MB"),
            new_value: text("64MB"),
            ..Change::default()
        };
        assert_eq!(
            described(&change, "/f:3", 0),
            "work_mem: 4MB -> 64MB (/f:3)"
        );
        change.database = text("shop");
        change.new_value = None;
        assert_eq!(
            described(&change, "", 0),
            "work_mem of database shop: 4MB -> (not set)"
        );
        change.username = text("app");
        assert_eq!(
            described(&change, "", 0),
            "work_mem of role app in database shop: 4MB -> (not set)"
        );
    }

    #[test]
    fn a_marker_without_columns_keeps_its_detail() {
        let none = Change::default();
        assert_eq!(none.described(None, 0), None);
        assert_eq!(described(&none, "server started", 0), "server started");
        let many = Change {
            left_out: 12,
            ..Change::default()
        };
        assert_eq!(
            described(&many, "", 0),
            "12 more schema changes are not listed"
        );
    }

    #[test]
    fn a_role_sees_no_client_of_another() {
        let seen = |owner| {
            let change = drop_index().shown_to(owner);
            (change.application, change.client_addr)
        };
        assert_eq!(seen(None), (text("migrate"), text("10.0.0.7")));
        assert_eq!(seen(Some("deploy")), (text("migrate"), text("10.0.0.7")));
        assert_eq!(seen(Some("app")), (None, None));
    }
}
