//! The only unsafe code: calls of libpq. A pointer stays within this file; it
//! is valid as long as its owner lives, and each owner is used by one thread
//! at a time, as libpq demands (`Send`, not `Sync`).

use pq_sys::{
    _PQconninfoOption, ConnStatusType, ExecStatusType, PGconn, PGresult, PQbackendPID, PQclear,
    PQconndefaults, PQconnectdbParams, PQconninfo, PQconninfoFree, PQconninfoParse, PQconsumeInput,
    PQerrorMessage, PQfinish, PQflush, PQfname, PQfreemem, PQgetResult, PQgetisnull, PQgetlength,
    PQgetvalue, PQhost, PQisBusy, PQnfields, PQntuples, PQparameterStatus, PQport,
    PQresultErrorField, PQresultErrorMessage, PQresultStatus, PQsendQuery, PQserverVersion,
    PQsetNoticeProcessor, PQsetnonblocking, PQsocket, PQstatus,
};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null, null_mut};

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

extern "C" fn no_notice(_: *mut c_void, _: *const c_char) {}

/// A connection, or an attempt that failed.
pub(crate) struct Handle(NonNull<PGconn>);

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
        let handle = Handle(NonNull::new(handle)?);
        // SAFETY: the connection is valid; the function takes anything.
        unsafe { PQsetNoticeProcessor(handle.0.as_ptr(), Some(no_notice), null_mut()) };
        Some(handle)
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
            ExecStatusType::PGRES_TUPLES_OK => Kind::Rows,
            ExecStatusType::PGRES_COMMAND_OK | ExecStatusType::PGRES_EMPTY_QUERY => Kind::Done,
            ExecStatusType::PGRES_FATAL_ERROR
            | ExecStatusType::PGRES_BAD_RESPONSE
            | ExecStatusType::PGRES_NONFATAL_ERROR => Kind::Failed,
            _ => Kind::Other,
        }
    }

    /// A field of an error, by the letter of the protocol.
    pub(crate) fn field(&self, letter: u8) -> Option<String> {
        // SAFETY: the result is valid, the text its own.
        unsafe { text(PQresultErrorField(self.raw(), c_int::from(letter))) }
    }

    pub(crate) fn message(&self) -> String {
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
