//! A fixed history: ten minutes of a shop on four CPUs. From 00:05:00 to
//! 00:05:40 forty sessions wait for a transaction of process 500; from 00:07:00
//! to 00:07:30 nothing is recorded.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

pub const SINCE: &str = "2026-01-01T00:00:00Z";
pub const UNTIL: &str = "2026-01-01T00:10:00Z";
/// PID of the head of the queue.
pub const ROOT: &str = "500";
/// A text that would control a terminal.
pub const HOSTILE: &str = "select '\u{1b}]0;mine\u{7}\u{1b}[2J\u{9b}31m \u{202e}evil' -- 漢字";

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let name = format!("tacho-live-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// The history, called `shop`.
    pub fn shop(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        scratch.import();
        scratch
    }

    pub fn tape(&self) -> PathBuf {
        self.0.join("shop")
    }

    /// A history called `shop`: after twelve of twenty minutes an index is dropped, and query 81
    /// runs by plan 502 instead of 501, a thousand times as long.
    pub fn dropped(name: &str) -> Scratch {
        Scratch::dropped_with(name, &[])
    }

    /// The same, with the trees of both plans: a custom one with a bitmap scan, and a generic one. The
    /// server takes advice.
    pub fn explained(name: &str) -> Scratch {
        Scratch::dropped_with(name, &[("plan_tree", plan_trees())])
    }

    fn dropped_with(name: &str, more: &[(&str, String)]) -> Scratch {
        let scratch = Scratch::new(name);
        let [sessions, statements] = dropped();
        let marker = "time,kind,since,until,command,object_class,object_oid,object_name,detail,database,username,application\n\
            2026-01-01T00:12:00Z,schema changed,2026-01-01T00:12:00Z,2026-01-01T00:12:00Z,DROP INDEX,index,16500,app.orders_customer,on app.orders,shop,deploy,migrate\n";
        scratch.import_of(sessions, marker.to_string(), statements, more);
        scratch
    }

    /// The history with measurements of the server: deadlocks, forced checkpoints, and a slot without a
    /// process. With `critical` the archive has failed once, too.
    pub fn alarmed(name: &str, critical: bool) -> Scratch {
        let scratch = Scratch::new(name);
        let mut server = "time,elapsed_ms,checkpoints_requested,wal_archive_failed\n".to_string();
        let mut database = "time,object,xact_commit,deadlocks\n".to_string();
        let mut slot = "time,object,slot_active,slot_retained\n".to_string();
        for second in (0..600).step_by(10).filter(is_recorded) {
            let (time, once) = (time(second), u32::from(second == 320));
            let failed = once * u32::from(critical);
            writeln!(server, "{time},10000,{},{failed}", 2 * once).unwrap();
            writeln!(database, "{time},shop,500,{}", 8 * once).unwrap();
            writeln!(slot, "{time},left,0,3221225472").unwrap();
        }
        let more = [
            ("server", server),
            ("server_database", database),
            ("server_slot", slot),
        ];
        scratch.import_of(sessions(0..600), markers(), statements(), &more);
        scratch
    }

    /// A history called `shop` of ten minutes: two sessions with tags and one without are active.
    pub fn tagged(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        let mut sessions =
            "time,tick,pid,backend_start,state,cpu,query_id,query_text,tags\n".to_string();
        for tick in 1..=600 {
            let (minute, second) = (tick / 60, tick % 60);
            for (pid, tags) in [
                (1, "controller=orders,action=show"),
                (2, "job=mail"),
                (3, ""),
            ] {
                let line = format!(
                    "2026-01-01T00:{minute:02}:{second:02}Z,{tick},{pid},2026-01-01T00:00:00Z,active,running,{pid},select {pid},\"{tags}\"\n"
                );
                sessions.push_str(&line);
            }
        }
        scratch.import_of(sessions, markers(), statements(), &[]);
        scratch
    }

    pub fn import(&self) {
        self.import_of(sessions(0..600), markers(), statements(), &[]);
    }

    /// Imports sessions, markers and statements, and rows of other kinds.
    fn import_of(
        &self,
        sessions: String,
        markers: String,
        statements: String,
        more: &[(&str, String)],
    ) {
        let write = |name: &str, text: String| {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let with = |kind: &str, text: String| {
            let path = write(&format!("{kind}.csv"), text);
            format!("--with={kind}={path}")
        };
        let mut args = vec![
            "import".to_string(),
            "sessions".into(),
            write("sessions.csv", sessions),
            "--tape".into(),
            self.tape().display().to_string(),
            "--node=00000000000000aa".into(),
            with("markers", markers),
            with("statements", statements),
        ];
        let more = more.iter();
        args.extend(more.map(|(kind, text)| with(kind, text.clone())));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = tacho(&args);
        assert!(output.status.success(), "{output:?}");
    }
}

impl Scratch {
    /// Appends a minute.
    pub fn append(&self) {
        let path = self.0.join("more.csv");
        std::fs::write(&path, sessions(600..660)).unwrap();
        let (path, tape) = (
            path.display().to_string(),
            self.tape().display().to_string(),
        );
        let import = ["import", "sessions", &path, "--tape", &tape, "--append"];
        let output = tacho(&[&import[..], &["--node=00000000000000aa"]].concat());
        assert!(output.status.success(), "{output:?}");
    }
}

impl Scratch {
    /// Damages the sealed file.
    pub fn damage(&self) {
        let files = std::fs::read_dir(self.tape()).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        let tape = files.find(|path| path.extension().is_some_and(|e| e == "tape"));
        let tape = tape.unwrap();
        let mut bytes = std::fs::read(&tape).unwrap();
        bytes[400..800].fill(0);
        std::fs::write(&tape, &bytes).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program `tacho` in the same directory; the workspace's tests have built
/// it. Builds it if it is missing.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let directory = test.ancestors().nth(2).unwrap();
        let program = directory.join("tacho");
        if !program.exists() {
            let release: &[&str] = match directory.ends_with("release") {
                true => &["--release"],
                false => &[],
            };
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--locked", "--package", "tacho"]);
            assert!(build.args(release).status().unwrap().success());
        }
        program
    })
}

pub fn tacho(args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(args).env("TZ", "UTC").output().unwrap()
}

fn time(second: u32) -> String {
    format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60)
}

fn is_recorded(second: &u32) -> bool {
    !(420..450).contains(second)
}

/// A line of a session: PID, application, state, wait, query.
fn session(out: &mut String, second: u32, who: (u32, &str), state: &str, wait: &str, query: u32) {
    let (pid, application) = who;
    let text = match query {
        11 => "select * from item where id = $1",
        12 => "update item set qty = qty - $1 where id = $2",
        13 => HOSTILE,
        _ => "update stock set n = 0",
    };
    let blocked_by = if wait.starts_with("Lock") { ROOT } else { "" };
    writeln!(
        out,
        "{},{pid},2025-12-31T00:00:00Z,shop,ann,{application},{state},{wait},{query},\"{text}\",{blocked_by},4",
        time(second)
    )
    .unwrap();
}

fn sessions(seconds: std::ops::Range<u32>) -> String {
    let mut out = "time,pid,backend_start,database,username,application,state,wait_event_type,\
                   wait_event,query_id,query_text,blocked_by,vcpus\n"
        .to_string();
    for second in seconds.filter(is_recorded) {
        session(&mut out, second, (101, "web"), "active", ",", 11);
        if second % 2 == 0 {
            session(
                &mut out,
                second,
                (102, "web"),
                "active",
                "IO,DataFileRead",
                11,
            );
        }
        if second % 4 == 0 {
            session(
                &mut out,
                second,
                (103, "web"),
                "active",
                "LWLock,WALWrite",
                12,
            );
            session(&mut out, second, (104, "report"), "active", ",", 13);
        }
        if (300..340).contains(&second) {
            let idle = "idle in transaction";
            session(
                &mut out,
                second,
                (500, "batch"),
                idle,
                "Client,ClientRead",
                14,
            );
            for pid in 600..640 {
                session(
                    &mut out,
                    second,
                    (pid, "web"),
                    "active",
                    "Lock,transactionid",
                    12,
                );
            }
        }
    }
    out
}

fn markers() -> String {
    let (set, from, to) = (time(298), time(420), time(450));
    format!(
        "time,kind,since,until,detail\n{set},settings changed,,,work_mem: 4MB -> 64MB\n\
         {to},gap,{from},{to},writer was slow\n"
    )
}

/// A minute of each query: 60 calls of 2 ms.
fn statements() -> String {
    let mut out = "time,elapsed_ms,user_oid,username,database_oid,database,query_id,toplevel,\
                   calls,total_exec_time_ms,rows\n"
        .to_string();
    for second in (60..=600).step_by(60) {
        // A pass was made, even if nothing was executed.
        writeln!(out, "{},60000,,,,,,,,,", time(second.min(599))).unwrap();
        for query in [11, 12] {
            writeln!(
                out,
                "{},60000,10,ann,5,shop,{query},1,60,120,60",
                time(second.min(599))
            )
            .unwrap();
        }
    }
    out
}

/// Sessions and statements of [`Scratch::dropped`].
fn dropped() -> [String; 2] {
    let mut sessions =
        "time,pid,backend_start,backend_type,database,username,application,state,cpu,query_id,query_text,plan_id,vcpus\n"
            .to_string();
    let mut line = |second: u32, pid: u32, query: u32, text: &str, plan: &str| {
        let time = time(second);
        writeln!(
            sessions,
            "{time},{pid},2025-12-31T00:00:00Z,client backend,shop,app,web,active,running,{query},{text},{plan},4"
        )
        .unwrap();
    };
    for second in 0..1200 {
        let (busy, plan) = match second {
            720.. => (4, "502"),
            second if second % 5 == 0 => (1, "501"),
            _ => (0, ""),
        };
        for pid in 200..200 + busy {
            line(
                second,
                pid,
                81,
                "select * from app.orders where customer = $1",
                plan,
            );
        }
        line(second, 300, 82, "select * from app.item", "");
    }
    let mut statements =
        "time,elapsed_ms,user_oid,username,database_oid,database,query_id,toplevel,calls,total_exec_time_ms,rows\n"
            .to_string();
    for second in (60..=1200).step_by(60) {
        let (time, total) = (time(second), if second > 720 { 126_000 } else { 120 });
        writeln!(statements, "{time},60000,,,,,,,,,").unwrap();
        writeln!(
            statements,
            "{time},60000,10,app,5,shop,81,1,600,{total},1800"
        )
        .unwrap();
    }
    [sessions, statements]
}

/// A node of a tree: level, kind, and texts with their kinds.
type TreeNode<'a> = (u8, u8, &'a [(u8, &'a str)]);

/// Trees of the plans of [`Scratch::explained`] (`docs/format.md`).
fn plan_trees() -> String {
    let text = |out: &mut Vec<u8>, kind: u8, text: &str| {
        out.extend([kind, u8::try_from(text.len()).unwrap()]);
        out.extend(text.as_bytes());
    };
    let mut trees = "time,plan_id,query_id,database,username,tree\n".to_string();
    let mut tree = |second: u32, plan: &str, flags: u8, nodes: &[TreeNode]| {
        let mut bytes = vec![1, flags];
        for (depth, kind, texts) in nodes {
            bytes.extend([*depth, *kind, u8::from(*depth > 0), 0, 0, 7, 8, 0, 100]);
            texts
                .iter()
                .for_each(|(kind, one)| text(&mut bytes, *kind, one));
            bytes.push(0);
        }
        let tree = String::from_utf8(bytes).unwrap();
        writeln!(trees, "{},{plan},81,shop,app,\"{tree}\"", time(second)).unwrap();
    };
    let orders = [(1, "orders"), (2, "app"), (3, "orders")];
    let [heap, all] = [15, 21].map(|kind| [&orders[..], &[(kind, "customer = ?")]].concat());
    let index = [(4, "orders_customer"), (14, "customer = ?")];
    tree(1, "501", 8 + 16 + 32, &[(0, 14, &heap), (1, 13, &index)]);
    tree(720, "502", 4 + 16 + 32, &[(0, 9, &all)]);
    trees
}
