//! How a part is read: by totals, or by its samples and why.

/// How a pass reads a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its file's totals answer.
    Totals,
    /// The same, but of a key that is not among the largest of the file the
    /// samples are read.
    TotalsOfLargest,
    /// Its samples are added up.
    Samples(Why),
}

impl Way {
    /// Totals answer.
    pub fn is_by_totals(self) -> bool {
        matches!(self, Way::Totals | Way::TotalsOfLargest)
    }
}

/// Why totals do not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// They are not to be used.
    Off,
    /// They know only what counts as load, all together.
    Selection,
    /// There are none by these keys.
    Keys,
    /// Keys that were not chosen are put together by what is read.
    Rest,
    /// The part is of a log, which has none.
    Log,
    /// Its file has none of these.
    NoTotals,
    /// The window or a bucket begins or ends within a minute, or within a
    /// group where there are no minutes.
    Cut,
}
