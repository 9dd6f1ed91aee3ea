//! A connection on which every wait has a deadline.

use crate::error::{Error, Result};
use crate::options::{Options, with_connect_timeout};
use crate::password;
use crate::sys::{Handle, Kind, Outcome, value_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// SQLSTATE of a question that was cancelled or ran out of time.
const CANCELED: &str = "57014";
/// Interval of checks for cancellation.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Time for the server to end a cancelled question. After that the connection is
/// given up.
const GRACE: Duration = Duration::from_millis(500);
/// TCP keepalive: the first probe follows after this idle time, the next ones at this
/// interval. Three probes without a reply end the connection. The options of the
/// connection override these values.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(20);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_COUNT: u32 = 3;
/// Sent data that is not acknowledged for this time ends the connection.
const USER_TIMEOUT_MS: u32 = 30_000;

/// Deadline of a call.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    deadline: Instant,
    time: Duration,
    cancel: &'a AtomicBool,
}

impl<'a> Limit<'a> {
    /// A deadline at `time` from now on. Setting `cancel` ends the call earlier.
    pub fn within(time: Duration, cancel: &'a AtomicBool) -> Limit<'a> {
        Limit {
            deadline: Instant::now() + time,
            time,
            cancel,
        }
    }

    /// Time for which the caller may wait before it calls this again, at most
    /// `CANCEL_CHECK_INTERVAL`. Fails if time is up, or if the call was cancelled.
    pub(crate) fn wait(&self) -> Result<Duration> {
        if self.is_cancelled() {
            return Err(Error::new(CANCELED, "canceled"));
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.is_over());
        }
        Ok(left.min(CANCEL_CHECK_INTERVAL))
    }

    /// The time given to [`Limit::within`].
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// True if the caller has set `cancel`.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> Error {
        let ms = self.time.as_millis();
        Error::new(CANCELED, format!("server did not answer within {ms} ms"))
    }
}

/// A connection. After it is lost, or an answer was too late, every question fails
/// with `08003`: open another connection.
pub struct Connection {
    handle: Option<Handle>,
    host: String,
}

impl Connection {
    /// Connects; looks up names and gets the password again each time.
    ///
    /// # Errors
    /// - `08001` if the server cannot be reached or refuses the connection.
    /// - `38000` if the password command fails, `57014` if time is up.
    pub fn open(options: &Options, limit: Limit<'_>) -> Result<Connection> {
        let command = options.password_command.as_deref();
        let password = command
            .map(|command| password::from_command(command, &limit))
            .transpose()?;
        let parameters = options.parameters(password.as_deref())?;
        // This runs in a thread, because neither name lookups nor libpq's waits for one host after
        // the other can be aborted. An abandoned thread ends by itself.
        let (give, take) = channel();
        let thread = std::thread::Builder::new().name("connect".to_string());
        let thread = thread.spawn(move || {
            let _ = give.send(Handle::connect(&with_connect_timeout(parameters)));
        });
        thread.map_err(|e| Error::new("08001", format!("could not start a thread: {e}")))?;
        let handle = loop {
            match take.recv_timeout(limit.wait()?) {
                Ok(handle) => break handle,
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        let handle = handle.ok_or_else(|| Error::new("53200", "out of memory"))?;
        if !handle.is_connected() {
            return Err(Error::new("08001", "could not connect").detail(handle.message()));
        }
        if is_console(&handle) {
            let error = Error::new(
                "0A000",
                "connected to the console of a pooler, not to a database",
            );
            return Err(error.hint("Connect to a database that the pooler serves."));
        }
        keep_alive(&handle);
        let host = host_and_port(&handle);
        Ok(Connection {
            handle: Some(handle),
            host,
        })
    }

    /// Asks in the simple protocol. Statements are separated by semicolons and form
    /// one transaction. Returns one answer per statement that has rows.
    ///
    /// # Errors
    /// - The server's errors; the connection stays usable.
    /// - `08006` if the connection is lost.
    /// - `57014` if time is up. The server is requested to end the question. Unless it does so
    ///   within `GRACE`, the connection is closed.
    pub fn query(&mut self, sql: &str, limit: Limit<'_>) -> Result<Vec<Answer>> {
        let sql =
            CString::new(sql).map_err(|_| Error::new("22021", "query contains a zero byte"))?;
        let Some(handle) = &mut self.handle else {
            return Err(Error::new("08003", "not connected to the server"));
        };
        match ask(handle, &sql, limit) {
            Ok(result) => result,
            Err(error) if error.code == CANCELED => {
                self.stop();
                Err(error)
            }
            Err(error) => {
                self.handle = None;
                Err(error)
            }
        }
    }

    /// Asks one statement with values for `$1`, `$2`… as text. `each` gets an answer with one row
    /// at a time. If `each` fails or time is up, the question is cancelled on the server.
    ///
    /// # Errors
    /// The error of `each`; otherwise as [`Connection::query`].
    pub fn rows<E: From<Error>>(
        &mut self,
        sql: &str,
        values: &[Option<String>],
        limit: Limit<'_>,
        each: &mut dyn FnMut(&Answer) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let no_zero = |_| Error::new("22021", "query contains a zero byte");
        let text = |text: &str| CString::new(text).map_err(no_zero);
        let sql = text(sql)?;
        let values = values.iter().map(|v| v.as_deref().map(text).transpose());
        let values = values.collect::<Result<Vec<_>>>()?;
        let Some(handle) = &mut self.handle else {
            return Err(Error::new("08003", "not connected to the server").into());
        };
        handle.take_notices();
        let streamed = match handle.send_values(&sql, &values) {
            true => stream(handle, limit, each),
            false => Err(Ended::Lost(lost(handle).into())),
        };
        match streamed {
            Ok(result) => result,
            Err(Ended::Lost(error)) => {
                self.handle = None;
                Err(error)
            }
            Err(Ended::Stopped(error)) => {
                self.stop();
                Err(error)
            }
        }
    }

    /// Notices that came with the last answer, in order; at most a hundred.
    pub fn take_notices(&mut self) -> Vec<Error> {
        let handle = self.handle.as_mut();
        handle.map_or_else(Vec::new, Handle::take_notices)
    }

    /// Ends the running question. Gives up the connection unless the server ends it
    /// soon.
    fn stop(&mut self) {
        let Some(mut handle) = self.handle.take() else {
            return;
        };
        let Some(canceler) = handle.canceler() else {
            return;
        };
        // This runs in a thread, because libpq waits without a limit for the server to take the
        // request. The connection is kept only if the request was taken in time; a later one would
        // cancel the next question.
        let (give, take) = channel();
        let thread = std::thread::Builder::new().name("cancel".to_string());
        let thread = thread.spawn(move || {
            let _ = give.send(canceler.send());
        });
        let nobody = AtomicBool::new(false);
        let limit = Limit::within(GRACE, &nobody);
        let is_over = thread.is_ok() && drain(&mut handle, limit).is_ok();
        let left = limit.deadline.saturating_duration_since(Instant::now());
        if is_over && take.recv_timeout(left).is_ok() {
            self.handle = Some(handle);
        }
    }

    /// True if the connection is usable, as far as this can be known without a question to the
    /// server.
    pub fn is_open(&self) -> bool {
        self.handle.as_ref().is_some_and(Handle::is_connected)
    }

    /// Version of the server as a number, 150004 for 15.4; 0 if the connection is lost.
    pub fn server_version(&self) -> u32 {
        let version = self.handle.as_ref().map_or(0, Handle::server_version);
        u32::try_from(version).unwrap_or(0)
    }

    /// PID of the backend as the server reported it; a pooler reports another number.
    pub fn backend_pid(&self) -> i32 {
        self.handle.as_ref().map_or(0, Handle::backend_pid)
    }

    /// A parameter that the server has reported, such as `server_encoding`.
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.handle.as_ref()?.parameter(&CString::new(name).ok()?)
    }

    /// Host and port of the connection.
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// Asks a question. The outer error ends the connection.
fn ask(handle: &mut Handle, sql: &CString, limit: Limit<'_>) -> Result<Result<Vec<Answer>>> {
    if !handle.send(sql) {
        return Err(lost(handle));
    }
    flush(handle, limit)?;
    let mut answers = Vec::new();
    let mut failed = None;
    while let Some(outcome) = next(handle, limit)? {
        match outcome.kind() {
            Kind::Rows => answers.push(Answer(outcome)),
            Kind::Done => (),
            Kind::Failed if !handle.is_connected() => return Err(lost(handle)),
            Kind::Failed => failed = failed.or(Some(outcome.error())),
            Kind::Other => return Err(no_copy()),
        }
    }
    Ok(failed.map_or(Ok(answers), Err))
}

/// Reason why no more rows come.
enum Ended<E> {
    /// The connection is lost.
    Lost(E),
    /// The caller wants no more rows.
    Stopped(E),
}

impl<E: From<Error>> From<Error> for Ended<E> {
    fn from(error: Error) -> Ended<E> {
        match error.code.as_str() {
            CANCELED => Ended::Stopped(error.into()),
            _ => Ended::Lost(error.into()),
        }
    }
}

/// Passes on rows until there are no more.
fn stream<E: From<Error>>(
    handle: &mut Handle,
    limit: Limit<'_>,
    each: &mut dyn FnMut(&Answer) -> std::result::Result<(), E>,
) -> std::result::Result<std::result::Result<(), E>, Ended<E>> {
    flush(handle, limit)?;
    let mut failed = None;
    while let Some(outcome) = next(handle, limit)? {
        // Rows may come without a wait in between, so the deadline is checked here.
        limit.wait()?;
        match outcome.kind() {
            Kind::Rows if outcome.rows() > 0 => each(&Answer(outcome)).map_err(Ended::Stopped)?,
            Kind::Rows | Kind::Done => (),
            Kind::Failed => failed = failed.or(Some(outcome.error())),
            Kind::Other => return Err(Ended::Lost(no_copy().into())),
        }
        if !handle.is_connected() {
            let error = failed.unwrap_or_else(|| lost(handle));
            return Err(Ended::Lost(error.into()));
        }
    }
    Ok(failed.map_or(Ok(()), |error| Err(error.into())))
}

/// Reads and drops the rest of an answer.
fn drain(handle: &mut Handle, limit: Limit<'_>) -> Result<()> {
    flush(handle, limit)?;
    while next(handle, limit)?.is_some() {
        limit.wait()?;
    }
    match handle.is_connected() {
        true => Ok(()),
        false => Err(lost(handle)),
    }
}

/// Sends buffered data.
fn flush(handle: &mut Handle, limit: Limit<'_>) -> Result<()> {
    while handle.flush().ok_or_else(|| lost(handle))? {
        wait(handle, PollFlags::IN | PollFlags::OUT, limit)?;
    }
    Ok(())
}

/// The next result; `None` at the end of the question.
fn next(handle: &mut Handle, limit: Limit<'_>) -> Result<Option<Outcome>> {
    while handle.is_busy() {
        wait(handle, PollFlags::IN, limit)?;
    }
    Ok(handle.result())
}

fn no_copy() -> Error {
    Error::new("0A000", "COPY is not supported")
}

/// Waits for the socket and reads from it.
fn wait(handle: &mut Handle, events: PollFlags, limit: Limit<'_>) -> Result<()> {
    let wait = limit.wait()?;
    let Some(socket) = handle.socket() else {
        return Err(lost(handle));
    };
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    let ready = poll(&mut [PollFd::new(&socket, events)], Some(&timeout));
    match ready {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Error::new(
            "08006",
            format!("could not wait for the server: {error}"),
        )),
        Ok(_) if handle.consume() => Ok(()),
        Ok(_) => Err(lost(handle)),
    }
}

/// True if the connection leads to PgBouncer's console, a database without a server.
fn is_console(handle: &Handle) -> bool {
    let version = handle.parameter(c"server_version");
    version.is_some_and(|version| version.ends_with("/bouncer"))
}

fn lost(handle: &Handle) -> Error {
    Error::new("08006", "connection to server was lost").detail(handle.message())
}

/// Makes sure that a connection to a dead peer ends, by settings that its options
/// leave open. A socket other than TCP refuses all of them.
fn keep_alive(handle: &Handle) {
    let settings = handle.settings();
    let is_given = |keyword: &str| value_of(&settings, keyword).is_some();
    let Some(socket) = handle.socket() else {
        return;
    };
    if !is_given("keepalives_idle") {
        let _ = sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE);
    }
    if !is_given("keepalives_interval") {
        let _ = sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL);
    }
    if !is_given("keepalives_count") {
        let _ = sockopt::set_tcp_keepcnt(socket, KEEPALIVE_COUNT);
    }
    if !is_given("tcp_user_timeout") {
        let _ = sockopt::set_tcp_user_timeout(socket, USER_TIMEOUT_MS);
    }
}

/// Host and port, for messages and comparisons.
fn host_and_port(handle: &Handle) -> String {
    let (host, port) = handle.host_and_port();
    format!("{}:{}", host.unwrap_or_default(), port.unwrap_or_default())
}

/// Rows of a statement.
pub struct Answer(Outcome);

impl Answer {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.0.columns()
    }

    /// Name of a column by its index, from 0.
    pub fn column_name(&self, column: usize) -> Option<String> {
        self.0.column_name(column)
    }

    /// Index of a column by its name.
    pub fn column(&self, name: &str) -> Option<usize> {
        (0..self.columns()).find(|&c| self.column_name(c).as_deref() == Some(name))
    }

    /// A value as the server prints it; `None` for null.
    pub fn bytes(&self, row: usize, column: usize) -> Option<&[u8]> {
        self.0.value(row, column)
    }

    /// A value in ASCII or UTF-8; `None` for null and other bytes.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(row, column)?).ok()
    }

    /// A number; `None` for null and other values.
    pub fn number<T: std::str::FromStr>(&self, row: usize, column: usize) -> Option<T> {
        self.text(row, column)?.parse().ok()
    }
}
