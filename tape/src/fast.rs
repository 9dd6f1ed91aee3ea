//! A hash map for millions of keys. Keys crafted to collide only make it slow: an import, a sealing
//! or a question takes longer.

use std::hash::{BuildHasherDefault, Hasher};

/// A hash map with [`Fold`].
pub type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Fold>>;

/// A set with [`Fold`].
pub type FastSet<K> = std::collections::HashSet<K, BuildHasherDefault<Fold>>;

/// Hash function that folds eight bytes at a time into 64 bits. It has no random seed.
#[derive(Default)]
pub struct Fold(u64);

impl Hasher for Fold {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let last = rest.iter().rev();
            self.write_u64(last.fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
