//! Checksums of many overlapping stretches of the same bytes. After damage, the search for the next
//! frame may find the start of a frame at every offset, each with a length of its own. [`Sums`]
//! keeps the checksums of the bytes before every multiple of [`STEP`]. From them, the checksum of a
//! stretch of any length takes at most `STEP` bytes at each of its two ends.

use crate::crc::crc32c;
use crc_fast::{CrcAlgorithm, checksum_combine};

/// Distance between two kept checksums (marks) in bytes.
const STEP: usize = 2_048;

/// Checksums of stretches of these bytes.
pub(crate) struct Sums<'a> {
    bytes: &'a [u8],
    /// Checksums of the bytes before each multiple of [`STEP`], as far as they were needed.
    marks: Vec<u32>,
    /// Number of bytes summed so far.
    pub(crate) work: u64,
}

impl<'a> Sums<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Sums {
            bytes,
            marks: vec![crc32c(&[])],
            work: 0,
        }
    }

    /// The CRC-32C of a stretch within the bytes.
    pub(crate) fn of(&mut self, from: usize, to: usize) -> u32 {
        if to - from <= 2 * STEP {
            self.work += (to - from) as u64;
            return crc32c(&self.bytes[from..to]);
        }
        let whole = self.before(to);
        whole ^ combine(self.before(from), 0, to - from)
    }

    /// The checksum of all bytes before the byte with index `place`.
    fn before(&mut self, place: usize) -> u32 {
        while self.marks.len() <= place / STEP {
            let at = (self.marks.len() - 1) * STEP;
            let sum = self.extended(self.marks.len() - 1, at + STEP);
            self.marks.push(sum);
        }
        self.extended(place / STEP, place)
    }

    /// The checksum of all bytes before the byte with index `place`, computed from the checksum at
    /// `mark`, the last mark before it.
    fn extended(&mut self, mark: usize, place: usize) -> u32 {
        let rest = &self.bytes[mark * STEP..place];
        self.work += rest.len() as u64;
        combine(self.marks[mark], crc32c(rest), rest.len())
    }
}

/// The checksum of two consecutive stretches, from their own checksums.
fn combine(first: u32, second: u32, second_bytes: usize) -> u32 {
    let (first, second) = (u64::from(first), u64::from(second));
    let iscsi = CrcAlgorithm::Crc32Iscsi;
    checksum_combine(iscsi, first, second, second_bytes as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_the_checksum_of_its_bytes() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n * n / 7) as u8).collect();
        let mut sums = Sums::new(&bytes);
        let places = [0, 1, 2_047, 2_048, 2_049, 6_144, 9_999, 20_000];
        for from in places {
            for to in places.into_iter().filter(|to| *to >= from) {
                assert_eq!(sums.of(from, to), crc32c(&bytes[from..to]), "{from}..{to}");
            }
        }
    }
}
