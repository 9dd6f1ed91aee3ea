//! The four integers that stand for a key, each as a type of its own, so none is taken for another.
//!
//! Example: the runs of query 0x1f… have code 7, which is the reference to its row in this file's
//! dictionary. The key has the number 3 in this part, and the id 41 in this question.

macro_rules! integer {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// From its value.
            #[inline]
            pub const fn new(value: u32) -> $name {
                $name(value)
            }

            /// The value for a position in a list of all values of this kind.
            #[inline]
            pub const fn at(index: usize) -> $name {
                $name(index as u32)
            }

            /// The position in a list of all values of this kind.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

integer! {
    /// Code of a run: finds its key among the keys of the part (`keys.rs`). Several codes may have
    /// the same key.
    Code
}

integer! {
    /// Number of a key in a list of different keys: the keys of a part's runs (`group.rs`), or the
    /// keys that are added up (`sums/measure.rs`). Numbers are dense, so tables by number are small.
    Number
}

integer! {
    /// Id of a key. Equal keys of a question have the same id (`register.rs`).
    Id
}

/// The keys of up to two dimensions.
pub type Key = (Id, Id);

/// The id of null.
pub const NULL: Id = Id(0);

impl Id {
    /// The largest id, which no key has.
    pub const MAX: Id = Id(u32::MAX);
}

impl Number {
    /// Stands for no number.
    pub const NONE: Number = Number(u32::MAX);
}

/// Reference to a row of a dictionary, as columns store it: the row's index + 1; 0 is null. In a
/// damaged file the row may not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Reference(pub i64);

impl Reference {
    /// A reference without a definition; no dictionary has this many rows.
    pub const LOST: Reference = Reference(i32::MAX as i64);

    /// Index of the row. `None` for null and for negative numbers.
    #[inline]
    pub fn row(self) -> Option<usize> {
        usize::try_from(self.0.checked_sub(1)?).ok()
    }
}
