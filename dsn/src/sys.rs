//! The only unsafe code: calls of libpq. A pointer stays within this file; it
//! is valid as long as its owner lives, and each owner is used by one thread
//! at a time, as libpq demands (`Send`, not `Sync`).

use crate::error::Error;
use pq_sys::{
    _PQconninfoOption, ConnStatusType, ExecStatusType, PGcancel, PGconn, PGresult, PQbackendPID,
    PQcancel, PQclear, PQconndefaults, PQconnectdbParams, PQconninfo, PQconninfoFree,
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
    /// The value is a secret.
    pub(crate) secret: bool,
}

/// Text of libpq, which it may have in any encoding.
///
/// SAFETY: `text` is null or ends in a zero byte.
unsafe fn text(text: *const c_char) -> Option<String> {
    let text = NonNull::new(text.cast_mut())?;
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    Some(text.to_string_lossy().into_owned())
}

/// Takes over a list of options.
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

/// Reads a connection string, a URI or keywords; the error is libpq's.
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

/// What holds for keywords that a connection string does not give.
pub(crate) fn defaults() -> Vec<Setting> {
    // SAFETY: the list is ours.
    unsafe { settings(PQconndefaults()) }
}

/// Notices of one question that are kept; nobody reads more.
const MOST_NOTICES: usize = 100;

/// What the server has said since it was asked.
type Notices = Mutex<Vec<Error>>;

fn lock(notices: &Notices) -> MutexGuard<'_, Vec<Error>> {
    notices.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what the server says.
///
/// SAFETY: `notices` is that of a handle, and `result` valid or null.
unsafe extern "C" fn take_notice(notices: *mut c_void, result: *const PGresult) {
    let Some(result) = NonNull::new(result.cast_mut()) else {
        return;
    };
    // It stays libpq's own.
    let outcome = ManuallyDrop::new(Outcome(result));
    // SAFETY: the handle holds it as long as it has a connection.
    let mut notices = lock(unsafe { &*notices.cast::<Notices>() });
    if notices.len() < MOST_NOTICES {
        notices.push(outcome.error());
    }
}

/// A connection, or an attempt that failed.
pub(crate) struct Handle(NonNull<PGconn>, Arc<Notices>);

// SAFETY: libpq keeps nothing of a connection by thread.
unsafe impl Send for Handle {}

impl Handle {
    /// Connects, as long as libpq takes; `None` when memory is out.
    pub(crate) fn connect(settings: &[(CString, CString)]) -> Option<Handle> {
        let end = std::iter::once(null());
        let keywords = settings.iter().map(|s| s.0.as_ptr()).chain(end.clone());
        let values = settings.iter().map(|s| s.1.as_ptr()).chain(end);
        let (keywords, values) = (keywords.collect::<Vec<_>>(), values.collect::<Vec<_>>());
        // SAFETY: two arrays that end with null and live until the call is over.
        let handle = unsafe { PQconnectdbParams(keywords.as_ptr(), values.as_ptr(), 1) };
        let handle = Handle(NonNull::new(handle)?, Arc::default());
        let notices = Arc::as_ptr(&handle.1).cast_mut().cast();
        // SAFETY: the connection is valid, and the handle keeps the notices.
        unsafe { PQsetNoticeReceiver(handle.raw(), Some(take_notice), notices) };
        Some(handle)
    }

    /// What the server has said, which is forgotten.
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

    /// What libpq says of the last failure.
    pub(crate) fn message(&self) -> String {
        // SAFETY: the connection is valid, the text its own.
        let message = unsafe { text(PQerrorMessage(self.raw())) };
        message.unwrap_or_default().trim_end().to_string()
    }

    /// The socket; `None` without a connection.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the connection is valid, and has its socket open as long as
        // nobody changes it, which takes a mutable borrow.
        unsafe {
            let socket = PQsocket(self.raw());
            (socket >= 0).then(|| BorrowedFd::borrow_raw(socket))
        }
    }

    /// Sends a query without waiting; false when that failed.
    pub(crate) fn send(&mut self, query: &CStr) -> bool {
        // SAFETY: the connection is valid.
        unsafe {
            PQsetnonblocking(self.raw(), 1) == 0 && PQsendQuery(self.raw(), query.as_ptr()) == 1
        }
    }

    /// The same with values for `$1`, `$2`…; its rows come one by one.
    pub(crate) fn send_values(&mut self, query: &CStr, values: &[Option<CString>]) -> bool {
        let Ok(count) = c_int::try_from(values.len()) else {
            return false;
        };
        let values: Vec<*const c_char> = values
            .iter()
            .map(|value| value.as_ref().map_or(null(), |value| value.as_ptr()))
            .collect();
        let (sql, values) = (query.as_ptr(), values.as_ptr());
        // SAFETY: the connection is valid, as many values as said live until the
        // call is over; without types, lengths and formats all of them are text.
        unsafe {
            PQsetnonblocking(self.raw(), 1) == 0
                && PQsendQueryParams(self.raw(), sql, count, null(), values, null(), null(), 0) == 1
                && PQsetSingleRowMode(self.raw()) == 1
        }
    }

    /// What ends its question.
    pub(crate) fn canceler(&self) -> Option<Canceler> {
        // SAFETY: the connection is valid, what it gives is ours.
        NonNull::new(unsafe { PQgetCancel(self.raw()) }).map(Canceler)
    }

    /// Sends what waits: `Some(true)` when there is more, `None` when it failed.
    pub(crate) fn flush(&mut self) -> Option<bool> {
        // SAFETY: the connection is valid.
        match unsafe { PQflush(self.raw()) } {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Takes what has arrived; false when the connection is lost.
    pub(crate) fn consume(&mut self) -> bool {
        // SAFETY: the connection is valid.
        unsafe { PQconsumeInput(self.raw()) == 1 }
    }

    /// A result is not there yet.
    pub(crate) fn is_busy(&mut self) -> bool {
        // SAFETY: the connection is valid.
        unsafe { PQisBusy(self.raw()) == 1 }
    }

    /// The next result; `None` when the query is over.
    pub(crate) fn result(&mut self) -> Option<Outcome> {
        // SAFETY: the connection is valid, the result ours.
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
        // SAFETY: the connection is valid, the text its own.
        unsafe { text(PQparameterStatus(self.raw(), name.as_ptr())) }
    }

    /// Host (or directory of the socket) and port that were connected to.
    pub(crate) fn place(&self) -> (Option<String>, Option<String>) {
        // SAFETY: the connection is valid, the texts its own.
        unsafe { (text(PQhost(self.raw())), text(PQport(self.raw()))) }
    }

    /// The options in use, with those of services and the environment.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        // SAFETY: the connection is valid, the list ours.
        unsafe { settings(PQconninfo(self.raw())) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the connection is valid, and nobody uses it afterwards.
        unsafe { PQfinish(self.raw()) };
    }
}

/// Ends the question of a connection, which another thread may use meanwhile.
pub(crate) struct Canceler(NonNull<PGcancel>);

// SAFETY: libpq lets any thread use it.
unsafe impl Send for Canceler {}

impl Canceler {
    /// Waits until the server has taken the request; false when it did not.
    pub(crate) fn send(&self) -> bool {
        let mut why: [c_char; 256] = [0; 256];
        // SAFETY: it is valid, and the text has so many bytes.
        unsafe { PQcancel(self.0.as_ptr(), why.as_mut_ptr(), 256) == 1 }
    }
}

impl Drop for Canceler {
    fn drop(&mut self) {
        // SAFETY: it is valid, and nobody uses it afterwards.
        unsafe { PQfreeCancel(self.0.as_ptr()) };
    }
}

/// What became of a statement.
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

    /// What the server says of a failure, or beside an answer.
    pub(crate) fn error(&self) -> Error {
        let message = self.field(b'M').unwrap_or_else(|| self.message());
        let code = self.field(b'C').unwrap_or_else(|| "XX000".to_string());
        let mut error = Error::new(&code, message);
        error.detail = self.field(b'D');
        error.hint = self.field(b'H');
        error
    }

    /// A field of an error, by the letter of the protocol.
    fn field(&self, letter: u8) -> Option<String> {
        // SAFETY: the result is valid, the text its own.
        unsafe { text(PQresultErrorField(self.raw(), c_int::from(letter))) }
    }

    fn message(&self) -> String {
        // SAFETY: the result is valid, the text its own.
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
        // SAFETY: the result is valid; a column that is not there has no name.
        unsafe { text(PQfname(self.raw(), column)) }
    }

    /// A value; `None` for null, and where there is no such row or column.
    pub(crate) fn value(&self, row: usize, column: usize) -> Option<&[u8]> {
        if row >= self.rows() || column >= self.columns() {
            return None;
        }
        let (row, column) = (c_int::try_from(row).ok()?, c_int::try_from(column).ok()?);
        // SAFETY: the result is valid, row and column are in it; the bytes live
        // as long as the result.
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
        // SAFETY: the result is valid, and nobody uses it afterwards.
        unsafe { PQclear(self.raw()) };
    }
}
