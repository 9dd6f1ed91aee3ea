//! Names of wait events, the same for all majors, because a fleet has servers of
//! several majors. PostgreSQL 17 spells some names differently than older versions.
//! 17.0 to 17.2 appended `Lock` to the names of the server's own lightweight locks.

/// Names in PostgreSQL 15 and 16, and in later versions. Sorted by the first name, for a binary
/// search.
const RENAMED: [(&str, &str); 40] = [
    ("Activity:AutoVacuumMain", "Activity:AutovacuumMain"),
    ("Activity:BgWriterHibernate", "Activity:BgwriterHibernate"),
    ("Activity:BgWriterMain", "Activity:BgwriterMain"),
    ("Activity:SysLoggerMain", "Activity:SysloggerMain"),
    ("Client:GSSOpenServer", "Client:GssOpenServer"),
    (
        "Client:LibPQWalReceiverConnect",
        "Client:LibpqwalreceiverConnect",
    ),
    (
        "Client:LibPQWalReceiverReceive",
        "Client:LibpqwalreceiverReceive",
    ),
    ("Client:SSLOpenServer", "Client:SslOpenServer"),
    ("Client:WalSenderWaitForWAL", "Client:WalSenderWaitForWal"),
    ("IO:BaseBackupRead", "IO:BasebackupRead"),
    ("IO:BaseBackupSync", "IO:BasebackupSync"),
    ("IO:BaseBackupWrite", "IO:BasebackupWrite"),
    ("IO:BufFileRead", "IO:BuffileRead"),
    ("IO:BufFileTruncate", "IO:BuffileTruncate"),
    ("IO:BufFileWrite", "IO:BuffileWrite"),
    ("IO:DSMAllocate", "IO:DsmAllocate"),
    ("IO:DSMFillZeroWrite", "IO:DsmFillZeroWrite"),
    ("IO:LockFileAddToDataDirRead", "IO:LockFileAddtodatadirRead"),
    ("IO:LockFileAddToDataDirSync", "IO:LockFileAddtodatadirSync"),
    (
        "IO:LockFileAddToDataDirWrite",
        "IO:LockFileAddtodatadirWrite",
    ),
    (
        "IO:LockFileReCheckDataDirRead",
        "IO:LockFileRecheckdatadirRead",
    ),
    ("IO:SLRUFlushSync", "IO:SlruFlushSync"),
    ("IO:SLRURead", "IO:SlruRead"),
    ("IO:SLRUSync", "IO:SlruSync"),
    ("IO:SLRUWrite", "IO:SlruWrite"),
    ("IO:WALBootstrapSync", "IO:WalBootstrapSync"),
    ("IO:WALBootstrapWrite", "IO:WalBootstrapWrite"),
    ("IO:WALCopyRead", "IO:WalCopyRead"),
    ("IO:WALCopySync", "IO:WalCopySync"),
    ("IO:WALCopyWrite", "IO:WalCopyWrite"),
    ("IO:WALInitSync", "IO:WalInitSync"),
    ("IO:WALInitWrite", "IO:WalInitWrite"),
    ("IO:WALRead", "IO:WalRead"),
    (
        "IO:WALSenderTimelineHistoryRead",
        "IO:WalsenderTimelineHistoryRead",
    ),
    ("IO:WALSync", "IO:WalSync"),
    ("IO:WALSyncMethodAssign", "IO:WalSyncMethodAssign"),
    ("IO:WALWrite", "IO:WalWrite"),
    ("IPC:BgWorkerShutdown", "IPC:BgworkerShutdown"),
    ("IPC:BgWorkerStartup", "IPC:BgworkerStartup"),
    ("IPC:BufferIO", "IPC:BufferIo"),
];

/// Prefix of lightweight locks.
const LIGHTWEIGHT: &str = "LWLock:";
/// 17.0 to 17.2 appended this to the names of the server's own lightweight locks.
const LOCK_SUFFIX: &str = "Lock";
/// Names of the server's own lightweight locks that have the suffix.
const BUILTIN_LOCKS: [&str; 42] = [
    "ShmemIndex",
    "OidGen",
    "XidGen",
    "ProcArray",
    "SInvalRead",
    "SInvalWrite",
    "WALBufMapping",
    "WALWrite",
    "ControlFile",
    "MultiXactGen",
    "RelCacheInit",
    "CheckpointerComm",
    "TwoPhaseState",
    "TablespaceCreate",
    "BtreeVacuum",
    "AddinShmemInit",
    "Autovacuum",
    "AutovacuumSchedule",
    "SyncScan",
    "RelationMapping",
    "NotifyQueue",
    "SerializableXactHash",
    "SerializableFinishedList",
    "SerializablePredicateList",
    "SyncRep",
    "BackgroundWorker",
    "DynamicSharedMemoryControl",
    "AutoFile",
    "ReplicationSlotAllocation",
    "ReplicationSlotControl",
    "CommitTs",
    "ReplicationOrigin",
    "MultiXactTruncation",
    "LogicalRepWorker",
    "XactTruncation",
    "WrapLimitsVacuum",
    "NotifyQueueTail",
    "WaitEventCustom",
    "WALSummarizer",
    "DSMRegistry",
    "InjectionPoint",
    "SerialControl",
];

/// The key of a wait event as PostgreSQL 17 and later spell it.
pub fn canonical(key: String) -> String {
    if let Ok(place) = RENAMED.binary_search_by_key(&key.as_str(), |names| names.0) {
        return RENAMED[place].1.to_string();
    }
    let name = key.strip_prefix(LIGHTWEIGHT);
    match name.and_then(|name| name.strip_suffix(LOCK_SUFFIX)) {
        Some(name) if BUILTIN_LOCKS.contains(&name) => format!("{LIGHTWEIGHT}{name}"),
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_major_has_the_names_of_17() {
        let of = |key: &str| canonical(key.to_string());
        assert!(RENAMED.is_sorted());
        for (old, new) in RENAMED {
            assert!(old.eq_ignore_ascii_case(new) && old != new, "{old}");
            assert_eq!((of(old), of(new)), (new.to_string(), new.to_string()));
        }
        for name in BUILTIN_LOCKS {
            let key = format!("LWLock:{name}");
            assert_eq!((of(&format!("{key}Lock")), of(&key)), (key.clone(), key));
        }
    }

    #[test]
    fn other_names_stay() {
        for key in [
            "LWLock:WALWrite",
            "LWLock:ourLock",
            "LWLock:Lock",
            "Extension:WALWrite",
            "Lock:tuple",
            "CPU*",
            "",
        ] {
            assert_eq!(canonical(key.to_string()), key);
        }
    }
}
