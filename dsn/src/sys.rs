//! All unsafe code of the crate: calls of libpq. Pointers stay within this file.
//! A pointer is valid as long as its owner lives. One thread at a time uses an
//! owner, as libpq demands (`Send`, not `Sync`).

use crate::error::Error;
use pq_sys::{
    _PQconninfoOption, ConnStatusType, ExecStatusType, PGcancel, PGconn, PGresult, PQbackendPID,
    PQcancel, PQclear, PQconnectStartParams, PQconnectdbParams, PQconninfo, PQconninfoFree,
    PQconninfoParse, PQconsumeInput, PQerrorMessage, PQfinish, PQflush, PQfname, PQfreeCancel,
    PQfreemem, PQgetCancel, PQgetResult, PQgetisnull, PQgetlength, PQgetvalue, PQhost, PQisBusy,
    PQnfields, PQntuples, PQparameterStatus, PQport, PQresultErrorField, PQresultErrorMessage,
    PQresultStatus, PQsendQuery, PQsendQueryParams, PQserverVersion, PQsetNoticeReceiver,
    PQsetSingleRowMode, PQsetnonblocking, PQsocket, PQstatus,
};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A keyword of a connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) keyword: String,
    pub(crate) value: Option<String>,
    /// True if the value is a secret.
    pub(crate) secret: bool,
}

/// A text of libpq, in any encoding; `None` for null.
///
/// SAFETY: `text` is null or ends in a zero byte.
unsafe fn text(text: *const c_char) -> Option<String> {
    let text = NonNull::new(text.cast_mut())?;
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    Some(text.to_string_lossy().into_owned())
}

/// Reads and frees a list of options.
///
/// SAFETY: `list` is null or a list that libpq gave to its caller.
unsafe fn settings(list: *mut _PQconninfoOption) -> Vec<Setting> {
    let mut settings = Vec::new();
    if list.is_null() {
        return settings;
    }
    let mut at = list;
    // SAFETY: the list ends with an entry without a keyword; texts of an entry
    // are null or end in a zero byte.
    unsafe {
        while let Some(keyword) = text((*at).keyword) {
            settings.push(Setting {
                keyword,
                value: text((*at).val),
                secret: text((*at).dispchar).as_deref() == Some("*"),
            });
            at = at.add(1);
        }
        PQconninfoFree(list);
    }
    settings
}

/// Parses a connection string: a URI or keywords. The error is libpq's message.
pub(crate) fn parse(conninfo: &CStr) -> Result<Vec<Setting>, String> {
    let mut error: *mut c_char = null_mut();
    // SAFETY: both arguments are valid; list and error are ours to free.
    unsafe {
        let list = PQconninfoParse(conninfo.as_ptr(), &mut error);
        if list.is_null() {
            let message = text(error).unwrap_or_else(|| "out of memory".to_string());
            PQfreemem(error.cast());
            return Err(message.trim_end().to_string());
        }
        Ok(settings(list))
    }
}

/// Keywords and values as two arrays that end with null, valid as long as `settings`.
fn arrays(settings: &[(CString, CString)]) -> [Vec<*const c_char>; 2] {
    let end = std::iter::once(null());
    [
        settings
            .iter()
            .map(|s| s.0.as_ptr())
            .chain(end.clone())
            .collect(),
        settings.iter().map(|s| s.1.as_ptr()).chain(end).collect(),
    ]
}

/// All keywords with the values that a connection by `settings` would use. They come from
/// `settings`, their service, the environment or libpq. Empty if memory is exhausted. The look-up
/// of a service by LDAP can take seconds.
pub(crate) fn resolved(settings: &[(CString, CString)]) -> Vec<Setting> {
    // libpq resolves a service only to connect. It checks this value before it looks up a name or
    // opens a socket.
    let no_such_mode = (c"sslmode".to_owned(), c"resolve only".to_owned());
    let settings = [settings, &[no_such_mode]].concat();
    let [keywords, values] = arrays(&settings);
    // SAFETY: both arrays end with null and live until the call returns.
    let failed = unsafe { PQconnectStartParams(keywords.as_ptr(), values.as_ptr(), 1) };
    let failed = NonNull::new(failed).map(|failed| Handle(failed, Arc::default()));
    failed.map_or_else(Vec::new, |failed| failed.settings())
}

/// The value of a keyword, unless it is missing or empty.
pub(crate) fn value_of<'s>(settings: &'s [Setting], keyword: &str) -> Option<&'s str> {
    let found = settings.iter().find(|s| s.keyword == keyword)?;
    found.value.as_deref().filter(|value| !value.is_empty())
}

/// Maximum number of notices that are kept for a question; no one reads more.
const MOST_NOTICES: usize = 100;

/// Notices since the last question.
type Notices = Mutex<Vec<Error>>;

fn lock(notices: &Notices) -> MutexGuard<'_, Vec<Error>> {
    notices.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a notice of the server.
///
/// SAFETY: `notices` belongs to a handle; `result` is valid or null.
unsafe extern "C" fn take_notice(notices: *mut c_void, result: *const PGresult) {
    let Some(result) = NonNull::new(result.cast_mut()) else {
        return;
    };
    // libpq frees the result itself.
    let outcome = ManuallyDrop::new(Outcome(result));
    // SAFETY: the handle holds it as long as it has a connection.
    let mut notices = lock(unsafe { &*notices.cast::<Notices>() });
    if notices.len() < MOST_NOTICES {
        notices.push(outcome.error());
    }
}

/// A connection, or an attempt that failed.
pub(crate) struct Handle(NonNull<PGconn>, Arc<Notices>);

// SAFETY: libpq keeps no state of a connection per thread.
unsafe impl Send for Handle {}

impl Handle {
    /// Connects, for as long as libpq takes; `None` if memory is exhausted.
    pub(crate) fn connect(settings: &[(CString, CString)]) -> Option<Handle> {
        let [keywords, values] = arrays(settings);
        // SAFETY: both arrays end with null and live until the call returns.
        let handle = unsafe { PQconnectdbParams(keywords.as_ptr(), values.as_ptr(), 1) };
        let handle = Handle(NonNull::new(handle)?, Arc::default());
        let notices = Arc::as_ptr(&handle.1).cast_mut().cast();
        // SAFETY: the connection is valid, and the handle keeps the notices.
        unsafe { PQsetNoticeReceiver(handle.raw(), Some(take_notice), notices) };
        Some(handle)
    }

    /// Returns the notices and forgets them.
    pub(crate) fn take_notices(&mut self) -> Vec<Error> {
        std::mem::take(&mut lock(&self.1))
    }

    fn raw(&self) -> *mut PGconn {
        self.0.as_ptr()
    }

    pub(crate) fn is_connected(&self) -> bool {
        // SAFETY: the connection is valid.
        unsafe { PQstatus(self.raw()) == ConnStatusType::CONNECTION_OK }
    }

    /// libpq's message about the last failure.
    pub(crate) fn message(&self) -> String {
        // SAFETY: the connection is valid and owns the text.
        let message = unsafe { text(PQerrorMessage(self.raw())) };
        message.unwrap_or_default().trim_end().to_string()
    }

    /// The socket; `None` without a connection.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the connection is valid. It keeps its socket open until it is
        // changed, which needs a mutable borrow.
        unsafe {
            let socket = PQsocket(self.raw());
            (socket >= 0).then(|| BorrowedFd::borrow_raw(socket))
        }
    }

    /// Sends a query without waiting; false if that fails.
    pub(crate) fn send(&mut self, query: &CStr) -> bool {
        // SAFETY: the connection is valid.
        unsafe {
            PQsetnonblocking(self.raw(), 1) == 0 && PQsendQuery(self.raw(), query.as_ptr()) == 1
        }
    }

    /// Sends a query with values for `$1`, `$2`…; its rows come one by one. False if that fails.
    pub(crate) fn send_values(&mut self, query: &CStr, values: &[Option<CString>]) -> bool {
        let Ok(count) = c_int::try_from(values.len()) else {
            return false;
        };
        let values: Vec<*const c_char> = values
            .iter()
            .map(|value| value.as_ref().map_or(null(), |value| value.as_ptr()))
            .collect();
        let (sql, values) = (query.as_ptr(), values.as_ptr());
        // SAFETY: the connection is valid; `count` values live until the call
        // returns. Without types, lengths and formats all values are text.
        unsafe {
            PQsetnonblocking(self.raw(), 1) == 0
                && PQsendQueryParams(self.raw(), sql, count, null(), values, null(), null(), 0) == 1
                && PQsetSingleRowMode(self.raw()) == 1
        }
    }

    /// An object that can cancel the question of this connection; `None` if the connection is lost
    /// or memory is exhausted.
    pub(crate) fn canceler(&self) -> Option<Canceler> {
        // SAFETY: the connection is valid; the result belongs to us.
        NonNull::new(unsafe { PQgetCancel(self.raw()) }).map(Canceler)
    }

    /// Sends buffered data: `Some(true)` if some is left, `None` on failure.
    pub(crate) fn flush(&mut self) -> Option<bool> {
        // SAFETY: the connection is valid.
        match unsafe { PQflush(self.raw()) } {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads what has arrived; false if the connection is lost.
    pub(crate) fn consume(&mut self) -> bool {
        // SAFETY: the connection is valid.
        unsafe { PQconsumeInput(self.raw()) == 1 }
    }

    /// True while the next result is incomplete.
    pub(crate) fn is_busy(&mut self) -> bool {
        // SAFETY: the connection is valid.
        unsafe { PQisBusy(self.raw()) == 1 }
    }

    /// The next result; `None` at the end of the query.
    pub(crate) fn result(&mut self) -> Option<Outcome> {
        // SAFETY: the connection is valid; the result belongs to us.
        NonNull::new(unsafe { PQgetResult(self.raw()) }).map(Outcome)
    }

    pub(crate) fn server_version(&self) -> i32 {
        // SAFETY: the connection is valid.
        unsafe { PQserverVersion(self.raw()) }
    }

    pub(crate) fn backend_pid(&self) -> i32 {
        // SAFETY: the connection is valid.
        unsafe { PQbackendPID(self.raw()) }
    }

    /// A parameter that the server has reported.
    pub(crate) fn parameter(&self, name: &CStr) -> Option<String> {
        // SAFETY: the connection is valid and owns the text.
        unsafe { text(PQparameterStatus(self.raw(), name.as_ptr())) }
    }

    /// Host (or socket directory) and port of the connection.
    pub(crate) fn host_and_port(&self) -> (Option<String>, Option<String>) {
        // SAFETY: the connection is valid and owns the texts.
        unsafe { (text(PQhost(self.raw())), text(PQport(self.raw()))) }
    }

    /// The options in use, including those from services and the environment.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        // SAFETY: the connection is valid; the list belongs to us.
        unsafe { settings(PQconninfo(self.raw())) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the connection is valid and is not used afterwards.
        unsafe { PQfinish(self.raw()) };
    }
}

/// Cancels the question of a connection that another thread may be using.
pub(crate) struct Canceler(NonNull<PGcancel>);

// SAFETY: libpq lets any thread use it.
unsafe impl Send for Canceler {}

impl Canceler {
    /// Waits until the server has taken the request; false if it did not.
    pub(crate) fn send(&self) -> bool {
        let mut why: [c_char; 256] = [0; 256];
        // SAFETY: it is valid, and `why` has 256 bytes.
        unsafe { PQcancel(self.0.as_ptr(), why.as_mut_ptr(), 256) == 1 }
    }
}

impl Drop for Canceler {
    fn drop(&mut self) {
        // SAFETY: it is valid and is not used afterwards.
        unsafe { PQfreeCancel(self.0.as_ptr()) };
    }
}

/// Outcome of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rows,
    Done,
    Failed,
    Other,
}

/// The result of a statement.
pub(crate) struct Outcome(NonNull<PGresult>);

// SAFETY: a result is only read.
unsafe impl Send for Outcome {}

impl Outcome {
    fn raw(&self) -> *mut PGresult {
        self.0.as_ptr()
    }

    pub(crate) fn kind(&self) -> Kind {
        // SAFETY: the result is valid.
        match unsafe { PQresultStatus(self.raw()) } {
            ExecStatusType::PGRES_TUPLES_OK | ExecStatusType::PGRES_SINGLE_TUPLE => Kind::Rows,
            ExecStatusType::PGRES_COMMAND_OK | ExecStatusType::PGRES_EMPTY_QUERY => Kind::Done,
            ExecStatusType::PGRES_FATAL_ERROR
            | ExecStatusType::PGRES_BAD_RESPONSE
            | ExecStatusType::PGRES_NONFATAL_ERROR => Kind::Failed,
            _ => Kind::Other,
        }
    }

    /// The server's error or notice.
    pub(crate) fn error(&self) -> Error {
        let message = self.field(b'M').unwrap_or_else(|| self.message());
        let code = self.field(b'C').unwrap_or_else(|| "XX000".to_string());
        let mut error = Error::new(&code, message);
        error.detail = self.field(b'D');
        error.hint = self.field(b'H');
        error
    }

    /// A field of an error by its letter in the protocol; `None` if the error lacks it.
    fn field(&self, letter: u8) -> Option<String> {
        // SAFETY: the result is valid and owns the text.
        unsafe { text(PQresultErrorField(self.raw(), c_int::from(letter))) }
    }

    fn message(&self) -> String {
        // SAFETY: the result is valid and owns the text.
        let message = unsafe { text(PQresultErrorMessage(self.raw())) };
        message.unwrap_or_default().trim_end().to_string()
    }

    pub(crate) fn rows(&self) -> usize {
        // SAFETY: the result is valid.
        usize::try_from(unsafe { PQntuples(self.raw()) }).unwrap_or(0)
    }

    pub(crate) fn columns(&self) -> usize {
        // SAFETY: the result is valid.
        usize::try_from(unsafe { PQnfields(self.raw()) }).unwrap_or(0)
    }

    pub(crate) fn column_name(&self, column: usize) -> Option<String> {
        let column = c_int::try_from(column).ok()?;
        // SAFETY: the result is valid; a missing column has no name.
        unsafe { text(PQfname(self.raw(), column)) }
    }

    /// A value; `None` for null, or without such a row or column.
    pub(crate) fn value(&self, row: usize, column: usize) -> Option<&[u8]> {
        if row >= self.rows() || column >= self.columns() {
            return None;
        }
        let (row, column) = (c_int::try_from(row).ok()?, c_int::try_from(column).ok()?);
        // SAFETY: the result is valid and has this row and column; the bytes
        // live as long as the result.
        unsafe {
            if PQgetisnull(self.raw(), row, column) == 1 {
                return None;
            }
            let length = usize::try_from(PQgetlength(self.raw(), row, column)).ok()?;
            let value = NonNull::new(PQgetvalue(self.raw(), row, column))?;
            Some(std::slice::from_raw_parts(value.as_ptr().cast(), length))
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        // SAFETY: the result is valid and is not used afterwards.
        unsafe { PQclear(self.raw()) };
    }
}
