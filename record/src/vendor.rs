//! The service that runs a server. Its roles and functions identify it. Each service has
//! its own way to grant rights and to change settings: one without superusers forbids
//! `ALTER SYSTEM`.

use tacho_dsn::Answer;

/// Asks for marks of services: roles and functions that only one service has.
pub const QUESTION: &str = "select rolname::text from pg_roles where rolname in \
    ('rds_superuser', 'cloudsqlsuperuser', 'alloydbsuperuser', 'azure_pg_admin', \
     'neon_superuser', 'supabase_admin', 'doadmin', 'avnadmin', 'tsdbadmin') \
    union all select proname::text from pg_proc where proname = 'aurora_version' \
    union all select nspname::text from pg_namespace where nspname = 'heroku_ext'";

/// A service and its procedures.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Marks that [`QUESTION`] finds there; none for a server that no service runs.
    mark: &'static str,
    /// Name of the service; empty for a server that no service runs.
    pub name: &'static str,
    /// The role that may grant rights and create extensions.
    grantor: &'static str,
    /// The place where users change settings of the server.
    settings: &'static str,
    /// A step before `CREATE EXTENSION`, if there is one.
    before_extension: &'static str,
}

const fn service(
    mark: &'static str,
    name: &'static str,
    grantor: &'static str,
    settings: &'static str,
) -> Vendor {
    Vendor {
        mark,
        name,
        grantor,
        settings,
        before_extension: "",
    }
}

const OWN: Vendor = service("", "", "", "");
const CONSOLE: &str = "the settings of the service";

/// The first match wins: Aurora also has the marks of RDS.
static VENDORS: [Vendor; 11] = [
    service(
        "aurora_version",
        "Amazon Aurora",
        "a member of rds_superuser",
        "the DB cluster parameter group",
    ),
    service(
        "rds_superuser",
        "Amazon RDS",
        "a member of rds_superuser",
        "the DB parameter group",
    ),
    service(
        "alloydbsuperuser",
        "Google AlloyDB",
        "a member of alloydbsuperuser",
        "the database flags of the instance",
    ),
    service(
        "cloudsqlsuperuser",
        "Google Cloud SQL",
        "a member of cloudsqlsuperuser",
        "the database flags of the instance",
    ),
    Vendor {
        before_extension: "add pg_stat_statements to the server parameter azure.extensions, then ",
        ..service(
            "azure_pg_admin",
            "Azure Database for PostgreSQL",
            "a member of azure_pg_admin",
            "the server parameters",
        )
    },
    service(
        "neon_superuser",
        "Neon",
        "a member of neon_superuser",
        CONSOLE,
    ),
    service("supabase_admin", "Supabase", "postgres", CONSOLE),
    service(
        "heroku_ext",
        "Heroku Postgres",
        "the default credential",
        CONSOLE,
    ),
    service("doadmin", "DigitalOcean", "doadmin", CONSOLE),
    service("avnadmin", "Aiven", "avnadmin", CONSOLE),
    service("tsdbadmin", "Tiger Cloud", "tsdbadmin", CONSOLE),
];

/// The service, by the answer to [`QUESTION`].
pub fn of(answer: &Answer) -> &'static Vendor {
    let marks: Vec<&str> = (0..answer.rows())
        .filter_map(|row| answer.text(row, 0))
        .collect();
    by_marks(&marks)
}

/// A server that no service runs.
pub fn self_hosted() -> &'static Vendor {
    &OWN
}

fn by_marks(marks: &[&str]) -> &'static Vendor {
    let found = VENDORS.iter().find(|vendor| marks.contains(&vendor.mark));
    found.unwrap_or(&OWN)
}

impl Vendor {
    fn is_own(&self) -> bool {
        self.mark.is_empty()
    }

    /// The SQL with the role that may run it, as a step for people.
    pub fn grant(&self, sql: &str) -> String {
        match self.is_own() {
            true => format!("run: {sql}"),
            false => format!("run as {}: {sql}", self.grantor),
        }
    }

    /// How to create the extension in the connection's database.
    pub fn create_extension(&self) -> String {
        let run = self.grant("CREATE EXTENSION pg_stat_statements;");
        format!("{}{run}", self.before_extension)
    }

    /// How to load the extension's library into the server.
    pub fn preload(&self) -> String {
        let place = match self.is_own() {
            true => String::new(),
            false => format!(" in {}", self.settings),
        };
        format!("add pg_stat_statements to shared_preload_libraries{place} and restart the server")
    }

    /// How to change a setting of the server that takes effect after a reload.
    pub fn set(&self, name: &str, value: &str) -> String {
        match self.is_own() {
            true => format!("run: ALTER SYSTEM SET {name} = {value}; SELECT pg_reload_conf();"),
            false => format!("set {name} = {value} in {}", self.settings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_recognized_by_its_roles_and_functions() {
        let name = |marks: &[&str]| by_marks(marks).name;
        assert_eq!(name(&[]), "");
        assert_eq!(name(&["rds_superuser"]), "Amazon RDS");
        assert_eq!(name(&["rds_superuser", "aurora_version"]), "Amazon Aurora");
        assert_eq!(name(&["azure_pg_admin"]), "Azure Database for PostgreSQL");
        for vendor in &VENDORS {
            assert!(QUESTION.contains(&format!("'{}'", vendor.mark)));
        }
    }

    #[test]
    fn advice_names_only_settings_that_the_service_allows() {
        let [own, rds, azure] =
            [&[][..], &["rds_superuser"][..], &["azure_pg_admin"][..]].map(by_marks);
        let set = |vendor: &Vendor| vendor.set("compute_query_id", "on");
        assert_eq!(
            set(own),
            "run: ALTER SYSTEM SET compute_query_id = on; SELECT pg_reload_conf();"
        );
        assert_eq!(
            set(rds),
            "set compute_query_id = on in the DB parameter group"
        );
        assert_eq!(
            azure.create_extension(),
            "add pg_stat_statements to the server parameter azure.extensions, then \
             run as a member of azure_pg_admin: CREATE EXTENSION pg_stat_statements;"
        );
        for vendor in &VENDORS {
            let all = [
                vendor.grant("GRANT x TO y;"),
                vendor.create_extension(),
                vendor.preload(),
                set(vendor),
            ];
            assert!(all.iter().all(|text| !text.contains("ALTER SYSTEM")));
        }
    }
}
