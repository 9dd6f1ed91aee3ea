//! Identity of the connected server, and what its role may see. Asked once per connection.

use crate::sample::PIN_SEARCH_PATH;
use std::time::Duration;
use tacho_dsn::{Answer, Connection, Limit};

/// Facts about a server that hold as long as a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// System identifier of the cluster; 0 = this role may not see it.
    pub system_identifier: u64,
    pub timeline: i64,
    pub postmaster_start_us: i64,
    /// Time of the server's clock when it answered, in µs since 1970.
    pub server_us: i64,
    /// Start of the checkpointer, which ends with the server or in a crash; 0 = hidden.
    pub checkpointer_start_us: i64,
    /// Start of the server's statistics, which a crash discards; 0 = hidden.
    pub statistics_us: i64,
    /// Encoding id of the connection's database.
    pub encoding: i64,
    pub version: u32,
    pub version_text: String,
    pub in_recovery: bool,
    /// Host and port of the connection, and the server's own address.
    pub place: String,
    pub max_connections: i64,
    /// True if this role sees the activity of other roles.
    pub sees_others: bool,
    /// Schema and version of pg_stat_statements in this database, if it is installed; 110 is
    /// version 1.10.
    pub statements: Option<(String, u32)>,
    /// True if a pooler stands between the recorder and the server.
    pub is_pooled: bool,
    pub role: String,
    pub database: String,
}

const QUESTION: &str = "select (date_part('epoch', pg_postmaster_start_time()) * 1e6)::int8, \
    pg_is_in_recovery(), current_setting('server_version'), current_setting('max_connections'), \
    host(inet_server_addr()), pg_backend_pid(), \
    pg_has_role(current_user, 'pg_read_all_stats', 'usage'), \
    (select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace \
      where e.extname = 'pg_stat_statements'), \
    (select extversion from pg_extension where extname = 'pg_stat_statements'), \
    quote_ident(current_user), quote_ident(current_database()), \
    current_setting('server_version_num'), (date_part('epoch', clock_timestamp()) * 1e6)::int8, \
    (select encoding from pg_database where datname = current_database())";

impl Identity {
    /// Asks the server.
    ///
    /// # Errors
    /// The server did not answer, or its answer is not PostgreSQL's.
    pub fn ask(
        connection: &mut Connection,
        limit: Duration,
        cancel: &super::Stop,
    ) -> tacho_dsn::Result<Identity> {
        let within = || Limit::within(limit, cancel.flag());
        let answers = connection.query(&[PIN_SEARCH_PATH, QUESTION].concat(), within())?;
        let mut identity = answers
            .first()
            .map(|a| read(a, connection))
            .unwrap_or_default();
        // Many roles may not call these functions, and on some services no role may. If the
        // write-ahead log is not PostgreSQL's, pg_control_checkpoint() fails alone.
        let mut number = |sql: &str| {
            let answers = connection.query(&[PIN_SEARCH_PATH, sql].concat(), within());
            match answers {
                Err(error) if !connection.is_open() => Err(error),
                Err(_) => Ok(0),
                Ok(answers) => {
                    let number = answers.first().and_then(|answer| answer.number(0, 0));
                    Ok(number.unwrap_or(0_u64))
                }
            }
        };
        identity.system_identifier =
            number("select system_identifier from pg_catalog.pg_control_system()")?;
        identity.timeline =
            number("select timeline_id from pg_catalog.pg_control_checkpoint()")? as i64;
        identity.checkpointer_start_us = number(
            "select (date_part('epoch', backend_start) * 1e6)::int8 \
             from pg_catalog.pg_stat_get_activity(null) where backend_type = 'checkpointer'",
        )? as i64;
        identity.statistics_us = number(
            "select (date_part('epoch', stats_reset) * 1e6)::int8 from pg_catalog.pg_stat_wal",
        )? as i64;
        Ok(identity)
    }

    /// True if this is another server, or another life of the same one.
    pub fn is_another(&self, before: &Identity) -> bool {
        self.postmaster_start_us != before.postmaster_start_us || self.is_of_another_system(before)
    }

    /// True if both system identifiers are known and differ.
    pub fn is_of_another_system(&self, before: &Identity) -> bool {
        let both = [self.system_identifier, before.system_identifier];
        !both.contains(&0) && both[0] != both[1]
    }

    /// Takes the system identifier that was known before, if this role may not see it any more or
    /// the question failed.
    pub fn keep_system(&mut self, before: Option<&Identity>) {
        if self.system_identifier == 0 {
            self.system_identifier = before.map_or(0, |before| before.system_identifier);
        }
    }

    /// True if the postmaster stayed up, but restarted all its processes after one of them crashed:
    /// the checkpointer has another start time.
    pub fn has_crashed(&self, before: &Identity) -> bool {
        let began = [self.checkpointer_start_us, before.checkpointer_start_us];
        !self.is_another(before) && !began.contains(&0) && began[0] != began[1]
    }

    /// True if the server was not shut down properly before this start: its statistics begin with
    /// this start.
    pub fn has_recovered(&self, before: &Identity) -> bool {
        before.statistics_us != 0
            && before.statistics_us < self.postmaster_start_us
            && self.statistics_us >= self.postmaster_start_us
    }

    /// Version, primary or standby, system identifier and host, for markers and the log.
    pub fn describe(&self) -> String {
        let role = if self.in_recovery {
            "standby"
        } else {
            "primary"
        };
        let system = match self.system_identifier {
            0 => "not known".to_string(),
            known => known.to_string(),
        };
        format!(
            "PostgreSQL {}, {role}, system {system}, host {}",
            self.version_text, self.place
        )
    }
}

fn read(answer: &Answer, connection: &Connection) -> Identity {
    let text = |column| answer.text(0, column).unwrap_or_default().to_string();
    let is = |column| answer.bytes(0, column) == Some(b"t");
    let place = match answer.text(0, 4) {
        Some(address) if !connection.host().starts_with(address) => {
            format!("{} ({address})", connection.host())
        }
        _ => connection.host().to_string(),
    };
    Identity {
        postmaster_start_us: answer.number(0, 0).unwrap_or(0),
        in_recovery: is(1),
        version_text: text(2),
        max_connections: answer.number(0, 3).unwrap_or(0),
        place,
        is_pooled: answer.number(0, 5) != Some(connection.backend_pid()),
        sees_others: is(6),
        statements: answer
            .text(0, 7)
            .map(|schema| (schema.to_string(), version(&text(8)))),
        role: text(9),
        database: text(10),
        version: answer.number(0, 11).unwrap_or(0),
        server_us: answer.number(0, 12).unwrap_or(0),
        encoding: answer.number(0, 13).unwrap_or(0),
        ..Identity::default()
    }
}

/// The version as a number: 110 for "1.10".
fn version(text: &str) -> u32 {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    major.parse::<u32>().unwrap_or(0) * 100 + minor.parse::<u32>().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_extensions_are_ordered_by_number() {
        assert_eq!(
            [version("1.9"), version("1.10"), version("1.12")],
            [109, 110, 112]
        );
    }

    #[test]
    fn another_start_or_another_system_is_another_life() {
        let identity = |system_identifier, postmaster_start_us| Identity {
            system_identifier,
            postmaster_start_us,
            ..Identity::default()
        };
        assert!(!identity(1, 5).is_another(&identity(1, 5)));
        assert!(identity(1, 6).is_another(&identity(1, 5)));
        assert!(identity(2, 5).is_another(&identity(1, 5)));
    }

    #[test]
    fn a_system_that_is_not_known_is_no_other_one() {
        let identity = |system_identifier| Identity {
            system_identifier,
            ..Identity::default()
        };
        assert!(!identity(0).is_another(&identity(1)));
        assert!(!identity(1).is_another(&identity(0)));
        let kept = |now: u64, before: Option<u64>| {
            let mut now = identity(now);
            now.keep_system(before.map(identity).as_ref());
            now.system_identifier
        };
        let found = [kept(0, Some(1)), kept(2, Some(1)), kept(0, None)];
        assert_eq!(found, [1, 2, 0]);
    }

    #[test]
    fn a_crash_is_known_by_the_checkpointer_or_by_statistics_that_are_gone() {
        let identity = |postmaster_start_us, checkpointer_start_us, statistics_us| Identity {
            postmaster_start_us,
            checkpointer_start_us,
            statistics_us,
            ..Identity::default()
        };
        let before = identity(5, 6, 1);
        assert!(!identity(5, 6, 1).has_crashed(&before));
        assert!(identity(5, 9, 9).has_crashed(&before));
        assert!(!identity(5, 0, 9).has_crashed(&before), "not shown");
        assert!(!identity(8, 9, 9).has_crashed(&before), "started again");
        assert!(identity(8, 9, 9).has_recovered(&before));
        assert!(
            !identity(8, 9, 1).has_recovered(&before),
            "ended as it should"
        );
        assert!(!identity(8, 9, 0).has_recovered(&before), "not shown");
    }
}
