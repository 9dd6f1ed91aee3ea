//! Messages of the programs that write.

/// Lines for the server's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Information.
    Log(String),
    /// Something is wrong, but the writer continues normally.
    Warning(String),
    /// An operation failed.
    Error(String),
    /// The reason why the newest frame is not written, or why the writer ends. The sampler puts it
    /// into the server's log.
    Trouble(String),
}
