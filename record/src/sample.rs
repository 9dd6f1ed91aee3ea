//! One tick: the questions to the server, and their answers.

use std::collections::HashMap;
use std::time::Duration;
use tacho_dsn::Answer;

/// A session that is not idle.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub pid: i64,
    pub backend_start_us: i64,
    pub database: u32,
    pub user: u32,
    pub application: Vec<u8>,
    pub client_addr: String,
    pub backend_type: String,
    pub leader: i64,
    pub state: String,
    pub wait_type: String,
    pub wait_event: String,
    pub query_id: i64,
    /// Key of the text, if raw texts are recorded and there is no query id.
    pub text_key: i64,
    pub query_start_ms: i64,
    pub xact_start_ms: i64,
    pub state_change_ms: i64,
    pub xid: i64,
    pub xmin: i64,
    /// True if the session is idle; it is here only because it blocks others.
    pub only_blocks: bool,
}

/// The server at one moment.
#[derive(Debug, Default)]
pub struct Sample {
    /// The server's clock, µs since 1970.
    pub server_us: i64,
    /// Next full transaction id.
    pub next_xid: i64,
    pub in_recovery: bool,
    /// Start of the server, µs: identifies its life.
    pub postmaster_start_us: i64,
    pub sessions: Vec<Session>,
    /// Number of idle sessions by type of process and state.
    pub idle: Vec<(String, String, i64)>,
    /// Number of sessions whose activity this role may not see.
    pub hidden: i64,
}

/// Times are computed exactly in µs and cut to ms, as the extension does.
const COLUMNS: &str = "pid, (date_part('epoch', backend_start) * 1e6)::int8, datid, usesysid, \
    application_name, case when client_port < 0 then '[local]' else host(client_addr) end, \
    backend_type, leader_pid, state, wait_event_type, wait_event, query_id, \
    (date_part('epoch', query_start) * 1e6)::int8 / 1000, \
    (date_part('epoch', xact_start) * 1e6)::int8 / 1000, \
    (date_part('epoch', state_change) * 1e6)::int8 / 1000, backend_xid, backend_xmin";

/// SQL before every question: the owner of the database, or of our role's settings
/// in it, must not replace the system's functions with their own.
pub const PIN_SEARCH_PATH: &str = "set local search_path = pg_catalog; ";

/// SQL before every question: limits for this transaction only, because a pooler
/// may lend the connection to others in between.
pub fn set_limits(statement: Duration, lock: Duration) -> String {
    let [statement, lock] = [statement, lock].map(|limit| limit.as_millis().max(1));
    format!(
        "{PIN_SEARCH_PATH}set local statement_timeout = {statement}; \
         set local lock_timeout = {lock}; "
    )
}

/// The question of a tick. Idle sessions are only counted. A session whose type
/// is null is hidden from this role.
pub fn question() -> String {
    format!(
        "with a as materialized (select *, state = 'idle' and state is not null \
           or state is null and wait_event_type = 'Activity' as idle \
           from pg_catalog.pg_stat_get_activity(null) where pid <> pg_backend_pid()) \
         select {COLUMNS}, null::int8 as idle_count from a \
           where idle is not true and backend_type is not null \
         union all select null, null, null, null, null, null, backend_type, null, state, null, \
           null, null, null, null, null, null, null, count(*) from a \
           where idle or backend_type is null group by backend_type, state; \
         select (date_part('epoch', clock_timestamp()) * 1e6)::int8, \
           pg_snapshot_xmax(pg_current_snapshot()), pg_is_in_recovery(), \
           (date_part('epoch', pg_postmaster_start_time()) * 1e6)::int8"
    )
}

/// The question of a tick, but about some processes only, idle or not.
pub fn question_about(pids: &[i64]) -> String {
    let pids: Vec<String> = pids.iter().map(i64::to_string).collect();
    let pids = pids.join(",");
    format!("select {COLUMNS} from pg_catalog.pg_stat_get_activity(null) where pid in ({pids})")
}

/// Reads the answers of [`question`]; `None` if they are incomplete.
pub fn read(answers: &[Answer]) -> Option<Sample> {
    let [sessions, server] = answers else {
        return None;
    };
    let mut sample = Sample {
        server_us: server.number(0, 0)?,
        next_xid: server.number(0, 1).unwrap_or(0),
        in_recovery: server.bytes(0, 2) == Some(b"t"),
        postmaster_start_us: server.number(0, 3).unwrap_or(0),
        ..Sample::default()
    };
    for row in 0..sessions.rows() {
        match sessions.number::<i64>(row, 17) {
            None => sample.sessions.push(session(sessions, row)),
            Some(count) if sessions.bytes(row, 6).is_none() => sample.hidden += count,
            Some(count) => {
                let (kind, state) = (text(sessions, row, 6), text(sessions, row, 8));
                sample.idle.push((kind, state, count));
            }
        }
    }
    Some(sample)
}

/// Reads the answer of [`question_about`].
pub fn read_blockers(answer: &Answer) -> Vec<Session> {
    let blocks = |row| Session {
        only_blocks: true,
        ..session(answer, row)
    };
    (0..answer.rows()).map(blocks).collect()
}

fn text(answer: &Answer, row: usize, column: usize) -> String {
    answer.text(row, column).unwrap_or_default().to_string()
}

fn session(answer: &Answer, row: usize) -> Session {
    let text = |column| text(answer, row, column);
    let number = |column| answer.number(row, column).unwrap_or(0);
    Session {
        pid: number(0),
        backend_start_us: number(1),
        database: answer.number(row, 2).unwrap_or(0),
        user: answer.number(row, 3).unwrap_or(0),
        application: answer.bytes(row, 4).unwrap_or_default().to_vec(),
        client_addr: text(5),
        backend_type: text(6),
        leader: number(7),
        state: text(8),
        wait_type: text(9),
        wait_event: text(10),
        query_id: number(11),
        text_key: 0,
        query_start_ms: number(12),
        xact_start_ms: number(13),
        state_change_ms: number(14),
        xid: number(15),
        xmin: number(16),
        only_blocks: false,
    }
}

impl Sample {
    /// Number of connected client sessions, including hidden ones.
    pub fn clients(&self) -> i64 {
        let idle = self.idle.iter().filter(|i| i.0 == CLIENT).map(|i| i.2);
        let active = self
            .sessions
            .iter()
            .filter(|s| s.backend_type == CLIENT && !s.only_blocks);
        idle.sum::<i64>() + active.count() as i64
    }

    /// The category of each session's process. A parallel worker has the
    /// category of its leader.
    pub fn categories(&self) -> Vec<&'static str> {
        let types: HashMap<i64, &str> = self
            .sessions
            .iter()
            .map(|s| (s.pid, s.backend_type.as_str()))
            .collect();
        let of = |s: &Session| {
            let leader = types.get(&s.leader).copied();
            category(&s.backend_type, leader)
        };
        self.sessions.iter().map(of).collect()
    }

    /// The oldest transaction id that holds back vacuum, as a full (64-bit) id, and the PID of the
    /// session that holds it. `None` if no session has one.
    pub fn oldest_xmin(&self) -> Option<(i64, i64)> {
        let held = self.sessions.iter().filter(|s| s.xmin != 0);
        held.map(|s| (self.full_xid(s.xmin), s.pid)).min()
    }

    fn full_xid(&self, xid: i64) -> i64 {
        let full = (self.next_xid & !0xFFFF_FFFF) | xid;
        if full > self.next_xid {
            full - (1 << 32)
        } else {
            full
        }
    }
}

const CLIENT: &str = "client backend";

/// The category of a type of process.
pub fn category(backend_type: &str, leader: Option<&str>) -> &'static str {
    match backend_type {
        CLIENT => "foreground",
        "autovacuum launcher" | "autovacuum worker" => "maintenance",
        "walsender" | "walreceiver" | "slotsync worker" => "replication",
        worker if worker.starts_with("logical replication") => "replication",
        "parallel worker" => match leader {
            None | Some(CLIENT) => "foreground",
            Some("autovacuum worker") => "maintenance",
            Some(_) => "background",
        },
        _ => "background",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parallel_worker_has_the_category_of_its_leader() {
        assert_eq!(category("client backend", None), "foreground");
        assert_eq!(
            category("parallel worker", Some("client backend")),
            "foreground"
        );
        assert_eq!(
            category("parallel worker", Some("autovacuum worker")),
            "maintenance"
        );
        assert_eq!(
            category("parallel worker", Some("pg_cron launcher")),
            "background"
        );
        assert_eq!(
            category("logical replication apply worker", None),
            "replication"
        );
        assert_eq!(category("checkpointer", None), "background");
    }

    #[test]
    fn an_xmin_of_the_epoch_before_is_older() {
        let held = |xmin, pid| Session {
            xmin,
            pid,
            ..Session::default()
        };
        let sample = Sample {
            next_xid: (3 << 32) + 10,
            sessions: vec![held(9, 1), held(0xFFFF_FFF0, 2), held(0, 3)],
            ..Sample::default()
        };
        assert_eq!(sample.oldest_xmin(), Some(((2 << 32) + 0xFFFF_FFF0, 2)));
    }
}
