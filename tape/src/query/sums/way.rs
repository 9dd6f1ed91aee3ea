//! How a part is read: from totals, or from its samples, with the reason.

/// How a pass reads a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// From the totals of its file.
    Totals,
    /// From the totals of its file. If a key is not among the largest of the file, samples are read
    /// after all.
    TotalsOfLargest,
    /// From its samples.
    Samples(NoTotalsReason),
}

impl ReadFrom {
    /// True if totals answer.
    pub fn is_by_totals(self) -> bool {
        matches!(self, ReadFrom::Totals | ReadFrom::TotalsOfLargest)
    }
}

/// The reason why totals do not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTotalsReason {
    /// Totals are switched off.
    Off,
    /// Totals have only load, without filters.
    Selection,
    /// There are no totals for these keys, although the file may have others.
    Keys,
    /// The pass adds up the keys that were not chosen, which needs samples.
    Rest,
    /// The part belongs to a log, which has no totals.
    Log,
    /// The file has no totals at all.
    NoTotals,
    /// The window or a bucket begins or ends within a minute, or within a group if there are no
    /// minutes.
    Cut,
}
