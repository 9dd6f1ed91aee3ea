//! tacho in a database: the extension or the SQL edition, and its functions.

use std::collections::BTreeMap;
use tacho_dsn::Answer;
use tacho_tape::query::QueryError;

/// Finds the schema. Returns a row for each function in it with its arguments and
/// columns; the columns may come from a type. The SQL edition is recognised by its
/// schema and its table `setting`, as in the extension's installation script. Operators
/// are the server's own, whatever search path the owner of the database has set.
pub const FIND_EDITION: &str = "\
begin read only;
set local search_path = pg_catalog, pg_temp;
select pg_catalog.quote_ident(n.nspname), e.extversion, p.proname,
	pg_catalog.array_to_string(array(select a.name
		from unnest(p.proargnames, p.proargmodes) a (name, mode)
		where coalesce(a.mode, 'i') in ('i', 'b', 'v')), ','),
	pg_catalog.array_to_string(array(select a.name
		from unnest(p.proargnames, p.proargmodes) a (name, mode)
		where a.mode in ('o', 'b', 't')
		union all
		select c.attname
		from pg_catalog.pg_type t
		join pg_catalog.pg_attribute c on c.attrelid = t.typrelid
		where t.oid = p.prorettype and c.attnum > 0 and not c.attisdropped), ','),
	pg_catalog.has_schema_privilege(n.oid, 'usage')
		and pg_catalog.has_function_privilege(p.oid, 'execute'),
	pg_catalog.quote_ident(current_user)
from pg_catalog.pg_namespace n
join pg_catalog.pg_proc p on p.pronamespace = n.oid
left join (pg_catalog.pg_depend d
		join pg_catalog.pg_extension e on e.oid = d.refobjid and e.extname = 'tacho')
	on d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e'
		and d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
where p.prokind = 'f' and p.proname !~ '^_'
	and (e.oid is not null or n.nspname = 'tacho' and exists (
		select from pg_catalog.pg_class c where c.relnamespace = n.oid and c.relname = 'setting'));
commit";

/// tacho in a database.
#[derive(Debug, PartialEq, Eq)]
pub struct Edition {
    /// Quoted for SQL.
    schema: String,
    /// Version of the extension; `None` for the SQL edition.
    version: Option<String>,
    functions: BTreeMap<String, Signature>,
    /// The role that asks, quoted for SQL.
    role: String,
    /// True if the role may call the functions.
    pub may_ask: bool,
}

/// Arguments and columns of a function.
#[derive(Debug, PartialEq, Eq)]
pub struct Signature {
    arguments: Vec<String>,
    columns: Vec<String>,
}

impl Signature {
    /// True if the function has an argument of that name.
    pub fn takes(&self, name: &str) -> bool {
        self.arguments.iter().any(|known| known == name)
    }

    /// True if the function's answer has a column of that name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|known| known == name)
    }
}

impl Edition {
    /// The edition that the rows of [`FIND_EDITION`] describe; `None` without rows.
    pub fn of(answer: &Answer) -> Option<Edition> {
        let text = |row, column| answer.text(row, column).unwrap_or_default().to_string();
        let names = |row, column| -> Vec<String> {
            let all = text(row, column);
            let names = all.split(',').filter(|name| !name.is_empty());
            names.map(str::to_string).collect()
        };
        let rows = 0..answer.rows();
        let functions = rows.clone().map(|row| {
            let signature = Signature {
                arguments: names(row, 3),
                columns: names(row, 4),
            };
            (text(row, 2), signature)
        });
        (answer.rows() > 0).then(|| Edition {
            schema: text(0, 0),
            version: answer.text(0, 1).map(str::to_string),
            functions: functions.collect(),
            role: text(0, 6),
            may_ask: rows
                .clone()
                .any(|row| text(row, 2) == "status" && text(row, 5) == "t"),
        })
    }

    /// A function, and its name quoted for SQL.
    ///
    /// # Errors
    /// The server does not have the function.
    pub fn function(&self, name: &str) -> Result<(String, &Signature), QueryError> {
        let found = self.functions.get(name);
        let found = found.ok_or_else(|| {
            QueryError::new(
                "42883",
                format!("function {name}() does not exist on the server"),
            )
            .detail(self.described())
            .hint("Install a newer version of tacho there if the server is to record this.")
        })?;
        Ok((format!("{}.\"{name}\"", self.schema), found))
    }

    /// A sentence that names the edition.
    pub fn described(&self) -> String {
        match &self.version {
            Some(version) => format!("It has the extension tacho {version}."),
            None => "It has the SQL edition of tacho.".to_string(),
        }
    }

    /// The statement that grants the missing right.
    pub fn grant(&self) -> String {
        match self.version {
            Some(_) => format!("Run: GRANT pg_read_all_stats TO {};", self.role),
            None => {
                let name = self.role.replace('"', "").replace('\'', "''");
                format!("Run: SELECT {}.grant_reader('{name}');", self.schema)
            }
        }
    }
}

#[cfg(test)]
impl Edition {
    /// An edition with these functions: name, arguments, columns.
    pub fn test(functions: &[(&str, &[&str], &[&str])]) -> Edition {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        let signature = |(name, arguments, columns): &(&str, &[&str], &[&str])| {
            let signature = Signature {
                arguments: owned(arguments),
                columns: owned(columns),
            };
            ((*name).to_string(), signature)
        };
        Edition {
            schema: "tacho".into(),
            version: Some("0.1".into()),
            functions: functions.iter().map(signature).collect(),
            role: "\"Joe\"".into(),
            may_ask: true,
        }
    }
}
