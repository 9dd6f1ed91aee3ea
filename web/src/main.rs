//! `tacho-web`: answers over HTTP, for the page and for other programs. It builds on
//! `tacho-source` and only reads. Exit codes: 0 ended by a signal, or metrics are
//! printed, 1 failure, 2 usage.

mod access;
mod alarms;
mod api;
mod desk;
mod findings;
mod fleet;
mod follower;
#[cfg(test)]
mod fuzz_tests;
mod guard;
mod lanes;
mod live;
mod lock;
mod metrics;
mod objects;
mod openapi;
mod options;
mod page;
mod places;
mod problem;
mod routes;
mod saved;
mod scrape;
mod secret;
mod serve;
mod shared;
mod slow;
mod stream;
mod texts;
mod tls;

use clap::Parser;
use options::Options;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use tacho_source::Failure;
use tacho_source::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure.lines());
            ExitCode::from(failure.code)
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    if options.metrics {
        return print_metrics(options);
    }
    let listen = options.listen()?;
    let token = options.token()?;
    let base = options.base()?;
    if options.print_url {
        return match &token {
            Some(token) => announce(&serve::address(
                options.scheme(),
                &listen,
                &base,
                Some(token),
            )),
            None => Err(Failure::usage(
                "--print-url needs --token-file: without it each start makes a new token"
                    .to_string(),
            )
            .hint("Name a file that holds it: --token-file.")),
        };
    }
    let tls = tls::Tls::new(options)?.map(Arc::new);
    let source = options.source()?;
    for wrong in source.check()? {
        complain(&wrong.warning());
    }
    let threads = |e| Failure::io("start threads", &e);
    try_threads().map_err(threads)?;
    let runtime = tokio::runtime::Runtime::new().map_err(threads)?;
    runtime.block_on(async {
        let listener = serve::Listener::bind(&listen).await?;
        let door = guard::Door::new(options, token, &listen, listener.port())?;
        let reloads = tls::Reloads::new(tls.as_ref())?;
        announce(&serve::address(
            options.scheme(),
            &listener.listens(listen),
            &base,
            door.token(),
        ))?;
        let api = api::Api::new(options, source, door);
        let limits = serve::Limits::new(options, base, tls);
        tokio::select! {
            () = listener.serve(routes::router(Arc::clone(&api)), &limits) => (),
            () = api.desk().tidy() => (),
            () = reloads.run() => (),
        }
        Ok(())
    })
}

/// Starts as many threads at once as the runtime does, because the runtime panics if
/// it gets none.
fn try_threads() -> std::io::Result<()> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let gate = std::sync::Mutex::new(());
    std::thread::scope(|scope| {
        let shut = gate.lock();
        for _ in 0..count {
            std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()))?;
        }
        drop(shut);
        Ok(())
    })
}

/// Prints the metrics of all servers for a textfile collector, even if a directory is
/// wrong.
fn print_metrics(options: &Options) -> Result<(), Failure> {
    let source = options.source()?;
    let checked = source.check();
    let servers = scrape::Scraper::new(source).scrape();
    let text = metrics::of_servers(&servers, metrics::Format::Text);
    say(&text.map_err(|e| Failure::io("write metrics", &std::io::Error::other(e)))?)?;
    match checked?.into_iter().next() {
        Some(first) => Err(first),
        None => Ok(()),
    }
}

/// Prints the address to open.
fn announce(address: &str) -> Result<(), Failure> {
    say(&format!("{address}\n"))
}

/// Writes messages to standard error.
pub fn complain(lines: &str) {
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let told = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    told.map_err(|e| Failure::io("write output", &e))
}
