//! `changes` names the cause and not a nearer innocent change, and its figures add up.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/seconds.rs"]
mod seconds;

use seconds::{ACTIVE, SECOND, Tape, ask, catalog, cause, causes, slower_from_300, window};
use std::sync::Arc;
use tacho_tape::Snapshot;
use tacho_tape::query::{Changes, ChangesRow, Context, Numeric};

const IDLE_IN_TRANSACTION: i64 = 3;
const RELATION: i64 = 1;

/// An index is dropped at second 900. From then on four sessions read all of its table;
/// before they were seen now and then. Another query has its load all the time.
fn index_dropped() -> Tape {
    let mut tape = Tape::new(1200);
    let slow = tape.query(7, "select * from app.orders where customer = $1");
    let other = tape.query(8, "select * from items");
    let read = tape.wait("IO", "DataFileRead");
    for pid in 1..=4 {
        let session = tape.session(pid, "web");
        tape.seen(session, pid..900, 50, &[("statement", slow)]);
        tape.seen(
            session,
            901..1200,
            1,
            &[("statement", slow), ("wait", read)],
        );
    }
    let session = tape.session(9, "batch");
    tape.seen(session, 0..1200, 1, &[("statement", other)]);
    tape.changed(
        900,
        "DROP INDEX",
        "index",
        "app.orders_customer",
        "on app.orders",
    );
    tape
}

#[test]
fn the_next_command_of_a_key_asks_for_this_key_alone() {
    let mut tape = Tape::new(600);
    for (pid, application) in [
        (1, "billing, v2"),
        (2, "it's \"x\""),
        (3, ""),
        (4, "(null)"),
    ] {
        let session = tape.session(pid, application);
        tape.seen(session, 300..600, 1, &[]);
    }
    let rows = ask(&tape.finish(), &window(300, 600), 600);
    let keys = rows
        .iter()
        .filter(|row| row.dimension.as_deref() == Some("application"));
    let words = keys.map(|row| {
        let next = row.next.as_deref().unwrap();
        let (command, _) = next.split_once(" --since ").unwrap();
        command
            .strip_prefix("tacho top query_id --application=")
            .unwrap()
            .to_string()
    });
    let mut words: Vec<String> = words.collect();
    words.sort();
    assert_eq!(
        words,
        [
            "'\"(null)\"'",
            "'\"billing, v2\"'",
            "'\"it'\\''s \"\"x\"\"\"'",
            // The session without a name of its application.
            "'(null)'",
        ]
    );
}

#[test]
fn a_dropped_index_is_named_before_nearer_changes() {
    let mut tape = index_dropped();
    tape.changed(500, "CREATE TABLE", "table", "app.news", "");
    tape.changed(
        898,
        "DROP INDEX",
        "index",
        "app.items_colour",
        "on app.items",
    );
    tape.setting(899, "log_min_duration_statement", "-1", "500ms");
    tape.changed(901, "ALTER TABLE", "table", "app.news", "");
    let snapshot = tape.finish();
    let rows = ask(&snapshot, &window(800, 1100), 1200);
    assert_eq!(
        causes(&rows),
        [cause("index dropped", "app.orders_customer", 900)]
    );
    let first = &rows[0];
    assert_eq!(
        (first.rank, first.explains.as_deref()),
        (Some(1), Some("7"))
    );
    assert_eq!(first.username.as_deref(), Some("deploy"));
    assert_eq!(
        first.explanation.as_deref(),
        Some(
            "DROP INDEX app.orders_customer on app.orders, role deploy, 1 s before query 7 got more load, from 0.08 to 2.68 sessions"
        )
    );
    let effect = &rows[1];
    assert_eq!(effect.dimension.as_deref(), Some("query_id"));
    assert_eq!(
        (effect.key.as_deref(), effect.rule.as_deref()),
        (Some("7"), Some("more"))
    );
    assert_eq!(effect.started, Some(901 * SECOND));
    assert_eq!(
        effect.query_text.as_deref(),
        Some("select * from app.orders where customer = $1")
    );
}

#[test]
fn the_normal_window_ends_where_the_load_left_its_usual_range() {
    let snapshot = index_dropped().finish();
    // The incident began ten seconds before the window.
    let rows = ask(&snapshot, &window(910, 1010), 1200);
    let row = &rows[0];
    assert_eq!(
        (row.before_start, row.before_end),
        (Some(801 * SECOND), Some(901 * SECOND))
    );
    assert_eq!(
        causes(&rows),
        [cause("index dropped", "app.orders_customer", 900)]
    );
    // A normal window that is given is taken.
    let given = Changes {
        before_since: Some(100 * SECOND),
        before_until: Some(700 * SECOND),
        ..window(910, 1010)
    };
    let rows = ask(&snapshot, &given, 1200);
    assert_eq!(rows[0].before_start, Some(100 * SECOND));
    assert_eq!(rows[0].before_end, Some(700 * SECOND));
    assert_eq!(
        causes(&rows),
        [cause("index dropped", "app.orders_customer", 900)]
    );
    // Without a change the length directly before is normal.
    let rows = ask(&snapshot, &window(400, 500), 1200);
    assert_eq!(rows[0].before_start, Some(300 * SECOND));
    assert_eq!(
        (rows[0].kind.as_deref(), rows[0].rule.as_deref()),
        (Some("note"), Some("unchanged"))
    );
}

#[test]
fn nothing_recorded_is_an_answer_with_what_is_missing() {
    let mut tape = Tape::new(1200);
    let slow = tape.query(7, "select * from app.orders");
    let session = tape.session(1, "web");
    tape.seen(session, 0..900, 10, &[("statement", slow)]);
    tape.seen(session, 900..1200, 1, &[("statement", slow)]);
    tape.setting(895, "log_connections", "off", "on");
    let rows = ask(&tape.finish(), &window(800, 1100), 1200);
    assert_eq!(causes(&rows), []);
    assert_eq!(
        rows[0].explanation.as_deref(),
        Some(
            "nothing recorded explains that query 7 got more load; this history has no change of the schema (only the extension on a primary sees them)"
        )
    );
    assert_eq!(
        (rows[0].rule.as_deref(), rows[0].explains.as_deref()),
        (Some("unexplained"), Some("7"))
    );
}

#[test]
fn waits_for_locks_follow_from_their_holder_and_from_no_change_of_the_schema() {
    let mut tape = Tape::new(600);
    let update = tape.query(7, "update app.orders set n = n + 1 where id = $1");
    let lock = tape.wait("Lock", "transactionid");
    let holder = tape.session(100, "psql");
    tape.seen(
        holder,
        290..500,
        1,
        &[("state", IDLE_IN_TRANSACTION), ("statement", update)],
    );
    for pid in 1..=3 {
        let session = tape.session(pid, "web");
        tape.seen(session, 0..300, 30, &[("statement", update)]);
        let waits = [
            ("statement", update),
            ("wait", lock),
            ("blocked_by", holder),
        ];
        tape.seen(session, 302..500, 1, &waits);
        for second in 302..500 {
            let row = [
                ("at", second),
                ("waiter", session),
                ("blocker", holder),
                ("hard", 1),
                ("locktype", RELATION),
                ("lock_database", 5),
                ("field1", 777),
                ("modes_held", 1 << 7),
                ("mode_requested", 5),
            ];
            tape.builder.row("lock", &row).unwrap();
        }
    }
    tape.changed(250, "ALTER TABLE", "table", "app.orders", "");
    tape.changed(301, "DROP INDEX", "index", "app.orders_n", "on app.orders");
    let rows = ask(&tape.finish(), &window(200, 500), 600);
    assert_eq!(causes(&rows), [cause("idle in transaction", "100", 302)]);
    assert_eq!(rows[0].application.as_deref(), Some("psql"));
}

#[test]
fn a_query_that_clients_did_not_send_before_is_theirs() {
    let mut tape = Tape::new(600);
    let (old, new) = (
        tape.query(7, "select 1"),
        tape.query(-9, "select * from report"),
    );
    let session = tape.session(1, "web");
    tape.seen(session, 0..600, 3, &[("statement", old)]);
    let session = tape.session(2, "reports");
    tape.seen(session, 410..600, 1, &[("statement", new)]);
    for (minute, calls) in [
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 3),
        (8, 4),
        (9, 4),
        (10, 4),
    ] {
        let times = [("time", minute * 60_000), ("elapsed_ms", 60_000)];
        if calls > 0 {
            let entry = tape
                .builder
                .intern("entry", &[("query_id", -9), ("toplevel", 1)])
                .unwrap();
            let counted = [
                ("entry", entry),
                ("calls", calls),
                ("total_exec_time", calls * 1_000_000),
            ];
            let row = [&times[..], &counted].concat();
            tape.builder.row("statement_stats", &row).unwrap();
        }
        tape.builder.row("statement_stats", &times).unwrap();
    }
    tape.changed(405, "ALTER TABLE", "table", "app.orders", "");
    tape.marker(400, "mark", &[("detail", "deploy 1.4")]);
    tape.marker(402, "release", &[("detail", "1.4, before 1.3")]);
    let rows = ask(&tape.finish(), &window(300, 600), 600);
    assert_eq!(
        causes(&rows),
        [
            cause("new query", "-9", 410),
            cause("mark", "1.4, before 1.3", 402),
            cause("mark", "deploy 1.4", 400)
        ]
    );
    assert_eq!(
        rows[0].explanation.as_deref(),
        Some("clients began to run query -9, from 0.00 to 0.63 sessions")
    );
}

/// Key, rule, load before and after, and share, in ten-thousandths, of the keys of a dimension.
fn keys_of(rows: &[ChangesRow], dimension: &str) -> Vec<(String, String, [i128; 3])> {
    let own = rows
        .iter()
        .filter(|row| row.dimension.as_deref() == Some(dimension));
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or("").to_string();
    let figures = |row: &ChangesRow| [row.before, row.after, row.pct].map(|one| one.unwrap().0);
    own.map(|row| (text(&row.key), text(&row.rule), figures(row)))
        .collect()
}

#[test]
fn the_keys_of_tags_split_the_whole_difference() {
    let mut tape = Tape::new(600);
    for (pid, tags, seconds, step) in [
        (1, "controller=orders,action=show", 0..300, 10),
        (1, "controller=orders,action=show", 300..600, 1),
        (2, "job=mail", 0..600, 2),
        (3, "", 300..600, 3),
        (4, "(other)", 300..600, 5),
        (5, "controller=a%2Cb", 0..300, 2),
    ] {
        let mut values = vec![("query_id", 7)];
        if !tags.is_empty() {
            values.push(("tags", tape.name(tags)));
        }
        let statement = tape.builder.intern("statement", &values).unwrap();
        let session = tape.session(pid, "web");
        tape.seen(session, seconds, step, &[("statement", statement)]);
    }
    let snapshot = tape.finish();
    let rows = ask(&snapshot, &window(300, 600), 600);
    let key = |key: &str, rule: &str, figures: [i128; 3]| {
        let [key, rule] = [key, rule].map(str::to_string);
        (key, rule, figures)
    };
    // The load rose from 1.1 to 2.0333.
    assert_eq!(
        keys_of(&rows, "tag:controller"),
        [
            key("orders", "more", [1_000, 10_000, 964_320]),
            key("a,b", "gone", [5_000, 0, -535_733]),
            key("(null)", "more", [5_000, 8_333, 357_120]),
            key("(other)", "new", [0, 2_000, 214_293]),
        ]
    );
    assert_eq!(
        keys_of(&rows, "tag:job"),
        [
            key("(null)", "more", [6_000, 13_333, 785_707]),
            key("(other)", "new", [0, 2_000, 214_293]),
            key("mail", "same", [5_000, 5_000, 0]),
        ]
    );
    let dimensions = rows.iter().filter_map(|row| row.dimension.as_deref());
    let mut tags: Vec<&str> = dimensions.filter(|name| name.starts_with("tag:")).collect();
    tags.dedup();
    assert_eq!(tags, ["tag:action", "tag:controller", "tag:job"]);

    // The next question is about the tag, and the rest has a row of its own.
    let one = Changes {
        n: Some(1),
        ..window(300, 600)
    };
    let rows = ask(&snapshot, &one, 600);
    assert_eq!(
        keys_of(&rows, "tag:controller"),
        [
            key("orders", "more", [1_000, 10_000, 964_320]),
            key("(other)", "more", [10_000, 10_333, 35_680]),
        ]
    );
    let next = |rows: &[ChangesRow], key: &str| {
        let mut own = rows
            .iter()
            .filter(|row| row.dimension.as_deref() == Some("tag:controller"));
        let row = own.find(|row| row.key.as_deref() == Some(key)).unwrap();
        let next = row.next.as_deref().map(str::to_string);
        next.map(|next| next.split_once(" --since ").unwrap().0.to_string())
    };
    assert_eq!(next(&rows, "(other)"), None);
    let rows = ask(&snapshot, &window(300, 600), 600);
    let top = |tags: &str| Some(format!("tacho top query_id --tags={tags}"));
    assert_eq!(next(&rows, "orders"), top("'controller=orders'"));
    assert_eq!(next(&rows, "a,b"), top("'controller=a%2Cb'"));
    assert_eq!(next(&rows, "(null)"), top("'controller=(null)'"));
    let row = rows
        .iter()
        .find(|row| row.key.as_deref() == Some("orders"))
        .unwrap();
    let text = "tag controller orders: 0.90 sessions more, from 0.10 to 1.00 sessions";
    assert_eq!(row.explanation.as_deref(), Some(text));
}

/// Sessions that do this and that, without any order.
fn mixed() -> Snapshot {
    let mut tape = Tape::new(600);
    let mut state: u64 = 42;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    };
    let queries: Vec<i64> = (1..=23).map(|id| tape.query(id, "")).collect();
    let waits = [
        tape.wait("IO", "DataFileRead"),
        tape.wait("LWLock", "WALWrite"),
        0,
    ];
    let sessions: Vec<i64> = (1..=13)
        .map(|pid| tape.session(pid, ["web", "batch", "psql"][pid as usize % 3]))
        .collect();
    for second in 0..600 {
        for session in &sessions {
            if next(3) > 0 {
                let late = i64::from(second > 300) * 5;
                let values = [
                    ("state", ACTIVE),
                    ("statement", queries[((next(18) + late) % 23) as usize]),
                    ("wait", waits[next(3) as usize]),
                ];
                tape.builder.sample(second, *session, &values).unwrap();
            }
        }
    }
    tape.finish()
}

#[test]
fn the_figures_of_each_dimension_add_up_exactly() {
    let snapshot = mixed();
    for n in [Some(1), Some(3), Some(7), None] {
        for (since, until) in [(301, 600), (290, 433), (17, 31)] {
            let request = Changes {
                n,
                ..window(since, until)
            };
            let rows = ask(&snapshot, &request, 600);
            let sums = |dimension: &str| {
                let own = rows.iter().filter(|row| {
                    row.kind.as_deref() == Some("effect")
                        && row.dimension.as_deref() == Some(dimension)
                });
                own.fold([0; 4], |mut sums, row| {
                    let figures = [row.before, row.after, row.difference, row.pct];
                    for (sum, figure) in sums.iter_mut().zip(figures) {
                        *sum += figure.unwrap_or(Numeric(0)).0;
                    }
                    sums
                })
            };
            let all = sums("query_id");
            assert_eq!(all[1] - all[0], all[2], "{n:?} {since}");
            assert_eq!(all[3], 1_000_000, "{n:?} {since}");
            for dimension in [
                "wait_event",
                "application",
                "username",
                "client_addr",
                "database",
            ] {
                assert_eq!(sums(dimension), all, "{n:?} {since} {dimension}");
            }
        }
    }
}

#[test]
fn the_same_window_twice_is_the_same_answer() {
    let asked = Changes {
        n: None,
        ..window(301, 600)
    };
    assert_eq!(ask(&mixed(), &asked, 600), ask(&mixed(), &asked, 600));
}

/// A query of orders that waits for its blocks from second 300 on.
fn orders_read_from_300() -> Tape {
    let mut tape = Tape::new(600);
    let select = tape.query(7, "select * from app.orders");
    let read = tape.wait("IO", "DataFileRead");
    slower_from_300(&mut tape, select, read);
    tape
}

#[test]
fn commits_wait_for_a_replica_that_confirms_nothing() {
    let mut tape = Tape::new(600);
    let update = tape.query(7, "update app.orders set n = 1");
    let wait = tape.wait("IPC", "SyncRep");
    slower_from_300(&mut tape, update, wait);
    tape.measured(600, |_| vec![]);
    let [paris, rome, oslo] = ["paris", "rome", "oslo"].map(|name| tape.name(name));
    for second in 0..600 {
        let is_busy = second >= 298;
        // Oslo is always a little behind, and confirms.
        let lag_of_oslo = if is_busy {
            4000 + second * 37 % 1000
        } else {
            0
        };
        let lag_of_paris = if is_busy { 5000 + second } else { 0 };
        for (name, lag) in [(paris, lag_of_paris), (rome, 0), (oslo, lag_of_oslo)] {
            let row = [("time", second * 1000), ("object", name)];
            let row = [&row[..], &[("replica_flush_lag", lag + 1)]].concat();
            tape.builder.row("server_replica", &row).unwrap();
        }
    }
    tape.setting(250, "synchronous_commit", "off", "on");
    tape.setting(301, "wal_buffers", "1", "2");
    let rows = ask(&tape.finish(), &window(200, 600), 600);
    assert_eq!(causes(&rows)[0], cause("replica lost", "paris", 298));
    assert!(rows.iter().all(|row| row.key.as_deref() != Some("oslo")));
}

#[test]
fn an_old_snapshot_explains_calls_that_read_more() {
    let mut tape = Tape::of(0..600, |second| {
        let oldest = match second {
            0..295 => second * 100,
            _ => 29_500,
        };
        vec![
            ("next_xid", second * 100 + 3),
            ("oldest_xmin", oldest + 1),
            ("oldest_xmin_pid", 90),
        ]
    });
    let take = tape.query(7, "delete from tasks where id = $1");
    let analyst = tape.session(90, "analyst");
    let idle = [("state", IDLE_IN_TRANSACTION)];
    tape.seen(analyst, 295..600, 1, &idle);
    slower_from_300(&mut tape, take, 0);
    tape.counted(7, 1..6, [600, 1, 10]);
    tape.counted(7, 6..11, [600, 100, 400]);
    tape.setting(299, "work_mem", "4MB", "5MB");
    let rows = ask(&tape.finish(), &window(200, 600), 600);
    assert_eq!(causes(&rows), [cause("old snapshot", "90", 295)]);
    assert_eq!(rows[0].application.as_deref(), Some("analyst"));
}

/// From second 300 on a query of orders reads more blocks. In minute 5 each of `tables` was analyzed
/// by a statement of its own, which no sample has seen.
fn analyzed(tables: impl Iterator<Item = String>) -> Snapshot {
    let mut tape = Tape::new(600);
    let select = tape.query(7, "select * from app.orders");
    slower_from_300(&mut tape, select, 0);
    tape.counted(7, 1..6, [5, 1, 10]);
    tape.counted(7, 6..11, [5, 9000, 400]);
    for (id, table) in (1000..).zip(tables) {
        tape.query(id, &format!("analyze {table}"));
        tape.counted(id, 5..6, [1, 10, 0]);
    }
    tape.finish()
}

#[test]
fn a_notice_counts_statements_beyond_a_hundred() {
    let of_orders = (0..150).map(|_| "app.orders".to_string());
    let snapshot = analyzed(of_orders);
    let catalog = catalog();
    let context = Context::new(&catalog, 600 * SECOND);
    let answer = snapshot.changes(&window(200, 600), &context).unwrap();
    let rules: Vec<_> = causes(&answer.rows).into_iter().map(|c| c.0).collect();
    assert_eq!(rules, ["analyzed"; 5]);
    let notices: Vec<&str> = answer.notices.iter().map(|n| &*n.message).collect();
    assert_eq!(
        notices,
        ["150 statements changed tables of slower queries; only 100 were considered"]
    );

    // Statements of other tables cost nothing, and need no notice.
    let others = (0..150).map(|n| format!("app.other_{n}"));
    let snapshot = analyzed(others.chain(["app.orders".to_string()]));
    let answer = snapshot.changes(&window(200, 600), &context).unwrap();
    let rules: Vec<_> = causes(&answer.rows).into_iter().map(|c| c.0).collect();
    assert_eq!(rules, ["analyzed"]);
    assert!(answer.notices.is_empty());
}

#[test]
fn queries_wait_for_cpus_that_other_processes_took() {
    let mut tape = Tape::new(600);
    let select = tape.query(7, "select * from orders");
    for pid in 1..=3 {
        let session = tape.session(pid, "web");
        let runnable = tape.schema.value("cpu", "runnable").unwrap();
        let values = [("statement", select), ("cpu", runnable)];
        tape.seen(session, pid..300, 40, &values);
        tape.seen(session, 300..600, 1, &values);
    }
    tape.measured(600, |second| {
        let tasks = if second < 298 { 2 } else { 9 };
        vec![("tasks_runnable", tasks + 1)]
    });
    tape.counted(7, 1..6, [600, 1, 10]);
    tape.counted(7, 6..11, [600, 100, 10]);
    tape.setting(299, "random_page_cost", "4", "3");
    let rows = ask(&tape.finish(), &window(200, 600), 600);
    let first = (&rows[0].rule, rows[0].started.unwrap() / SECOND);
    assert_eq!(first, (&Some("cpu taken".into()), 298));
}

#[test]
fn a_normal_window_a_week_ago_is_compared() {
    const WEEK: i64 = 7 * 86_400;
    let of_week = |second: i64| second..second + 300;
    let mut tape = Tape::of(of_week(0).chain(of_week(WEEK)), |_| Vec::new());
    let select = tape.query(7, "select * from app.orders");
    let session = tape.session(1, "web");
    tape.seen(session, of_week(0), 50, &[("statement", select)]);
    tape.seen(session, of_week(WEEK), 1, &[("statement", select)]);
    let request = Changes {
        before_since: Some(0),
        before_until: Some(300 * SECOND),
        ..window(WEEK, WEEK + 300)
    };
    let rows = ask(&tape.finish(), &request, WEEK + 300);
    let query = rows
        .iter()
        .find(|row| row.dimension.as_deref() == Some("query_id"));
    let query = query.unwrap();
    assert_eq!(
        (query.before, query.after),
        (Some(Numeric(200)), Some(Numeric(10_000)))
    );
}

#[test]
fn a_setting_of_a_database_is_a_cause_in_that_database() {
    let of = |database: &str| {
        let mut tape = orders_read_from_300();
        let detail = format!("ALTER DATABASE {database} SET work_mem");
        tape.changed(299, "ALTER DATABASE", "database", database, &detail);
        causes(&ask(&tape.finish(), &window(200, 600), 600))
    };
    assert_eq!(of("shop"), [cause("role setting", "shop", 299)]);
    assert_eq!(of("reporting"), []);
}

#[test]
fn a_change_that_ten_calls_have_seen_is_no_cause() {
    // An index is dropped by a transaction that begins and commits at some seconds.
    let of = |calls: i64, [begin, commit]: [i64; 2]| {
        let mut tape = orders_read_from_300();
        tape.counted(7, 1..6, [calls, 1, 10]);
        tape.counted(7, 6..11, [calls, 9000, 10]);
        let kind = tape.schema.value("marker", "schema changed").unwrap();
        let times = [
            ("time", commit * 1000),
            ("since", begin * 1000),
            ("kind", kind),
        ];
        let texts = [
            ("command", "DROP INDEX"),
            ("object_class", "index"),
            ("object_name", "app.o"),
            ("detail", "on app.orders"),
        ];
        let texts = texts.map(|(column, text)| (column, tape.name(text)));
        tape.builder
            .row("marker", &[&times[..], &texts].concat())
            .unwrap();
        causes(&ask(&tape.finish(), &window(200, 600), 600))
    };
    // Twenty seconds before: two calls a second, and one in a minute.
    assert_eq!(of(120, [280, 280]), []);
    assert_eq!(of(1, [280, 280]), [cause("index dropped", "app.o", 280)]);
    // No call saw it before the commit.
    assert_eq!(of(120, [280, 299]), [cause("index dropped", "app.o", 299)]);
}

#[test]
fn a_nightly_batch_is_no_change() {
    const DAY: i64 = 86_400;
    let answer = |days: std::ops::Range<i64>, given: bool| {
        let seconds = (0..2).flat_map(|day| day * DAY..day * DAY + 600);
        let mut tape = Tape::of(seconds, |_| Vec::new());
        let batch = tape.query(7, "update app.orders set n = 1");
        let session = tape.session(1, "batch");
        for day in days {
            let at = day * DAY;
            tape.seen(session, at + 300..at + 600, 1, &[("statement", batch)]);
        }
        let asked = Changes {
            before_since: given.then_some(DAY * SECOND),
            ..window(DAY + 300, DAY + 600)
        };
        let rows = ask(&tape.finish(), &asked, 2 * DAY);
        rows[0].rule.as_deref().map(str::to_string)
    };
    assert_eq!(answer(0..2, false).as_deref(), Some("usual"));
    assert_eq!(answer(1..2, false).as_deref(), Some("new query"));
    assert_eq!(answer(0..2, true).as_deref(), Some("new query"));
}

#[test]
fn a_crash_is_noted_although_the_load_is_less() {
    let mut tape = Tape::new(600);
    let select = tape.query(7, "select 1");
    let session = tape.session(1, "web");
    tape.seen(session, 0..300, 1, &[("statement", select)]);
    tape.marker(100, "start", &[("detail", "server started")]);
    let detail = "the server crashed and recovered";
    tape.marker(302, "crash recovery", &[("detail", detail)]);
    let rows = ask(&tape.finish(), &window(300, 600), 600);
    let notes: Vec<_> = rows
        .iter()
        .filter(|row| row.kind.as_deref() == Some("note"))
        .map(|row| (row.rule.as_deref().unwrap(), row.started))
        .collect();
    assert_eq!(
        notes,
        [("server started", Some(302 * SECOND)), ("unchanged", None)]
    );
    assert_eq!(
        rows[0].explanation.as_deref(),
        Some("crash recovery: the server crashed and recovered")
    );
}
