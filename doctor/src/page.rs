//! The commands that show the page of a history, on this host or from a desk.

use rustix::fs::Access;
use std::path::Path;
use tacho_record::finding::Finding;

const PROGRAM: &str = "tacho-web";
/// The port of the page, unless `--listen` names another.
const PORT: u16 = 8432;

/// The commands, or how to get the program that is missing.
pub fn page_finding(port: &str) -> Finding {
    let what = "page";
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    match is_installed() {
        true => {
            let tunnel = format!("ssh -L {PORT}:127.0.0.1:{PORT} {host}");
            let detail = format!(
                "run: tacho web; from another machine: {tunnel}, then open the address that tacho web prints"
            );
            Finding::works(what, detail)
        }
        false => {
            let conninfo = format!("host={host} port={port} dbname=postgres user=USER");
            Finding::partial(what, format!("{PROGRAM} is not installed here")).help(format!(
                "on a machine that has it: tacho web --dsn \"{conninfo}\""
            ))
        }
    }
}

/// True if the program of the page is beside this one or in `PATH`.
fn is_installed() -> bool {
    let beside = std::env::current_exe().ok();
    let beside = beside
        .as_deref()
        .and_then(Path::parent)
        .map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = beside.into_iter().chain(std::env::split_paths(&path));
    let mut programs = places.map(|place| place.join(PROGRAM));
    programs.any(|program| rustix::fs::access(&program, Access::EXEC_OK).is_ok())
}
